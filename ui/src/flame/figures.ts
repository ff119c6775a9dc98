/** What is said of a node or function: value, share and samples of one profile, or of the two sides of a comparison. */

import { count, counted, value } from "../text/quantity";
import { isUncertain, sampledShare } from "../text/share";
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

/** `+12.3 %`: the sign is always written. */
export function signedPercent(difference: number): string {
  const percents = difference * 100;
  const digits = Math.abs(percents) < 9.95 ? 1 : 0;
  return `${percents > 0 ? "+" : ""}${percents.toFixed(digits)} %`;
}

/** For screen readers: `serialize, total 1.20 s, 52 % (48-56), 182 samples, level 4, 3 calls`. */
export function spoken(tree: FlameTree, node: number, children: number, measure: Measure): string {
  const name = tree.frames[tree.frame[node]].function || "(no name)";
  const said = lines(tree, costsOf(tree, node), measure).map((line) => line.replaceAll("  ·  ", ", "));
  return `${name}, ${said.join(", ")}, ${count(children)} calls`;
}
