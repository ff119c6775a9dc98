/**
 * A part of a whole that was sampled, as honest as the samples allow.
 *
 * The rule of small numbers: below 5 samples no percentage, below 20 an interval instead of a bare number. Where the
 * server sent an interval it is used; Wilson's is computed here only for nodes of a tree, which come without.
 */

/** Below this no percentage. */
export const PERCENT_SAMPLES_MIN = 5;
/** Below this no share without its interval. */
export const INTERVAL_SAMPLES_MIN = 20;

/** A range that holds the true share with 95 % confidence; both ends in 0..1. */
export interface Interval {
  low: number;
  high: number;
}

/** The 97.5 % quantile of the normal distribution: two-sided 95 %. */
const Z = 1.959_963_984_540_054;

/** Wilson's interval of a share that rests on `samples`; everything is possible without samples. */
export function wilson(share: number, samples: number): Interval {
  if (samples <= 0) return { low: 0, high: 1 };
  const z2 = Z * Z;
  const centre = share + z2 / (2 * samples);
  const spread = Z * Math.sqrt((share * (1 - share)) / samples + z2 / (4 * samples * samples));
  const scale = 1 + z2 / samples;
  return { low: Math.max(0, (centre - spread) / scale), high: Math.min(1, (centre + spread) / scale) };
}

/** Whether a share of a whole of this many samples is drawn faded and told as a range. */
export function isUncertain(samples: number): boolean {
  return samples < INTERVAL_SAMPLES_MIN;
}

/** A sampled share: `52 % (48-56)`, `31-72 %` alone, or `few samples`; empty of nothing. */
export function sampledShare(part: number, total: number, samples: number, interval?: Interval): string {
  if (total <= 0 || samples <= 0) return "";
  const share = Math.min(1, Math.max(0, part / total));
  const { low, high } = interval ?? wilson(share, samples);
  if (samples < PERCENT_SAMPLES_MIN) return "few samples";
  const range = `${percentDigits(low)}-${percentDigits(high)}`;
  if (samples < INTERVAL_SAMPLES_MIN) return `${range} %`;
  return `${percentDigits(share)} % (${range})`;
}

/** A share that was counted, not sampled: `94 %`, `0.4 %`; a little is not `0 %`, and almost all is not `100 %`. */
export function percent(share: number): string {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  if (share < 1 && share >= 0.995) return ">99 %";
  return `${percentDigits(share)} %`;
}

/** Whole percents, but one decimal below 10 so that 0.4 is not 0. */
function percentDigits(share: number): string {
  const percents = share * 100;
  if (percents < 0.05) return "0";
  return percents < 9.95 ? percents.toFixed(1) : percents.toFixed(0);
}
