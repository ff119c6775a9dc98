/**
 * The spans of a trace as rows: parents before children, siblings by start. Pure geometry and order; what is drawn where in
 * pixels is the canvas's affair.
 *
 * Spans may be missing, stored twice under one id, or name each other in a circle: every span is in exactly one row.
 */

import type { Span, SpanProfile, Trace } from "../api/answers";
import { nano, offsetNs } from "../time/nano";

export interface Row {
  span: Span;
  /** Place in `Rows.all`. */
  at: number;
  /** Of the row of its parent; absent for roots and orphans. */
  parent: number | undefined;
  depth: number;
  /** Rows below it, children of children included. */
  descendants: number;
  /** From the beginning of the trace. */
  start_ns: number;
  duration_ns: number;
  /** Its CPU in scope span; absent without samples. */
  cpu: SpanProfile | undefined;
  /** How long before its parent it begins, if the parent is in another process: their clocks disagree. */
  early_ns: number;
}

export interface Rows {
  all: readonly Row[];
  duration_ns: number;
  byId: ReadonlyMap<string, Row>;
  /** Together, in scope span. */
  cpu: SpanProfile;
  errors: number;
}

const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/** What of a span's profiles is CPU time. */
export function cpuOf(profiles: Record<string, SpanProfile>): SpanProfile | undefined {
  const known = profiles[CPU];
  if (known) return known.samples > 0 ? known : undefined;
  const other = Object.entries(profiles).find(
    ([type]) => type.split(":")[1] === "cpu" && type.includes(":nanoseconds"),
  );
  return other && other[1].samples > 0 ? other[1] : undefined;
}

export function rowsOf(trace: Trace): Rows {
  const { spans } = trace;
  const first =
    spans.length > 0
      ? spans.reduce(
          (least, span) => (nano(span.start_unix_nano) < least ? nano(span.start_unix_nano) : least),
          nano(spans[0].start_unix_nano),
        )
      : 0n;
  const indexOf = new Map<string, number>();
  spans.forEach((span, at) => {
    if (!indexOf.has(span.span_id)) indexOf.set(span.span_id, at);
  });
  const children = new Map<number, number[]>();
  const roots: number[] = [];
  spans.forEach((span, at) => {
    const parent = span.parent_span_id === undefined ? undefined : indexOf.get(span.parent_span_id);
    // The second half of a shared span stands under the first.
    const above = indexOf.get(span.span_id) === at ? parent : indexOf.get(span.span_id);
    if (above === undefined || above === at) roots.push(at);
    else {
      const siblings = children.get(above);
      if (siblings) siblings.push(at);
      else children.set(above, [at]);
    }
  });

  const all: Row[] = [];
  const placed = new Uint8Array(spans.length);
  const visit = (root: number): void => {
    const pending: { at: number; parent: number | undefined; depth: number }[] = [
      { at: root, parent: undefined, depth: 0 },
    ];
    for (let next = pending.pop(); next; next = pending.pop()) {
      if (placed[next.at]) continue;
      placed[next.at] = 1;
      const span = spans[next.at];
      const above = next.parent === undefined ? undefined : all[next.parent];
      const start_ns = offsetNs(span.start_unix_nano, first);
      const isElsewhere = above !== undefined && span.local_root_span_id === span.span_id;
      const row: Row = {
        span,
        at: all.length,
        parent: next.parent,
        depth: next.depth,
        descendants: 0,
        start_ns,
        duration_ns: span.duration_ns,
        cpu: cpuOf(span.profiles),
        early_ns: isElsewhere ? Math.max(0, above.start_ns - start_ns) : 0,
      };
      all.push(row);
      for (const child of (children.get(next.at) ?? []).toReversed())
        pending.push({ at: child, parent: row.at, depth: next.depth + 1 });
    }
  };
  roots.forEach(visit);
  // What is left are circles: the earliest of each opens it.
  spans.forEach((_, at) => {
    if (!placed[at]) visit(at);
  });
  for (let at = all.length - 1; at >= 0; at -= 1) {
    const { parent, descendants } = all[at];
    if (parent !== undefined) all[parent].descendants += descendants + 1;
  }
  const byId = new Map<string, Row>();
  for (const row of all) if (!byId.has(row.span.span_id)) byId.set(row.span.span_id, row);
  const cpu = { samples: 0, value: 0 };
  for (const row of all) {
    cpu.samples += row.cpu?.samples ?? 0;
    cpu.value += row.cpu?.value ?? 0;
  }
  const ends = all.map((row) => row.start_ns + row.duration_ns);
  return {
    all,
    duration_ns: Math.max(
      1,
      ends.reduce((most, end) => Math.max(most, end), 0),
    ),
    byId,
    cpu,
    errors: all.filter((row) => row.span.status === "error").length,
  };
}

/** The rows on screen: those of which no row above is collapsed. */
export function visibleRows(rows: Rows, collapsed: ReadonlySet<number>): number[] {
  const visible: number[] = [];
  for (let at = 0; at < rows.all.length;) {
    visible.push(at);
    at += collapsed.has(at) ? rows.all[at].descendants + 1 : 1;
  }
  return visible;
}

/** The rows that have to open so that a row can be seen. */
export function rowsAbove(rows: Rows, at: number): number[] {
  const above: number[] = [];
  for (let next = rows.all[at].parent; next !== undefined; next = rows.all[next].parent) above.push(next);
  return above;
}

/** Collapses every row that is `depth` deep, so that this many levels are left. */
export function collapsedFrom(rows: Rows, depth: number): Set<number> {
  return new Set(rows.all.filter((row) => row.depth >= depth && row.descendants > 0).map((row) => row.at));
}

/** Rows whose name, service, ids, status or attributes hold a text, whatever its case. */
export function rowsWith(rows: Rows, text: string): number[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const holds = ({ span }: Row): boolean => {
    const parts = [span.name, span.service, span.span_id, span.status, span.kind, span.status_message ?? ""];
    return (
      parts.some((part) => part.toLowerCase().includes(wanted)) ||
      [span.attributes, span.resource].some((map) =>
        Object.entries(map).some(([key, value]) => `${key}=${String(value)}`.toLowerCase().includes(wanted)),
      )
    );
  };
  return rows.all.filter(holds).map((row) => row.at);
}

/** A stretch of the trace, from its beginning. */
export interface Window {
  start_ns: number;
  end_ns: number;
}

/** Round steps for a time axis of about `count` labels. */
export function ticks(window: Window, count: number): number[] {
  const length = window.end_ns - window.start_ns;
  if (length <= 0 || count < 1) return [];
  const rough = length / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? power;
  const found: number[] = [];
  for (let at = Math.ceil(window.start_ns / step) * step; at <= window.end_ns; at += step) found.push(at);
  return found;
}
