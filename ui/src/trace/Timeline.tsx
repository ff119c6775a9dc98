/** When the samples of a span were taken: threads as rows, samples as ticks at their time. Dragging restricts the profile. */

import { useSearch } from "@tanstack/react-router";
import { type PointerEvent, useEffect, useMemo, useRef, useState } from "react";

import type { ProfileScope, Span, TimedSamples } from "../api/answers";
import { timedSamples } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { plain } from "../flame/paint";
import { Reasons } from "../parts/Reasons";
import { Asked, Empty } from "../parts/State";
import { useWidth } from "../parts/useWidth";
import { count, counted, duration, value } from "../text/quantity";
import { useTheme, token } from "../theme/theme";
import { nano } from "../time/nano";
import { context2d } from "./paint";
import { ticks } from "./rows";

const ROW = 22;
const NAMES = 170;
const AXIS = 18;
/** More threads are counted, not drawn. */
const THREADS_MAX = 200;
const STACK_SHOWN = 14;
const DRAG_PX = 4;

export function Timeline({
  traceId,
  span,
  scope,
  onStretch,
}: {
  traceId: string;
  span: Span | undefined;
  scope: ProfileScope;
  onStretch: (start: string, end: string) => void;
}) {
  const { type, start, end } = useSearch({ from: "/trace/$traceId" });
  const asked = scope === "trace" ? { type, start, end } : { scope, type, start, end };
  const { query, cancel } = useQuestion(
    timedSamples({ traceId, spanId: scope === "trace" ? undefined : span?.span_id }, asked),
  );
  return (
    <Asked what="the timeline" query={query} onCancel={cancel}>
      {(answer) =>
        answer.samples.offset_ns.length > 0 ? (
          <Threads answer={answer} onStretch={onStretch} />
        ) : (
          <Empty title="No samples with a time">
            {answer.without_time > 0 ? (
              <p>
                {counted(answer.without_time, "sample")} came without times: their client adds up over a profile and
                says only how often. The flame graph has them.
              </p>
            ) : (
              <Reasons reasons={answer.evidence.reasons} />
            )}
          </Empty>
        )
      }
    </Asked>
  );
}

