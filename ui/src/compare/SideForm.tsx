/** What one side of a comparison is: spans of a query, one trace or span, or profiles by label; and when. */

import { useState } from "react";

import type { ComparedSide } from "../api/answers";
import { Failure } from "../api/client";
import { LabelBar } from "../profiles/LabelBar";
import { useClock } from "../time/clock";
import { editable, parseInstant, zoneName } from "../time/instant";
import { parseNano } from "../time/nano";
import { resolveTime } from "../time/range";
import { useZone } from "../time/zone";
import { QueryBar } from "../traceql/QueryBar";
import { type Kind, type SideSearch, type Which, kindOf, parseTrace, questionOf, sideFigures } from "./side";

const KINDS: readonly { kind: Kind; name: string; title: string }[] = [
  { kind: "spans", name: "Spans", title: "Spans that a query selects" },
  { kind: "trace", name: "Trace or span", title: "One trace, or one span of it" },
  { kind: "profiles", name: "Profiles", title: "Profiles by label: a service, a version, a region" },
];

export function SideForm({
  which,
  side,
  answer,
  unit,
  error,
  onSide,
}: {
  which: Which;
  side: SideSearch;
  /** What it turned out to be. */
  answer: ComparedSide | undefined;
  unit: string;
  error: unknown;
  onSide: (side: SideSearch) => void;
}) {
  const clock = useClock();
  const [chosen, setChosen] = useState<Kind | null>(null);
  const kind = chosen ?? kindOf(side);
  const times = { start: side.start, end: side.end };
  const failure = error instanceof Failure && error.detail.field?.startsWith(`${which}_`) ? error : null;
  const asked = questionOf({ ...side, trace: undefined }, clock.range, clock.now);
  const range = { start: asked.start ?? clock.range.start, end: asked.end ?? clock.range.end };
  const choose = (next: SideSearch): void => {
    setChosen(null);
    onSide(next);
  };
  return (
    <section className={`side ${which}`} aria-label={which === "base" ? "Base" : "Target"}>
      <div className="side-head">
        <h2>{which === "base" ? "Base" : "Target"}</h2>
        <span className="choices" role="group" aria-label="Chosen by">
          {KINDS.map((one) => (
            <button
              key={one.kind}
              type="button"
              className="button small"
              title={one.title}
              aria-pressed={kind === one.kind}
              onClick={() => setChosen(one.kind)}
            >
              {one.name}
            </button>
          ))}
        </span>
        {kind !== "trace" && <Times side={side} onTimes={(next) => onSide({ ...side, ...next })} />}
      </div>
      {kind === "spans" && (
        <QueryBar
          q={side.q ?? ""}
          range={range}
          failure={failure}
          onRun={(q) => choose({ q: q || "{}", range: side.range, ...times })}
        />
      )}
      {kind === "trace" && <TraceField side={side} failure={failure?.message} onTrace={choose} />}
      {kind === "profiles" && (
        <LabelBar
          q={side.labels === "{}" ? "" : (side.labels ?? "")}
          label={`Label selector of the ${which}`}
          failure={failure?.message}
          onRun={(labels) => choose({ labels: labels || "{}", ...times })}
        />
      )}
      <p className="side-figures mono">{answer ? sideFigures(answer, unit).join(" · ") : " "}</p>
    </section>
  );
}

function TraceField({
  side,
  failure,
  onTrace,
}: {
  side: SideSearch;
  failure: string | undefined;
  onTrace: (side: SideSearch) => void;
}) {
  const said = side.trace ? [side.trace, side.span].filter(Boolean).join("/") : "";
  const [text, setText] = useState(said);
  const [running, setRunning] = useState(said);
  if (running !== said) {
    setRunning(said);
    setText(said);
  }
  const read = parseTrace(text);
  return (
    <form
      className="query-bar"
      onSubmit={(event) => {
        event.preventDefault();
        if (read) onTrace(read);
      }}
    >
      <div className="query-field">
        <input
          className="field mono"
          aria-label="Trace id, or trace id/span id"
          aria-invalid={failure !== undefined || (text !== "" && read === null)}
          placeholder="trace id, or trace id/span id"
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {failure !== undefined && (
          <p className="mistake error-text" role="alert">
            {failure}
          </p>
        )}
      </div>
      <button type="submit" className="button primary" disabled={read === null}>
        Run
      </button>
    </form>
  );
}

/** From and until of a side; empty fields are those of the screen. */
function Times({ side, onTimes }: { side: SideSearch; onTimes: (times: Pick<SideSearch, "start" | "end">) => void }) {
  return (
    <span className="side-times">
      <Time name="From" said={side.start} onTime={(start) => onTimes({ start, end: side.end })} />
      <Time name="Until" said={side.end} onTime={(end) => onTimes({ start: side.start, end })} />
    </span>
  );
}

function Time({
  name,
  said,
  onTime,
}: {
  name: string;
  said: string | undefined;
  onTime: (text: string | undefined) => void;
}) {
  const clock = useClock();
  const [zone] = useZone();
  const point = parseNano(said ?? "");
  const shown = point === null ? (said ?? "") : editable(point, zone);
  const [text, setText] = useState<string | null>(null);
  const typed = (text ?? shown).trim();
  const read = parseInstant(typed, zone);
  const isReadable = typed === "" || read !== null || resolveTime(typed, clock.now) !== null;
  const take = (): void => {
    if (text === null || !isReadable) return;
    setText(null);
    if (typed !== shown) onTime(typed === "" ? undefined : read === null ? typed : String(read));
  };
  return (
    <input
      className="field small mono"
      aria-label={`${name}, in ${zoneName(zone)}`}
      aria-invalid={!isReadable}
      title={`${name}: 2026-11-30 22:05:00 in ${zoneName(zone)}, or now-90m; empty is the range of the screen`}
      placeholder={name === "From" ? "from: as above" : "until: as above"}
      value={text ?? shown}
      onChange={(event) => setText(event.target.value)}
      onBlur={take}
      onKeyDown={(event) => {
        if (event.key === "Enter") take();
      }}
    />
  );
}
