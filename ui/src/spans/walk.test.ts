import { beforeEach, expect, test, vi } from "vitest";

import { neighbour, rememberWalk } from "./walk";

const TRACES = ["a", "b", "c"].map((digit) => digit.repeat(32));
const STEPS = TRACES.map((traceId) => ({ traceId, spanId: "1".repeat(16) }));

beforeEach(() => {
  const kept = new Map<string, string>();
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
  });
});

test("one walks in the order of the list, and stops at its ends", () => {
  rememberWalk(STEPS);
  expect(neighbour(STEPS[0], 1)).toEqual(STEPS[1]);
  expect(neighbour(STEPS[1], -1)).toEqual(STEPS[0]);
  expect(neighbour(STEPS[0], -1)).toBeNull();
  expect(neighbour(STEPS[2], 1)).toBeNull();
});

test("another span of a trace in the list stands for its place", () => {
  rememberWalk(STEPS);
  expect(neighbour({ traceId: TRACES[1], spanId: "2".repeat(16) }, 1)).toEqual(STEPS[2]);
  expect(neighbour({ traceId: TRACES[1] }, 1)).toEqual(STEPS[2]);
});

test("without a list there is nowhere to go", () => {
  expect(neighbour(STEPS[0], 1)).toBeNull();
});

test("a browser that forbids storage has no list, and no failure", () => {
  const forbid = (): never => {
    throw new Error("forbidden");
  };
  vi.stubGlobal("sessionStorage", { getItem: forbid, setItem: forbid });
  rememberWalk(STEPS);
  expect(neighbour(STEPS[0], 1)).toBeNull();
});
