/**
 * Every question of the page, as options for `useQuery`: key and fetch in one place.
 *
 * A range is part of the key as points in time, so an answer is cached as long as nobody asks for another moment; and an
 * unmounted or changed question aborts its request.
 */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";

import type { TimeRange } from "../time/range";
import type * as answers from "./answers";
import { type Parameters, ask } from "./client";

/** Without what is absent, and with points in time as text: keys of the cache must be JSON. */
function asText(parameters: Parameters): Parameters {
  const said = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(said.map(([name, value]) => [name, typeof value === "bigint" ? String(value) : value]));
}

function question<T>(path: string, parameters: Parameters = {}) {
  const asked = asText(parameters);
  return queryOptions({
    queryKey: [path, asked],
    queryFn: ({ signal }) => ask<T>(path, asked, signal),
    // While a changed question is asked, the old answer stays on screen, dimmed (`isPlaceholderData`).
    placeholderData: keepPreviousData,
  });
}

/** Options for `useQuery` whose answer is a `T`. */
export type Question<T> = ReturnType<typeof question<T>>;

/** What selects spans; `range` says whether a span counts by overlap or by its start. */
export interface Selection extends TimeRange {
  q?: string | undefined;
  range?: "overlap" | "start" | undefined;
}

/** One side of a comparison. */
export type Side = Partial<Selection> & {
  trace?: string | undefined;
  span?: string | undefined;
  labels?: string | undefined;
};

/** `base_q`, `base_start`, ... */
export function sides(base: Side, target: Side): Parameters {
  const named = (prefix: string, side: Side): [string, string | bigint | undefined][] =>
    Object.entries(side).map(([name, value]) => [`${prefix}_${name}`, value]);
  return Object.fromEntries([...named("base", base), ...named("target", target)]);
}

export const services = (range: TimeRange, buckets?: number) =>
  question<answers.Services>("/services", { start: range.start, end: range.end, buckets });

/** All pages together are every match, exactly once. */
export const spanPages = (selection: Selection, how: { order: "duration" | "start"; limit: number }) => {
  const asked = asText({ ...selection, ...how });
  return infiniteQueryOptions({
    queryKey: ["/spans", asked],
    queryFn: ({ signal, pageParam }) => ask<answers.Spans>("/spans", { ...asked, page: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_page,
    placeholderData: keepPreviousData,
  });
};

export const spansHistogram = (selection: Selection, size: { buckets: number; rows: number }) =>
  question<answers.SpansHistogram>("/spans/histogram", { ...selection, ...size });

export const spansProfile = (
  selection: Selection,
  how: { type?: string | undefined; scope?: "span" | "subtree" | undefined },
) => question<answers.SelectionProfile>("/spans/profile", { ...selection, ...how });

export const attributesComparison = (base: Side, target: Side, limit = 50) =>
  question<answers.AttributesComparison>("/spans/attributes/compare", { ...sides(base, target), limit });

export const attributes = (selection: Selection) => question<answers.Attributes>("/attributes", { ...selection });

export const attributeValues = (scope: answers.AttributeScope, key: string, selection: Selection, limit = 100) =>
  question<answers.AttributeValues>(`/attributes/${scope}/${encodeURIComponent(key)}/values`, { ...selection, limit });

export const trace = (traceId: string) => question<answers.Trace>(`/traces/${encodeURIComponent(traceId)}`);

/** Of a span, or of the whole trace where `spanId` is absent; `start` and `end` restrict it. */
export const traceProfile = (
  at: { traceId: string; spanId?: string | undefined },
  how: {
    scope?: answers.ProfileScope | undefined;
    type?: string | undefined;
    start?: string | undefined;
    end?: string | undefined;
  },
) => {
  const { scope, ...rest } = how;
  return question<answers.Profile>(`${pathOf(at)}/profile`, at.spanId ? { scope, ...rest } : rest);
};

export const timedSamples = (
  at: { traceId: string; spanId?: string | undefined },
  how: {
    scope?: "span" | "subtree" | "window" | undefined;
    type?: string | undefined;
    start?: string | undefined;
    end?: string | undefined;
  },
) => {
  const { scope, ...rest } = how;
  return question<answers.TimedSamples>(`${pathOf(at)}/samples`, at.spanId ? { scope, ...rest } : rest);
};

function pathOf(at: { traceId: string; spanId?: string | undefined }): string {
  const ofTrace = `/traces/${encodeURIComponent(at.traceId)}`;
  return at.spanId ? `${ofTrace}/spans/${encodeURIComponent(at.spanId)}` : ofTrace;
}

export const comparison = (
  base: Side,
  target: Side,
  how: { type?: string | undefined; scope?: "span" | "subtree" | undefined },
) => question<answers.Comparison>("/compare", { ...sides(base, target), ...how });

/** The profile over time of what a label selector names. */
export const labelledProfile = (range: TimeRange, how: { q?: string | undefined; type?: string | undefined }) =>
  question<answers.Profile>("/profile", { start: range.start, end: range.end, ...how });

export const profileSeries = (
  range: TimeRange,
  how: { q?: string | undefined; type?: string | undefined; buckets: number; by: readonly string[]; limit?: number },
) => question<answers.ProfileSeries>("/profile/series", { start: range.start, end: range.end, ...how });

export const profileTypes = (range: TimeRange) =>
  question<answers.ProfileTypes>("/profile-types", { start: range.start, end: range.end });

export const labels = (range: TimeRange) => question<answers.Labels>("/labels", { start: range.start, end: range.end });

export const labelValues = (name: string, range: TimeRange) =>
  question<answers.LabelValues>(`/labels/${encodeURIComponent(name)}/values`, { start: range.start, end: range.end });
