/** What the address of Profiles says. */

import { type FrameSearch, frameSearch, textOf } from "../url/text";

export interface ProfilesSearch extends FrameSearch {
  /** Label selector. */
  q?: string | undefined;
  type?: string | undefined;
  by?: string | undefined;
  focus?: string | undefined;
}

export function profilesSearch(raw: Record<string, unknown>): ProfilesSearch {
  return {
    ...frameSearch(raw),
    q: textOf(raw, "q"),
    type: textOf(raw, "type"),
    by: textOf(raw, "by"),
    focus: textOf(raw, "focus"),
  };
}
