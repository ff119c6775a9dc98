/** What is said of a node or function: value, share and samples of one profile, or of the two sides of a comparison. */

import { count, counted, value } from "../text/quantity";
import { PERCENT_SAMPLES_MIN, isUncertain, sampledShare, wilson } from "../text/share";
import type { FlameTree } from "./tree";

/** The unit of the values, and what one request cost is asked of. */
export interface Measure {
  unit: string;
  /** Requests (spans) behind each side; adds "per request". */
  requests?: readonly (number | undefined)[] | undefined;
}

/** Sums of a node or function on each side. */
export interface Cost {
  self: number;
  total: number;
  samples: number;
}

export function costsOf(tree: FlameTree, node: number): Cost[] {
  return tree.sides.map(({ self, total, samples }) => ({
    self: self[node],
    total: total[node],
    samples: samples[node],
  }));
}

/** Sums over nodes that do not contain each other. */
export function costsOfAll(tree: FlameTree, nodes: Uint32Array): Cost[] {
  return tree.sides.map(({ self, total, samples }) => {
    const sum = (column: Float64Array): number => nodes.reduce((all, node) => all + column[node], 0);
    return { self: sum(self), total: sum(total), samples: sum(samples) };
  });
}

const SIDES = ["base", "target"];

/** Lines such as `total 1.20 s   52 % (48-56)   182 samples   4.1 ms per request`. */
export function lines(tree: FlameTree, costs: readonly Cost[], measure: Measure): string[] {
  return costs.flatMap((cost, side) => {
    const whole = tree.sides[side];
    const requests = measure.requests?.[side];
    const named = costs.length > 1 ? `${SIDES[side]}: ` : "";
    const share = sampledShare(cost.total, whole.total[0], whole.samples[0]);
    const total = [
      `${named}total ${value(cost.total, measure.unit)}`,
      share,
      counted(cost.samples, "sample"),
      requests && cost.samples > 0 ? `${value(cost.total / requests, measure.unit)} per request` : "",
    ];
    const own = `${named}self ${value(cost.self, measure.unit)}`;
    return [total.filter(Boolean).join("  ·  "), own];
  });
}

/** Whether a node rests on too few samples for a bare number. */
export function isFaint(tree: FlameTree, node: number): boolean {
  return tree.sides.every(({ samples }) => isUncertain(samples[node]));
}

/** Difference of the shares of two sides, -1..1; 0 of one side. */
export function shareDifference(tree: FlameTree, node: number): number {
  const [base, target] = tree.sides;
  if (!target) return 0;
  return target.total[node] / (target.total[0] || 1) - base.total[node] / (base.total[0] || 1);
}

/**
 * Whether the samples can tell that a node's share differs between the two sides: its 95 % intervals do not overlap. The
 * verdicts of the ranked table, which are about costs of whole functions, are the server's.
 */
export function isSignificant(tree: FlameTree, node: number): boolean {
  const [base, target] = tree.sides;
  if (!target || Math.min(base.samples[0], target.samples[0]) < PERCENT_SAMPLES_MIN) return false;
  const [before, after] = [base, target].map(({ total, samples }) =>
    wilson(Math.min(1, Math.max(0, total[node] / (total[0] || 1))), samples[0]),
  );
  return before.high < after.low || after.high < before.low;
}

/** What stands before the name of a frame of a comparison: `+12 pp`, or a sign for "no difference that can be told". */
export function signOf(tree: FlameTree, node: number): string {
  if (tree.sides.length < 2 || tree.parent[node] === node) return "";
  return isSignificant(tree, node) ? `${points(shareDifference(tree, node))} ` : "\u2248 ";
}

/** `+4.1 pp`, `-12 pp`: percentage points, always with their sign. */
export function points(difference: number): string {
  const amount = Math.abs(difference) * 100;
  return `${difference < 0 ? "-" : "+"}${amount.toFixed(amount < 9.95 ? 1 : 0)} pp`;
}

/** A node's function; the root of a profile is everything, and a function without a name says so. */
export function nameOf(tree: FlameTree, node: number): string {
  const frame = tree.frames[tree.frame[node]];
  if (node === 0 && frame.kind === "root") return "all";
  return frame.function || "(no name)";
}

/** For screen readers: `serialize, total 1.20 s, 52 % (48-56), 182 samples, level 4, 3 calls`. */
export function spoken(tree: FlameTree, node: number, children: number, measure: Measure): string {
  const name = nameOf(tree, node);
  const said = lines(tree, costsOf(tree, node), measure).map((line) => line.replaceAll("  ·  ", ", "));
  return `${name}, ${said.join(", ")}, ${count(children)} calls`;
}
