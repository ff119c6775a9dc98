import { expect, test } from "vitest";

import type { Span, Trace } from "../api/answers";
import { collapsedFrom, rowsAbove, rowsOf, rowsWith, ticks, visibleRows } from "./rows";

const START = 1_790_000_000_000_000_000n;

/** `id parent start duration`, the last two in milliseconds; `-` is no parent. */
function span(text: string, more: Partial<Span> = {}): Span {
  const [id = "", parent = "-", start = "0", duration = "1"] = text.split(" ");
  return {
    span_id: id,
    ...(parent === "-" ? {} : { parent_span_id: parent }),
    local_root_span_id: "a",
    service: "cart",
    name: `op ${id}`,
    kind: "internal",
    status: "unset",
    start_unix_nano: String(START + BigInt(start) * 1_000_000n),
    duration_ns: Number(duration) * 1e6,
    attributes: {},
    resource: {},
    scope: {},
    events: [],
    links: [],
    profiles: {},
    ...more,
  };
}

function trace(...spans: Span[]): Trace {
  return { trace_id: "t", services: ["cart"], complete: true, spans, took_ms: 0 };
}

/** `depth id` of each row. */
function told(spans: Span[]): string[] {
  return rowsOf(trace(...spans)).all.map((row) => `${row.depth} ${row.span.span_id}`);
}

test("parents come before children, siblings by start, whatever the order of arrival", () => {
  expect(told([span("a - 0 9"), span("c a 2"), span("d b 3"), span("b a 4")])).toEqual(["0 a", "1 c", "1 b", "2 d"]);
});

test("orphans, several roots, shared ids and circles are all there once", () => {
  expect(told([span("a - 0"), span("o missing 1")])).toEqual(["0 a", "0 o"]);
  expect(told([span("a - 0"), span("b a 1"), span("b a 2")])).toEqual(["0 a", "1 b", "2 b"]);
  const circle = told([span("x y 0"), span("y x 1"), span("s s 2")]);
  expect(circle.map((row) => row.split(" ")[1]).toSorted()).toEqual(["s", "x", "y"]);
});

test("collapsed rows hide what is below them and nothing else", () => {
  const rows = rowsOf(trace(span("a - 0"), span("b a 1"), span("c b 2"), span("d a 3")));
  expect(visibleRows(rows, new Set())).toEqual([0, 1, 2, 3]);
  expect(visibleRows(rows, new Set([1]))).toEqual([0, 1, 3]);
  expect(visibleRows(rows, collapsedFrom(rows, 1))).toEqual([0, 1, 3]);
  expect(rowsAbove(rows, 2)).toEqual([1, 0]);
});

test("CPU of a span is what its CPU type says, and adds up over the trace", () => {
  const cpu = {
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds": { samples: 3, value: 30 },
    "wall:wall:ns::": { samples: 9, value: 1 },
  };
  const rows = rowsOf(trace(span("a - 0", { profiles: cpu }), span("b a 1")));
  expect(rows.cpu).toEqual({ samples: 3, value: 30 });
  expect(rows.all.map((row) => row.cpu?.samples)).toEqual([3, undefined]);
});

test("a child in another process that begins before its parent shows that clocks disagree", () => {
  const rows = rowsOf(trace(span("a - 5"), span("b a 2", { local_root_span_id: "b" })));
  expect(rows.byId.get("b")?.early_ns).toBe(3e6);
});

test("spans are found by name, service and attribute", () => {
  const rows = rowsOf(
    trace(span("a - 0", { attributes: { "http.route": "/Cart" } }), span("b a 1", { status: "error" })),
  );
  expect(rowsWith(rows, "route=/cart")).toEqual([0]);
  expect(rowsWith(rows, "ERROR")).toEqual([1]);
  expect(rowsWith(rows, " ")).toEqual([]);
});

test("the axis has round steps", () => {
  expect(ticks({ start_ns: 0, end_ns: 95 }, 5)).toEqual([0, 20, 40, 60, 80]);
  expect(ticks({ start_ns: 3, end_ns: 3 }, 5)).toEqual([]);
});

test("20,000 spans are placed", () => {
  const spans = Array.from({ length: 20_000 }, (_, at) => span(`s${at} ${at === 0 ? "-" : `s${at - 1}`} ${at}`));
  expect(rowsOf(trace(...spans)).all[19_999].depth).toBe(19_999);
});