function Threads({ answer, onStretch }: { answer: TimedSamples; onStretch: (start: string, end: string) => void }) {
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(place);
  const theme = useTheme();
  const [hover, setHover] = useState<{ sample: number; x: number; y: number } | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const threads = Math.min(answer.threads.length, THREADS_MAX);
  const height = threads * ROW + AXIS;
  const room = Math.max(1, width - NAMES - 8);
  const length = Math.max(1, answer.duration_ns);
  const hovered = hover?.sample;
  const byThread = useMemo(() => {
    const rows: number[][] = Array.from({ length: threads }, () => []);
    answer.samples.thread.forEach((thread, sample) => rows[thread]?.push(sample));
    return rows;
  }, [answer, threads]);

  useEffect(() => {
    if (!canvas.current || width <= 0) return;
    const context = context2d(canvas.current, width, height);
    if (!context) return;
    const x = (ns: number): number => NAMES + (ns / length) * room;
    context.fillStyle = token("--ground", theme);
    context.fillRect(0, 0, width, height);
    context.font = `11px ${token("--mono", theme)}`;
    context.textBaseline = "middle";
    context.fillStyle = token("--muted", theme);
    for (const at of ticks({ start_ns: 0, end_ns: length }, Math.max(2, Math.floor(room / 80)))) {
      context.fillText(duration(at), Math.min(x(at), width - 60), height - AXIS / 2);
      context.fillRect(x(at), 0, 0.5, height - AXIS);
    }
    byThread.forEach((samples, thread) => {
      const y = thread * ROW;
      context.fillStyle = token("--text", theme);
      context.fillText(plain(threadName(answer, thread)).slice(0, 24), 4, y + ROW / 2);
      context.fillStyle = token("--line", theme);
      context.fillRect(NAMES, y + ROW - 1, room, 1);
      for (const sample of samples) {
        context.fillStyle = sample === hovered ? token("--accent", theme) : token("--on-cpu", theme);
        context.fillRect(x(answer.samples.offset_ns[sample]) - 0.75, y + 4, sample === hovered ? 3 : 1.5, ROW - 8);
      }
    });
    if (drag) {
      context.globalAlpha = 0.25;
      context.fillStyle = token("--accent", theme);
      context.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), height - AXIS);
      context.globalAlpha = 1;
    }
  }, [answer, byThread, width, height, room, length, hovered, drag, theme]);

  function nearest(event: PointerEvent): { sample: number; x: number; y: number } | null {
    const box = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const at = ((x - NAMES) / room) * length;
    let best: number | undefined;
    for (const sample of byThread[Math.floor(y / ROW)] ?? []) {
      const distance = Math.abs(answer.samples.offset_ns[sample] - at);
      if (best === undefined || distance < Math.abs(answer.samples.offset_ns[best] - at)) best = sample;
    }
    const isClose = best !== undefined && (Math.abs(answer.samples.offset_ns[best] - at) / length) * room < 6;
    return best !== undefined && isClose ? { sample: best, x, y } : null;
  }

  function finish(): void {
    if (drag && Math.abs(drag.to - drag.from) >= DRAG_PX) {
      const at = (x: number): bigint => BigInt(Math.round((Math.min(room, Math.max(0, x - NAMES)) / room) * length));
      const begin = nano(answer.start_unix_nano);
      onStretch(
        String(begin + at(Math.min(drag.from, drag.to))),
        String(begin + at(Math.max(drag.from, drag.to)) + 1n),
      );
    }
    setDrag(null);
  }

  return (
    <div ref={place} className="timeline">
      <p className="figures mono">
        {counted(answer.samples.offset_ns.length, "sample")} on {counted(answer.threads.length, "thread")}
        {answer.without_time > 0 && ` · ${count(answer.without_time)} without a time, not shown`}
        {answer.truncated && ` · the first ${count(answer.limit)} only`}
        {answer.threads.length > threads && ` · ${count(answer.threads.length - threads)} threads not shown`}
      </p>
      <canvas
        ref={canvas}
        style={{ width, height }}
        role="img"
        aria-label="Samples by thread and time; drag to restrict the profile to a stretch of time"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
          setDrag({ from: x, to: x });
        }}
        onPointerMove={(event) => {
          const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
          if (drag) setDrag({ ...drag, to: x });
          else setHover(nearest(event));
        }}
        onPointerUp={finish}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setHover(null)}
      />
      <p className="muted">Drag over a stretch of time to see what ran in it.</p>
      {hover && (
        <div
          className="floating tip"
          aria-hidden="true"
          style={{ left: Math.min(hover.x + 12, Math.max(0, width - 320)), top: hover.y + 40 }}
        >
          <div className="mono">
            +{duration(answer.samples.offset_ns[hover.sample])} ·{" "}
            {value(answer.samples.value[hover.sample], answer.unit)}
          </div>
          {stackText(answer, hover.sample).map((line, at) => (
            // Frames of a stack repeat.
            // oxlint-disable-next-line react/no-array-index-key
            <div key={at} className="mono cut">
              <bdi>{line}</bdi>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function threadName(answer: TimedSamples, thread: number): string {
  const { service, thread_name, thread_id, process_id } = answer.threads[thread];
  const own = thread_name ?? (thread_id === undefined ? "" : `thread ${thread_id}`);
  return own || (process_id === undefined ? (service ?? "(unknown)") : `process ${process_id}`);
}

/** The leaf first, as one reads "where was it". */
function stackText(answer: TimedSamples, sample: number): string[] {
  const stack = answer.stacks[answer.samples.stack[sample]] ?? [];
  const names = stack.toReversed().map((frame) => plain(answer.frames[frame]?.function ?? "").slice(0, 120));
  return names.length > STACK_SHOWN
    ? [...names.slice(0, STACK_SHOWN), `${count(names.length - STACK_SHOWN)} more`]
    : names;
}
