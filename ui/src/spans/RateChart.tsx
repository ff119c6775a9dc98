/** Spans and errors over time: bars on the same time axis as the heatmap under it. Dragging narrows the range. */

import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import type { SpansHistogram } from "../api/answers";
import { useWidth } from "../parts/useWidth";
import { count, counted, duration, shortCount } from "../text/quantity";
import { token, useTheme } from "../theme/theme";
import { clock } from "../time/instant";
import { nano } from "../time/nano";
import { useZone } from "../time/zone";
import { GUTTER, RIGHT } from "./layout";

const HEIGHT = 84;

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
  const [hover, setHover] = useState<number | null>(null);
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
        padding: [20, RIGHT, 2, 0],
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
              const left = self.cursor.left ?? -1;
              const at = left >= 0 ? Math.floor(self.posToVal(left, "x")) : -1;
              setHover(at >= 0 && at < buckets ? at : null);
            },
          ],
        },
      },
      [Array.from({ length: buckets }, (_, at) => at + 0.5), answer.count, answer.errors],
      target,
    );
    return () => plot.destroy();
  }, [answer, width, theme]);

  const errors = answer.errors.reduce((sum, failed) => sum + failed, 0);
  const start = nano(answer.start_unix_nano) + BigInt(answer.bucket_ns) * BigInt(hover ?? 0);
  return (
    <div className="rate-chart">
      <div
        ref={place}
        role="img"
        aria-label={`${counted(answer.matched, "span")} over time, ${count(errors)} of them failed`}
      />
      <p className="rate-unit muted" aria-hidden="true">
        {hover === null || hover >= answer.count.length
          ? `spans per ${duration(answer.bucket_ns)}; drag to narrow the range`
          : `${clock(start, zone)}: ${counted(answer.count[hover], "span")}, ${counted(answer.errors[hover], "error")} in ${duration(answer.bucket_ns)}`}
      </p>
    </div>
  );
}

const bars = uPlot.paths.bars?.({ size: [0.9, 100], gap: 0 });
