import { expect, test } from "vitest";

import type { SpansHistogram } from "../api/answers";
import {
  blockOf,
  boxOf,
  cellAt,
  countOf,
  densityLegend,
  densityOf,
  durationTicks,
  regionBox,
  regionOf,
  yOf,
} from "./heatmap";

/** 10 buckets of 100 ns from 1000 on, 4 rows from 1 ms to 10 s. */
const ANSWER: SpansHistogram = {
  start_unix_nano: "1000",
  end_unix_nano: "1950",
  bucket_ns: 100,
  matched: 9,
  inspected: 20,
  count: [6, 0, 0, 0, 0, 0, 0, 0, 0, 3],
  errors: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
  duration: {
    bounds_ns: [1e6, 1e7, 1e8, 1e9, 1e10],
    cells: { bucket: [0, 0, 9], row: [0, 3, 2], count: [5, 1, 3], errors: [0, 1, 0] },
  },
  took_ms: 1,
};
const SIZE = { width: 1000, height: 400 };

test("a point finds its cell, and a point outside the nearest one", () => {
  const check = (x: number, y: number, bucket: number, row: number): void =>
    expect(cellAt(ANSWER, SIZE, x, y)).toEqual({ bucket, row });
  check(0, 0, 0, 3);
  check(999, 399, 9, 0);
  check(250, 150, 2, 2);
  check(-50, 500, 0, 0);
  check(5000, -5, 9, 3);
});

test("cells and screen agree both ways", () => {
  for (let bucket = 0; bucket < 10; bucket += 1) {
    for (let row = 0; row < 4; row += 1) {
      const box = boxOf(ANSWER, SIZE, { from: { bucket, row }, to: { bucket, row } });
      expect(cellAt(ANSWER, SIZE, box.x + box.width / 2, box.y + box.height / 2)).toEqual({ bucket, row });
    }
  }
});

test("a region has the bounds of its cells, and none along a whole side", () => {
  const region = (a: [number, number], b: [number, number]) =>
    regionOf(ANSWER, blockOf({ bucket: a[0], row: a[1] }, { bucket: b[0], row: b[1] }));
  expect(region([4, 2], [2, 1])).toEqual({ start: 1200n, end: 1500n, min_ns: 1e7, max_ns: 1e9 });
  expect(region([0, 2], [9, 3])).toEqual({ start: undefined, end: undefined, min_ns: 1e8, max_ns: undefined });
  // The last bucket is cut by the end of the range.
  expect(region([9, 0], [9, 3])).toEqual({ start: 1900n, end: 1950n, min_ns: undefined, max_ns: undefined });
});

test("a region is drawn where its cells are", () => {
  const block = blockOf({ bucket: 2, row: 1 }, { bucket: 4, row: 2 });
  expect(regionBox(ANSWER, SIZE, regionOf(ANSWER, block))).toEqual(boxOf(ANSWER, SIZE, block));
  expect(regionBox(ANSWER, SIZE, { start: 5000n, end: 6000n })).toBeNull();
  expect(regionBox(ANSWER, SIZE, { min_ns: 1e10 })).toBeNull();
});

test("counts of a block are exact", () => {
  const count = (from: [number, number], to: [number, number]) =>
    countOf(ANSWER, { from: { bucket: from[0], row: from[1] }, to: { bucket: to[0], row: to[1] } });
  expect(count([0, 0], [9, 3])).toEqual({ spans: 9, errors: 1 });
  expect(count([0, 3], [8, 3])).toEqual({ spans: 1, errors: 1 });
  expect(count([1, 0], [8, 3])).toEqual({ spans: 0, errors: 0 });
});

test("durations rise by their logarithm", () => {
  expect(yOf(ANSWER, SIZE, 1e6)).toBe(400);
  expect(yOf(ANSWER, SIZE, 1e8)).toBe(200);
  expect(Math.round(yOf(ANSWER, SIZE, Math.sqrt(10) * 1e7))).toBe(250);
  expect(yOf(ANSWER, SIZE, 1e12)).toBe(0);
});

test("ticks are round durations that have room", () => {
  const ticks = (gap: number) => durationTicks(ANSWER, SIZE, gap).map((tick) => tick.duration_ns);
  expect(ticks(100)).toEqual([1e6, 1e7, 1e8, 1e9]);
  expect(ticks(20)).toEqual([1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9]);
  expect(ticks(150)).toEqual([1e6, 1e8]);
});

test("one span is seen beside ten thousand, and the densest cell is darkest", () => {
  expect([densityOf(1, 10_000), densityOf(100, 10_000), densityOf(10_000, 10_000), densityOf(1, 1)]).toEqual([
    0, 2, 4, 4,
  ]);
});

test("the legend says from which count on a step is used", () => {
  for (const max of [1, 2, 3, 17, 10_000]) {
    for (const { density, from } of densityLegend(max)) {
      expect(densityOf(from, max)).toBe(density);
      if (from > 1) expect(densityOf(from - 1, max)).toBeLessThan(density);
    }
  }
  expect(densityLegend(3).map((step) => step.from)).toEqual([1, 2, 3]);
});

test("an answer without spans has no geometry and does not fail", () => {
  const empty = {
    ...ANSWER,
    matched: 0,
    duration: { bounds_ns: [], cells: { bucket: [], row: [], count: [], errors: [] } },
  };
  expect(durationTicks(empty, SIZE, 20)).toEqual([]);
  expect(yOf(empty, SIZE, 5)).toBe(400);
});
