/**
 * Geometry of the heatmap: buckets of time from left to right, rows of durations from bottom to top.
 *
 * Data space is cells: bucket 0 begins at the start of the answer, row r holds `bounds[r] <= duration < bounds[r + 1]`. The
 * screen is CSS pixels from the top left corner of the plot. A region is always made of whole cells, so the spans that are
 * then asked for are exactly the ones counted in them.
 */

import type { SpansHistogram } from "../api/answers";
import { nano, offsetNs } from "../time/nano";
import type { Region } from "./region";

export interface Cell {
  bucket: number;
  row: number;
}

/** Cells from `from` to `to`, both inside; `from` is the lower left one. */
export interface Block {
  from: Cell;
  to: Cell;
}

export interface Size {
  width: number;
  height: number;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** How many buckets and rows an answer has. */
export function shapeOf(answer: SpansHistogram): { buckets: number; rows: number } {
  return { buckets: answer.count.length, rows: Math.max(0, answer.duration.bounds_ns.length - 1) };
}

/** The cell under a point; points outside count as the nearest cell. */
export function cellAt(answer: SpansHistogram, size: Size, x: number, y: number): Cell {
  const { buckets, rows } = shapeOf(answer);
  const inside = (at: number, count: number): number => Math.min(count - 1, Math.max(0, Math.floor(at * count)));
  return { bucket: inside(x / size.width, buckets), row: inside(1 - y / size.height, rows) };
}

/** The block between two cells, whichever comes first. */
export function blockOf(a: Cell, b: Cell): Block {
  return {
    from: { bucket: Math.min(a.bucket, b.bucket), row: Math.min(a.row, b.row) },
    to: { bucket: Math.max(a.bucket, b.bucket), row: Math.max(a.row, b.row) },
  };
}

/** Where a block lies on the screen. */
export function boxOf(answer: SpansHistogram, size: Size, block: Block): Box {
  const { buckets, rows } = shapeOf(answer);
  const [cellWidth, cellHeight] = [size.width / buckets, size.height / rows];
  return {
    x: block.from.bucket * cellWidth,
    y: size.height - (block.to.row + 1) * cellHeight,
    width: (block.to.bucket - block.from.bucket + 1) * cellWidth,
    height: (block.to.row - block.from.row + 1) * cellHeight,
  };
}

/** The region of a block. Along a whole side it has no bound, so that it stays whole when data or range change. */
export function regionOf(answer: SpansHistogram, block: Block): Region {
  const { buckets, rows } = shapeOf(answer);
  const start = nano(answer.start_unix_nano);
  const bucketStart = (bucket: number): bigint => start + BigInt(bucket) * BigInt(answer.bucket_ns);
  const end = nano(answer.end_unix_nano);
  const blockEnd = bucketStart(block.to.bucket + 1);
  return {
    start: block.from.bucket > 0 || block.to.bucket < buckets - 1 ? bucketStart(block.from.bucket) : undefined,
    end: block.from.bucket > 0 || block.to.bucket < buckets - 1 ? (blockEnd < end ? blockEnd : end) : undefined,
    min_ns: block.from.row > 0 ? answer.duration.bounds_ns[block.from.row] : undefined,
    max_ns: block.to.row < rows - 1 ? answer.duration.bounds_ns[block.to.row + 1] : undefined,
  };
}

/** Where a region lies on the screen, at the exact place of its bounds; `null` if it is elsewhere. */
export function regionBox(answer: SpansHistogram, size: Size, region: Region): Box | null {
  const { buckets } = shapeOf(answer);
  const across = (at: bigint): number =>
    (offsetNs(at, answer.start_unix_nano) / (answer.bucket_ns * buckets)) * size.width;
  const clamp = (value: number, most: number): number => Math.min(most, Math.max(0, value));
  const left = region.start === undefined ? 0 : clamp(across(region.start), size.width);
  const right = region.end === undefined ? size.width : clamp(across(region.end), size.width);
  const bottom = region.min_ns === undefined ? size.height : yOf(answer, size, region.min_ns);
  const top = region.max_ns === undefined ? 0 : yOf(answer, size, region.max_ns);
  return right > left && bottom > top ? { x: left, y: top, width: right - left, height: bottom - top } : null;
}

/** The height of a duration on the screen; rows are log-spaced, and inside of a row it is too. */
export function yOf(answer: SpansHistogram, size: Size, duration_ns: number): number {
  const bounds = answer.duration.bounds_ns;
  const rows = bounds.length - 1;
  if (rows < 1 || duration_ns <= bounds[0]) return size.height;
  if (duration_ns >= bounds[rows]) return 0;
  const row = bounds.findLastIndex((bound) => bound <= duration_ns);
  const [low, high] = [Math.max(1, bounds[row]), Math.max(1, bounds[row + 1])];
  const part = high > low ? Math.log(Math.max(1, duration_ns) / low) / Math.log(high / low) : 0;
  return size.height * (1 - (row + part) / rows);
}

/** Counts of a block: exact, added up from its cells. */
export function countOf(answer: SpansHistogram, block: Block): { spans: number; errors: number } {
  const { bucket, row, count, errors } = answer.duration.cells;
  const sum = { spans: 0, errors: 0 };
  for (let at = 0; at < count.length; at += 1) {
    if (
      bucket[at] < block.from.bucket ||
      bucket[at] > block.to.bucket ||
      row[at] < block.from.row ||
      row[at] > block.to.row
    )
      continue;
    sum.spans += count[at];
    sum.errors += errors[at];
  }
  return sum;
}

/** Steps of density. */
export const DENSITIES = 5;

/** Which step a count has: by the logarithm, so that a few slow spans show beside thousands of fast ones. */
export function densityOf(count: number, max: number): number {
  if (max <= 1) return DENSITIES - 1;
  return Math.min(DENSITIES - 1, Math.floor((Math.log(count) / Math.log(max)) * (DENSITIES - 0.001)));
}

/** The smallest count of each step, for the legend; steps that no count can have are left out. */
export function densityLegend(max: number): { density: number; from: number }[] {
  const legend: { density: number; from: number }[] = [];
  for (let density = 0; density < DENSITIES; density += 1) {
    let from = Math.max(1, Math.floor(max ** (density / DENSITIES)));
    while (from <= max && densityOf(from, max) < density) from += 1;
    if (from <= max && densityOf(from, max) === density) legend.push({ density, from });
  }
  return legend;
}

/** Durations that the axis names: 1, 2, 5 times powers of ten, at least `gap` pixels apart. */
export function durationTicks(answer: SpansHistogram, size: Size, gap: number): { duration_ns: number; y: number }[] {
  const bounds = answer.duration.bounds_ns;
  if (bounds.length < 2) return [];
  const [low, high] = [bounds[0], bounds[bounds.length - 1]];
  for (const steps of [[1, 2, 5], [1, 5], [1]]) {
    const ticks: { duration_ns: number; y: number }[] = [];
    for (let power = 1; power <= high; power *= 10) {
      for (const step of steps) {
        const duration_ns = power * step;
        if (duration_ns >= low && duration_ns < high) ticks.push({ duration_ns, y: yOf(answer, size, duration_ns) });
      }
    }
    if (steps.length === 1 || ticks.every((tick, at) => at === 0 || ticks[at - 1].y - tick.y >= gap))
      return thinned(ticks, gap);
  }
  return [];
}

function thinned(ticks: { duration_ns: number; y: number }[], gap: number): { duration_ns: number; y: number }[] {
  let last = Number.POSITIVE_INFINITY;
  return ticks.filter((tick) => {
    if (last - tick.y < gap) return false;
    last = tick.y;
    return true;
  });
}
