/**
 * The list of spans that was left for a trace, so that `[` and `]` there go to the previous and next slow span.
 *
 * Kept for the tab (session storage), not in the address: a link leads to one span, and whoever gets it has no list.
 */

const KEY = "spanflame.walk";
/** More than anyone walks through. */
const STEPS_MAX = 1_000;

export interface Step {
  traceId: string;
  spanId: string;
}

/** Remembers the list in its order. */
export function rememberWalk(steps: readonly Step[]): void {
  try {
    sessionStorage.setItem(
      KEY,
      steps
        .slice(0, STEPS_MAX)
        .map((step) => `${step.traceId}/${step.spanId}`)
        .join(" "),
    );
  } catch {
    // Storage may be forbidden or full: the keys then do nothing.
  }
}

/** The span `by` places after (1) or before (-1) a span of the list; of a trace where the span is not in it. `null` at an end. */
export function neighbour(at: { traceId: string; spanId?: string | undefined }, by: 1 | -1): Step | null {
  const list = remembered();
  const exact = list.findIndex((step) => step.traceId === at.traceId && step.spanId === at.spanId);
  const place = exact >= 0 ? exact : list.findIndex((step) => step.traceId === at.traceId);
  return place < 0 ? null : (list[place + by] ?? null);
}

function remembered(): Step[] {
  try {
    const text = sessionStorage.getItem(KEY) ?? "";
    return [...text.matchAll(/([0-9a-f]{32})\/([0-9a-f]{16})/g)].map((match) => ({
      traceId: match[1],
      spanId: match[2],
    }));
  } catch {
    return [];
  }
}
