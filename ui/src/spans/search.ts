/** What the address of Spans says. */

import { type FrameSearch, frameSearch, textOf, wordOf } from "../url/text";

export interface SpansSearch extends FrameSearch {
  /** TraceQL; absent selects every span. */
  q?: string | undefined;
  /** Of the table; longest first where absent. */
  order?: "duration" | "start" | undefined;
  /** Region of the heatmap, see `spans/region`. */
  sel?: string | undefined;
  /** Profile type of the panel. */
  type?: string | undefined;
  /** Scope of the panel. */
  scope?: "span" | "subtree" | undefined;
  /** What the flame graph is zoomed to. */
  focus?: string | undefined;
}

export function spansSearch(raw: Record<string, unknown>): SpansSearch {
  return {
    ...frameSearch(raw),
    q: textOf(raw, "q"),
    order: wordOf(raw, "order", ["duration", "start"]),
    sel: textOf(raw, "sel"),
    type: textOf(raw, "type"),
    scope: wordOf(raw, "scope", ["span", "subtree"]),
    focus: textOf(raw, "focus"),
  };
}
