/**
 * Points on the server's clock: nanoseconds since the Unix epoch, in 64 bits.
 *
 * A JavaScript number holds 53 bits, so a point in time is a `bigint` and travels as a string of digits; lengths of time
 * are numbers of nanoseconds, exact up to 104 days and good enough beyond.
 */

/** A point in time as the API writes it: decimal digits. */
export type NanoText = string;

/** Reads what the API wrote; `null` for anything but digits. */
export function parseNano(text: string): bigint | null {
  return /^[0-9]{1,20}$/.test(text) ? BigInt(text) : null;
}

/** The point in time that a trusted answer names. */
export function nano(text: NanoText): bigint {
  return BigInt(text);
}

/** How long after `start` a point lies, in ns; negative before it. */
export function offsetNs(at: NanoText | bigint, start: NanoText | bigint): number {
  return Number(BigInt(at) - BigInt(start));
}

/** Milliseconds since the epoch, which is what `Date` takes. Loses what is below a millisecond. */
export function toMillis(at: NanoText | bigint): number {
  return Number(BigInt(at) / 1_000_000n);
}

/** From `Date.now()`. */
export function fromMillis(millis: number): bigint {
  return BigInt(Math.round(millis)) * 1_000_000n;
}
