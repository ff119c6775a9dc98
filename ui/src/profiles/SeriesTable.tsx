import { useState } from "react";

import type { ProfileSeries } from "../api/answers";
import { type Column, type Order, Table } from "../parts/Table";
import { count, duration, value } from "../text/quantity";
import { PERCENT_SAMPLES_MIN, percent } from "../text/share";
import { markColour } from "../theme/palette";
import { useTheme } from "../theme/theme";
import { seriesName } from "./selector";

interface Row {
  name: string;
  /** Absent for what is not one series. */
  labels?: Record<string, string>;
  total: number;
  samples: number;
  hovered: number | undefined;
}

type Key = "name" | "total" | "samples";

/** The series by name, with their sums; choosing one narrows the selector to it. */
export function SeriesTable({
  answer,
  bucket,
  onSeries,
}: {
  answer: ProfileSeries;
  /** Under the pointer. */
  bucket: number | null;
  onSeries: (labels: Record<string, string>) => void;
}) {
  const [order, setOrder] = useState<Order<Key>>({ by: "total", isReversed: false });
  const rows = rowsOf(answer, bucket);
  const columns = columnsOf(answer, rows, bucket, onSeries);
  return (
    <Table label="Series" columns={columns} rows={rows} rowKey={(row) => row.name} order={order} onOrder={setOrder} />
  );
}

function columnsOf(
  answer: ProfileSeries,
  rows: readonly Row[],
  bucket: number | null,
  onSeries: (labels: Record<string, string>) => void,
): Column<Row, Key>[] {
  const all = sum(rows.map((row) => row.total));
  const samples = sum(rows.map((row) => row.samples));
  return [
    {
      key: "name",
      heading: "Series",
      title: "Narrows the selector to the series",
      sortBy: (row) => row.name,
      cell: (row) => <Name row={row} onSeries={onSeries} />,
    },
    {
      key: "total",
      heading: "Total",
      isNumber: true,
      title: "In the whole range",
      sortBy: (row) => row.total,
      cell: (row) => value(row.total, answer.unit),
    },
    {
      heading: "Share",
      isNumber: true,
      title: "Of all series together",
      cell: (row) => (samples < PERCENT_SAMPLES_MIN || all === 0 ? "few samples" : percent(row.total / all)),
    },
    {
      key: "samples",
      heading: "Samples",
      isNumber: true,
      title: "Sum over the chart; one without a time counts in each interval that its profile overlaps",
      sortBy: (row) => row.samples,
      cell: (row) => count(row.samples),
    },
    {
      heading: bucket === null ? `Per ${duration(answer.bucket_ns)}` : "At the pointer",
      isNumber: true,
      title: bucket === null ? "On average" : "In the interval under the pointer",
      cell: (row) => (row.hovered === undefined ? "" : value(row.hovered, answer.unit)),
    },
  ];
}

function Name({ row: { name, labels }, onSeries }: { row: Row; onSeries: (labels: Record<string, string>) => void }) {
  const theme = useTheme();
  return (
    <span className="series-name">
      <span className="swatch" style={{ background: labels ? markColour(name, theme) : "var(--not-significant)" }} />
      {labels ? (
        <button
          type="button"
          className="function-name mono"
          title={name.slice(0, 1000)}
          onClick={() => onSeries(labels)}
        >
          <bdi>{name.slice(0, 200)}</bdi>
        </button>
      ) : (
        <span className="muted">{name}</span>
      )}
    </span>
  );
}

function rowsOf(answer: ProfileSeries, bucket: number | null): Row[] {
  const at = (values: readonly number[]): number =>
    bucket === null ? Math.round(sum(values) / Math.max(1, values.length)) : values[bucket];
  const rows: Row[] = answer.series.map((one) => ({
    name: seriesName(one.labels),
    labels: one.labels,
    total: one.total,
    samples: sum(one.samples),
    hovered: at(one.value),
  }));
  const { others } = answer;
  if (others)
    rows.push({
      name: `${count(others.series)} more`,
      total: others.total,
      samples: sum(others.samples),
      hovered: at(others.value),
    });
  return rows;
}

function sum(values: readonly number[]): number {
  return values.reduce((all, one) => all + one, 0);
}
