import { useMemo, useState } from "react";

import type { ComparedFunction, Comparison } from "../api/answers";
import { plain } from "../flame/paint";
import { type Column, type Order, Table } from "../parts/Table";
import { count, counted } from "../text/quantity";
import {
  VERDICTS,
  costOf,
  costText,
  costUnit,
  differenceOf,
  differenceText,
  isSignificant,
  shareText,
} from "./ranking";

type Key = "rank" | "function" | "share" | "cost" | "difference" | "samples";

/** Rows before one asks for all. */
const ROWS_FIRST = 50;

/** The functions of a comparison, those whose cost changed most and significantly first. */
export function RankedTable({
  answer,
  isHidden,
  onFunction,
}: {
  answer: Comparison;
  /** What the graph leaves out, the table does too. */
  isHidden: (row: ComparedFunction) => boolean;
  onFunction: (name: string) => void;
}) {
  const [order, setOrder] = useState<Order<Key>>({ by: "rank", isReversed: false });
  const [isWhole, setWhole] = useState(false);
  const columns = useMemo(() => columnsOf(answer, onFunction), [answer, onFunction]);
  const functions = useMemo(() => answer.functions.filter((row) => !isHidden(row)), [answer, isHidden]);
  const changed = functions.filter(isSignificant).length;
  const hidden = answer.functions.length - functions.length;
  // What the viewer sorts, is sorted whole.
  const rows = isWhole || order.by !== "rank" ? functions : functions.slice(0, ROWS_FIRST);
  return (
    <section className="ranked" aria-label="Changed functions">
      <h2>
        {counted(changed, "function")} changed significantly{" "}
        <span className="muted">
          of {count(answer.functions_total)}; total of each, with what it calls
          {hidden > 0 && `; ${count(hidden)} hidden as in the graph`}
        </span>
        {order.by !== "rank" && (
          <button type="button" className="button small" onClick={() => setOrder({ by: "rank", isReversed: false })}>
            By rank
          </button>
        )}
      </h2>
      <div className="ranked-table">
        <Table
          label="Functions by change of cost"
          columns={columns}
          rows={rows}
          rowKey={(row) => `${row.function}\n${row.file ?? ""}\n${row.module ?? ""}`}
          order={order}
          onOrder={setOrder}
        />
      </div>
      {rows.length < functions.length && (
        <button type="button" className="button" onClick={() => setWhole(true)}>
          Show all {count(functions.length)}
        </button>
      )}
      {answer.functions.length < answer.functions_total && isWhole && (
        <p className="muted">
          {count(answer.functions_total - answer.functions.length)} with the smallest change are left out.
        </p>
      )}
    </section>
  );
}

function columnsOf(answer: Comparison, onFunction: (name: string) => void): Column<ComparedFunction, Key>[] {
  const per = costUnit(answer);
  const { unit, base, target } = answer;
  return [
    {
      key: "function",
      heading: "Function",
      title: "Shows its callers and callees",
      sortBy: (row) => row.function,
      cell: (row) => (
        <button
          type="button"
          className="function-name mono"
          title={plain(`${row.function.slice(0, 2000)}\n${row.file ?? row.module ?? ""}`)}
          onClick={() => onFunction(row.function)}
        >
          <bdi>{plain(row.function.slice(0, 240)) || "(no name)"}</bdi>
        </button>
      ),
    },
    {
      heading: "Verdict",
      cell: (row) => (
        <span className={`verdict ${row.verdict}`} title={VERDICTS[row.verdict].title}>
          {VERDICTS[row.verdict].text}
        </span>
      ),
    },
    {
      key: "difference",
      heading: `Difference per ${per === "span" ? "request" : "second"}`,
      isNumber: true,
      title: "Target less base, with its 95 % interval",
      sortBy: (row) => differenceOf(row, per),
      cell: (row) => differenceText(row, per, unit),
    },
    {
      heading: "Base",
      isNumber: true,
      title: `Cost per ${per === "span" ? "request" : "second"} in the base, with its 95 % interval`,
      cell: (row) => costText(row.base, per, unit),
    },
    {
      key: "cost",
      heading: "Target",
      isNumber: true,
      title: `Cost per ${per === "span" ? "request" : "second"} in the target, with its 95 % interval`,
      sortBy: (row) => costOf(row.target, per),
      cell: (row) => costText(row.target, per, unit),
    },
    {
      key: "share",
      heading: "Share",
      isNumber: true,
      title: "Of base and target, with 95 % intervals; sorts by the difference",
      sortBy: (row) => row.share_difference,
      cell: (row) => `${shareText(row.base, base.samples)} → ${shareText(row.target, target.samples)}`,
    },
    {
      key: "samples",
      heading: "Samples",
      isNumber: true,
      title: "Of base and target",
      sortBy: (row) => row.base.samples + row.target.samples,
      cell: (row) => `${count(row.base.samples)} → ${count(row.target.samples)}`,
    },
  ];
}
