/** One side of a comparison, as the address says it and as the server is asked. */

import type { ComparedSide } from "../api/answers";
import type { Side } from "../api/questions";
import { count, counted, duration, value } from "../text/quantity";
import { type TimeRange, resolveTime } from "../time/range";
import type { CompareSearch } from "./search";

/** Which of the two. */
export type Which = "base" | "target";

/** By what a side is chosen: spans of a query, one trace or span, or profiles by label. */
export type Kind = "spans" | "trace" | "profiles";

/** What the address says about a side. */
export interface SideSearch {
  q?: string | undefined;
  start?: string | undefined;
  end?: string | undefined;
  range?: string | undefined;
  trace?: string | undefined;
  span?: string | undefined;
  labels?: string | undefined;
}

const NAMES = ["q", "start", "end", "range", "trace", "span", "labels"] as const;

export function sideOf(search: CompareSearch, which: Which): SideSearch {
  return Object.fromEntries(NAMES.map((name) => [name, search[`${which}_${name}`]]));
}

/** The parameters of the address for a side; those that it lacks are taken out. */
export function sideSearch(which: Which, side: SideSearch): Partial<CompareSearch> {
  return Object.fromEntries(NAMES.map((name) => [`${which}_${name}`, side[name] || undefined]));
}

export function kindOf(side: SideSearch): Kind {
  if (side.labels !== undefined) return "profiles";
  return side.trace === undefined ? "spans" : "trace";
}

/** Whether anybody chose something. */
export function isChosen(side: SideSearch): boolean {
  return [side.q, side.trace, side.labels, side.start].some((one) => one !== undefined);
}

/** What the server is asked: times are points, absent ones those of the screen; a trace is taken whole. */
export function questionOf(side: SideSearch, screen: TimeRange, now: bigint): Side {
  if (side.trace !== undefined) return { trace: side.trace, span: side.span };
  const start = resolveTime(side.start ?? "", now) ?? screen.start;
  const end = resolveTime(side.end ?? "", now) ?? screen.end;
  if (side.labels !== undefined) return { labels: side.labels, start, end };
  return { q: side.q ?? "{}", start, end, range: side.range === "overlap" ? "overlap" : "start" };
}

/** `<trace id>`, or `<trace id>/<span id>` as it is typed; `null` if it is neither. */
export function parseTrace(text: string): { trace: string; span?: string } | null {
  const found = /^\s*([0-9a-f]{32}|[0-9a-f]{16})(?:[/: ]+([0-9a-f]{16}))?\s*$/i.exec(text);
  if (!found) return null;
  const trace = found[1].toLowerCase();
  return found[2] ? { trace, span: found[2].toLowerCase() } : { trace };
}

/** What a side turned out to be: `312 spans, 41 without samples`, samples, cost, quantiles of the durations. */
export function sideFigures(side: ComparedSide, unit: string): string[] {
  const { spans, without_samples: without, quantiles } = side;
  return [
    spans === undefined ? "" : `${counted(spans, "span")}${without ? `, ${count(without)} without samples` : ""}`,
    counted(side.samples, "sample"),
    side.per_span === undefined ? "" : `${value(side.per_span, unit)} per span`,
    side.per_second === undefined ? "" : `${value(side.per_second, unit)} per second`,
    quantiles
      ? `duration p50 ${duration(quantiles.p50_ns)}, p90 ${duration(quantiles.p90_ns)}, p99 ${duration(quantiles.p99_ns)}`
      : "",
  ].filter(Boolean);
}
