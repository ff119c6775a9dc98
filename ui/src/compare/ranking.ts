/** The ranked table of a comparison as text. Numbers, intervals and verdicts are the server's. */

import type { ComparedCost, ComparedFunction, Comparison, Verdict } from "../api/answers";
import { value } from "../text/quantity";
import { INTERVAL_SAMPLES_MIN, type Interval, percent } from "../text/share";

export const VERDICTS: Record<Verdict, { text: string; title: string }> = {
  more: { text: "more", title: "costs more in the target; the samples can tell" },
  less: { text: "less", title: "costs less in the target; the samples can tell" },
  only_in_base: { text: "only in base", title: "seen in the base only" },
  only_in_target: { text: "only in target", title: "seen in the target only" },
  not_significant: { text: "not significant", title: "the intervals of the two costs overlap" },
  too_few_samples: { text: "too few samples", title: "nothing can be said from so few samples" },
};

/** Whether the samples can tell that something changed. */
export function isSignificant(row: ComparedFunction): boolean {
  return row.verdict !== "not_significant" && row.verdict !== "too_few_samples";
}

/** `52 % (48-56)`; the interval alone below 20 samples of the side, and `few samples` where the server says no share. */
export function shareText({ share, interval, samples }: ComparedCost, sideSamples: number): string {
  if (share === undefined) return "few samples";
  if (samples === 0) return "-";
  const range = interval ? `${digits(interval.low)}-${digits(interval.high)}` : "";
  if (sideSamples < INTERVAL_SAMPLES_MIN) return range ? `${range} %` : "few samples";
  return range ? `${percent(share)} (${range})` : percent(share);
}

/** By what the costs are told: a request, or a second where no spans were selected. */
export function costUnit(answer: Comparison): "span" | "second" {
  return answer.base.per_span === undefined && answer.target.per_span === undefined ? "second" : "span";
}

export function costOf(cost: ComparedCost, per: "span" | "second"): number | undefined {
  return per === "span" ? cost.per_span : cost.per_second;
}

export function costText(cost: ComparedCost, per: "span" | "second", unit: string): string {
  const amount = costOf(cost, per);
  if (amount === undefined || cost.samples === 0) return "-";
  return `${shown(amount, unit)}${rangeText(per === "span" ? cost.per_span_interval : cost.per_second_interval, unit)}`;
}

export function differenceOf(row: ComparedFunction, per: "span" | "second"): number | undefined {
  return per === "span" ? row.per_span_difference : row.per_second_difference;
}

/** `+3.10 ms (2.0 to 4.2)`: the sign is always written. */
export function differenceText(row: ComparedFunction, per: "span" | "second", unit: string): string {
  const amount = differenceOf(row, per);
  if (amount === undefined) return "";
  const interval = per === "span" ? row.per_span_difference_interval : row.per_second_difference_interval;
  return `${signed(amount, unit)}${interval ? ` (${signed(interval.low, unit)} to ${signed(interval.high, unit)})` : ""}`;
}

function signed(amount: number, unit: string): string {
  return `${amount > 0 ? "+" : ""}${shown(amount, unit)}`;
}

/** Costs are quotients: fractions of a nanosecond or byte say nothing beside hundreds of them. */
function shown(amount: number, unit: string): string {
  return value(Math.abs(amount) >= 10 ? Math.round(amount) : amount, unit);
}

function rangeText(interval: Interval | undefined, unit: string): string {
  return interval ? ` (${shown(interval.low, unit)} - ${shown(interval.high, unit)})` : "";
}

function digits(share: number): string {
  return percent(share).replace(" %", "");
}
