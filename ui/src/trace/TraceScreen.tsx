/** One trace: which part was expensive, and what it was doing. */

import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import type { Trace } from "../api/answers";
import { Failure, address } from "../api/client";
import { trace as traceQuestion } from "../api/questions";
import { useQuestion } from "../api/useQuestion";
import { plain } from "../flame/paint";
import { useKeys } from "../frame/keys";
import { Asked, Empty } from "../parts/State";
import { neighbour } from "../spans/walk";
import { count, counted, duration } from "../text/quantity";
import { markColour } from "../theme/palette";
import { useTheme } from "../theme/theme";
import { instant } from "../time/instant";
import { useZone } from "../time/zone";
import { SpanPanel } from "./SpanPanel";
import { Waterfall } from "./Waterfall";
import { startOf } from "./paint";
import { type Rows, collapsedFrom, rowsAbove, rowsOf, rowsWith } from "./rows";
import type { TraceSearch } from "./search";
import "./trace.css";

export function TraceScreen() {
  const { traceId } = useParams({ from: "/trace/$traceId" });
  const { query, cancel } = useQuestion(traceQuestion(traceId));
  if (query.error instanceof Failure && query.error.detail.code === "not_found") {
    return (
      <Empty title="This trace is not stored">
        Neither a span nor a sample names <span className="mono">{traceId}</span>. It may not have arrived yet, a
        sampler may have dropped it, or it is older than what is kept.
      </Empty>
    );
  }
  return (
    <Asked what="the trace" query={query} onCancel={cancel}>
      {(trace) => <Loaded trace={trace} />}
    </Asked>
  );
}

function Loaded({ trace }: { trace: Trace }) {
  const search = useSearch({ from: "/trace/$traceId" });
  const navigate = useNavigate({ from: "/trace/$traceId" });
  const rows = useMemo(() => rowsOf(trace), [trace]);
  const [collapsed, setCollapsed] = useState<ReadonlySet<number>>(new Set());
  const selected = search.span === undefined ? undefined : rows.byId.get(search.span)?.at;
  const found = useMemo(() => rowsWith(rows, search.find ?? ""), [rows, search.find]);
  const isOpen = search.panel !== "closed";
  const types = useMemo(
    () => [...new Set(trace.spans.flatMap((span) => Object.keys(span.profiles)))].toSorted(),
    [trace],
  );

  const change = (part: Partial<TraceSearch>, isStep = false): void =>
    void navigate({ search: (before) => ({ ...before, ...part }), replace: isStep });
  function select(at: number): void {
    // What is selected must be seen: rows above it open.
    const above = rowsAbove(rows, at).filter((row) => collapsed.has(row));
    if (above.length > 0) setCollapsed(new Set([...collapsed].filter((row) => !above.includes(row))));
    change(
      { span: rows.all[at].span.span_id, start: undefined, end: undefined, focus: undefined, panel: undefined },
      selected !== undefined,
    );
  }
  function walk(by: 1 | -1): unknown {
    const next = neighbour({ traceId: trace.trace_id, spanId: search.span }, by);
    if (!next) return false;
    void navigate({
      to: "/trace/$traceId",
      params: { traceId: next.traceId },
      search: (before) => ({ ...before, span: next.spanId, start: undefined, end: undefined }),
    });
    return true;
  }
  function step(by: 1 | -1): void {
    if (found.length === 0) return;
    const here = selected ?? (by > 0 ? -1 : rows.all.length);
    const next =
      by > 0
        ? (found.find((at) => at > here) ?? found[0])
        : (found.findLast((at) => at < here) ?? found[found.length - 1]);
    select(next);
  }

  useKeys("Trace", [
    { press: "[", does: "the slow span before, of the list one came from", run: () => walk(-1) },
    { press: "]", does: "the next slow span", run: () => walk(1) },
    { press: "n", does: "next match of the filter", run: () => step(1) },
    { press: "N", does: "match before", run: () => step(-1) },
    {
      press: "Escape",
      does: "close the panel",
      run: () => (isOpen ? change({ panel: "closed", span: undefined }) : false),
    },
  ]);

  return (
    <div className="trace">
      <Head trace={trace} rows={rows}>
        <Filter
          text={search.find ?? ""}
          found={found}
          selected={selected}
          onText={(find) => change({ find: find || undefined }, true)}
          onStep={step}
        />
        <Collapse rows={rows} collapsed={collapsed} onCollapsed={setCollapsed} />
        <a className="button small" href={address(`/traces/${trace.trace_id}`)} target="_blank" rel="noreferrer">
          JSON
        </a>
        {!isOpen && (
          <button type="button" className="button small" onClick={() => change({ panel: undefined })}>
            Profile
          </button>
        )}
      </Head>
      <div className={isOpen ? "trace-body with-panel" : "trace-body"}>
        {rows.all.length === 0 ? (
          <Empty title="No span of this trace was received">
            Only samples name it. Check the sampling and the export of traces.
          </Empty>
        ) : (
          <Waterfall
            traceId={trace.trace_id}
            rows={rows}
            traceStart={startOf(trace)}
            selected={selected}
            onSelect={select}
            collapsed={collapsed}
            onCollapsed={setCollapsed}
            found={found}
            isFiltering={(search.find ?? "") !== ""}
          />
        )}
        {isOpen && (
          <SpanPanel
            traceId={trace.trace_id}
            span={selected === undefined ? undefined : rows.all[selected].span}
            types={types}
            onClose={() => change({ panel: "closed", span: undefined })}
          />
        )}
      </div>
    </div>
  );
}

