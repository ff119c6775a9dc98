/**
 * A call tree in flat typed arrays, and what can be made of one: hidden frames, collapsed recursion, callers and callees.
 *
 * Parents come before children, node 0 is the root. A tree has one side, or two where two profiles are compared. What is
 * derived from a tree is a tree again: values of frames that go are added to their callers, so totals stay.
 */

import type { ComparedTree, Frame, Tree } from "../api/answers";

/** Sums of one profile by node; `samples` are observations. */
export interface Side {
  self: Float64Array;
  total: Float64Array;
  selfSamples: Float64Array;
  samples: Float64Array;
}

export interface FlameTree {
  frames: readonly Frame[];
  /** Index into frames. */
  frame: Uint32Array;
  parent: Uint32Array;
  /** The profile; of a comparison the base, then the target. */
  sides: readonly Side[];
  /** What a node's width stands for; of two sides the mean of its shares. */
  weight: Float64Array;
}

export function treeOf(profile: { frames: readonly Frame[]; tree: Tree }): FlameTree {
  const { frame, parent, self, samples } = profile.tree;
  return assemble(profile.frames, frame, parent, [{ self, samples }]);
}

export function comparedTreeOf(comparison: { frames: readonly Frame[]; tree: ComparedTree }): FlameTree {
  const { frame, parent, base_self, base_samples, target_self, target_samples } = comparison.tree;
  return assemble(comparison.frames, frame, parent, [
    { self: base_self, samples: base_samples },
    { self: target_self, samples: target_samples },
  ]);
}

function assemble(
  frames: readonly Frame[],
  frame: readonly number[],
  parent: readonly number[],
  sides: readonly { self: readonly number[]; samples: readonly number[] }[],
): FlameTree {
  const parents = Uint32Array.from(parent);
  const own = sides.map(({ self, samples }) => {
    const selfSamples = Float64Array.from(samples);
    for (let node = 1; node < parents.length; node += 1) selfSamples[parents[node]] -= samples[node];
    return { self: Float64Array.from(self), selfSamples };
  });
  return summed(frames, Uint32Array.from(frame), parents, own);
}

/** Adds what nodes have of their own up to the root. */
function summed(
  frames: readonly Frame[],
  frame: Uint32Array,
  parent: Uint32Array,
  own: readonly { self: Float64Array; selfSamples: Float64Array }[],
): FlameTree {
  const sides = own.map(({ self, selfSamples }) => ({
    self,
    selfSamples,
    total: sumUp(parent, self),
    samples: sumUp(parent, selfSamples),
  }));
  return { frames, frame, parent, sides, weight: weightOf(sides, frame.length) };
}

function sumUp(parent: Uint32Array, self: Float64Array): Float64Array {
  const total = self.slice();
  for (let node = total.length - 1; node > 0; node -= 1) total[parent[node]] += total[node];
  return total;
}

function weightOf(sides: readonly Side[], nodes: number): Float64Array {
  const weight = new Float64Array(nodes);
  for (const { total } of sides) {
    const whole = sides.length === 1 ? 1 : total[0] || 1;
    for (let node = 0; node < nodes; node += 1) weight[node] += Math.max(0, total[node]) / whole;
  }
  return weight;
}

const functions = new WeakMap<readonly Frame[], Uint32Array>();

/**
 * For each frame the first frame of the same function. Frames differ by module, so a function that several services link has
 * several; without a source file nothing says that they are the same.
 */
export function functionsOf(frames: readonly Frame[]): Uint32Array {
  const known = functions.get(frames);
  if (known) return known;
  const first = new Map<string, number>();
  const found = Uint32Array.from(frames, (frame, at) => {
    if (frame.file === undefined) return at;
    const key = `${frame.function}\0${frame.file}`;
    const same = first.get(key) ?? at;
    first.set(key, same);
    return same;
  });
  functions.set(frames, found);
  return found;
}

/** Builds a tree by adding paths; equal frames under one caller are one node. */
class Builder {
  private readonly frame: number[] = [];
  private readonly parent: number[] = [];
  private readonly children = new Map<number, number>();
  private readonly own: { self: number[]; selfSamples: number[] }[];

  constructor(
    private readonly frames: readonly Frame[],
    rootFrame: number,
    sides: number,
  ) {
    this.own = Array.from({ length: sides }, () => ({ self: [], selfSamples: [] }));
    this.push(rootFrame, 0);
  }

  private push(frame: number, parent: number): number {
    this.frame.push(frame);
    this.parent.push(parent);
    for (const { self, selfSamples } of this.own) {
      self.push(0);
      selfSamples.push(0);
    }
    return this.frame.length - 1;
  }

  frameOf(node: number): number {
    return this.frame[node];
  }

  child(parent: number, frame: number): number {
    const key = parent * this.frames.length + frame;
    let node = this.children.get(key);
    if (node === undefined) {
      node = this.push(frame, parent);
      this.children.set(key, node);
    }
    return node;
  }

  add(node: number, side: number, value: number, samples: number): void {
    this.own[side].self[node] += value;
    this.own[side].selfSamples[node] += samples;
  }

  finish(): FlameTree {
    const own = this.own.map(({ self, selfSamples }) => ({
      self: Float64Array.from(self),
      selfSamples: Float64Array.from(selfSamples),
    }));
    return summed(this.frames, Uint32Array.from(this.frame), Uint32Array.from(this.parent), own);
  }
}

export interface Simplification {
  /** Frames that are left out; their callers take their place. */
  isHidden: (frame: Frame) => boolean;
  /** A function that calls itself is one frame. */
  collapseRecursion: boolean;
}

