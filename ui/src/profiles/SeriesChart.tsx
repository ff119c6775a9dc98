/** A profile over time, a line a series. Dragging, or arrow keys with Shift, choose the stretch that the flame graph is of. */

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import type { ProfileSeries } from "../api/answers";
import { useKeys } from "../frame/keys";
import { useWidth } from "../parts/useWidth";
import { value } from "../text/quantity";
import { markColour } from "../theme/palette";
import { token, useTheme } from "../theme/theme";
import { clock } from "../time/instant";
import { nano, offsetNs } from "../time/nano";
import { type TimeRange, lengthNs } from "../time/range";
import { timeTicks } from "../time/ticks";
import { useZone } from "../time/zone";
import { seriesName } from "./selector";

const HEIGHT = 190;
const TICK_PX = 130;

export interface SeriesChartProps {
  answer: ProfileSeries;
  stretch: TimeRange | null;
  /** Bucket under the pointer. */
  onHover: (bucket: number | null) => void;
  onStretch: (stretch: TimeRange | null) => void;
}

export function SeriesChart({ answer, stretch, onHover, onStretch }: SeriesChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const width = useWidth(place);
  const theme = useTheme();
  const [zone] = useZone();
  const buckets = bucketCount(answer);
  const calls = useRef({ onHover, onStretch });
  useEffect(() => {
    calls.current = { onHover, onStretch };
  });

  useEffect(() => {
    const target = place.current;
    if (!target || width === 0) return undefined;
    const range = rangeOf(answer);
    const count = bucketCount(answer);
    const font = `11px ${token("--mono", theme)}`;
    const ticks = timeTicks(range, Math.max(2, Math.floor(width / TICK_PX)), zone);
    const grid = { stroke: token("--line", theme), width: 1 };
    const made = new uPlot(
      {
        width,
        height: HEIGHT,
        padding: [10, 36, 0, 0],
        cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
        legend: { show: false },
        scales: { x: { time: false, range: [0, count] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] } },
        axes: [
          {
            stroke: token("--muted", theme),
            font,
            size: 26,
            grid,
            ticks: { show: false },
            splits: () => ticks.at.map((at) => offsetNs(at, range.start) / answer.bucket_ns),
            values: () =>
              ticks.at.map((at) => clock(at, zone, { beside: range.start, decimals: ticks.step_ns < 1e9 ? 3 : 0 })),
          },
          {
            stroke: token("--muted", theme),
            font,
            size: 70,
            grid,
            ticks: { show: false },
            values: (_, splits) => splits.map((amount) => value(amount, answer.unit)),
          },
        ],
        series: [
          {},
          ...answer.series.map((one) => lineOf(markColour(seriesName(one.labels), theme))),
          ...(answer.others ? [lineOf(token("--not-significant", theme))] : []),
        ],
        hooks: {
          setSelect: [
            (self) => {
              if (self.select.width < 3) return;
              const first = Math.floor(self.posToVal(self.select.left, "x"));
              const last = Math.ceil(self.posToVal(self.select.left + self.select.width, "x"));
              calls.current.onStretch(stretchOf(answer, first, last));
            },
          ],
          setCursor: [
            (self) => {
              const left = self.cursor.left ?? -1;
              const at = left >= 0 ? Math.floor(self.posToVal(left, "x")) : -1;
              calls.current.onHover(at >= 0 && at < count ? at : null);
            },
          ],
        },
      },
      [
        Array.from({ length: count }, (_, at) => at + 0.5),
        ...answer.series.map((one) => one.value),
        ...(answer.others ? [answer.others.value] : []),
      ],
      target,
    );
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [answer, width, theme, zone]);

  const [from, until] = stretch ? bucketsOf(answer, stretch) : [0, 0];
  useEffect(() => {
    const self = plot.current;
    if (!self) return;
    const [left, right] = [self.valToPos(from, "x"), self.valToPos(until, "x")];
    self.setSelect({ left, top: 0, width: Math.max(0, right - left), height: self.over.clientHeight }, false);
    // Each of these makes a new plot, which knows no selection.
    // oxlint-disable-next-line react/exhaustive-effect-dependencies
  }, [from, until, answer, width, theme, zone]);

  function move(by: number, isLonger: boolean): void {
    const [first, last] = until > from ? [from, until] : [Math.floor(buckets / 2), Math.floor(buckets / 2)];
    const next = isLonger ? [first, last + by] : [first + by, Math.max(last, first + 1) + by];
    if (next[0] >= 0 && next[1] <= buckets && next[1] > next[0]) onStretch(stretchOf(answer, next[0], next[1]));
  }
  useKeys(
    "Over time, while it has the focus",
    [
      { press: "ArrowLeft", does: "move the stretch", run: () => move(-1, false) },
      { press: "ArrowRight", run: () => move(1, false) },
      { press: "Shift+ArrowRight", does: "make it longer", run: () => move(1, true) },
      { press: "Shift+ArrowLeft", does: "make it shorter", run: () => move(-1, true) },
      { press: "Escape", does: "the whole range", run: () => (stretch ? onStretch(null) : false) },
    ],
    { within: place },
  );

  return (
    <div
      ref={place}
      className="series-chart"
      role="application"
      tabIndex={0}
      aria-label={`${answer.series.length} series over time. Left and right arrow keys move the chosen stretch, with Shift they make it longer or shorter.`}
    />
  );
}

function lineOf(stroke: string): uPlot.Series {
  return { stroke, width: 1.5, points: { show: false }, spanGaps: false };
}

export function bucketCount(answer: ProfileSeries): number {
  return Math.max(0, ...answer.series.map((one) => one.value.length), answer.others?.value.length ?? 0);
}

/** All buckets together. */
function rangeOf(answer: ProfileSeries): TimeRange {
  const start = nano(answer.start_unix_nano);
  return { start, end: start + BigInt(answer.bucket_ns) * BigInt(Math.max(1, bucketCount(answer))) };
}

function stretchOf(answer: ProfileSeries, first: number, last: number): TimeRange {
  const start = nano(answer.start_unix_nano);
  const at = (bucket: number): bigint =>
    start + BigInt(answer.bucket_ns) * BigInt(Math.min(bucketCount(answer), Math.max(0, bucket)));
  return { start: at(first), end: at(last) };
}

function bucketsOf(answer: ProfileSeries, stretch: TimeRange): [number, number] {
  const from = offsetNs(stretch.start, answer.start_unix_nano) / answer.bucket_ns;
  return [from, from + lengthNs(stretch) / answer.bucket_ns];
}
