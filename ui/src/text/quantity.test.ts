import { expect, test } from "vitest";

import { bytes, count, counted, duration, frequency, rate, shortCount, value } from "./quantity";

function check<T>(write: (input: T) => string, cases: readonly [T, string][]): void {
  for (const [input, expected] of cases) expect(write(input)).toBe(expected);
}

// The same cases as the command line's.
test("durations have three digits and a unit", () => {
  check<number | bigint>(duration, [
    [0, "0 ns"],
    [999, "999 ns"],
    [12_345, "12.3 µs"],
    [999_600, "1.00 ms"],
    [484_000_000, "484 ms"],
    [1_920_000_000, "1.92 s"],
    [59_960_000_000, "60.0 s"],
    [125_000_000_000, "2 min 5 s"],
    [12_000_000_000_000, "3 h 20 min"],
    [-1_500, "-1.50 µs"],
    [0.25, "0.25 ns"],
    [9_223_372_036_854_775_807n, "106751 d 23 h"],
  ]);
});

test("sizes are of 1024 and say so", () => {
  check(bytes, [
    [1023, "1023 B"],
    [1536, "1.50 KiB"],
    [3 * 2 ** 30, "3.00 GiB"],
  ]);
});

test("values keep the unit of their sender", () => {
  expect(value(1_204, "count")).toBe("1,204");
  expect(value(2_000_000, "nanoseconds")).toBe("2.00 ms");
  expect(value(7, "widgets")).toBe("7 widgets");
  expect(value(-1_000, "count")).toBe("-1,000");
  expect(value(1.5, "seconds")).toBe("1.50 s");
});

test("counts are exact, and short only where asked for", () => {
  check(count, [
    [88_310, "88,310"],
    [0.4567, "0.46"],
    [12.34, "12.3"],
  ]);
  check(shortCount, [
    [950, "950"],
    [12_345, "12.3 k"],
    [999_960, "1.00 M"],
  ]);
  expect(counted(1, "sample")).toBe("1 sample");
  expect(counted(1_204, "sample")).toBe("1,204 samples");
  expect(counted(2, "query", "queries")).toBe("2 queries");
});

test("a slow rate is not 0", () => {
  check(rate, [
    [0, "0 /s"],
    [41.26, "41.3 /s"],
    [0.5, "30 /min"],
    [0.001, "3.60 /h"],
  ]);
});

test("a period is told as its frequency", () => {
  check(frequency, [
    [10_000_000, "100 Hz"],
    [52_631_579, "19 Hz"],
    [10_000_000_000, "0.1 Hz"],
  ]);
});
