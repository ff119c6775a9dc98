/** What the address of a trace says. `start` and `end` restrict the profile to a stretch of the span. */

import { type FrameSearch, frameSearch, textOf } from "../url/text";

export interface TraceSearch extends FrameSearch {
  span?: string | undefined;
  scope?: string | undefined;
  type?: string | undefined;
  tab?: string | undefined;
}

export function traceSearch(raw: Record<string, unknown>): TraceSearch {
  return {
    ...frameSearch(raw),
    span: textOf(raw, "span"),
    scope: textOf(raw, "scope"),
    type: textOf(raw, "type"),
    tab: textOf(raw, "tab"),
  };
}
