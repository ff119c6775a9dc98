/**
 * The shapes of the server's answers, as docs/openapi.json describes them field by field.
 *
 * Names are the API's. A field that is absent is unknown: it is never 0 or `""` instead. Times are strings of
 * nanoseconds since the epoch (see `time/nano`), durations and values numbers.
 */

import type { Interval } from "../text/share";
import type { NanoText } from "../time/nano";

export interface Took {
  took_ms: number;
}

/** Of spans or requests. */
export interface Quantiles {
  p50_ns: number;
  p90_ns: number;
  p99_ns: number;
  max_ns: number;
  /** Otherwise at most 1 % off. */
  exact: boolean;
}

export type SpanKind = "unspecified" | "internal" | "server" | "client" | "producer" | "consumer";
export type SpanStatus = "unset" | "ok" | "error";

// --- services

export interface Services extends Took {
  services: Service[];
  start_unix_nano: NanoText;
  end_unix_nano: NanoText;
  /** With `buckets` only. */
  bucket_ns?: number;
}

export interface Service {
  name: string;
  spans: number;
  /** Spans through which requests entered it. */
  requests: number;
  errors: number;
  requests_per_second: number;
  duration?: Quantiles;
  samples: number;
  linked_samples: number;
  cpu_ns: number;
  cpu_ns_per_request?: number;
  /** With `buckets` only. */
  series?: { requests: number[]; errors: number[]; p99_ns: (number | null)[] };
}

// --- spans

export interface Spans extends Took {
  spans: FoundSpan[];
  /** On every page together. */
  matched: number;
  /** Absent on the last page. */
  next_page?: string;
}

export interface FoundSpan {
  trace_id: string;
  span_id: string;
  service: string;
  name: string;
  kind: SpanKind;
  start_unix_nano: NanoText;
  duration_ns: number;
  status: SpanStatus;
  root_name?: string;
  root_service?: string;
  /** Absent without samples. */
  cpu_ns?: number;
  samples: number;
  tenant?: string;
}

export interface SpansHistogram extends Took {
  start_unix_nano: NanoText;
  end_unix_nano: NanoText;
  bucket_ns: number;
  /** Spans selected. */
  matched: number;
  /** Spans that could not be ruled out unseen. */
  inspected: number;
  /** One a bucket. */
  count: number[];
  errors: number[];
  duration: {
    /** One more than rows; row r holds bounds[r] <= duration < bounds[r+1]. */
    bounds_ns: number[];
    /** Flat arrays of equal length; only cells that count something. */
    cells: { bucket: number[]; row: number[]; count: number[]; errors: number[] };
  };
  quantiles?: Quantiles;
}

export type AttributeScope = "span" | "resource" | "instrumentation" | "event" | "link" | "intrinsic";
/** A keyword is a word of TraceQL: a status, a kind. */
export type ValueKind = "string" | "int" | "double" | "bool" | "bytes" | "array" | "map" | "keyword";

export interface Attributes extends Took {
  attributes: { scope: AttributeScope; key: string; value_types: ValueKind[]; spans: number }[];
  truncated: boolean;
}

export interface AttributeValues extends Took {
  values: { value: string; value_type: ValueKind; spans: number }[];
  truncated: boolean;
}

export interface AttributesComparison extends Took {
  /** Spans in base and not in target. */
  base: { spans: number };
  target: { spans: number };
  attributes: OverRepresented[];
  truncated_keys?: string[];
}

export interface OverRepresented {
  scope: AttributeScope;
  key: string;
  value: string;
  value_type: ValueKind;
  target_spans: number;
  base_spans: number;
  target_share: number;
  target_interval: Interval;
  base_share: number;
  base_interval: Interval;
  difference: number;
}

// --- profiles

export type ProfileScope = "span" | "subtree" | "trace" | "window";

export interface Frame {
  /** `module+0xaddress` where unknown. */
  function: string;
  file?: string;
  /** That cost most, 1-based. */
  line?: number;
  module?: string;
  /** OpenTelemetry's frame type; `root` for frame 0. */
  kind?: string;
  unresolved?: boolean;
}

/** Flat arrays of equal length, parents before children, node 0 is the root. */
export interface Tree {
  frame: number[];
  parent: number[];
  self: number[];
  total: number[];
  samples: number[];
}

export interface Profile extends Took {
  type: string;
  unit: string;
  /** Absent for services. */
  scope?: ProfileScope;
  total: number;
  samples: number;
  start_unix_nano?: NanoText;
  end_unix_nano?: NanoText;
  frames: Frame[];
  tree: Tree;
  evidence: Evidence;
}

/** The merged profile of a selection of spans. */
export interface SelectionProfile extends Profile {
  selection: { spans: number; without_samples: number; wall_ns: number; quantiles?: Quantiles };
  /** total / spans, in the unit; absent without spans. */
  per_span?: number;
}

