/** Spans: find the slow ones, and see at once what they did. */

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import type { SpansHistogram } from "../api/answers";
import { Failure } from "../api/client";
import { spansHistogram } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { useKeys } from "../frame/keys";
import { Asked, Empty } from "../parts/State";
import { count, counted, duration } from "../text/quantity";
import { useClock } from "../time/clock";
import { rangeSearch, widened } from "../time/range";
import { FilterMenu } from "../traceql/FilterMenu";
import { QueryBar } from "../traceql/QueryBar";
import { isEverything, withConditions } from "../traceql/text";
import { Heatmap } from "./Heatmap";
import { RateChart } from "./RateChart";
import { SelectionPanel } from "./SelectionPanel";
import { SpanTable } from "./SpanTable";
import { type Region, parseRegion, regionText, selectionOf } from "./region";
import "./spans.css";

/** Cells of the heatmap. */
const SIZE = { buckets: 80, rows: 30 };

export function SpansScreen() {
  const { q = "", sel, order = "duration" } = useSearch({ from: "/spans" });
  const navigate = useNavigate({ from: "/spans" });
  const clock = useClock();
  const region = parseRegion(sel);
  const [isPanelOpen, setPanelOpen] = useState(true);
  const { query, cancel } = useQuestion(spansHistogram({ q, ...clock.range, range: "start" }, SIZE));
  // Nothing found is told once, and not by the heatmap, the table and the profile each.
  const isEmpty = query.data?.matched === 0 && !query.isPlaceholderData;
  const mistake = query.error instanceof Failure && query.error.detail.line !== undefined ? query.error : null;

  const setRegion = (next: Region | null) =>
    void navigate({ search: (before) => ({ ...before, sel: next ? regionText(next) : undefined, focus: undefined }) });
  function run(next: string): void {
    if (next === q) clock.refresh();
    else void navigate({ search: (before) => ({ ...before, q: next || undefined, sel: undefined, focus: undefined }) });
  }

  useKeys("Spans", [
    { press: "Escape", does: "clear the selection", run: () => (region ? setRegion(null) : false) },
    { press: "p", does: "show or hide the profile", run: () => setPanelOpen((before) => !before) },
  ]);

  return (
    <div className="spans">
      <title>{`${q || "Spans"} - Spanflame`}</title>
      <h1 className="visually-hidden">Spans</h1>
      <div className="spans-query">
        <QueryBar q={q} range={clock.range} failure={mistake} onRun={run}>
          <FilterMenu q={q} range={clock.range} onRun={run} />
          <Found answer={query.isPlaceholderData ? undefined : query.data} />
          <button
            type="button"
            className="button"
            aria-pressed={isPanelOpen}
            title="Flame graph and attributes of the selection ( p )"
            onClick={() => setPanelOpen(!isPanelOpen)}
          >
            Profile
          </button>
        </QueryBar>
      </div>
      {mistake ? (
        <Empty title="The query cannot be read">Correct it at the marked place and run it again.</Empty>
      ) : isEmpty ? (
        <NothingFound q={q} />
      ) : (
        <div className={isPanelOpen ? "spans-body with-panel" : "spans-body"}>
          <div className="spans-left">
            <Asked what="the heatmap" query={query} onCancel={cancel}>
              {(answer) => <Charts answer={answer} q={q} region={region} onRegion={setRegion} />}
            </Asked>
            <SpanTable
              selection={selectionOf(q, clock.range, region)}
              order={order}
              onOrder={(next) =>
                void navigate({
                  search: (before) => ({ ...before, order: next === "duration" ? undefined : next }),
                  replace: true,
                })
              }
            />
          </div>
          {isPanelOpen && <SelectionPanel q={q} region={region} onClear={() => setRegion(null)} />}
        </div>
      )}
    </div>
  );
}

function Found({ answer }: { answer: SpansHistogram | undefined }) {
  if (!answer) return <span className="found" />;
  return (
    <output className="found">
      {counted(answer.matched, "span")} of {count(answer.inspected)} inspected · {duration(answer.took_ms * 1e6)}
    </output>
  );
}

function Charts({
  answer,
  q,
  region,
  onRegion,
}: {
  answer: SpansHistogram;
  q: string;
  region: Region | null;
  onRegion: (region: Region | null) => void;
}) {
  const navigate = useNavigate({ from: "/spans" });
  const errors = answer.errors.reduce((sum, failed) => sum + failed, 0);
  return (
    <>
      <div className="charts-head">
        <span className="muted">Select</span>
        <Quantile answer={answer} name="p90_ns" label="slowest 10 %" region={region} onRegion={onRegion} />
        <Quantile answer={answer} name="p99_ns" label="slowest 1 %" region={region} onRegion={onRegion} />
        {errors > 0 && (
          <button
            type="button"
            className="button small"
            title="Add status = error to the query"
            onClick={() =>
              void navigate({
                search: (before) => ({ ...before, q: withConditions(q, ["status = error"]), sel: undefined }),
              })
            }
          >
            failed ({count(errors)})
          </button>
        )}
        {answer.quantiles && (
          <span className="muted mono">
            p50 {duration(answer.quantiles.p50_ns)} · p90 {duration(answer.quantiles.p90_ns)} · p99{" "}
            {duration(answer.quantiles.p99_ns)} · max {duration(answer.quantiles.max_ns)}
            {!answer.quantiles.exact && " (1 % off at most)"}
          </span>
        )}
      </div>
      <RateChart
        answer={answer}
        onRange={(start, end) =>
          void navigate({ search: (before) => ({ ...before, start: String(start), end: String(end), sel: undefined }) })
        }
      />
      <Heatmap answer={answer} region={region} onRegion={onRegion} />
    </>
  );
}

function Quantile({
  answer,
  name,
  label,
  region,
  onRegion,
}: {
  answer: SpansHistogram;
  name: "p90_ns" | "p99_ns";
  label: string;
  region: Region | null;
  onRegion: (region: Region | null) => void;
}) {
  const from = answer.quantiles?.[name];
  if (from === undefined) return null;
  const isChosen = region !== null && regionText(region) === regionText({ min_ns: from });
  return (
    <button
      type="button"
      className="button small"
      aria-pressed={isChosen}
      title={`Spans of at least ${duration(from)}`}
      onClick={() => onRegion(isChosen ? null : { min_ns: from })}
    >
      {label}
    </button>
  );
}

function NothingFound({ q }: { q: string }) {
  const clock = useClock();
  const navigate = useNavigate({ from: "/spans" });
  const wider = widened(clock.text, clock.now);
  const isFiltered = !isEverything(q);
  return (
    <Empty
      title={isFiltered ? "No span matches" : "No spans in this range"}
      actions={
        <>
          {wider && (
            <button
              type="button"
              className="button"
              onClick={() => void navigate({ search: (before) => ({ ...before, ...rangeSearch(wider) }) })}
            >
              Twice the range
            </button>
          )}
          {isFiltered && (
            <button
              type="button"
              className="button"
              onClick={() => void navigate({ search: (before) => ({ ...before, q: undefined, sel: undefined }) })}
            >
              All spans of this range
            </button>
          )}
        </>
      }
    >
      {isFiltered ? (
        <>
          None of the spans in this range matches <bdi className="mono">{q}</bdi>. Take a condition out, or choose
          another range.
        </>
      ) : (
        "Choose another range, or look at Home, which says how to send data where there is none."
      )}
    </Empty>
  );
}
