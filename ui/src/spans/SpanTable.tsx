/**
 * The selected spans, longest or newest first. Only the rows on screen exist; further pages are fetched as one scrolls. Arrow
 * keys move, Enter opens.
 */

import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";

import type { FoundSpan } from "../api/answers";
import { address } from "../api/client";
import { type Selection, spanPages } from "../api/questions";
import { useKeys } from "../frame/keys";
import { Asked, Empty } from "../parts/State";
import { count, counted, duration } from "../text/quantity";
import { markColour } from "../theme/palette";
import { useTheme } from "../theme/theme";
import { clock } from "../time/instant";
import { nano } from "../time/nano";
import { useZone } from "../time/zone";
import { rememberWalk } from "./walk";

const ROW_PX = 28;
/** Rows a page. */
const LIMIT = 200;
/** The next page is fetched when so many rows are left. */
const AHEAD = 50;

export function SpanTable({
  selection,
  order,
  onOrder,
}: {
  selection: Selection;
  order: "duration" | "start";
  onOrder: (order: "duration" | "start") => void;
}) {
  const question = spanPages(selection, { order, limit: LIMIT });
  const query = useInfiniteQuery(question);
  const client = useQueryClient();
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.spans) ?? [], [query.data]);
  // A page that fails later leaves the ones before it in place.
  const asked = { ...query, isError: query.isError && !query.isFetchNextPageError };
  return (
    <Asked what="the spans" query={asked} onCancel={() => void client.cancelQueries({ queryKey: question.queryKey })}>
      {(answer) =>
        rows.length === 0 ? (
          <Empty title="No spans">
            Nothing in this range matches. Take a condition out of the query, clear the selection in the heatmap, or
            choose a longer range.
          </Empty>
        ) : (
          <Rows
            rows={rows}
            matched={answer.pages[0].matched}
            order={order}
            onOrder={onOrder}
            onEnd={() => {
              if (query.hasNextPage && !query.isFetching) void query.fetchNextPage();
            }}
            source={address("/spans", { ...selection, order, limit: LIMIT })}
            failure={query.isFetchNextPageError ? query.error : null}
          />
        )
      }
    </Asked>
  );
}

interface RowsProps {
  rows: readonly FoundSpan[];
  matched: number;
  order: "duration" | "start";
  onOrder: (order: "duration" | "start") => void;
  onEnd: () => void;
  /** Where the same answer can be had from the API. */
  source: string;
  failure: Error | null;
}

