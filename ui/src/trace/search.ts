/** What the address of a trace says. `start` and `end` restrict the profile to a stretch of the span. */

import { type FrameSearch, frameSearch, textOf, wordOf } from "../url/text";

export interface TraceSearch extends FrameSearch {
  span?: string | undefined;
  scope?: string | undefined;
  type?: string | undefined;
  tab?: string | undefined;
  /** How the flame graph is looked at. */
  focus?: string | undefined;
  /** What spans are looked for. */
  find?: string | undefined;
  panel?: "closed" | undefined;
}

export function traceSearch(raw: Record<string, unknown>): TraceSearch {
  return {
    ...frameSearch(raw),
    span: textOf(raw, "span"),
    scope: textOf(raw, "scope"),
    type: textOf(raw, "type"),
    tab: textOf(raw, "tab"),
    focus: textOf(raw, "focus"),
    find: textOf(raw, "find"),
    panel: wordOf(raw, "panel", ["closed"]),
  };
}
