/**
 * The duration heatmap: time across, duration upwards, exact counts as density. Dragging selects whole cells; a click selects
 * one, a click on nothing clears. Keys do the same: arrows move, Shift extends, Enter selects.
 */

import { type KeyboardEvent, type PointerEvent, useEffect, useId, useRef, useState } from "react";

import type { SpansHistogram } from "../api/answers";
import { useKeys } from "../frame/keys";
import { useWidth } from "../parts/useWidth";
import { count, counted, duration } from "../text/quantity";
import { useTheme } from "../theme/theme";
import { type Zone, clock } from "../time/instant";
import { nano } from "../time/nano";
import { useZone } from "../time/zone";
import { type Block, type Cell, blockOf, boxOf, cellAt, countOf, densityLegend, regionOf, shapeOf } from "./heatmap";
import { GUTTER } from "./layout";
import { TOP, paint, plotSize } from "./paint";
import type { Region } from "./region";

const HEIGHT = 226;
/** Shorter drags are clicks. */
const DRAG_PX = 4;

interface Drag {
  from: Cell;
  to: Cell;
  x: number;
  y: number;
  isClick: boolean;
}

export function Heatmap({
  answer,
  region,
  onRegion,
}: {
  answer: SpansHistogram;
  region: Region | null;
  onRegion: (region: Region | null) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(place);
  const theme = useTheme();
  const [zone] = useZone();
  const [drag, setDrag] = useState<Drag | null>(null);
  const [hover, setHover] = useState<Cell | null>(null);
  // Keys: the cell they are at, and where Shift began.
  const [keyed, setKeyed] = useState<{ from: Cell; to: Cell } | null>(null);
  const help = useId();
  const size = plotSize(width, HEIGHT);

  // Only listed here: they act on the canvas while it has the focus.
  useKeys("Heatmap, while it has the focus", [
    { press: "ArrowLeft", does: "move to another cell; likewise the other arrows", run: () => false },
    { press: "Shift+ArrowLeft", does: "extend the selection", run: () => false },
    { press: "Enter", does: "select", run: () => false },
  ]);

  const draft: Block | null =
    drag && !drag.isClick
      ? blockOf(drag.from, drag.to)
      : keyed && isSpread(keyed)
        ? blockOf(keyed.from, keyed.to)
        : null;
  const cursor = keyed ? blockOf(keyed.to, keyed.to) : hover && !drag ? blockOf(hover, hover) : null;

  useEffect(() => {
    if (canvas.current && width > 0)
      paint(canvas.current, { answer, width, height: HEIGHT, region, draft, cursor, zone, theme });
  }, [answer, width, region, draft, cursor, zone, theme]);

  function cellOf(event: PointerEvent): { cell: Cell; x: number; y: number } {
    const box = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - GUTTER, event.clientY - box.top - TOP];
    return { cell: cellAt(answer, size, x, y), x, y };
  }

  function select(block: Block): void {
    const isEmptyClick =
      block.from.bucket === block.to.bucket && block.from.row === block.to.row && countOf(answer, block).spans === 0;
    onRegion(isEmptyClick ? null : regionOf(answer, block));
  }

  function onPointerDown(event: PointerEvent<HTMLCanvasElement>): void {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    const { cell, x, y } = cellOf(event);
    setKeyed(null);
    setDrag({ from: cell, to: cell, x, y, isClick: true });
  }

  function onPointerMove(event: PointerEvent<HTMLCanvasElement>): void {
    const { cell, x, y } = cellOf(event);
    setHover((before) => (before && same(before, cell) ? before : cell));
    if (drag) setDrag({ ...drag, to: cell, isClick: drag.isClick && Math.hypot(x - drag.x, y - drag.y) < DRAG_PX });
  }

  function onPointerUp(): void {
    if (!drag) return;
    setDrag(null);
    select(drag.isClick ? blockOf(drag.from, drag.from) : blockOf(drag.from, drag.to));
  }

  function onKeyDown(event: KeyboardEvent): void {
    const { buckets, rows } = shapeOf(answer);
    const step: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
      Home: [-buckets, 0],
      End: [buckets, 0],
      PageUp: [0, rows],
      PageDown: [0, -rows],
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = step[event.key];
    if (move) {
      const start = keyed?.to ?? firstCell(answer);
      const clamp = (at: number, count: number): number => Math.min(count - 1, Math.max(0, at));
      const to = keyed
        ? { bucket: clamp(start.bucket + move[0], buckets), row: clamp(start.row + move[1], rows) }
        : start;
      setKeyed({ from: event.shiftKey && keyed ? keyed.from : to, to });
    } else if (event.key === "Enter" && keyed) {
      select(blockOf(keyed.from, keyed.to));
    } else if (event.key === "Escape" && (keyed || drag)) {
      setKeyed(null);
      setDrag(null);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const told = draft ?? cursor;
  const box = told && boxOf(answer, size, told);
  return (
    <div ref={place} className="heatmap">
      <canvas
        ref={canvas}
        style={{ width, height: HEIGHT }}
        role="application"
        tabIndex={0}
        aria-label="Heatmap of spans: time across, duration upwards"
        aria-describedby={help}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setHover(null)}
        onKeyDown={onKeyDown}
        onBlur={() => setKeyed(null)}
      />
      <p id={help} className="visually-hidden">
        Arrow keys move between cells, Shift and arrow keys extend, Enter selects, Escape clears.
      </p>
      <output className="visually-hidden">{keyed && told ? blockText(answer, told, zone) : ""}</output>
      {told && box && (
        <div
          className="floating tip"
          aria-hidden="true"
          style={{
            left: Math.min(GUTTER + box.x + box.width + 8, Math.max(0, width - 250)),
            top: box.y > 60 ? TOP + box.y - 54 : TOP + box.y + box.height + 6,
          }}
        >
          {blockText(answer, told, zone)}
        </div>
      )}
      <Legend answer={answer} />
    </div>
  );
}

function same(a: Cell, b: Cell): boolean {
  return a.bucket === b.bucket && a.row === b.row;
}

function isSpread(keyed: { from: Cell; to: Cell }): boolean {
  return !same(keyed.from, keyed.to);
}

/** Where keys begin: the slowest spans, which is what one looks for. */
function firstCell(answer: SpansHistogram): Cell {
  const { bucket, row } = answer.duration.cells;
  let best = { bucket: 0, row: 0 };
  for (let at = 0; at < row.length; at += 1) if (row[at] >= best.row) best = { bucket: bucket[at], row: row[at] };
  return best;
}

/** `12:01:07 to 12:01:37, 500 ms to 631 ms: 12 spans, 1 error`. */
function blockText(answer: SpansHistogram, block: Block, zone: Zone): string {
  const start = nano(answer.start_unix_nano);
  const at = (bucket: number): string =>
    clock(start + BigInt(bucket) * BigInt(answer.bucket_ns), zone, {
      beside: start,
      decimals: answer.bucket_ns < 1e9 ? 3 : 0,
    });
  const bounds = answer.duration.bounds_ns;
  const { spans, errors } = countOf(answer, block);
  const failed = errors > 0 ? `, ${counted(errors, "error")}` : "";
  return `${at(block.from.bucket)} to ${at(block.to.bucket + 1)}, ${duration(bounds[block.from.row])} to ${duration(bounds[block.to.row + 1])}: ${counted(spans, "span")}${failed}`;
}

function Legend({ answer }: { answer: SpansHistogram }) {
  const max = answer.duration.cells.count.reduce((most, spans) => Math.max(most, spans), 0);
  const errors = answer.errors.reduce((sum, failed) => sum + failed, 0);
  return (
    <div className="heatmap-legend muted">
      <span>Spans in a cell</span>
      {densityLegend(max).map(({ density, from }) => (
        <span key={density}>
          <span className="swatch" style={{ background: `var(--density-${density})` }} />{" "}
          {from === max ? count(from) : `${count(from)}+`}
        </span>
      ))}
      {errors > 0 && (
        <span>
          <span className="swatch" style={{ background: "var(--error)" }} /> failed
        </span>
      )}
      <span className="heatmap-hint">Drag to select</span>
    </div>
  );
}
