/**
 * A tree as a file, made in the page: where no server holds the profile (a file that is only looked at). Elsewhere the server
 * writes these formats from all samples.
 */

import type { FlameTree } from "./tree";
import { pathTo } from "./tree";

/** One line a stack: root first, `;` between frames, a space, what ended there in the profile's unit. */
export function collapsedText(tree: FlameTree): string {
  const [{ self }] = tree.sides;
  const names = tree.frames.map((frame) =>
    (frame.function || "(no name)").replaceAll(";", ":").replaceAll(/\s+/g, " "),
  );
  const lines: string[] = [];
  for (let node = 1; node < self.length; node += 1) {
    if (self[node] <= 0) continue;
    const stack = pathTo(tree, node).map((at) => names[tree.frame[at]]);
    lines.push(`${stack.join(";")} ${self[node]}\n`);
  }
  return lines.join("");
}

const UNITS: Record<string, string> = {
  nanoseconds: "nanoseconds",
  microseconds: "microseconds",
  milliseconds: "milliseconds",
  seconds: "seconds",
  bytes: "bytes",
};

/** The JSON that speedscope reads: one sampled profile, a weighted stack for each node with something of its own. */
export function speedscopeText(tree: FlameTree, unit: string, name: string): string {
  const [{ self, total }] = tree.sides;
  const nodes = Array.from(self, (_, node) => node).filter((node) => node > 0 && self[node] > 0);
  return JSON.stringify({
    $schema: "https://www.speedscope.app/file-format-schema.json",
    exporter: "spanflame",
    name,
    activeProfileIndex: 0,
    shared: {
      frames: tree.frames.map(({ function: called, file, line }) => ({
        name: called || "(no name)",
        ...(file === undefined ? {} : { file }),
        ...(line === undefined ? {} : { line }),
      })),
    },
    profiles: [
      {
        type: "sampled",
        name,
        unit: UNITS[unit] ?? "none",
        startValue: 0,
        endValue: total[0],
        samples: nodes.map((node) => pathTo(tree, node).map((at) => tree.frame[at])),
        weights: nodes.map((node) => self[node]),
      },
    ],
  });
}