function Head({ trace, rows, children }: { trace: Trace; rows: Rows; children: React.ReactNode }) {
  const [zone] = useZone();
  const theme = useTheme();
  const root = rows.all[0]?.span;
  const facts = [
    trace.start_unix_nano ? instant(startOf(trace), zone) : "",
    counted(trace.services.length, "service"),
    counted(rows.all.length, "span"),
    rows.errors > 0 ? counted(rows.errors, "error") : "",
    rows.cpu.samples > 0
      ? `CPU ${duration(rows.cpu.value)} (${counted(rows.cpu.samples, "sample")})`
      : "no CPU samples",
  ];
  return (
    <header className="trace-head">
      <title>{`${root?.name ?? trace.trace_id} - Spanflame`}</title>
      <h1 className="cut">
        <bdi>{root ? plain(root.name) || "(no name)" : trace.trace_id}</bdi>{" "}
        <span className="mono">{duration(rows.duration_ns)}</span>
      </h1>
      <p className="mono muted cut">
        {facts.filter(Boolean).join(" · ")}
        {!trace.complete && <span title="A parent was not received, or there are several roots"> · incomplete</span>}
      </p>
      <p className="trace-services">
        {trace.services.map((service) => (
          <span key={service} className="trace-service">
            <span className="swatch" style={{ background: markColour(service, theme) }} /> <bdi>{plain(service)}</bdi>
          </span>
        ))}
        <Link
          className="mono muted"
          to="/trace/$traceId"
          params={{ traceId: trace.trace_id }}
          search={{}}
          title="The address of this trace alone"
        >
          {trace.trace_id}
        </Link>
      </p>
      <div className="trace-tools">{children}</div>
    </header>
  );
}

function Filter({
  text,
  found,
  selected,
  onText,
  onStep,
}: {
  text: string;
  found: readonly number[];
  selected: number | undefined;
  onText: (text: string) => void;
  onStep: (by: 1 | -1) => void;
}) {
  const place = selected === undefined ? -1 : found.indexOf(selected);
  return (
    <span className="trace-filter">
      <input
        className="field small"
        type="search"
        aria-label="Find spans by name, service or attribute"
        placeholder="Find spans: name, service, key=value"
        value={text}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") onStep(event.shiftKey ? -1 : 1);
        }}
      />
      {text !== "" && (
        <>
          <output className="mono muted">
            {place >= 0 ? `${count(place + 1)} of ` : ""}
            {count(found.length)}
          </output>
          <button
            type="button"
            className="button small"
            aria-label="Match before"
            title="Match before ( N )"
            disabled={found.length === 0}
            onClick={() => onStep(-1)}
          >
            ↑
          </button>
          <button
            type="button"
            className="button small"
            aria-label="Next match"
            title="Next match ( n )"
            disabled={found.length === 0}
            onClick={() => onStep(1)}
          >
            ↓
          </button>
        </>
      )}
    </span>
  );
}

function Collapse({
  rows,
  collapsed,
  onCollapsed,
}: {
  rows: Rows;
  collapsed: ReadonlySet<number>;
  onCollapsed: (next: ReadonlySet<number>) => void;
}) {
  const depth = rows.all.reduce((most, row) => Math.max(most, row.depth), 0);
  if (depth === 0) return null;
  return (
    <label className="trace-collapse">
      <span className="muted">Levels</span>{" "}
      <select
        className="field small"
        value={collapsed.size === 0 ? "all" : "some"}
        onChange={(event) =>
          onCollapsed(event.target.value === "all" ? new Set() : collapsedFrom(rows, Number(event.target.value)))
        }
      >
        <option value="all">all</option>
        {collapsed.size > 0 && <option value="some">some</option>}
        {Array.from({ length: Math.min(depth, 8) }, (_, level) => (
          <option key={level} value={String(level)}>
            {level + 1}
          </option>
        ))}
      </select>
    </label>
  );
}
