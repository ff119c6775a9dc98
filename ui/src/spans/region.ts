/**
 * What is selected in the heatmap: a stretch of time, a stretch of durations, or both.
 *
 * In the address `sel=START-END,MIN-MAX` in nanoseconds; an end that is not bounded is empty, as in `sel=-,500000000-`.
 * Half-open in both directions, so that regions that touch share no span.
 */

import type { Selection } from "../api/questions";
import { duration } from "../text/quantity";
import { parseNano } from "../time/nano";
import type { TimeRange } from "../time/range";
import { negated, withConditions } from "../traceql/text";

export interface Region {
  start?: bigint | undefined;
  end?: bigint | undefined;
  min_ns?: number | undefined;
  max_ns?: number | undefined;
}

/** Reads the address; `null` if it names no region. */
export function parseRegion(text: string | undefined): Region | null {
  const found = /^(\d*)-(\d*),(\d*)-(\d*)$/.exec(text ?? "");
  if (!found) return null;
  const [start, end] = [found[1], found[2]].map((part) => (part ? (parseNano(part) ?? undefined) : undefined));
  const [min_ns, max_ns] = [found[3], found[4]].map((part) => (part ? Number(part) : undefined));
  const region = { start, end, min_ns, max_ns };
  const isReversed =
    (start !== undefined && end !== undefined && start >= end) ||
    (min_ns !== undefined && max_ns !== undefined && min_ns >= max_ns);
  return isReversed || isUnbounded(region) ? null : region;
}

/** Writes it for the address. */
export function regionText(region: Region): string {
  return `${region.start ?? ""}-${region.end ?? ""},${region.min_ns ?? ""}-${region.max_ns ?? ""}`;
}

function isUnbounded(region: Region): boolean {
  return Object.values(region).every((bound) => bound === undefined);
}

/** The spans in the region, of those that `q` and `range` select by their start. */
export function selectionOf(q: string, range: TimeRange, region: Region | null): Selection {
  const start = region?.start !== undefined && region.start > range.start ? region.start : range.start;
  const end = region?.end !== undefined && region.end < range.end ? region.end : range.end;
  // A region of an address may lie outside of a range that was changed since; ask for a moment rather than for nonsense.
  const within = start < end ? { start, end } : { start: range.start, end: range.start + 1n };
  return { q: withConditions(q, durationConditions(region)), ...within, range: "start" };
}

/** Whether the range was changed so that it no longer holds any of the region. */
export function isOutside(range: TimeRange, region: Region): boolean {
  return (region.start ?? range.start) >= range.end || (region.end ?? range.end) <= range.start;
}

/** `duration >= 500000000ns`, exact to the nanosecond. */
function durationConditions(region: Region | null): string[] {
  const conditions = [];
  if (region?.min_ns !== undefined) conditions.push(`duration >= ${region.min_ns}ns`);
  if (region?.max_ns !== undefined) conditions.push(`duration < ${region.max_ns}ns`);
  return conditions;
}

/**
 * What to compare the selection with: the other durations in the whole range; for a region of time alone the time before it,
 * else after it; without a region what the query leaves out. `null` where nothing is left.
 */
export function restOf(q: string, range: TimeRange, region: Region | null): Selection | null {
  if (region === null) {
    const left = negated(q);
    return left === null ? null : { q: left, ...range, range: "start" };
  }
  const [below, above] = [region.min_ns, region.max_ns];
  if (below !== undefined || above !== undefined) {
    const others = [
      below !== undefined && `duration < ${below}ns`,
      above !== undefined && `duration >= ${above}ns`,
    ].filter((part) => part !== false);
    return {
      q: withConditions(q, [others.length > 1 ? `(${others.join(" || ")})` : (others[0] ?? "")]),
      ...range,
      range: "start",
    };
  }
  if (region.start !== undefined && region.start > range.start)
    return { q, start: range.start, end: region.start, range: "start" };
  if (region.end !== undefined && region.end < range.end)
    return { q, start: region.end, end: range.end, range: "start" };
  return null;
}

/** `500 ms to 2.00 s`, `at least 1.20 s`. */
export function durationsText(region: Region): string {
  if (region.min_ns !== undefined && region.max_ns !== undefined)
    return `${duration(region.min_ns)} to ${duration(region.max_ns)}`;
  if (region.min_ns !== undefined) return `at least ${duration(region.min_ns)}`;
  if (region.max_ns !== undefined) return `under ${duration(region.max_ns)}`;
  return "any duration";
}
