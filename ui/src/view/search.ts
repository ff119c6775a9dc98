/** What the address of the ad hoc view says. The file itself cannot be in it. */

import { type FrameSearch, frameSearch, textOf } from "../url/text";

export interface ViewSearch extends FrameSearch {
  type?: string | undefined;
  /** The format of the file, where the server shall not find it out. */
  format?: string | undefined;
  /** Which of the profiles of the file, from 0; absent: all together. */
  index?: string | undefined;
  focus?: string | undefined;
}

export function viewSearch(raw: Record<string, unknown>): ViewSearch {
  return {
    ...frameSearch(raw),
    type: textOf(raw, "type"),
    format: textOf(raw, "format"),
    index: textOf(raw, "index"),
    focus: textOf(raw, "focus"),
  };
}
