/** The stretch of time, always visible with its zone; opens presets and two fields. */

import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useState } from "react";

import { Popover, useClosePopover } from "../parts/Popover";
import { useClock } from "../time/clock";
import { clock as clockText, editable, parseInstant, zoneName } from "../time/instant";
import {
  RANGE_DEFAULT,
  RANGE_PRESETS,
  type RangeText,
  isRelative,
  rangeSearch,
  relativeName,
  resolveRange,
  resolveTime,
  widened,
} from "../time/range";
import { useZone } from "../time/zone";
import { useKeys } from "./keys";

export function RangePicker() {
  const clock = useClock();
  const [zone] = useZone();
  const navigate = useNavigate();
  const isTrace = useRouterState({ select: (state) => state.location.pathname.startsWith("/trace/") });

  const zoomOut = (): void => {
    const wider = widened(clock.text, clock.now);
    if (wider) void navigate({ to: ".", search: (before) => ({ ...before, ...rangeSearch(wider) }) });
  };
  useKeys("Time", [
    { press: "r", does: "ask again for the latest", run: clock.refresh },
    { press: "-", does: "twice the range", run: isTrace ? () => false : zoomOut },
  ]);
  // A trace is shown whole, whatever the range.
  if (isTrace) return <ZoneOnly />;
  const { start, end } = clock.range;
  const label =
    relativeName(clock.isInvalid ? RANGE_DEFAULT : clock.text) ??
    `${clockText(start, zone, { beside: clock.now })} - ${clockText(end, zone, { beside: start })}`;
  return (
    <div className="range">
      <Popover
        label="Time range"
        title={`${editable(start, zone)} to ${editable(end, zone)} ${zoneName(zone)}`}
        className="range-dialog"
        align="right"
        button={
          <>
            {clock.isInvalid && <span className="error-text">No range in the address:</span>} {label}{" "}
            <span className="muted">{zoneName(zone)}</span>
          </>
        }
      >
        <RangeDialog />
      </Popover>
      <button type="button" className="button" aria-label="Zoom out" title="Twice the range ( - )" onClick={zoomOut}>
        −
      </button>
      <button
        type="button"
        className="button"
        aria-pressed={clock.isLive}
        disabled={!isRelative(clock.text)}
        title={isRelative(clock.text) ? "Ask again every 5 s" : "Only for a range that ends now"}
        onClick={() =>
          void navigate({
            to: ".",
            search: (before) => ({ ...before, live: clock.isLive ? undefined : ("on" as const) }),
          })
        }
      >
        Live
      </button>
      <button type="button" className="button" aria-label="Refresh" title="Ask again ( r )" onClick={clock.refresh}>
        ↻
      </button>
    </div>
  );
}

function ZoneOnly() {
  return (
    <div className="range">
      <ZoneSwitch />
    </div>
  );
}

function ZoneSwitch() {
  const [zone, setZone] = useZone();
  return (
    <fieldset className="choices plain-fieldset" aria-label="Time zone">
      <button type="button" className="button small" aria-pressed={zone === "local"} onClick={() => setZone("local")}>
        Browser ({zoneName("local")})
      </button>
      <button type="button" className="button small" aria-pressed={zone === "utc"} onClick={() => setZone("utc")}>
        UTC
      </button>
    </fieldset>
  );
}

function RangeDialog() {
  const close = useClosePopover();
  const clock = useClock();
  const [zone] = useZone();
  const [from, setFrom] = useState(() =>
    clock.text.start.startsWith("now") ? clock.text.start : editable(clock.range.start, zone),
  );
  const [until, setUntil] = useState(() =>
    clock.text.end.startsWith("now") ? clock.text.end : editable(clock.range.end, zone),
  );
  const navigate = useNavigate();

  function choose(text: RangeText): void {
    void navigate({ to: ".", search: (before) => ({ ...before, ...rangeSearch(text) }) });
    clock.refresh();
    close();
  }

  const typed = { start: timeText(from, zone, clock.now), end: timeText(until, zone, clock.now) };
  const isReadable =
    typed.start !== null &&
    typed.end !== null &&
    resolveRange({ start: typed.start, end: typed.end }, clock.now) !== null;
  return (
    <>
      <div className="range-presets">
        {RANGE_PRESETS.map((preset) => (
          <button
            key={preset.start}
            type="button"
            className="button plain"
            aria-pressed={clock.text.start === preset.start && clock.text.end === "now"}
            onClick={() => choose(preset)}
          >
            {relativeName(preset)}
          </button>
        ))}
      </div>
      <form
        className="range-fields"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReadable) choose({ start: typed.start ?? "", end: typed.end ?? "" });
        }}
      >
        <label>
          From
          <input
            className="field mono"
            value={from}
            aria-invalid={typed.start === null}
            onChange={(event) => setFrom(event.target.value)}
          />
        </label>
        <label>
          Until
          <input
            className="field mono"
            value={until}
            aria-invalid={typed.end === null}
            onChange={(event) => setUntil(event.target.value)}
          />
        </label>
        <p className="muted">
          {isReadable
            ? `In ${zoneName(zone)}`
            : "Expected 2026-11-30 22:05:00, now-90m, now or nanoseconds; the start before the end"}
        </p>
        <button type="submit" className="button primary" disabled={!isReadable}>
          Apply
        </button>
        <ZoneSwitch />
      </form>
    </>
  );
}

/** What the URL says for what was typed: relative as it is, a time as nanoseconds; `null` if it is neither. */
function timeText(typed: string, zone: "local" | "utc", now: bigint): string | null {
  const text = typed.trim();
  const instant = parseInstant(text, zone);
  if (instant !== null) return String(instant);
  return resolveTime(text, now) === null ? null : text;
}
