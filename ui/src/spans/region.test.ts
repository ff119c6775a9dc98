import { expect, test } from "vitest";

import { type Region, durationsText, isOutside, parseRegion, regionText, restOf, selectionOf } from "./region";

const RANGE = { start: 1_000n, end: 9_000n };

function check(region: Region, text: string): void {
  expect(regionText(region)).toBe(text);
  expect(parseRegion(text)).toEqual({
    start: undefined,
    end: undefined,
    min_ns: undefined,
    max_ns: undefined,
    ...region,
  });
}

test("a region survives the way through the address", () => {
  check(
    { start: 1_796_076_315_462_194_529n, end: 1_796_076_315_462_194_530n, min_ns: 5, max_ns: 6 },
    "1796076315462194529-1796076315462194530,5-6",
  );
  check({ min_ns: 500_000_000 }, "-,500000000-");
  check({ end: 12n }, "-12,-");
});

test("what is no region is none", () => {
  for (const text of [undefined, "", "-,-", "1-2", "2-1,-", "-,6-5", "a-b,c-d"]) expect(parseRegion(text)).toBeNull();
});

test("the spans of a region are asked for with its exact bounds", () => {
  expect(selectionOf("{ kind = server }", RANGE, { start: 2_000n, end: 3_000n, min_ns: 5, max_ns: 6 })).toEqual({
    q: "{ kind = server && duration >= 5ns && duration < 6ns }",
    start: 2_000n,
    end: 3_000n,
    range: "start",
  });
});

test("a region outlives a narrower range, and one outside of it selects next to nothing", () => {
  expect(selectionOf("", RANGE, { start: 0n, end: 3_000n })).toMatchObject({ start: 1_000n, end: 3_000n });
  expect(selectionOf("", RANGE, { start: 10_000n, end: 11_000n })).toMatchObject({ start: 1_000n, end: 1_001n });
  expect(isOutside(RANGE, { start: 9_000n })).toBe(true);
  expect(isOutside(RANGE, { end: 1_000n })).toBe(true);
  expect([isOutside(RANGE, { start: 8_999n }), isOutside(RANGE, { min_ns: 5 })]).toEqual([false, false]);
});

test("the rest has the other durations, or else the other time, or else what the query leaves out", () => {
  expect(restOf("", RANGE, { min_ns: 5 })).toMatchObject({ q: "{ duration < 5ns }", ...RANGE });
  expect(restOf("{ kind = server }", RANGE, { start: 2_000n, min_ns: 5, max_ns: 9 })).toMatchObject({
    q: "{ kind = server && (duration < 5ns || duration >= 9ns) }",
    ...RANGE,
  });
  expect(restOf("", RANGE, { start: 2_000n })).toMatchObject({ start: 1_000n, end: 2_000n });
  expect(restOf("", RANGE, { end: 2_000n })).toMatchObject({ start: 2_000n, end: 9_000n });
  expect(restOf("{ kind = server }", RANGE, null)).toMatchObject({ q: "{ !(kind = server) }", ...RANGE });
  expect(restOf("", RANGE, null)).toBeNull();
});

test("durations are told as people say them", () => {
  expect([
    durationsText({ min_ns: 5e8, max_ns: 2e9 }),
    durationsText({ min_ns: 5e8 }),
    durationsText({ max_ns: 5e8 }),
    durationsText({}),
  ]).toEqual(["500 ms to 2.00 s", "at least 500 ms", "under 500 ms", "any duration"]);
});
