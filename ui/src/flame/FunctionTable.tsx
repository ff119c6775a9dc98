/** The functions of a tree as a table: the same figures as the graph, for reading and for screen readers. */

import { useMemo, useState } from "react";

import { type Column, type Order, Table } from "../parts/Table";
import { count, value } from "../text/quantity";
import { sampledShare } from "../text/share";
import { type Measure, points } from "./figures";
import { plain } from "./paint";
import { type FlameTree, type FunctionCost, functionCosts } from "./tree";

/** More rows are counted, not listed. */
const ROWS_MAX = 300;
const NAME_SHOWN_MAX = 240;

type Key = "name" | "self" | "total" | "samples" | "difference";

export function FunctionTable({
  tree,
  measure,
  isFound,
  onFunction,
}: {
  tree: FlameTree;
  measure: Measure;
  /** What a search leaves; absent without one. */
  isFound: ((frame: number) => boolean) | undefined;
  onFunction: (frame: number) => void;
}) {
  const isDiff = tree.sides.length > 1;
  const [order, setOrder] = useState<Order<Key>>({ by: isDiff ? "difference" : "self", isReversed: false });
  const all = useMemo(() => functionCosts(tree), [tree]);
  const found = isFound ? all.filter((row) => isFound(row.frame)) : all;
  const by = SORTS[order.by];
  const sorted = found.toSorted((a, b) => by(b, tree) - by(a, tree));
  const shown = order.by === "name" ? byName(found, tree) : sorted;
  const rows = (order.isReversed ? shown.toReversed() : shown).slice(0, ROWS_MAX);
  return (
    <div className="function-table">
      <Table
        label="Functions"
        columns={isDiff ? comparedColumns(tree, measure, onFunction) : columns(tree, measure, onFunction)}
        rows={rows}
        rowKey={(row) => String(row.frame)}
        order={order}
        onOrder={setOrder}
      />
      {found.length > rows.length && (
        <p className="muted">{count(found.length - rows.length)} more functions; search to find them.</p>
      )}
      {found.length === 0 && <p className="muted">No function matches the search.</p>}
    </div>
  );
}

function byName(rows: readonly FunctionCost[], tree: FlameTree): FunctionCost[] {
  const name = (row: FunctionCost): string => tree.frames[row.frame].function;
  return rows.toSorted((a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0));
}

const last = (row: FunctionCost) => row.sides[row.sides.length - 1];

const SORTS: Record<Key, (row: FunctionCost, tree: FlameTree) => number> = {
  name: () => 0,
  self: (row) => last(row).self,
  total: (row) => last(row).total,
  samples: (row) => row.sides.reduce((sum, side) => sum + side.samples, 0),
  difference: (row, tree) => Math.abs(difference(row, tree)),
};

function difference(row: FunctionCost, tree: FlameTree): number {
  const [base, target] = row.sides.map((side, at) => side.total / (tree.sides[at].total[0] || 1));
  return (target ?? 0) - (base ?? 0);
}

function nameColumn(tree: FlameTree, onFunction: (frame: number) => void): Column<FunctionCost, Key> {
  return {
    key: "name",
    heading: "Function",
    title: "Shows callers and callees",
    cell: (row) => {
      const frame = tree.frames[row.frame];
      const name = frame.function || "(no name)";
      return (
        <button
          type="button"
          className="function-name mono"
          title={`${plain(name.slice(0, 2000))}\n${frame.file ?? frame.module ?? ""}`}
          onClick={() => onFunction(row.frame)}
        >
          <bdi>{plain(name.slice(0, NAME_SHOWN_MAX))}</bdi>
        </button>
      );
    },
  };
}

function columns(tree: FlameTree, measure: Measure, onFunction: (frame: number) => void): Column<FunctionCost, Key>[] {
  const [side] = tree.sides;
  const share = (amount: number): string => sampledShare(amount, side.total[0], side.samples[0]);
  return [
    nameColumn(tree, onFunction),
    {
      key: "self",
      heading: "Self",
      isNumber: true,
      title: "In the function itself",
      cell: (row) => value(row.sides[0].self, measure.unit),
    },
    {
      heading: "Self share",
      isNumber: true,
      title: "Self, of the whole, with its 95 % interval",
      cell: (row) => share(row.sides[0].self),
    },
    {
      key: "total",
      heading: "Total",
      isNumber: true,
      title: "With what it calls; recursion counts once",
      cell: (row) => value(row.sides[0].total, measure.unit),
    },
    {
      heading: "Total share",
      isNumber: true,
      title: "Total, of the whole, with its 95 % interval",
      cell: (row) => share(row.sides[0].total),
    },
    {
      key: "samples",
      heading: "Samples",
      isNumber: true,
      title: "Observations in it or below",
      cell: (row) => count(row.sides[0].samples),
    },
  ];
}

function comparedColumns(
  tree: FlameTree,
  measure: Measure,
  onFunction: (frame: number) => void,
): Column<FunctionCost, Key>[] {
  const cell = (at: number) => (row: FunctionCost) => value(row.sides[at].total, measure.unit);
  return [
    nameColumn(tree, onFunction),
    { heading: "Base", isNumber: true, title: "Total on the base side", cell: cell(0) },
    { key: "total", heading: "Target", isNumber: true, title: "Total on the target side", cell: cell(1) },
    {
      key: "difference",
      heading: "Share",
      isNumber: true,
      title: "Difference of the shares",
      cell: (row) => points(difference(row, tree)),
    },
    {
      key: "samples",
      heading: "Samples",
      isNumber: true,
      title: "Base and target",
      cell: (row) => row.sides.map((side) => count(side.samples)).join(" / "),
    },
  ];
}
