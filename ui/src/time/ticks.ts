/** Points of a time axis: whole seconds, minutes, hours or days of the zone, with room between them. */

import type { Zone } from "./instant";
import { toMillis } from "./nano";
import { type TimeRange, lengthNs } from "./range";

const SECOND = 1_000_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Steps that people count in. */
const STEPS = [
  ...[1e6, 1e7, 1e8].flatMap((unit) => [unit, 2 * unit, 5 * unit]),
  ...[1, 2, 5, 10, 15, 30].map((step) => step * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((step) => step * MINUTE),
  ...[1, 2, 3, 6, 12].map((step) => step * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((step) => step * DAY),
];

/** At most `most` points of the range, all a whole step apart; `step_ns` says how fine they are. */
export function timeTicks(range: TimeRange, most: number, zone: Zone): { at: bigint[]; step_ns: number } {
  const length = lengthNs(range);
  const step_ns = STEPS.find((step) => length / step <= most) ?? Math.ceil(length / Math.max(1, most));
  const step = BigInt(step_ns);
  // Whole hours and days are those of the zone; its offset at the start counts for the whole range.
  const offset = zone === "utc" ? 0n : -BigInt(new Date(toMillis(range.start)).getTimezoneOffset()) * BigInt(MINUTE);
  const at: bigint[] = [];
  for (let tick = ((range.start + offset + step - 1n) / step) * step - offset; tick < range.end; tick += step)
    at.push(tick);
  return { at, step_ns };
}
