import { expect, test } from "vitest";

import { compareSearch } from "./search";
import { isChosen, kindOf, parseTrace, questionOf, sideFigures, sideOf, sideSearch } from "./side";

const SCREEN = { start: 1_000_000_000_000n, end: 2_000_000_000_000n };
const NOW = 2_000_000_000_000n;

test("a side goes through the address and back", () => {
  const side = { q: "{ duration > 1s }", start: "now-1h", end: "now", range: "start" };
  const search = compareSearch({ ...sideSearch("target", side) });
  expect(sideOf(search, "target")).toMatchObject(side);
  expect(isChosen(sideOf(search, "base"))).toBe(false);
});

test("a new side takes out what the old one said", () => {
  const search = {
    ...compareSearch({ base_q: "{}", base_range: "start" }),
    ...sideSearch("base", { labels: 'a="b"' }),
  };
  expect(sideOf(search, "base")).toEqual({ labels: 'a="b"' });
  expect(kindOf(sideOf(search, "base"))).toBe("profiles");
});

test("absent times are the screen's, relative ones are resolved, a trace has none", () => {
  expect(questionOf({ q: "{}" }, SCREEN, NOW)).toEqual({ q: "{}", ...SCREEN, range: "start" });
  expect(questionOf({ labels: "{}", start: "now-10s" }, SCREEN, NOW)).toEqual({
    labels: "{}",
    start: NOW - 10_000_000_000n,
    end: SCREEN.end,
  });
  expect(questionOf({ trace: "ab", start: "5" }, SCREEN, NOW)).toEqual({ trace: "ab", span: undefined });
});

test("ids of a trace, or of a span in it, are read as they are copied", () => {
  const trace = "5732450B54c5f9e85941cd3567d0ee56";
  expect(parseTrace(` ${trace} `)).toEqual({ trace: trace.toLowerCase() });
  expect(parseTrace(`${trace}/f29bbc09d7f2d757`)).toEqual({ trace: trace.toLowerCase(), span: "f29bbc09d7f2d757" });
  for (const wrong of ["", "xyz", `${trace}0`, `${trace}/12`]) expect(parseTrace(wrong)).toBeNull();
});

test("figures of a side say what is unknown by leaving it out", () => {
  const evidence = {
    precision: { span: 0, local_root: 0, trace: 0, window: 0 },
    ambiguous: 0,
    unresolved_frames: 0,
    covered_ns: 0,
    window_match: null,
    reasons: [],
  };
  expect(sideFigures({ samples: 1, total: 10, per_second: 5, evidence }, "nanoseconds")).toEqual([
    "1 sample",
    "5 ns per second",
  ]);
  expect(sideFigures({ spans: 2, without_samples: 1, samples: 0, total: 0, evidence }, "nanoseconds")[0]).toBe(
    "2 spans, 1 without samples",
  );
});
