/** What the address of Home says. */

import { type FrameSearch, frameSearch, wordOf } from "../url/text";

const ORDERS = ["name", "requests", "errors", "p50", "p99", "cpu", "linked"] as const;

export interface HomeSearch extends FrameSearch {
  order?: (typeof ORDERS)[number] | undefined;
}

export function homeSearch(raw: Record<string, unknown>): HomeSearch {
  return { ...frameSearch(raw), order: wordOf(raw, "order", ORDERS) };
}
