/** Draws the heatmap on a canvas. Where things lie is decided in `heatmap`; here they only get their colours. */

import type { SpansHistogram } from "../api/answers";
import { duration } from "../text/quantity";
import type { Theme } from "../theme/palette";
import { token } from "../theme/theme";
import { type Zone, clock } from "../time/instant";
import { nano, offsetNs } from "../time/nano";
import { timeTicks } from "../time/ticks";
import {
  type Block,
  type Box,
  type Size,
  DENSITIES,
  boxOf,
  densityOf,
  durationTicks,
  regionBox,
  shapeOf,
} from "./heatmap";
import { GUTTER, RIGHT } from "./layout";
import type { Region } from "./region";

/** Under the plot: the labels of the time axis. */
export const AXIS = 20;
/** Above the plot, so that the top label is not cut. */
export const TOP = 6;
/** Pixels between labels. */
const LABEL_GAP = 24;
const LABEL_WIDTH = 110;

export interface Picture {
  answer: SpansHistogram;
  /** Of the whole canvas, in CSS pixels. */
  width: number;
  height: number;
  region: Region | null;
  /** What is being dragged or moved over by keys. */
  draft: Block | null;
  cursor: Block | null;
  zone: Zone;
  theme: Theme;
}

/** The plot without its axes. */
export function plotSize(width: number, height: number): Size {
  return { width: Math.max(1, width - GUTTER - RIGHT), height: Math.max(1, height - AXIS - TOP) };
}

export function paint(canvas: HTMLCanvasElement, picture: Picture): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const { theme } = picture;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(picture.width * ratio);
  canvas.height = Math.round(picture.height * ratio);
  context.scale(ratio, ratio);
  const size = plotSize(picture.width, picture.height);
  context.translate(GUTTER, TOP);
  paintAxes(context, picture, size);
  paintCells(context, picture, size);
  const region = picture.region && regionBox(picture.answer, size, picture.region);
  if (picture.draft) outline(context, boxOf(picture.answer, size, picture.draft), size, false, theme);
  else if (region) outline(context, region, size, true, theme);
  if (picture.cursor) {
    const box = boxOf(picture.answer, size, picture.cursor);
    context.strokeStyle = token("--text", theme);
    context.lineWidth = 1;
    context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
  }
}

function paintAxes(context: CanvasRenderingContext2D, { answer, zone, theme }: Picture, size: Size): void {
  context.font = `11px ${token("--mono", theme)}`;
  context.fillStyle = token("--muted", theme);
  context.strokeStyle = token("--line", theme);
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.beginPath();
  for (const tick of durationTicks(answer, size, LABEL_GAP)) {
    context.fillText(durationTick(tick.duration_ns), -6, tick.y);
    context.moveTo(0, Math.round(tick.y) + 0.5);
    context.lineTo(size.width, Math.round(tick.y) + 0.5);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  const start = nano(answer.start_unix_nano);
  const length = answer.bucket_ns * answer.count.length;
  const { at, step_ns } = timeTicks(
    { start, end: start + BigInt(length) },
    Math.max(2, Math.floor(size.width / LABEL_WIDTH)),
    zone,
  );
  for (const tick of at) {
    const x = (offsetNs(tick, start) / length) * size.width;
    const isCut = x < 30 || x > size.width - 30;
    if (!isCut) context.fillText(tickText(tick, start, step_ns, zone), x, size.height + 6);
    context.moveTo(Math.round(x) + 0.5, 0);
    context.lineTo(Math.round(x) + 0.5, size.height + 4);
  }
  context.stroke();
}

/** No seconds where all of them are 00. */
function tickText(tick: bigint, start: bigint, step_ns: number, zone: Zone): string {
  const text = clock(tick, zone, { beside: start, decimals: step_ns < 1e9 ? 3 : 0 });
  return step_ns >= 60e9 ? text.replace(/:\d\d$/, "") : text;
}

function paintCells(context: CanvasRenderingContext2D, { answer, theme }: Picture, size: Size): void {
  const colours = Array.from({ length: DENSITIES }, (_, density) => token(`--density-${density}`, theme));
  const failed = token("--error", theme);
  const { buckets, rows } = shapeOf(answer);
  const [width, height] = [size.width / buckets, size.height / rows];
  const { bucket, row, count, errors } = answer.duration.cells;
  const max = count.reduce((most, value) => Math.max(most, value), 0);
  // A gap of a pixel between cells, unless they are too small for one.
  const gap = Math.min(width, height) >= 4 ? 1 : 0;
  for (let at = 0; at < count.length; at += 1) {
    const x = bucket[at] * width;
    const y = size.height - (row[at] + 1) * height;
    context.fillStyle = colours[densityOf(count[at], max)];
    context.fillRect(x, y, Math.max(1, width - gap), Math.max(1, height - gap));
    if (errors[at] > 0) {
      context.fillStyle = failed;
      // As wide as its share, and never too narrow to be seen.
      const part = Math.max(2, ((width - gap) * errors[at]) / count[at]);
      context.fillRect(x, y + height - gap - Math.max(2, height / 3), part, Math.max(2, height / 3));
    }
  }
}

/** What lies outside of the box is veiled. */
function outline(context: CanvasRenderingContext2D, box: Box, size: Size, isSettled: boolean, theme: Theme): void {
  context.save();
  context.globalAlpha = isSettled ? 0.6 : 0.35;
  context.fillStyle = token("--ground", theme);
  context.beginPath();
  context.rect(0, 0, size.width, size.height);
  context.rect(box.x, box.y, box.width, box.height);
  context.fill("evenodd");
  context.restore();
  context.strokeStyle = token("--accent", theme);
  context.lineWidth = 2;
  context.strokeRect(box.x, box.y, box.width, box.height);
}

/** Ticks are powers of ten, which minutes would not show, and which must fit the margin: `10 ms`, `1000 s`. */
function durationTick(ns: number): string {
  return ns < 60e9 ? duration(ns).replace(/\.0+ /, " ") : `${ns / 1e9} s`;
}
