import { expect, test } from "vitest";

import { isSignificant, points, signOf } from "./figures";
import { treeOfStacks } from "./stacks";
import {
  callees,
  callers,
  comparedTreeOf,
  functionCosts,
  functionsOf,
  outermost,
  pathTo,
  simplified,
  treeOf,
} from "./tree";

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

/** Two services that link the same function; a third function of the same name lies in another file. */
function shared() {
  const frames = [
    { function: "root", kind: "root" },
    { function: "mix", file: "hash.rs", module: "cart" },
    { function: "mix", file: "hash.rs", module: "pricing" },
    { function: "mix", file: "other.rs", module: "cart" },
    { function: "mix", module: "cart" },
  ];
  return treeOf({
    frames,
    tree: {
      frame: [0, 1, 2, 3, 4],
      parent: [0, 0, 1, 0, 0],
      self: [0, 10, 20, 5, 5],
      total: [40, 30, 20, 5, 5],
      samples: [4, 3, 2, 1, 1],
    },
  });
}

test("a function that several modules link is one function, and its calls among them count once", () => {
  const tree = shared();
  expect([...functionsOf(tree.frames)]).toEqual([0, 1, 1, 3, 4]);
  const rows = functionCosts(tree).map(({ frame, sides }) => [frame, sides[0].self, sides[0].total]);
  expect(rows.toSorted(([a], [b]) => a - b)).toEqual([
    [1, 30, 30],
    [3, 5, 5],
    [4, 5, 5],
  ]);
  expect(callees(tree, 1).sides[0].total[0]).toBe(30);
  expect(callers(tree, 2).sides[0].total[0]).toBe(30);
});

test("a difference is told only where the samples can tell", () => {
  const side = (samples: number[]) => ({ self: samples, total: [samples[0], samples[1], samples[2]], samples });
  const [base, target] = [side([200, 100, 0]), side([200, 190, 30])];
  const tree = comparedTreeOf({
    frames: [{ function: "root", kind: "root" }, { function: "a" }, { function: "b" }],
    tree: {
      frame: [0, 1, 2],
      parent: [0, 0, 1],
      base_self: [100, 100, 0],
      base_total: base.total,
      base_samples: base.samples,
      target_self: [10, 160, 30],
      target_total: target.total,
      target_samples: target.samples,
    },
  });
  expect([0, 1, 2].map((node) => isSignificant(tree, node))).toEqual([false, true, true]);
  expect([1, 2].map((node) => signOf(tree, node))).toEqual(["+45 pp ", "+15 pp "]);
  expect([points(-0.041), points(0.2)]).toEqual(["-4.1 pp", "+20 pp"]);
  expect(isSignificant(treeOfStacks(STACKS), 1)).toBe(false);
});
