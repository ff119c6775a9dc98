/** What the address of Home says. */

import { type FrameSearch, frameSearch, textOf, wordOf } from "../url/text";

const ORDERS = ["name", "requests", "errors", "p50", "p99", "cpu", "linked"] as const;

export interface HomeSearch extends FrameSearch {
  order?: (typeof ORDERS)[number] | undefined;
  /** Only services with this in their name. */
  filter?: string | undefined;
}

export function homeSearch(raw: Record<string, unknown>): HomeSearch {
  return { ...frameSearch(raw), order: wordOf(raw, "order", ORDERS), filter: textOf(raw, "filter") };
}
