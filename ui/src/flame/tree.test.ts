import { expect, test } from "vitest";

import { treeOfStacks } from "./stacks";
import { callees, callers, functionCosts, outermost, pathTo, simplified } from "./tree";

/** Every node as `path total/samples`, sorted. */
function told(tree: ReturnType<typeof treeOfStacks>): string[] {
  const [side] = tree.sides;
  const name = (node: number): string => tree.frames[tree.frame[node]].function;
  const rows = Array.from(tree.frame, (_, node) => {
    const path = pathTo(tree, node).map(name).join(";");
    return `${path} ${side.total[node]}/${side.samples[node]}`.trim();
  });
  return rows.toSorted();
}

const STACKS = ["main;a;b 3", "main;a;a;b 2", "main;c 4", "main;c;a 1"];

test("sums of an answer are kept node by node", () => {
  expect(told(treeOfStacks(["main;a 2", "main 1"]))).toEqual(["30/3", "main 30/3", "main;a 20/2"]);
});

test("a recursive function counts once, and itself with everything it calls", () => {
  const tree = treeOfStacks(STACKS);
  const rows = functionCosts(tree).map(({ frame, sides }) => [
    tree.frames[frame].function,
    sides[0].self,
    sides[0].total,
    sides[0].samples,
  ]);
  expect(rows.toSorted()).toEqual([
    ["a", 10, 60, 6],
    ["b", 50, 50, 5],
    ["c", 40, 50, 5],
    ["main", 0, 100, 10],
  ]);
});

test("hidden frames leave their cost to their callers, and totals stay", () => {
  const tree = simplified(treeOfStacks(STACKS), {
    isHidden: (frame) => frame.function === "a",
    collapseRecursion: false,
  });
  expect(told(tree)).toEqual(["100/10", "main 100/10", "main;b 50/5", "main;c 50/5"]);
});

test("recursion collapses into one frame", () => {
  const tree = simplified(treeOfStacks(STACKS), { isHidden: () => false, collapseRecursion: true });
  expect(told(tree)).toEqual(["100/10", "main 100/10", "main;a 50/5", "main;a;b 50/5", "main;c 50/5", "main;c;a 10/1"]);
  const plain = treeOfStacks(["main;a 1"]);
  expect(simplified(plain, { isHidden: () => false, collapseRecursion: false })).toBe(plain);
});

test("callees are the subtrees of a function as one", () => {
  const tree = treeOfStacks(STACKS);
  const a = tree.frames.findIndex((frame) => frame.function === "a");
  expect(told(callees(tree, a))).toEqual(["60/6", "a 20/2", "a;b 20/2", "b 30/3"]);
});

test("callers lead from a function to the root, and what it costs adds up to it", () => {
  const tree = treeOfStacks(STACKS);
  const a = tree.frames.findIndex((frame) => frame.function === "a");
  expect(told(callers(tree, a))).toEqual(["60/6", "c 10/1", "c;main 10/1", "main 50/5"]);
});

test("matches below other matches are not counted again", () => {
  const tree = treeOfStacks(STACKS);
  const found = outermost(tree, (node) => ["a", "b"].includes(tree.frames[tree.frame[node]].function));
  expect(found.reduce((sum, node) => sum + tree.sides[0].total[node], 0)).toBe(60);
});
