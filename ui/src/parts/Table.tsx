/** A table whose headings sort: for lists of up to some hundred rows. Long ones are virtual, see `spans/SpanTable`. */

import type { ReactNode } from "react";

import { type Value, sortedBy } from "./sort";

export interface Column<Row, Key extends string> {
  /** Names the order by this column; absent: cannot be sorted by. */
  key?: Key;
  heading: string;
  /** Longer than the heading: unit and meaning. */
  title?: string;
  isNumber?: boolean;
  sortBy?: (row: Row) => Value;
  cell: (row: Row) => ReactNode;
}

/** By which column, and whether the other way round than one first wants: the smallest number first, text from Z. */
export interface Order<Key extends string> {
  by: Key;
  isReversed: boolean;
}

export function Table<Row, Key extends string>({
  label,
  columns,
  rows,
  rowKey,
  order,
  onOrder,
}: {
  label: string;
  columns: readonly Column<Row, Key>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  order: Order<Key>;
  onOrder: (order: Order<Key>) => void;
}) {
  const by = columns.find((column) => column.key === order.by)?.sortBy;
  return (
    <table className="table" aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <Heading key={column.heading} column={column} order={order} onOrder={onOrder} />
          ))}
        </tr>
      </thead>
      <tbody>
        {(by ? sortedBy(rows, by, order.isReversed) : rows).map((row) => (
          <tr key={rowKey(row)}>
            {columns.map((column) => (
              <td key={column.heading} className={column.isNumber ? "number" : undefined}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Heading<Row, Key extends string>({
  column,
  order,
  onOrder,
}: {
  column: Column<Row, Key>;
  order: Order<Key>;
  onOrder: (order: Order<Key>) => void;
}) {
  const { key } = column;
  const isChosen = key !== undefined && key === order.by;
  const isDescending = (column.isNumber ?? false) !== order.isReversed;
  return (
    <th
      scope="col"
      className={column.isNumber ? "number" : undefined}
      title={column.title}
      aria-sort={isChosen ? (isDescending ? "descending" : "ascending") : undefined}
    >
      {key === undefined ? (
        column.heading
      ) : (
        <button
          type="button"
          className="sort"
          onClick={() => onOrder({ by: key, isReversed: isChosen && !order.isReversed })}
        >
          {column.heading}
          <span aria-hidden="true">{isChosen ? (isDescending ? " ↓" : " ↑") : ""}</span>
        </button>
      )}
    </th>
  );
}
