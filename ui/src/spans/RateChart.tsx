/** Spans and errors over time: bars on the same time axis as the heatmap under it. Dragging narrows the range. */

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import type { SpansHistogram } from "../api/answers";
import { useWidth } from "../parts/useWidth";
import { count, shortCount } from "../text/quantity";
import { token, useTheme } from "../theme/theme";
import { clock } from "../time/instant";
import { nano } from "../time/nano";
import { useZone } from "../time/zone";
import { GUTTER, RIGHT } from "./layout";

const HEIGHT = 72;

export function RateChart({
  answer,
  onRange,
}: {
  answer: SpansHistogram;
  onRange: (start: bigint, end: bigint) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const theme = useTheme();
  const [zone] = useZone();
  const drag = useRef(onRange);
  useEffect(() => {
    drag.current = onRange;
  });

  useEffect(() => {
    const target = place.current;
    if (!target || width === 0) return undefined;
    const start = nano(answer.start_unix_nano);
    const buckets = answer.count.length;
    // The axis counts buckets, not seconds: numbers of nanoseconds would lose digits.
    const bucketStart = (at: number): bigint =>
      start + BigInt(Math.min(buckets, Math.max(0, Math.round(at)))) * BigInt(answer.bucket_ns);
    const plot = new uPlot(
      {
        width,
        height: HEIGHT,
        padding: [6, RIGHT, 2, 0],
        cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
        legend: { show: false },
        scales: { x: { time: false, range: [0, buckets] }, y: { range: (_, __, max) => [0, Math.max(1, max)] } },
        axes: [
          { show: false },
          {
            size: GUTTER,
            stroke: token("--muted", theme),
            grid: { stroke: token("--line", theme), width: 1 },
            ticks: { show: false },
            font: `11px ${token("--mono", theme)}`,
            splits: (_, __, ___, max) => [0, max],
            values: (_, splits) => splits.map((value) => shortCount(value)),
          },
        ],
        series: [
          {},
          { fill: token("--line-strong", theme), width: 0, paths: bars, points: { show: false } },
          { fill: token("--error", theme), width: 0, paths: bars, points: { show: false } },
        ],
        hooks: {
          setSelect: [
            (self) => {
              const { left, width: length } = self.select;
              if (length < 3) return;
              const [from, to] = [self.posToVal(left, "x"), self.posToVal(left + length, "x")];
              const [first, last] = [Math.floor(from), Math.ceil(to)];
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              if (last > first) drag.current(bucketStart(first), bucketStart(last));
            },
          ],
          setCursor: [
            (self) => {
              const at =
                self.cursor.left !== undefined && self.cursor.left >= 0
                  ? Math.floor(self.posToVal(self.cursor.left, "x"))
                  : -1;
              target.title =
                at >= 0 && at < buckets
                  ? `${clock(bucketStart(at), zone)}: ${count(answer.count[at])} spans, ${count(answer.errors[at])} errors. Drag to narrow the range.`
                  : "";
            },
          ],
        },
      },
      [Array.from({ length: buckets }, (_, at) => at + 0.5), answer.count, answer.errors],
      target,
    );
    return () => plot.destroy();
  }, [answer, width, theme, zone]);

  return (
    <div
      ref={place}
      className="rate-chart"
      role="img"
      aria-label={`${count(answer.matched)} spans over time, ${count(answer.errors.reduce((sum, errors) => sum + errors, 0))} of them failed`}
    />
  );
}

const bars = uPlot.paths.bars?.({ size: [0.9, 100], gap: 0 });