export interface Evidence {
  /** The coarsest where profiles differ. */
  period_ns?: number;
  precision: { span: number; local_root: number; trace: number; window: number };
  ambiguous: number;
  unresolved_frames: number;
  covered_ns: number;
  window_match: string | null;
  prorated?: number;
  prorated_profile_ns?: number;
  /** The most likely first. */
  reasons: Reason[];
}

export interface Reason {
  /** Stable. */
  code: string;
  text: string;
  hint?: string;
}

export interface ProfileTypes extends Took {
  profile_types: { type: string; unit: string; services: string[]; samples: number }[];
}

export interface ProfileSeries extends Took {
  type: string;
  unit: string;
  start_unix_nano: NanoText;
  bucket_ns: number;
  series: { labels: Record<string, string>; total: number; value: number[]; samples: number[] }[];
  others?: { series: number; total: number; value: number[]; samples: number[] };
  evidence: Evidence;
}

/** A file that was looked at without being stored. */
export interface Viewed extends Took {
  format: string;
  profiles: number;
  types: { type: string; unit: string; samples: number }[];
  type: string;
  unit: string;
  total: number;
  samples: number;
  frames: Frame[];
  tree: Tree;
  evidence: Evidence;
  start_unix_nano?: NanoText;
  duration_ns?: number;
  labels: Record<string, string>;
}

export interface Labels extends Took {
  labels: string[];
}

export interface LabelValues extends Took {
  values: string[];
}

// --- comparison

export interface ComparedSide {
  spans?: number;
  without_samples?: number;
  wall_ns?: number;
  quantiles?: Quantiles;
  samples: number;
  total: number;
  per_span?: number;
  per_second?: number;
  evidence: Evidence;
}

export interface ComparedCost {
  self: number;
  total: number;
  samples: number;
  /** Absent below 5 samples. */
  share?: number;
  interval?: Interval;
  per_span?: number;
  per_span_interval?: Interval;
  per_second?: number;
  per_second_interval?: Interval;
}

export type Verdict = "more" | "less" | "only_in_base" | "only_in_target" | "not_significant" | "too_few_samples";

export interface ComparedFunction {
  function: string;
  file?: string;
  module?: string;
  base: ComparedCost;
  target: ComparedCost;
  share_difference?: number;
  per_span_difference?: number;
  per_span_difference_interval?: Interval;
  per_second_difference?: number;
  per_second_difference_interval?: Interval;
  verdict: Verdict;
}

/** Parents before children, node 0 is the root. */
export interface ComparedTree {
  frame: number[];
  parent: number[];
  base_self: number[];
  base_total: number[];
  base_samples: number[];
  target_self: number[];
  target_total: number[];
  target_samples: number[];
}

export interface Comparison extends Took {
  type: string;
  unit: string;
  scope?: ProfileScope;
  base: ComparedSide;
  target: ComparedSide;
  frames: Frame[];
  tree: ComparedTree;
  functions: ComparedFunction[];
  functions_total: number;
}

// --- a trace

export interface Trace extends Took {
  trace_id: string;
  start_unix_nano?: NanoText;
  end_unix_nano?: NanoText;
  services: string[];
  complete: boolean;
  /** By start, then span id. */
  spans: Span[];
  unassigned_profiles?: Record<string, SpanProfile>;
}

export interface SpanProfile {
  samples: number;
  value: number;
}

/** Integers beyond 2^53 and numbers JSON lacks are strings, bytes base64. */
export type AttributeMap = Record<string, unknown>;

export interface Span {
  span_id: string;
  parent_span_id?: string;
  local_root_span_id: string;
  service: string;
  name: string;
  kind: SpanKind;
  status: SpanStatus;
  status_message?: string;
  start_unix_nano: NanoText;
  duration_ns: number;
  attributes: AttributeMap;
  resource: AttributeMap;
  scope: { name?: string; version?: string; attributes?: AttributeMap };
  events: { time_unix_nano: NanoText; name: string; attributes: AttributeMap }[];
  links: { trace_id: string; span_id: string; attributes: AttributeMap; trace_state?: string }[];
  trace_state?: string;
  dropped?: { attributes: number; events: number; links: number };
  parent_missing?: boolean;
  shared_id?: boolean;
  tenant?: string;
  /** By profile type, in scope span. */
  profiles: Record<string, SpanProfile>;
}

/** Samples of a span or trace at their time. */
export interface TimedSamples extends Took {
  type: string;
  unit: string;
  start_unix_nano: NanoText;
  duration_ns: number;
  threads: { service?: string; process_id?: number; thread_id?: number; thread_name?: string }[];
  frames: Frame[];
  /** Frame indices, root first. */
  stacks: number[][];
  /** Flat arrays of equal length, by time. */
  samples: { offset_ns: number[]; thread: number[]; stack: number[]; value: number[]; span: number[] };
  spans: string[];
  without_time: number;
  truncated: boolean;
  limit: number;
  evidence: Evidence;
}
