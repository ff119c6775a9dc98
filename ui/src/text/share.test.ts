import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import type { Profile } from "../api/answers";
import { counted, duration } from "./quantity";

import { isUncertain, percent, sampledShare, wilson } from "./share";

function check(part: number, total: number, samples: number, expected: string): void {
  expect(sampledShare(part, total, samples)).toBe(expected);
}

test("few samples get no percentage", () => {
  check(3, 4, 4, "few samples");
  check(3, 6, 6, "19-81 %");
});

test("a number stands beside its interval", () => {
  check(50, 100, 100, "50 % (40-60)");
  check(100, 100, 100, "100 % (96-100)");
  check(1, 1000, 1000, "0.1 % (0-0.6)");
});

test("nothing has no shares", () => {
  check(1, 0, 10, "");
  check(1, 10, 0, "");
});

test("the server's interval goes before Wilson's", () => {
  expect(sampledShare(50, 100, 100, { low: 0.1, high: 0.9 })).toBe("50 % (10-90)");
});

test("intervals are Wilson's", () => {
  const rounded = ({ low, high }: { low: number; high: number }): number[] => [
    Math.round(low * 100),
    Math.round(high * 100),
  ];
  expect(rounded(wilson(1, 1))).toEqual([21, 100]);
  expect(rounded(wilson(3 / 5, 5))).toEqual([23, 88]);
  expect(rounded(wilson(0.5, 20))).toEqual([30, 70]);
  expect(wilson(0, 0)).toEqual({ low: 0, high: 1 });
});

test("19 samples are uncertain, 20 are not", () => {
  expect([isUncertain(19), isUncertain(20)]).toEqual([true, false]);
});

test("almost all and almost nothing are neither all nor nothing", () => {
  expect([percent(0), percent(0.0001), percent(0.003), percent(0.94), percent(0.9996), percent(1)]).toEqual([
    "0 %",
    "<0.1 %",
    "0.3 %",
    "94 %",
    ">99 %",
    "100 %",
  ]);
});

/** A recorded answer and what the command line makes of it. */
function recorded(name: string): { profile: Profile; lines: string[] } {
  const read = (file: string): string =>
    readFileSync(new URL(`../../../testdata/cli/${name}/${file}`, import.meta.url), "utf8");
  return { profile: JSON.parse(read("span_profile.json")) as Profile, lines: read("why.txt").split("\n") };
}

/** Self value and samples of every function. */
function selfByFunction(profile: Profile): Map<string, { self: number; samples: number }> {
  const { tree, frames } = profile;
  const own = [...tree.samples];
  for (let node = 1; node < own.length; node += 1) own[tree.parent[node]] -= tree.samples[node];
  const found = new Map<string, { self: number; samples: number }>();
  for (let node = 1; node < own.length; node += 1) {
    const name = frames[tree.frame[node]].function;
    const before = found.get(name) ?? { self: 0, samples: 0 };
    found.set(name, { self: before.self + tree.self[node], samples: before.samples + own[node] });
  }
  return found;
}

test("figures are those of the command line, for the same answers", () => {
  for (const name of ["slow-request", "few-samples"]) {
    const { profile, lines } = recorded(name);
    const functions = selfByFunction(profile);
    expect(functions.size).toBeGreaterThan(2);
    for (const [functionName, { self }] of functions) {
      const line = lines.find((one) => one.startsWith(duration(self).padStart(7)) && one.includes(functionName));
      expect(line, `${functionName} ${duration(self)}`).toBeDefined();
      // The command line calls too few samples "few".
      expect(line).toContain(sampledShare(self, profile.total, profile.samples).replace(" samples", ""));
    }
    expect(lines.some((line) => line.includes(`evidence: ${counted(profile.samples, "sample")}`))).toBe(true);
  }
});
