import { expect, test } from "vitest";

import { editable, instant, parseInstant, zoneName } from "./instant";
import { fromMillis, offsetNs, parseNano } from "./nano";
import { isRelative, rangeSearch, rangeText, relativeName, resolveRange, resolveTime, widened } from "./range";

const NOW = 1_796_076_315_462_194_529n;

function check(text: string, expected: bigint | null): void {
  expect(resolveTime(text, NOW)).toBe(expected);
}

test("an end is digits, now, or a time ago", () => {
  check("now", NOW);
  check("now-90m", NOW - 5_400_000_000_000n);
  check("now-14d", NOW - 14n * 86_400_000_000_000n);
  check("1796076315462194529", NOW);
  check("2026-11-30T22:05:00Z", 1_796_076_300_000_000_000n);
  check("2026-11-30Z", 1_795_996_800_000_000_000n);
  for (const text of [
    "",
    "yesterday",
    "2026-11-31T00:00:00Z",
    "2026-11-30T22:05:00",
    "Z",
    "now-1w",
    "now+1h",
    "-5",
    "1e18",
    "now-1h; drop",
  ])
    check(text, null);
});

test("a range is never empty and never reversed", () => {
  expect(resolveRange({ start: "now-1h", end: "now" }, NOW)).toEqual({ start: NOW - 3_600_000_000_000n, end: NOW });
  expect(resolveRange({ start: "now", end: "now" }, NOW)).toBeNull();
  expect(resolveRange({ start: "now", end: "now-1h" }, NOW)).toBeNull();
});

test("nanoseconds survive the way through the address", () => {
  const text = { start: "1796076315462194529", end: "1796076315462194530" };
  expect(rangeText(rangeSearch(text))).toEqual(text);
  expect(offsetNs(text.end, text.start)).toBe(1);
});

test("the default range is not in the address", () => {
  expect(rangeSearch({ start: "now-1h", end: "now" })).toEqual({ start: undefined, end: undefined });
  expect(rangeText({})).toEqual({ start: "now-1h", end: "now" });
  expect(rangeText(rangeSearch({ start: "now-3h", end: "now" }))).toEqual({ start: "now-3h", end: "now" });
  expect(rangeText({ end: "3600000000000" })).toEqual({ start: "0", end: "3600000000000" });
});

test("only a range with now in it moves", () => {
  expect(isRelative({ start: "now-1h", end: "now" })).toBe(true);
  expect(isRelative({ start: "1", end: "2" })).toBe(false);
});

test("a range until now is named by its length", () => {
  expect(relativeName({ start: "now-90m", end: "now" })).toBe("Last 90 min");
  expect(relativeName({ start: "now-2d", end: "now-1d" })).toBeNull();
});

test("instants are written and read in UTC", () => {
  expect(instant(NOW, "utc")).toBe("2026-11-30 22:05:15.462");
  expect(editable(NOW, "utc")).toBe("2026-11-30 22:05:15");
  expect(parseInstant("2026-11-30 22:05:15", "utc")).toBe(1_796_076_315_000_000_000n);
  expect(parseInstant("2026-11-30", "utc")).toBe(1_795_996_800_000_000_000n);
  expect(parseInstant("2026-11-31 00:00", "utc")).toBeNull();
  expect(parseInstant("30.11.2026", "utc")).toBeNull();
  expect(zoneName("utc")).toBe("UTC");
});

test("the browser's zone reads back what it wrote", () => {
  expect(parseInstant(editable(NOW, "local"), "local")).toBe(fromMillis(Number(NOW / 1_000_000_000n) * 1000));
});

test("a point in time is digits and nothing else", () => {
  expect([parseNano("12"), parseNano(" 12"), parseNano("0x12"), parseNano("123456789012345678901")]).toEqual([
    12n,
    null,
    null,
    null,
  ]);
});

test("zooming out doubles a range", () => {
  expect(widened({ start: "now-1h", end: "now" }, NOW)).toEqual({ start: "now-2h", end: "now" });
  expect(widened({ start: "now-45s", end: "now" }, NOW)).toEqual({ start: "now-90s", end: "now" });
  expect(widened({ start: "4000", end: "6000" }, NOW)).toEqual({ start: "3000", end: "7000" });
  expect(widened({ start: "0", end: "100" }, NOW)).toEqual({ start: "0", end: "150" });
  expect(widened({ start: "5", end: "4" }, NOW)).toBeNull();
});