/** A tree without hidden frames and repeated calls; the same tree if there are none. */
export function simplified(tree: FlameTree, { isHidden, collapseRecursion }: Simplification): FlameTree {
  const hidden = Uint8Array.from(tree.frames, (frame, at) => (at !== tree.frame[0] && isHidden(frame) ? 1 : 0));
  if (!collapseRecursion && !hidden.includes(1)) return tree;
  const builder = new Builder(tree.frames, tree.frame[0], tree.sides.length);
  const placed = new Uint32Array(tree.frame.length);
  const functionOf = functionsOf(tree.frames);
  for (let node = 0; node < tree.frame.length; node += 1) {
    const frame = tree.frame[node];
    const caller = placed[tree.parent[node]];
    const isMerged =
      hidden[frame] === 1 ||
      (collapseRecursion && caller !== 0 && functionOf[builder.frameOf(caller)] === functionOf[frame]);
    placed[node] = node === 0 ? 0 : isMerged ? caller : builder.child(caller, frame);
    addOwn(tree, node, builder, placed[node]);
  }
  return builder.finish();
}

function addOwn(tree: FlameTree, node: number, builder: Builder, to: number): void {
  tree.sides.forEach(({ self, selfSamples }, side) => builder.add(to, side, self[node], selfSamples[node]));
}

/** What a function calls: its subtrees as one, calls to itself inside of them left where they are. */
export function callees(tree: FlameTree, frame: number): FlameTree {
  const builder = new Builder(tree.frames, frame, tree.sides.length);
  const functionOf = functionsOf(tree.frames);
  // 0 is outside, else the place plus one.
  const placed = new Uint32Array(tree.frame.length);
  for (let node = 0; node < tree.frame.length; node += 1) {
    const outer = node === 0 ? 0 : placed[tree.parent[node]];
    if (outer > 0) placed[node] = builder.child(outer - 1, tree.frame[node]) + 1;
    else if (functionOf[tree.frame[node]] === functionOf[frame]) placed[node] = 1;
    if (placed[node] > 0) addOwn(tree, node, builder, placed[node] - 1);
  }
  return builder.finish();
}

/** Who calls a function: callers below the function, callers of these below them. Calls within itself count once. */
export function callers(tree: FlameTree, frame: number): FlameTree {
  const builder = new Builder(tree.frames, frame, tree.sides.length);
  const functionOf = functionsOf(tree.frames);
  for (const node of outermost(tree, (candidate) => functionOf[tree.frame[candidate]] === functionOf[frame])) {
    let place = 0;
    for (let at = node; at !== 0;) {
      at = tree.parent[at];
      if (at !== 0) place = builder.child(place, tree.frame[at]);
    }
    tree.sides.forEach(({ total, samples }, side) => builder.add(place, side, total[node], samples[node]));
  }
  return builder.finish();
}

/** Nodes that match and have no matching node above them: their totals add up without counting anything twice. */
export function outermost(tree: FlameTree, matches: (node: number) => boolean): number[] {
  const inside = new Uint8Array(tree.frame.length);
  const found: number[] = [];
  for (let node = 0; node < tree.frame.length; node += 1) {
    const isBelow = node > 0 && inside[tree.parent[node]] === 1;
    const isMatch = matches(node);
    if (isMatch && !isBelow) found.push(node);
    inside[node] = isBelow || isMatch ? 1 : 0;
  }
  return found;
}

/** What one function cost, on each side. */
export interface FunctionCost {
  frame: number;
  sides: { self: number; total: number; samples: number }[];
}

/** Every function with its cost; a recursive one counts once. Without the root, by first appearance. */
export function functionCosts(tree: FlameTree): FunctionCost[] {
  const costs = new Map<number, FunctionCost>();
  const functionOf = functionsOf(tree.frames);
  // How often the function is on the way from the root to the node in work.
  const open = new Uint32Array(tree.frames.length);
  const path: number[] = [];
  for (const node of depthFirst(tree)) {
    const caller = node === 0 ? -1 : tree.parent[node];
    while (path.length > 0 && path[path.length - 1] !== caller) open[functionOf[tree.frame[path.pop() ?? 0]]] -= 1;
    const frame = functionOf[tree.frame[node]];
    if (node > 0) {
      let cost = costs.get(frame);
      if (cost === undefined) {
        cost = { frame, sides: tree.sides.map(() => ({ self: 0, total: 0, samples: 0 })) };
        costs.set(frame, cost);
      }
      const isOutermost = open[frame] === 0;
      tree.sides.forEach((side, at) => {
        cost.sides[at].self += side.self[node];
        if (isOutermost) {
          cost.sides[at].total += side.total[node];
          cost.sides[at].samples += side.samples[node];
        }
      });
    }
    open[frame] += 1;
    path.push(node);
  }
  return [...costs.values()];
}

/** Nodes with each one's descendants right behind it. */
export function depthFirst(tree: FlameTree): Uint32Array {
  const { first, next } = childLists(tree);
  const order = new Uint32Array(tree.frame.length);
  const pending = [0];
  let at = 0;
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    order[at] = node;
    at += 1;
    for (let child = first[node]; child !== 0; child = next[child]) pending.push(child);
  }
  return order;
}

/** Children as linked lists: the first of each node and the next sibling, 0 at the end. */
export function childLists(tree: FlameTree): { first: Uint32Array; next: Uint32Array } {
  const first = new Uint32Array(tree.frame.length);
  const next = new Uint32Array(tree.frame.length);
  for (let node = tree.frame.length - 1; node > 0; node -= 1) {
    next[node] = first[tree.parent[node]];
    first[tree.parent[node]] = node;
  }
  return { first, next };
}

/** The nodes from below the root to a node. */
export function pathTo(tree: FlameTree, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at !== 0; at = tree.parent[at]) path.unshift(at);
  return path;
}
