/** Points in time as text, in the zone that the viewer chose. The zone is named wherever a time stands alone. */

import { toMillis } from "./nano";

/** `local` is the browser's zone. */
export type Zone = "local" | "utc";

function two(value: number): string {
  return String(value).padStart(2, "0");
}

function parts(at: bigint, zone: Zone): { date: string; clock: string; nanos: string } {
  const date = new Date(toMillis(at));
  const [year, month, day, hour, minute, second] =
    zone === "utc"
      ? [
          date.getUTCFullYear(),
          date.getUTCMonth() + 1,
          date.getUTCDate(),
          date.getUTCHours(),
          date.getUTCMinutes(),
          date.getUTCSeconds(),
        ]
      : [
          date.getFullYear(),
          date.getMonth() + 1,
          date.getDate(),
          date.getHours(),
          date.getMinutes(),
          date.getSeconds(),
        ];
  return {
    date: `${year}-${two(month)}-${two(day)}`,
    clock: `${two(hour)}:${two(minute)}:${two(second)}`,
    nanos: String(at % 1_000_000_000n).padStart(9, "0"),
  };
}

/** `2026-11-30 22:05:15.462`. */
export function instant(at: bigint, zone: Zone): string {
  const { date, clock, nanos } = parts(at, zone);
  return `${date} ${clock}.${nanos.slice(0, 3)}`;
}

/** `22:05:15`, with the date before it if it is not the day of `beside`; `decimals` of the second, 0 to 9. */
export function clock(at: bigint, zone: Zone, options: { beside?: bigint; decimals?: number } = {}): string {
  const own = parts(at, zone);
  const fraction = options.decimals ? `.${own.nanos.slice(0, options.decimals)}` : "";
  const day = options.beside !== undefined && parts(options.beside, zone).date !== own.date ? `${own.date} ` : "";
  return `${day}${own.clock}${fraction}`;
}

/** `2026-11-30 22:05`, for a field that people edit. */
export function editable(at: bigint, zone: Zone): string {
  const { date, clock } = parts(at, zone);
  return `${date} ${clock}`;
}

/** Reads what `editable` wrote, also without seconds or with a `T`; `null` if it is no time. */
export function parseInstant(text: string, zone: Zone): bigint | null {
  const found = /^(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2}))?)?$/.exec(text.trim());
  if (!found) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found
    .slice(1)
    .map((part) => Number(part ?? 0));
  const millis =
    zone === "utc"
      ? Date.UTC(year, month - 1, day, hour, minute, second)
      : new Date(year, month - 1, day, hour, minute, second).getTime();
  const back = new Date(millis);
  const dayBack = zone === "utc" ? back.getUTCDate() : back.getDate();
  // The 31st of a month with 30 days would silently become the 1st of the next.
  if (Number.isNaN(millis) || dayBack !== day) return null;
  return BigInt(millis) * 1_000_000n;
}

/** What to write beside a time: `UTC`, or `UTC+02:00` with the zone's name. */
export function zoneName(zone: Zone, at: Date = new Date()): string {
  if (zone === "utc") return "UTC";
  const minutes = -at.getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