function Rows({ rows, matched, order, onOrder, onEnd, source, failure }: RowsProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const table = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  // Another answer begins at its top.
  const [first, setFirst] = useState(rows[0]);
  if (first !== rows[0]) {
    setFirst(rows[0]);
    setActive(0);
  }
  const navigate = useNavigate();
  // oxlint-disable-next-line react/incompatible-library
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  useEffect(() => {
    scroller.current?.scrollTo({ top: 0 });
  }, [first]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    // After a failure only the button tries again.
    if (!failure && rows.length < matched && last >= rows.length - AHEAD) onEnd();
  });

  useEffect(() => rememberWalk(rows.map((span) => ({ traceId: span.trace_id, spanId: span.span_id }))), [rows]);

  function open(span: FoundSpan): void {
    void navigate({ to: "/trace/$traceId", params: { traceId: span.trace_id }, search: { span: span.span_id } });
  }

  const longest = rows.reduce((most, span) => Math.max(most, span.duration_ns), 1);
  function move(step: number): void {
    const to = Math.min(rows.length - 1, Math.max(0, active + step));
    setActive(to);
    virtual.scrollToIndex(to);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-row="${to}"] a`)?.focus());
  }
  useKeys(
    "Table of spans",
    [
      {
        press: "ArrowDown",
        does: "next span",
        run: () => move(table.current?.contains(document.activeElement) ? 1 : 0),
      },
      { press: "ArrowUp", does: "previous span", run: () => move(-1) },
      { press: "Home", does: "first span", run: () => move(-rows.length) },
      { press: "End", does: "last loaded span", run: () => move(rows.length) },
      { press: "Enter", does: "open the span", run: () => open(rows[active]) },
    ],
    { within: table, alsoUnfocused: true },
  );

  return (
    <div className="span-list">
      <div ref={table} className="span-table" role="table" aria-label="Selected spans" aria-rowcount={matched}>
        <div className="span-row span-head" role="row">
          <Heading name="Start" by="start" order={order} onOrder={onOrder} />
          <Heading name="Duration" by="duration" order={order} onOrder={onOrder} />
          <span role="columnheader">Service</span>
          <span role="columnheader">Operation</span>
          <span role="columnheader" className="in-trace">
            In trace
          </span>
          <span
            role="columnheader"
            className="number"
            title="CPU time of the span's own samples, and how many there are"
          >
            CPU
          </span>
          <span role="columnheader">Status</span>
        </div>
        <div ref={scroller} className="span-rows" role="rowgroup">
          <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
            {items.map((item) => (
              <Row
                key={item.key}
                span={rows[item.index]}
                at={item.index}
                top={item.start}
                longest={longest}
                newest={nano(rows[0].start_unix_nano)}
                isActive={item.index === active}
                onActive={() => setActive(item.index)}
              />
            ))}
          </div>
        </div>
      </div>
      <p className="span-foot muted">
        <span>
          {count(rows.length)} of {counted(matched, "span")} loaded
          {failure && (
            <>
              ; the next page failed: {failure.message}{" "}
              <button type="button" className="button small" onClick={onEnd}>
                Retry
              </button>
            </>
          )}
        </span>
        <a href={source} target="_blank" rel="noreferrer" title="The same answer from the API">
          JSON
        </a>
      </p>
    </div>
  );
}

function Heading({
  name,
  by,
  order,
  onOrder,
}: {
  name: string;
  by: "duration" | "start";
  order: string;
  onOrder: (order: "duration" | "start") => void;
}) {
  return (
    <span role="columnheader" className="number" aria-sort={order === by ? "descending" : "none"}>
      <button
        type="button"
        className="sort"
        title={by === "duration" ? "Longest first" : "Newest first"}
        onClick={() => onOrder(by)}
      >
        {name}
        <span aria-hidden="true">{order === by ? " ↓" : ""}</span>
      </button>
    </span>
  );
}

interface RowProps {
  span: FoundSpan;
  at: number;
  top: number;
  longest: number;
  newest: bigint;
  isActive: boolean;
  onActive: () => void;
}

function Row({ span, at, top, longest, newest, isActive, onActive }: RowProps) {
  const theme = useTheme();
  const [zone] = useZone();
  const part = (value: number): string => `${Math.max(0.5, (value / longest) * 100)}%`;
  return (
    <div
      className="span-row"
      role="row"
      aria-rowindex={at + 1}
      data-row={at}
      style={{ transform: `translateY(${top}px)` }}
    >
      <span role="cell" className="number">
        {clock(nano(span.start_unix_nano), zone, { beside: newest, decimals: 3 })}
      </span>
      <span role="cell" className="number span-duration">
        <span className="span-bar" style={{ width: part(span.duration_ns) }} />
        {span.cpu_ns !== undefined && (
          <span className="span-bar on-cpu" style={{ width: part(Math.min(span.cpu_ns, span.duration_ns)) }} />
        )}
        <span>{duration(span.duration_ns)}</span>
      </span>
      <span role="cell" className="cut">
        <span className="swatch" style={{ background: markColour(span.service, theme) }} /> <bdi>{span.service}</bdi>
      </span>
      <span role="cell" className="cut">
        <Link
          to="/trace/$traceId"
          params={{ traceId: span.trace_id }}
          search={{ span: span.span_id }}
          className="span-link"
          tabIndex={isActive ? 0 : -1}
          title={span.root_name ? `in ${span.root_service ?? ""} ${span.root_name}` : undefined}
          onFocus={onActive}
        >
          <bdi>{span.name || "(no name)"}</bdi>
        </Link>
      </span>
      <span role="cell" className="in-trace cut muted">
        {span.root_name !== undefined && (
          <>
            <bdi>{span.root_service}</bdi> <bdi>{span.root_name}</bdi>
          </>
        )}
      </span>
      <span role="cell" className="number" title={counted(span.samples, "sample")}>
        {span.cpu_ns === undefined ? (
          <span className="muted">{span.samples > 0 ? counted(span.samples, "sample") : "no samples"}</span>
        ) : (
          `${duration(span.cpu_ns)} (${count(span.samples)})`
        )}
      </span>
      <span role="cell" className={span.status === "error" ? "error-text" : "muted"}>
        {span.status}
      </span>
    </div>
  );
}
