/** The waterfall: names left, bars right, an overview on top. A canvas as high as what is on screen. */

import { type KeyboardEvent, type PointerEvent, useEffect, useId, useMemo, useRef, useState } from "react";

import { traceProfile } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { useKeys } from "../frame/keys";
import { useWidth } from "../parts/useWidth";
import { count, counted, duration } from "../text/quantity";
import { useTheme } from "../theme/theme";
import { ROW, offsetText, paintOverview, paintWaterfall, toggleX } from "./paint";
import { type Rows, type Window, ticks, visibleRows } from "./rows";

/** Of the width, for names. */
const NAMES_PART = 0.38;
const NAMES_MAX = 520;
const OVERVIEW = 54;
const LABEL_PX = 90;
/** So long the pointer stays before the reason for a missing sample is asked. */
const REST_MS = 150;
/** Shorter drags are clicks. */
const DRAG_PX = 4;

export interface WaterfallProps {
  traceId: string;
  rows: Rows;
  traceStart: bigint;
  selected: number | undefined;
  onSelect: (at: number) => void;
  collapsed: ReadonlySet<number>;
  onCollapsed: (collapsed: ReadonlySet<number>) => void;
  found: readonly number[];
  isFiltering: boolean;
}

export function Waterfall({
  traceId,
  rows,
  traceStart,
  selected,
  onSelect,
  collapsed,
  onCollapsed,
  found,
  isFiltering,
}: WaterfallProps) {
  const place = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(place);
  const theme = useTheme();
  const [height, setHeight] = useState(300);
  const [scroll, setScroll] = useState(0);
  const [hover, setHover] = useState<{ at: number; x: number; y: number } | null>(null);
  const [zoom, setZoom] = useState<Window | null>(null);
  const help = useId();
  const visible = useMemo(() => visibleRows(rows, collapsed), [rows, collapsed]);
  const foundRows = useMemo(() => (isFiltering ? new Set(found) : undefined), [found, isFiltering]);
  const whole = useMemo(() => ({ start_ns: 0, end_ns: rows.duration_ns }), [rows]);
  const window = zoom ?? whole;
  const names = Math.min(NAMES_MAX, Math.round(width * NAMES_PART));
  const hovered = hover?.at;

  useKeys("Waterfall, while it has the focus", [
    { press: "ArrowDown", does: "select the next span, or the one before with ↑", run: () => false },
    { press: "ArrowLeft", does: "collapse, or go to the parent; → opens", run: () => false },
  ]);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (!canvas.current || width <= 0) return undefined;
    const target = canvas.current;
    const request = requestAnimationFrame(() =>
      paintWaterfall(target, {
        rows,
        visible,
        collapsed,
        width,
        names,
        height,
        scroll,
        window,
        selected,
        hovered,
        found: foundRows,
        traceStart,
        theme,
      }),
    );
    return () => cancelAnimationFrame(request);
  }, [rows, visible, collapsed, width, names, height, scroll, window, selected, hovered, foundRows, traceStart, theme]);

  // A span that was selected elsewhere (address, keys, filter) comes into view; one that is in view does not move.
  useEffect(() => {
    const line = selected === undefined ? -1 : visible.indexOf(selected);
    const element = scroller.current;
    if (line < 0 || !element) return;
    if (line * ROW < element.scrollTop) element.scrollTop = line * ROW;
    else if ((line + 1) * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = (line + 1) * ROW - element.clientHeight;
  }, [selected, visible]);

  function at(event: { clientX: number; clientY: number }): { at: number; x: number; y: number } | null {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return null;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = visible[Math.floor((y + scroll) / ROW)];
    return row === undefined ? null : { at: row, x, y };
  }

  function toggle(row: number): void {
    if (rows.all[row].descendants === 0) return;
    const next = new Set(collapsed);
    if (!next.delete(row)) next.add(row);
    onCollapsed(next);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const line = selected === undefined ? -1 : visible.indexOf(selected);
    const page = Math.max(1, Math.floor(height / ROW) - 1);
    const step: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -visible.length,
      End: visible.length,
    };
    const by = step[event.key];
    if (by !== undefined) onSelect(visible[Math.min(visible.length - 1, Math.max(0, line + by))] ?? 0);
    else if (event.key === "ArrowLeft" && selected !== undefined) {
      const row = rows.all[selected];
      if (row.descendants > 0 && !collapsed.has(selected)) toggle(selected);
      else if (row.parent !== undefined) onSelect(row.parent);
    } else if (event.key === "ArrowRight" && selected !== undefined && collapsed.has(selected)) toggle(selected);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <div ref={place} className="waterfall">
      <OverviewBar
        rows={rows}
        width={width}
        names={names}
        window={window}
        onWindow={setZoom}
        isZoomed={zoom !== null}
      />
      <Axis window={window} width={width} names={names} />
      <div
        ref={scroller}
        className="waterfall-scroll"
        onScroll={(event) => {
          setScroll(event.currentTarget.scrollTop);
          setHover(null);
        }}
      >
        <div style={{ height: visible.length * ROW }}>
          <canvas
            ref={canvas}
            style={{ width, height, top: 0 }}
            role="application"
            tabIndex={0}
            aria-label={`Waterfall of ${counted(rows.all.length, "span")}`}
            aria-describedby={help}
            onPointerMove={(event: PointerEvent) => setHover(at(event))}
            onPointerLeave={() => setHover(null)}
            onClick={(event) => {
              const hit = at(event);
              if (!hit) return;
              const sign = toggleX(rows.all[hit.at]);
              if (hit.x < names && hit.x >= sign - 4 && hit.x <= sign + 12) toggle(hit.at);
              else onSelect(hit.at);
            }}
            onDoubleClick={(event) => {
              const hit = at(event);
              if (hit) toggle(hit.at);
            }}
            onKeyDown={onKeyDown}
          />
        </div>
      </div>
      <p id={help} className="visually-hidden">
        Arrow keys up and down select spans, left collapses, right opens.
      </p>
      <output className="visually-hidden">{selected === undefined ? "" : spoken(rows, selected)}</output>
      {hover && hover.x > names && (
        <Tip key={hover.at} traceId={traceId} rows={rows} at={hover.at} x={hover.x} y={hover.y} width={width} />
      )}
    </div>
  );
}

