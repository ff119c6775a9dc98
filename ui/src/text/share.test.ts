import { expect, test } from "vitest";

import { isUncertain, percent, sampledShare, wilson } from "./share";

function check(part: number, total: number, samples: number, expected: string): void {
  expect(sampledShare(part, total, samples)).toBe(expected);
}

test("few samples get no percentage", () => {
  check(3, 4, 4, "few samples");
  check(3, 6, 6, "19-81 %");
});

test("a number stands beside its interval", () => {
  check(50, 100, 100, "50 % (40-60)");
  check(100, 100, 100, "100 % (96-100)");
  check(1, 1000, 1000, "0.1 % (<0.1-0.6)");
});

test("nothing has no shares", () => {
  check(1, 0, 10, "");
  check(1, 10, 0, "");
});

test("the server's interval goes before Wilson's", () => {
  expect(sampledShare(50, 100, 100, { low: 0.1, high: 0.9 })).toBe("50 % (10-90)");
});

test("intervals are Wilson's", () => {
  const rounded = ({ low, high }: { low: number; high: number }): number[] => [
    Math.round(low * 100),
    Math.round(high * 100),
  ];
  expect(rounded(wilson(1, 1))).toEqual([21, 100]);
  expect(rounded(wilson(3 / 5, 5))).toEqual([23, 88]);
  expect(rounded(wilson(0.5, 20))).toEqual([30, 70]);
  expect(wilson(0, 0)).toEqual({ low: 0, high: 1 });
});

test("19 samples are uncertain, 20 are not", () => {
  expect([isUncertain(19), isUncertain(20)]).toEqual([true, false]);
});

test("almost all and almost nothing are neither all nor nothing", () => {
  expect([percent(0), percent(0.0001), percent(0.003), percent(0.94), percent(0.9996), percent(1)]).toEqual([
    "0 %",
    "<0.1 %",
    "0.3 %",
    "94 %",
    ">99 %",
    "100 %",
  ]);
});
