import { expect, test } from "vitest";

import { bars, line } from "./Sparkline";

function heights(path: string): number[] {
  return [...path.matchAll(/v(-[0-9.]+)/g)].map((match) => -Number(match[1]));
}

test("one error among thousands is seen", () => {
  expect(heights(bars([1000, 1, 0, null], 1000))).toEqual([18, 1]);
});

test("a gap in the data is a gap in the line, and a lone value a dot", () => {
  expect(line([1, 1, null, 1, null, 1], 1).replaceAll(/[0-9. ]+/g, "")).toBe("MLMhMh");
});

test("nothing has no bars", () => {
  expect(bars([0, 0], 0)).toBe("");
});
