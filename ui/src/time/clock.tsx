/**
 * The stretch of time that all questions of a screen share.
 *
 * A relative range is resolved once, when the address or the moment changes, and never by each question for itself: table,
 * heatmap and profile then speak about the same spans. `refresh` takes a new moment; live mode does so every few seconds.
 */

import { createContext, use, useCallback, useEffect, useMemo, useState } from "react";
import type { ReactNode } from "react";

import { fromMillis } from "./nano";
import { RANGE_DEFAULT, type RangeText, type TimeRange, isRelative, resolveRange } from "./range";

/** How often live mode asks again. */
const LIVE_MS = 5_000;

export interface Clock {
  /** The moment that `now` stands for. */
  now: bigint;
  /** As the address says it. */
  text: RangeText;
  /** What questions ask for. */
  range: TimeRange;
  /** The address names no range that can be read; `range` is then the default one. */
  isInvalid: boolean;
  /** Takes a new moment for `now`. */
  refresh: () => void;
  /** `now` moves on by itself. */
  isLive: boolean;
}

const ClockContext = createContext<Clock | null>(null);

/** The clock of the screen. */
export function useClock(): Clock {
  const clock = use(ClockContext);
  if (!clock) throw new Error("useClock is used outside of ClockProvider");
  return clock;
}

export function ClockProvider({ text, live, children }: { text: RangeText; live: boolean; children: ReactNode }) {
  const [now, setNow] = useState(() => fromMillis(Date.now()));
  const { start, end } = text;
  const isLive = live && isRelative(text);

  const refresh = useCallback(() => setNow(fromMillis(Date.now())), []);
  useEffect(() => {
    if (!isLive) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) refresh();
    }, LIVE_MS);
    return () => clearInterval(timer);
  }, [isLive, refresh]);

  const clock = useMemo(() => {
    const resolved = resolveRange({ start, end }, now);
    const range = resolved ?? (resolveRange(RANGE_DEFAULT, now) as TimeRange);
    return { now, text: { start, end }, range, isInvalid: resolved === null, refresh, isLive };
  }, [start, end, now, refresh, isLive]);
  return <ClockContext value={clock}>{children}</ClockContext>;
}
