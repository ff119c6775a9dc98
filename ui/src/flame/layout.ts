/** Where frames lie: fractions of the whole across, levels downwards. Nothing here knows pixels or colours. */

import type { FlameTree } from "./tree";
import { childLists } from "./tree";

/** In which order siblings stand: by name, so that two graphs can be compared by eye, or the widest first. */
export type SiblingOrder = "name" | "value";

export interface Layout {
  /** Left edge by node, 0..1. */
  start: Float64Array;
  /** Width by node, 0..1. */
  width: Float64Array;
  level: Uint32Array;
  /** The nodes of each level, left to right. */
  levels: readonly Uint32Array[];
}

/** A stretch of the whole that is on screen. */
export interface View {
  start: number;
  width: number;
}

export const WHOLE: View = { start: 0, width: 1 };

export function layout(tree: FlameTree, order: SiblingOrder): Layout {
  const nodes = tree.frame.length;
  const result: Layout = {
    start: new Float64Array(nodes),
    width: new Float64Array(nodes),
    level: new Uint32Array(nodes),
    levels: [],
  };
  const { first, next } = childLists(tree);
  const whole = tree.weight[0];
  if (whole <= 0) return { ...result, levels: [Uint32Array.of(0)] };
  const before = comparison(tree, order);
  const levels: number[][] = [];
  const pending = [0];
  result.width[0] = 1;
  const siblings: number[] = [];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    const level = result.level[node];
    (levels[level] ??= []).push(node);
    siblings.length = 0;
    for (let child = first[node]; child !== 0; child = next[child]) if (tree.weight[child] > 0) siblings.push(child);
    siblings.sort(before);
    let start = result.start[node];
    for (const child of siblings) {
      result.start[child] = start;
      result.width[child] = tree.weight[child] / whole;
      result.level[child] = level + 1;
      start += result.width[child];
    }
    // The last one pushed is the next in work, so each level fills from left to right.
    for (let at = siblings.length - 1; at >= 0; at -= 1) pending.push(siblings[at]);
  }
  return { ...result, levels: levels.map((level) => Uint32Array.from(level)) };
}

function comparison(tree: FlameTree, order: SiblingOrder): (a: number, b: number) => number {
  const name = (node: number): string => tree.frames[tree.frame[node]].function;
  const byName = (a: number, b: number): number => {
    const [left, right] = [name(a), name(b)];
    return left < right ? -1 : left > right ? 1 : tree.frame[a] - tree.frame[b];
  };
  return order === "name" ? byName : (a, b) => tree.weight[b] - tree.weight[a] || byName(a, b);
}

/** The stretch that a node takes. */
export function viewOf(layout: Layout, node: number): View {
  return { start: layout.start[node], width: layout.width[node] };
}

/** Called for what of a level is wide enough to be drawn, and for runs of what is not. Pixels. */
export interface Visitor {
  node: (node: number, x: number, width: number) => void;
  /** `count` neighbours, none of them a pixel wide. */
  small: (x: number, width: number, count: number) => void;
}

/** Narrower frames are drawn as one strip. */
const FRAME_MIN_PX = 1;

/** Visits what of a level lies in the view; allocates nothing. */
export function visitLevel(layout: Layout, level: number, view: View, widthPx: number, visitor: Visitor): void {
  const nodes = layout.levels[level];
  if (!nodes) return;
  const scale = widthPx / view.width;
  const end = view.start + view.width;
  let stripX = 0;
  let stripEnd = 0;
  let stripCount = 0;
  for (let at = firstReaching(layout, nodes, view.start); at < nodes.length; at += 1) {
    const node = nodes[at];
    const start = layout.start[node];
    if (start >= end) break;
    const x = Math.max(0, (start - view.start) * scale);
    const right = Math.min(widthPx, (start + layout.width[node] - view.start) * scale);
    const isSmall = right - x < FRAME_MIN_PX;
    if (stripCount > 0 && (!isSmall || x - stripEnd > FRAME_MIN_PX)) {
      visitor.small(stripX, Math.max(FRAME_MIN_PX, stripEnd - stripX), stripCount);
      stripCount = 0;
    }
    if (!isSmall) visitor.node(node, x, right - x);
    else {
      if (stripCount === 0) stripX = x;
      stripEnd = right;
      stripCount += 1;
    }
  }
  if (stripCount > 0) visitor.small(stripX, Math.max(FRAME_MIN_PX, stripEnd - stripX), stripCount);
}

/** The first node of a level that ends behind `from`. */
function firstReaching(layout: Layout, nodes: Uint32Array, from: number): number {
  let low = 0;
  let high = nodes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const node = nodes[middle];
    if (layout.start[node] + layout.width[node] > from) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The node at a place of a level, if there is one; 0..1 across. */
export function nodeAt(layout: Layout, level: number, at: number): number | undefined {
  const nodes = layout.levels[level];
  if (!nodes) return undefined;
  const node = nodes[firstReaching(layout, nodes, at)];
  return node !== undefined && layout.start[node] <= at ? node : undefined;
}
