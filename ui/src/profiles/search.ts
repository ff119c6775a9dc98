/** What the address of Profiles says. */

import { type FrameSearch, frameSearch, textOf } from "../url/text";

export interface ProfilesSearch extends FrameSearch {
  /** Label selector. */
  q?: string | undefined;
  type?: string | undefined;
  /** The label by which the chart is grouped. */
  by?: string | undefined;
  /** The stretch of the chart that the flame graph is of; see `selector`. */
  sel?: string | undefined;
  focus?: string | undefined;
}

export function profilesSearch(raw: Record<string, unknown>): ProfilesSearch {
  return {
    ...frameSearch(raw),
    q: textOf(raw, "q"),
    type: textOf(raw, "type"),
    by: textOf(raw, "by"),
    sel: textOf(raw, "sel"),
    focus: textOf(raw, "focus"),
  };
}
