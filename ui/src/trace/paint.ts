/** Draws the waterfall and the overview above it. */

import { count, duration } from "../text/quantity";
import { type Theme, markColour } from "../theme/palette";
import { token } from "../theme/theme";
import { plain } from "../flame/paint";
import type { Row, Rows, Window } from "./rows";
import { nano, offsetNs } from "../time/nano";

export const ROW = 24;
export const INDENT = 12;
/** Deeper rows are not indented further. */
const DEPTH_MAX = 24;
const PAD = 6;

export interface Picture {
  rows: Rows;
  visible: readonly number[];
  collapsed: ReadonlySet<number>;
  /** Of the whole canvas; the names take `names` of it. */
  width: number;
  names: number;
  height: number;
  scroll: number;
  window: Window;
  selected: number | undefined;
  hovered: number | undefined;
  /** Rows that a filter found; absent without one. */
  found: ReadonlySet<number> | undefined;
  traceStart: bigint;
  theme: Theme;
}

/** Where the sign that opens and closes a row is. */
export function toggleX(row: Row): number {
  return PAD + Math.min(row.depth, DEPTH_MAX) * INDENT;
}

export function context2d(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const context = canvas.getContext("2d");
  if (!context) return null;
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

export function paintWaterfall(canvas: HTMLCanvasElement, picture: Picture): void {
  const context = context2d(canvas, picture.width, picture.height);
  if (!context) return;
  const { visible, scroll, height, width, theme } = picture;
  context.fillStyle = token("--ground", theme);
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  const first = Math.max(0, Math.floor(scroll / ROW));
  const last = Math.min(visible.length - 1, Math.floor((scroll + height) / ROW));
  for (let line = first; line <= last; line += 1) paintRow(context, picture, visible[line], line * ROW - scroll);
  context.fillStyle = token("--line", theme);
  context.fillRect(picture.names - 1, 0, 1, height);
}

function paintRow(context: CanvasRenderingContext2D, picture: Picture, at: number, y: number): void {
  const { rows, theme, selected, hovered, found, width } = picture;
  const row = rows.all[at];
  if (at === selected || at === hovered) {
    context.fillStyle = token(at === selected ? "--selected" : "--hover", theme);
    context.fillRect(0, y, width, ROW);
  }
  context.globalAlpha = found && !found.has(at) ? 0.35 : 1;
  paintName(context, picture, row, y);
  paintBar(context, picture, row, y);
  context.globalAlpha = 1;
}

function paintName(context: CanvasRenderingContext2D, picture: Picture, row: Row, y: number): void {
  const { theme, names, collapsed } = picture;
  const { span } = row;
  context.save();
  context.beginPath();
  context.rect(0, y, names - 6, ROW);
  context.clip();
  let x = toggleX(row);
  const middle = y + ROW / 2;
  if (row.descendants > 0) {
    context.fillStyle = token("--muted", theme);
    context.beginPath();
    if (collapsed.has(row.at)) {
      context.moveTo(x + 1, middle - 4);
      context.lineTo(x + 7, middle);
      context.lineTo(x + 1, middle + 4);
    } else {
      context.moveTo(x, middle - 3);
      context.lineTo(x + 8, middle - 3);
      context.lineTo(x + 4, middle + 3);
    }
    context.fill();
  }
  x += 12;
  context.fillStyle = markColour(span.service, theme);
  context.fillRect(x, y + 5, 4, ROW - 10);
  x += 9;
  if (span.status === "error") {
    context.font = `700 12px ${token("--sans", theme)}`;
    context.fillStyle = token("--error", theme);
    context.fillText("!", x, middle);
    x += 8;
  }
  context.font = `12px ${token("--sans", theme)}`;
  context.fillStyle = token("--muted", theme);
  const service = cut(plain(span.service), 24);
  context.fillText(service, x, middle);
  x += context.measureText(service).width + 6;
  context.fillStyle = token("--text", theme);
  const hidden = collapsed.has(row.at) ? ` (+${count(row.descendants)})` : "";
  context.fillText(cut(plain(span.name) || "(no name)", 160) + hidden, x, middle);
  context.restore();
}

function paintBar(context: CanvasRenderingContext2D, picture: Picture, row: Row, y: number): void {
  const { theme, names, width, window, traceStart } = picture;
  const { span, cpu } = row;
  const room = width - names;
  const scale = room / (window.end_ns - window.start_ns);
  const left = names + (row.start_ns - window.start_ns) * scale;
  const wide = Math.max(2, row.duration_ns * scale);
  if (left > width || left + wide < names) return;
  context.save();
  context.beginPath();
  context.rect(names, y, room, ROW);
  context.clip();
  const [top, tall] = [y + 5, ROW - 10];
  context.fillStyle = token("--raised", theme);
  context.fillRect(left, top, wide, tall);
  context.strokeStyle = token(span.status === "error" ? "--error" : "--children", theme);
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, Math.max(1, wide - 1), tall - 1);
  if (cpu && row.duration_ns > 0) {
    // How much, not when: the part of the bar that the CPU time would take.
    const part = Math.min(1, cpu.value / row.duration_ns);
    context.fillStyle = token("--on-cpu", theme);
    context.fillRect(left, top, Math.max(1.5, wide * part), tall);
  }
  context.fillStyle = token("--text", theme);
  for (const event of span.events) {
    const x = left + offsetNs(event.time_unix_nano, traceStart + BigInt(Math.round(row.start_ns))) * scale;
    if (x >= left - 1 && x <= left + wide + 1) context.fillRect(x, top - 2, 1, tall + 4);
  }
  context.font = `11px ${token("--mono", theme)}`;
  context.fillStyle = token("--muted", theme);
  const text = `${duration(row.duration_ns)}${cpu ? `  cpu ${duration(cpu.value)} (${count(cpu.samples)})` : ""}`;
  const long = text.length * 6.65;
  const after = left + wide + 6;
  if (after + long < width) context.fillText(text, after, y + ROW / 2);
  else if (left - names > long + 8) context.fillText(text, left - long - 6, y + ROW / 2);
  else {
    // Neither side has room: within the bar, behind its CPU part.
    context.fillStyle = token("--text", theme);
    context.fillText(text, Math.min(left + wide, width) - long - 6, y + ROW / 2);
  }
  context.restore();
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}...` : text;
}

export interface Overview {
  rows: Rows;
  width: number;
  height: number;
  names: number;
  window: Window;
  /** What is being dragged. */
  draft: Window | null;
  theme: Theme;
}

/** All spans as thin lines; what is outside of the window is veiled. */
export function paintOverview(
  canvas: HTMLCanvasElement,
  { rows, width, height, names, window, draft, theme }: Overview,
): void {
  const context = context2d(canvas, width, height);
  if (!context) return;
  context.fillStyle = token("--ground", theme);
  context.fillRect(0, 0, width, height);
  const scale = (width - names) / rows.duration_ns;
  const step = Math.min(3, (height - 4) / Math.max(1, rows.all.length));
  for (const row of rows.all) {
    const x = names + row.start_ns * scale;
    const wide = Math.max(1, row.duration_ns * scale);
    const y = 2 + row.at * step;
    context.fillStyle = row.span.status === "error" ? token("--error", theme) : markColour(row.span.service, theme);
    context.globalAlpha = 0.55;
    context.fillRect(x, y, wide, Math.max(1, step - 0.5));
    if (row.cpu) {
      context.globalAlpha = 1;
      context.fillStyle = token("--on-cpu", theme);
      context.fillRect(
        x,
        y,
        Math.max(1, wide * Math.min(1, row.cpu.value / Math.max(1, row.duration_ns))),
        Math.max(1, step - 0.5),
      );
    }
  }
  context.globalAlpha = 0.6;
  context.fillStyle = token("--ground", theme);
  const shown = draft ?? window;
  const [from, to] = [names + shown.start_ns * scale, names + shown.end_ns * scale];
  context.fillRect(names, 0, Math.max(0, from - names), height);
  context.fillRect(to, 0, Math.max(0, width - to), height);
  context.globalAlpha = 1;
  context.strokeStyle = token(draft ? "--accent" : "--line-strong", theme);
  context.strokeRect(from + 0.5, 0.5, Math.max(1, to - from - 1), height - 1);
}

/** A point of the trace for a bubble: `+12.3 ms`. */
export function offsetText(ns: number): string {
  return `+${duration(Math.max(0, Math.round(ns)))}`;
}

export function startOf(trace: { start_unix_nano?: string }): bigint {
  return trace.start_unix_nano === undefined ? 0n : nano(trace.start_unix_nano);
}
