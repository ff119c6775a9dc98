/** A table whose headings sort: for lists of up to some hundred rows. Long ones are virtual, see `spans/SpanTable`. */

import type { ReactNode } from "react";

export interface Column<Row, Key extends string> {
  /** Names the order by this column; absent: cannot be sorted by. */
  key?: Key;
  heading: string;
  /** Longer than the heading: unit and meaning. */
  title?: string;
  isNumber?: boolean;
  /** Numbers sort the largest first, text from A; unknown ones come last. */
  sortBy?: (row: Row) => number | string | undefined;
  cell: (row: Row) => ReactNode;
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
  order: Key;
  onOrder: (key: Key) => void;
}) {
  const by = columns.find((column) => column.key === order)?.sortBy;
  const sorted = by ? rows.toSorted((a, b) => inOrder(by(a), by(b))) : rows;
  return (
    <table className="table" aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th
              key={column.heading}
              scope="col"
              className={column.isNumber ? "number" : undefined}
              title={column.title}
              aria-sort={column.key === order ? (column.isNumber ? "descending" : "ascending") : undefined}
            >
              {column.key ? (
                <button type="button" className="sort" onClick={() => column.key && onOrder(column.key)}>
                  {column.heading}
                  <span aria-hidden="true">{column.key === order ? (column.isNumber ? " ↓" : " ↑") : ""}</span>
                </button>
              ) : (
                column.heading
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sorted.map((row) => (
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

function inOrder(a: number | string | undefined, b: number | string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : b - a;
}
