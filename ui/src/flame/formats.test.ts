import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import type { Profile } from "../api/answers";
import { collapsedText, speedscopeText } from "./formats";
import { treeOfStacks } from "./stacks";
import { functionCosts, treeOf } from "./tree";

/** The stacks that Rust's decoder is tested with. */
const SIMPLE = readFileSync(
  new URL("../../../testdata/collapsed/speedscope-samples/collapsed-simple.txt", import.meta.url),
  "utf8",
);

test("collapsed stacks come out as they went in, equal ones as one line", () => {
  const lines = SIMPLE.split("\n").filter((line) => / \d+$/.test(line));
  const sums = new Map<string, number>();
  for (const line of lines) {
    const [stack, number] = [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))];
    sums.set(stack, (sums.get(stack) ?? 0) + number * 10);
  }
  const written = collapsedText(treeOfStacks(lines)).trimEnd().split("\n");
  expect(written.toSorted()).toEqual([...sums].map(([stack, sum]) => `${stack} ${sum}`).toSorted());
  expect(written.length).toBeGreaterThan(1);
});

test("what parts frames cannot stand in a name", () => {
  const tree = treeOfStacks(["x 1"]);
  expect(collapsedText({ ...tree, frames: [tree.frames[0], { function: "a;b\nc" }] })).toBe("a:b c 10\n");
  expect(collapsedText({ ...tree, frames: [tree.frames[0], { function: "" }] })).toBe("(no name) 10\n");
});

test("speedscope gets every value once, in its unit", () => {
  const profile = JSON.parse(
    readFileSync(new URL("../../../testdata/cli/slow-request/span_profile.json", import.meta.url), "utf8"),
  ) as Profile;
  const tree = treeOf(profile);
  const written = JSON.parse(speedscopeText(tree, profile.unit, "p")) as {
    shared: { frames: { name: string }[] };
    profiles: { unit: string; endValue: number; samples: number[][]; weights: number[] }[];
  };
  const [{ unit, endValue, samples, weights }] = written.profiles;
  expect([unit, endValue, weights.reduce((sum, one) => sum + one, 0)]).toEqual([
    "nanoseconds",
    profile.total,
    profile.total,
  ]);
  const leaves = new Map(samples.map((stack, at) => [written.shared.frames[stack.at(-1) ?? 0].name, weights[at]]));
  for (const { frame, sides } of functionCosts(tree))
    if (sides[0].self > 0) expect(leaves.get(tree.frames[frame].function)).toBe(sides[0].self);
});
