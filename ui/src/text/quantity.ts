/**
 * Numbers with their units: the one place where a value becomes text.
 *
 * The same rule as the command line's: three significant digits, a space, a unit. Nothing is rounded to a unit that
 * hides it: 999.6 us is `1.00 ms`.
 */

const MINUTE_NS = 60_000_000_000;

/** A duration: `85 ns`, `12.3 µs`, `484 ms`, `1.92 s`, `2 min 5 s`, `3 h 20 min`, `14 d 0 h`. */
export function duration(ns: number | bigint): string {
  const value = Number(ns);
  const sign = value < 0 ? "-" : "";
  const size = Math.abs(value);
  if (size < 1000) return `${sign}${digits(size, Number.isInteger(size) ? 0 : 2)} ns`;
  if (size < MINUTE_NS) return sign + scaled(size, 1000, ["ns", "µs", "ms", "s"]);
  const seconds = Math.floor(size / 1e9);
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  if (hours === 0) return `${sign}${minutes} min ${seconds % 60} s`;
  if (hours < 48) return `${sign}${hours} h ${minutes} min`;
  return `${sign}${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A size: `17 B`, `1.50 KiB`, `3.20 GiB`. */
export function bytes(size: number): string {
  const sign = size < 0 ? "-" : "";
  const magnitude = Math.abs(size);
  if (magnitude < 1024) return `${sign}${digits(magnitude, Number.isInteger(magnitude) ? 0 : 1)} B`;
  return sign + scaled(magnitude, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
}

/** By number of decimals. Made once: making one costs more than drawing a row. */
const FORMATS = [0, 1, 2].map(
  (decimals) => new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }),
);

/** A number with its thousands apart: `1,204`; a fraction keeps three significant digits. */
export function count(value: number): string {
  if (Number.isInteger(value)) return FORMATS[0].format(value);
  const size = Math.abs(value);
  const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return FORMATS[decimals].format(value);
}

/** A number that must be short, on an axis or in a cell: `950`, `12.3 k`, `4.10 M`. */
export function shortCount(value: number): string {
  if (Math.abs(value) < 1000) return count(value);
  const sign = value < 0 ? "-" : "";
  return sign + scaled(Math.abs(value), 1000, ["", "k", "M", "G", "T", "P"]);
}

/** `1 sample`, `12 samples`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A rate: `12.3 /s`; slow ones by the minute or hour, so that they are not 0. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return "0 /s";
  if (Math.abs(perSecond) >= 0.995) return `${shortCount(perSecond)} /s`;
  if (Math.abs(perSecond) * 60 >= 0.995) return `${count(perSecond * 60)} /min`;
  return `${count(perSecond * 3600)} /h`;
}

/** A value of a profile in its unit, as the sender spells it. */
export function value(amount: number, unit: string): string {
  switch (unit) {
    case "bytes":
      return bytes(amount);
    case "count":
    case "":
      return count(amount);
    case "nanoseconds":
    case "ns":
      return duration(amount);
    case "microseconds":
    case "us":
      return duration(amount * 1e3);
    case "milliseconds":
    case "ms":
      return duration(amount * 1e6);
    case "seconds":
    case "s":
      return duration(amount * 1e9);
    default:
      return `${count(amount)} ${unit}`;
  }
}

/** How often something sampled every `periodNs` was looked at: `19 Hz`, `0.10 Hz`. */
export function frequency(periodNs: number): string {
  const hertz = 1e9 / periodNs;
  return `${hertz >= 9.95 ? Math.round(hertz) : Number(hertz.toPrecision(2))} Hz`;
}

/** Three significant digits in the largest unit that leaves at least 1. */
function scaled(amount: number, step: number, units: readonly string[]): string {
  let rest = amount;
  let at = 0;
  // 999.5 would be printed as 1000, which belongs to the next unit.
  while (at + 1 < units.length && rest >= step - 0.5) {
    rest /= step;
    at += 1;
  }
  return `${digits(rest, rest >= 99.95 ? 0 : rest >= 9.995 ? 1 : 2)} ${units[at]}`.trimEnd();
}

function digits(amount: number, decimals: number): string {
  return amount.toFixed(decimals);
}
