/** What the address of the ad hoc view says. The file itself cannot be in it. */

import { type FrameSearch, frameSearch, textOf } from "../url/text";

export interface ViewSearch extends FrameSearch {
  type?: string | undefined;
  focus?: string | undefined;
}

export function viewSearch(raw: Record<string, unknown>): ViewSearch {
  return { ...frameSearch(raw), type: textOf(raw, "type"), focus: textOf(raw, "focus") };
}
