/** What the address of Home says. */

import type { Order } from "../parts/Table";
import { type FrameSearch, frameSearch, textOf, wordOf } from "../url/text";

const COLUMNS = ["name", "requests", "errors", "p50", "p99", "cpu", "linked"] as const;
export type HomeColumn = (typeof COLUMNS)[number];

export interface HomeSearch extends FrameSearch {
  /** A column, with `-` before it the other way round; by name where absent. */
  order?: HomeColumn | `-${HomeColumn}` | undefined;
  /** Only services with this in their name. */
  filter?: string | undefined;
}

export function homeSearch(raw: Record<string, unknown>): HomeSearch {
  const reversed = COLUMNS.map((column) => `-${column}` as const);
  return { ...frameSearch(raw), order: wordOf(raw, "order", [...COLUMNS, ...reversed]), filter: textOf(raw, "filter") };
}

/** What the address says as an order of the table, and back. */
export function orderOf(text: HomeSearch["order"] = "name"): Order<HomeColumn> {
  const by = COLUMNS.find((column) => text.endsWith(column)) ?? "name";
  return { by, isReversed: text.startsWith("-") };
}

export function orderText({ by, isReversed }: Order<HomeColumn>): HomeSearch["order"] {
  if (isReversed) return `-${by}`;
  return by === "name" ? undefined : by;
}
