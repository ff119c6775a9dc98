/** Trees for tests. */

import type { Frame } from "../api/answers";
import { type FlameTree, treeOf } from "./tree";

/** A tree of collapsed stacks: `main;a;b 3`. One sample is worth 10. */
export function treeOfStacks(stacks: readonly string[]): FlameTree {
  const frames: Frame[] = [{ function: "all", kind: "root" }];
  const tree = { frame: [0], parent: [0], self: [0], total: [0], samples: [0] };
  for (const line of stacks) {
    const [path = "", number = "0"] = line.split(" ");
    const samples = Number(number);
    let node = 0;
    tree.total[0] += samples * 10;
    tree.samples[0] += samples;
    for (const name of path.split(";")) {
      let frame = frames.findIndex((one, at) => at > 0 && one.function === name);
      if (frame < 0) frame = frames.push({ function: name }) - 1;
      let child = tree.frame.findIndex((one, at) => at > 0 && one === frame && tree.parent[at] === node);
      if (child < 0) {
        child = tree.frame.push(frame) - 1;
        tree.parent.push(node);
        tree.self.push(0);
        tree.total.push(0);
        tree.samples.push(0);
      }
      tree.total[child] += samples * 10;
      tree.samples[child] += samples;
      node = child;
    }
    tree.self[node] += samples * 10;
  }
  return treeOf({ frames, tree });
}
