import { expect, test } from "vitest";

import { WHOLE, layout, nodeAt, smallAt, viewOf, visitLevel } from "./layout";
import { matcher, packageOf, shortName } from "./names";
import { nodeOfPath, parseState, pathKey, stateText, USUAL } from "./state";
import { treeOfStacks } from "./stacks";

function drawn(view = WHOLE, width = 100): { nodes: string[]; small: number[] } {
  const tree = treeOfStacks(["z 50", "a;x 30", "b 19", "c 1"]);
  const placed = layout(tree, "name");
  const nodes: string[] = [];
  const small: number[] = [];
  visitLevel(placed, 1, view, width, {
    node: (node, x, px) => nodes.push(`${tree.frames[tree.frame[node]].function} ${x.toFixed(0)}+${px.toFixed(0)}`),
    small: (_x, _px, count) => small.push(count),
  });
  return { nodes, small };
}

test("siblings stand by name and take their share", () => {
  expect(drawn().nodes).toEqual(["a 0+30", "b 30+19", "c 49+1", "z 50+50"]);
});

test("frames below a pixel merge into one strip that is counted", () => {
  const tree = treeOfStacks(["a 1000", ...Array.from({ length: 40 }, (_, at) => `b${at} 1`)]);
  const placed = layout(tree, "value");
  let count = 0;
  let nodes = 0;
  visitLevel(placed, 1, WHOLE, 100, { node: () => (nodes += 1), small: (_x, _w, many) => (count += many) });
  expect([nodes, count]).toEqual([1, 40]);
});

test("a strip knows its frames, and wide frames part strips", () => {
  const small = (name: string): string[] => Array.from({ length: 3 }, (_, at) => `${name}${at} 1`);
  const tree = treeOfStacks([...small("a"), "b 494", ...small("c"), "d 500"]);
  const placed = layout(tree, "name");
  const strips: string[] = [];
  visitLevel(placed, 1, WHOLE, 100, {
    node: (node) => strips.push(tree.frames[tree.frame[node]].function),
    small: (_x, width, count, from) => strips.push(`${count} from ${from}, ${width.toFixed(0)} px`),
  });
  expect(strips).toEqual(["3 from 0, 1 px", "b", "3 from 4, 1 px", "d"]);
  const names = Array.from(smallAt(placed, 1, WHOLE, 100, 49.8), (node) => tree.frames[tree.frame[node]].function);
  expect(names).toEqual(["c0", "c1", "c2"]);
  expect(smallAt(placed, 1, WHOLE, 100, 30)).toHaveLength(0);
});

test("zoomed in, small frames are drawn, and none is drawn twice or forgotten", () => {
  const tree = treeOfStacks(Array.from({ length: 500 }, (_, at) => `f${String(at).padStart(3, "0")} ${1 + (at % 7)}`));
  const placed = layout(tree, "name");
  for (const width of [0.9, 0.3, 0.05, 0.004]) {
    const view = { start: 0.37, width };
    const seen: number[] = [];
    visitLevel(placed, 1, view, 150, {
      node: (node) => seen.push(node),
      small: (_x, _w, count, from) => seen.push(...placed.levels[1].subarray(from, from + count)),
    });
    const wanted = placed.levels[1].filter(
      (node) => placed.start[node] + placed.width[node] > view.start && placed.start[node] < view.start + view.width,
    );
    // A strip may reach beyond the right edge by what belongs to its last pixel.
    expect(seen.slice(0, wanted.length)).toEqual([...wanted]);
    expect(new Set(seen).size).toBe(seen.length);
  }
});

test("only what is in view is visited, cut at its edges", () => {
  expect(drawn({ start: 0.4, width: 0.2 }).nodes).toEqual(["b 0+45", "c 45+5", "z 50+50"]);
});

test("the widest first where asked, and the place of a node is found again", () => {
  const tree = treeOfStacks(["z 50", "a 30", "b 20"]);
  const placed = layout(tree, "value");
  const names = [0.1, 0.6, 0.9].map((at) => tree.frames[tree.frame[nodeAt(placed, 1, at) ?? 0]].function);
  expect(names).toEqual(["z", "a", "b"]);
  const z = nodeAt(placed, 1, 0.1) ?? 0;
  expect(viewOf(placed, z)).toEqual({ start: 0, width: 0.5 });
  expect(nodeAt(placed, 7, 0.1)).toBeUndefined();
});

test("a profile without values has a root and nothing else", () => {
  const placed = layout(treeOfStacks([]), "name");
  expect(placed.levels.map((level) => level.length)).toEqual([1]);
});

test("packages are told by the manner of each language", () => {
  const cases: [string, string | undefined, string][] = [
    ["shop::cart::price", undefined, "shop"],
    ["<alloc::vec::Vec<T> as core::clone::Clone>::clone", undefined, "alloc"],
    ["github.com/acme/shop/cart.(*Cart).Price", undefined, "github.com/acme/shop/cart"],
    ["runtime.mallocgc", undefined, "runtime"],
    ["com.acme.shop.Cart.price", undefined, "com.acme"],
    ["./app.js:planted_hot_path:15", undefined, "app.js"],
    ["price", "/srv/shop/cart.py", "shop"],
    ["express", "/srv/node_modules/@scope/lib/index.js", "@scope/lib"],
  ];
  for (const [name, file, expected] of cases)
    expect(packageOf(file === undefined ? { function: name } : { function: name, file })).toBe(expected);
});

test("long names are cut at the left of their path", () => {
  expect(shortName("shop::cart::price::parse", 17)).toBe("...::price::parse");
  expect(shortName("short", 10)).toBe("short");
  expect(shortName("anything", 3)).toBe("");
});

test("a search is words, or a regular expression between slashes, even half typed", () => {
  expect(["Parse", "x"].map(matcher("parse") ?? (() => false))).toEqual([true, false]);
  expect(["abc", "xbc"].map(matcher("/^a/") ?? (() => false))).toEqual([true, false]);
  expect(matcher("/(/")?.("a/(/b")).toBe(true);
  expect(matcher("  ")).toBeUndefined();
});

test("the state is one text, and what is usual has none", () => {
  expect(stateText(USUAL)).toBeUndefined();
  const state = {
    ...USUAL,
    mode: "sandwich" as const,
    function: "a~b%7E<c>",
    search: "x y",
    presets: ["rust", "go"],
    hidden: ["h~1", "h2"],
  };
  expect(parseState(stateText(state))).toEqual(state);
  expect(parseState("m.nonsense~~z")).toEqual({ ...USUAL });
});

test("a zoomed path is found again in another answer that has it", () => {
  const tree = treeOfStacks(["main;a;b 3", "main;c 4"]);
  const other = treeOfStacks(["main;c 1", "x 9", "main;a;b 1"]);
  const b = tree.frame.findLastIndex((frame) => tree.frames[frame].function === "b");
  const again = nodeOfPath(other, pathKey(tree, b));
  expect(other.frames[other.frame[again]].function).toBe("b");
  expect(nodeOfPath(other, "nonsense")).toBe(0);
});
