import { expect, test } from "vitest";

import type { ComparedCost, ComparedFunction } from "../api/answers";
import { costText, differenceText, isSignificant, shareText } from "./ranking";

function cost(samples: number, part: Partial<ComparedCost> = {}): ComparedCost {
  return { self: 0, total: samples * 10, samples, ...part };
}

test("few samples of a side give no share, some an interval, many both", () => {
  const shown = { share: 0.5, interval: { low: 0.4, high: 0.6 } };
  expect(shareText(cost(3), 4)).toBe("few samples");
  expect(shareText(cost(9, shown), 19)).toBe("40-60 %");
  expect(shareText(cost(10, shown), 20)).toBe("50 % (40-60)");
  expect(shareText(cost(0, { share: 0, interval: { low: 0, high: 0.1 } }), 20)).toBe("-");
});

test("costs carry their interval, by request or by second", () => {
  const both = cost(30, {
    per_span: 2e6,
    per_span_interval: { low: 1e6, high: 3e6 },
    per_second: 5e6,
  });
  expect(costText(both, "span", "nanoseconds")).toBe("2.00 ms (1.00 ms - 3.00 ms)");
  expect(costText(both, "second", "nanoseconds")).toBe("5.00 ms");
  expect(costText(cost(30, { per_span: 859.55 }), "span", "nanoseconds")).toBe("860 ns");
  expect(costText(cost(0, { per_span: 0 }), "span", "nanoseconds")).toBe("-");
});

test("a difference always has its sign", () => {
  const row: ComparedFunction = {
    function: "f",
    base: cost(30),
    target: cost(50),
    per_span_difference: 3e6,
    per_span_difference_interval: { low: -1e6, high: 4e6 },
    verdict: "not_significant",
  };
  expect(differenceText(row, "span", "nanoseconds")).toBe("+3.00 ms (-1.00 ms to +4.00 ms)");
  expect(differenceText(row, "second", "nanoseconds")).toBe("");
  expect([isSignificant(row), isSignificant({ ...row, verdict: "more" })]).toEqual([false, true]);
});
