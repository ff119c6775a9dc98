import { expect, test } from "vitest";

import { instant } from "./instant";
import { timeTicks } from "./ticks";

function check(length_ns: number, most: number, expected: string[]): void {
  const start = 1_796_076_315_462_194_529n;
  const { at } = timeTicks({ start, end: start + BigInt(length_ns) }, most, "utc");
  expect(at.map((tick) => instant(tick, "utc").slice(11))).toEqual(expected);
}

test("ticks are whole steps that people count in", () => {
  check(3600e9, 4, ["22:15:00.000", "22:30:00.000", "22:45:00.000", "23:00:00.000"]);
  check(60e9, 8, ["22:05:20.000", "22:05:30.000", "22:05:40.000", "22:05:50.000", "22:06:00.000", "22:06:10.000"]);
  check(20e6, 2, ["22:05:15.470", "22:05:15.480"]);
  check(2 * 86_400e9, 4, ["00:00:00.000", "12:00:00.000", "00:00:00.000", "12:00:00.000"]);
});

test("there are never more than asked for, however long the range", () => {
  for (const length of [1, 1e6, 1e9, 1e12, 1e15, 1e18]) {
    const { at } = timeTicks({ start: 0n, end: BigInt(length) }, 5, "utc");
    expect(at.length).toBeLessThanOrEqual(6);
  }
});
