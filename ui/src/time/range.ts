/**
 * The stretch of time that a screen looks at, as it stands in the URL and as the server is asked.
 *
 * In the URL either end is absolute (digits: nanoseconds since the epoch; or ISO 8601 in UTC: `2026-11-30T22:05:00Z`) or relative to the
 * moment of asking: `now`, `now-1h`, `now-90m`. Absent ends are the default: `now-1h` until `now`. Ranges are half-open and never empty.
 */

import { parseInstant } from "./instant";
import { parseNano } from "./nano";

/** Both ends as the URL writes them. */
export interface RangeText {
  start: string;
  end: string;
}

/** Both ends as points in time; `start < end`. */
export interface TimeRange {
  start: bigint;
  end: bigint;
}

/** What is looked at when nobody said. */
export const RANGE_DEFAULT: RangeText = { start: "now-1h", end: "now" };

/** What the picker offers. */
export const RANGE_PRESETS: readonly RangeText[] = [
  "5m",
  "15m",
  "30m",
  "1h",
  "3h",
  "6h",
  "12h",
  "24h",
  "2d",
  "7d",
  "14d",
].map((ago) => ({
  start: `now-${ago}`,
  end: "now",
}));

const UNIT_NAMES: Record<string, string> = { s: "s", m: "min", h: "h", d: "d" };

/** `Last 90 min` for a range from some time ago until now; `null` for others. */
export function relativeName(text: RangeText): string | null {
  const found = /^now-([0-9]{1,6})([smhd])$/.exec(text.start);
  return found && text.end === "now" ? `Last ${found[1]} ${UNIT_NAMES[found[2]]}` : null;
}

const UNIT_NS: Record<string, bigint> = {
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
};

/** Reads one end; `null` if it is neither digits, nor ISO 8601 in UTC, nor relative. */
export function resolveTime(text: string, now: bigint): bigint | null {
  const trimmed = text.trim();
  if (trimmed === "now") return now;
  const relative = /^now-([0-9]{1,6})([smhd])$/.exec(trimmed);
  if (relative?.[1] && relative[2]) return now - BigInt(relative[1]) * (UNIT_NS[relative[2]] ?? 0n);
  return absolute(trimmed);
}

/** Digits, or ISO 8601 in UTC. */
function absolute(text: string): bigint | null {
  return text.endsWith("Z") ? parseInstant(text.slice(0, -1), "utc") : parseNano(text);
}

/** Reads both ends; `null` unless `start < end`. */
export function resolveRange(text: RangeText, now: bigint): TimeRange | null {
  const start = resolveTime(text.start, now);
  const end = resolveTime(text.end, now);
  return start !== null && end !== null && start < end ? { start, end } : null;
}

/** Whether asking again later looks at another stretch. */
export function isRelative(text: RangeText): boolean {
  return text.start.startsWith("now") || text.end.startsWith("now");
}

/** Both ends, the absent ones filled in. */
export function rangeText(search: { start?: string | undefined; end?: string | undefined }): RangeText {
  const end = search.end ?? RANGE_DEFAULT.end;
  // A start that is not said is an hour before an end that is, as the server has it.
  const ended = search.start === undefined ? absolute(end) : null;
  if (ended !== null) return { start: String(ended - (UNIT_NS.h ?? 0n)), end };
  return { start: search.start ?? RANGE_DEFAULT.start, end };
}

/** What the URL needs to say: ends that are the default are left out. */
export function rangeSearch(text: RangeText): { start: string | undefined; end: string | undefined } {
  const isDefault = text.start === RANGE_DEFAULT.start && text.end === RANGE_DEFAULT.end;
  if (isDefault) return { start: undefined, end: undefined };
  return { start: text.start, end: text.end === RANGE_DEFAULT.end ? undefined : text.end };
}

/** The length of a range. */
export function lengthNs(range: TimeRange): number {
  return Number(range.end - range.start);
}

/** A range twice as long around the same middle; one that ends now keeps its end and reaches back further. */
export function widened(text: RangeText, now: bigint): RangeText | null {
  const range = resolveRange(text, now);
  if (range === null) return null;
  const length = range.end - range.start;
  const before = (by: bigint): bigint => (range.start > by ? range.start - by : 0n);
  if (text.end === "now") {
    const unit = ["h", "m", "s"].find((one) => (2n * length) % UNIT_NS[one] === 0n) ?? "s";
    return { start: `now-${(2n * length) / UNIT_NS[unit]}${unit}`, end: "now" };
  }
  return { start: String(before(length / 2n)), end: String(range.end + length / 2n) };
}