/** For screen readers and hovering: the span, how long, how much CPU, and why there is none. */
function spoken(rows: Rows, at: number): string {
  const { span, cpu, depth, descendants, duration_ns } = rows.all[at];
  const cost = cpu ? `CPU ${duration(cpu.value)} in ${counted(cpu.samples, "sample")}` : "no samples of its own";
  return `${span.service} ${span.name}, ${duration(duration_ns)}, ${cost}, ${span.status === "error" ? "failed, " : ""}level ${depth + 1}, ${count(descendants)} below`;
}

interface TipProps {
  traceId: string;
  rows: Rows;
  at: number;
  x: number;
  y: number;
  width: number;
}

function Tip({ traceId, rows, at, x, y, width }: TipProps) {
  const { span, cpu, start_ns, duration_ns, early_ns } = rows.all[at];
  return (
    <div
      className="floating tip"
      aria-hidden="true"
      style={{ left: Math.min(x + 12, Math.max(0, width - 330)), top: y + OVERVIEW + 50 }}
    >
      <div className="cut">
        <bdi>{span.service}</bdi> · <bdi>{span.name.slice(0, 200)}</bdi>
      </div>
      <div className="mono">
        {offsetText(start_ns)} · {duration(duration_ns)}
      </div>
      {cpu ? (
        <div className="mono">{`CPU ${duration(cpu.value)} · ${counted(cpu.samples, "sample")}`}</div>
      ) : (
        <WithoutSamples traceId={traceId} spanId={span.span_id} />
      )}
      {early_ns > 0 && <div className="muted">Begins {duration(early_ns)} before its parent: clocks disagree</div>}
    </div>
  );
}

/** Why a span has no samples; asked when the pointer rests on it. */
function WithoutSamples({ traceId, spanId }: { traceId: string; spanId: string }) {
  const [isResting, setResting] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setResting(true), REST_MS);
    return () => clearTimeout(timer);
  }, []);
  const { query } = useQuestion(traceProfile({ traceId, spanId }, { scope: "span" }), { enabled: isResting });
  const reason = query.data?.evidence.reasons[0];
  return <div>No samples of its own{reason ? `: ${reason.text}` : ""}</div>;
}

function Axis({ window, width, names }: { window: Window; width: number; names: number }) {
  const room = width - names;
  const marks = ticks(window, Math.max(2, Math.floor(room / LABEL_PX)));
  const x = (at: number): number => names + ((at - window.start_ns) / (window.end_ns - window.start_ns)) * room;
  return (
    <div className="waterfall-axis mono muted" aria-hidden="true">
      <span>Service and operation</span>
      {marks
        .filter((at) => x(at) < width - 50)
        .map((at) => (
          <span key={at} className="waterfall-tick" style={{ left: x(at) }}>
            {duration(at)}
          </span>
        ))}
    </div>
  );
}

function OverviewBar({
  rows,
  width,
  names,
  window,
  onWindow,
  isZoomed,
}: {
  rows: Rows;
  width: number;
  names: number;
  window: Window;
  onWindow: (window: Window | null) => void;
  isZoomed: boolean;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const room = Math.max(1, width - names);
  const nsAt = (x: number): number => Math.min(1, Math.max(0, (x - names) / room)) * rows.duration_ns;
  const draft = useMemo(
    () =>
      drag && Math.abs(drag.to - drag.from) >= DRAG_PX
        ? { start_ns: nsAt(Math.min(drag.from, drag.to)), end_ns: nsAt(Math.max(drag.from, drag.to)) }
        : null,
    // oxlint-disable-next-line react-hooks/exhaustive-deps
    [drag, rows, room, names],
  );
  useEffect(() => {
    if (canvas.current && width > 0)
      paintOverview(canvas.current, { rows, width, height: OVERVIEW, names, window, draft, theme });
  }, [rows, width, names, window, draft, theme]);
  const xOf = (event: PointerEvent): number => event.clientX - event.currentTarget.getBoundingClientRect().left;
  return (
    <div className="waterfall-overview">
      <canvas
        ref={canvas}
        style={{ width, height: OVERVIEW }}
        role="img"
        aria-label="Overview of the trace: drag to zoom into a stretch of time"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: xOf(event), to: xOf(event) });
        }}
        onPointerMove={(event) => drag && setDrag({ ...drag, to: xOf(event) })}
        onPointerUp={() => {
          if (draft) onWindow(draft);
          setDrag(null);
        }}
        onPointerCancel={() => setDrag(null)}
        onDoubleClick={() => onWindow(null)}
      />
      {isZoomed && (
        <button type="button" className="button small waterfall-reset" onClick={() => onWindow(null)}>
          Whole trace
        </button>
      )}
    </div>
  );
}
