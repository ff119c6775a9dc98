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
  /** `count` neighbours, none of them a pixel wide, from the place `from` of the level on. */
  small: (x: number, width: number, count: number, from: number) => void;
}

/** Narrower frames are drawn as one strip. */
const FRAME_MIN_PX = 1;

/**
 * Visits what of a level lies in the view; allocates nothing. Costs as much as there are pixels, not frames: whatever ends within
 * the pixel behind a small frame is passed over by binary search.
 */
export function visitLevel(layout: Layout, level: number, view: View, widthPx: number, visitor: Visitor): void {
  const nodes = layout.levels[level];
  if (!nodes) return;
  const scale = widthPx / view.width;
  const end = view.start + view.width;
  for (let at = firstReaching(layout, nodes, view.start); at < nodes.length; at += 1) {
    const node = nodes[at];
    const start = layout.start[node];
    if (start >= end) break;
    const x = Math.max(0, (start - view.start) * scale);
    if (layout.width[node] * scale >= FRAME_MIN_PX) {
      const right = Math.min(widthPx, (start + layout.width[node] - view.start) * scale);
      visitor.node(node, x, right - x);
      continue;
    }
    const last = lastSmall(layout, nodes, at, FRAME_MIN_PX / scale);
    const right = Math.min(widthPx, (layout.start[nodes[last]] + layout.width[nodes[last]] - view.start) * scale);
    visitor.small(x, Math.max(FRAME_MIN_PX, right - x), last - at + 1, at);
    at = last;
  }
}

/** The end of the run of small frames that have less than a pixel between them. */
function lastSmall(layout: Layout, nodes: Uint32Array, from: number, pixel: number): number {
  const { start, width } = layout;
  let last = from;
  for (;;) {
    const right = start[nodes[last]] + width[nodes[last]];
    const next = firstReaching(layout, nodes, right + pixel, last + 1);
    const node = nodes[next];
    // Whatever ends within a pixel of the run is small.
    if (next > last + 1) last = next - 1;
    else if (next < nodes.length && width[node] < pixel && start[node] - right < pixel) last = next;
    else return last;
  }
}

/** The first node of a level, from a place on, that ends behind `from`. */
function firstReaching(layout: Layout, nodes: Uint32Array, from: number, begin = 0): number {
  let low = begin;
  let high = nodes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const node = nodes[middle];
    if (layout.start[node] + layout.width[node] > from) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The frames of the strip that is drawn at a pixel of a level; none where a frame is, or nothing. */
export function smallAt(layout: Layout, level: number, view: View, widthPx: number, px: number): Uint32Array {
  let found: Uint32Array = new Uint32Array();
  visitLevel(layout, level, view, widthPx, {
    node: () => undefined,
    small: (x, width, count, from) => {
      if (px >= x && px < x + width) found = layout.levels[level].subarray(from, from + count);
    },
  });
  return found;
}

/** The node at a place of a level, if there is one; 0..1 across. */
export function nodeAt(layout: Layout, level: number, at: number): number | undefined {
  const nodes = layout.levels[level];
  if (!nodes) return undefined;
  const node = nodes[firstReaching(layout, nodes, at)];
  return node !== undefined && layout.start[node] <= at ? node : undefined;
}
