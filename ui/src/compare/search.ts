/** What the address of Compare says. */

import { type FrameSearch, frameSearch, textOf } from "../url/text";

/** The parameters of one side, each with its prefix. */
const SIDE = ["q", "start", "end", "range", "trace", "span", "labels"] as const;
type SideName = `${"base" | "target"}_${(typeof SIDE)[number]}`;

export type CompareSearch = FrameSearch & { [name in SideName]?: string | undefined } & {
  type?: string | undefined;
  scope?: string | undefined;
  focus?: string | undefined;
};

export function compareSearch(raw: Record<string, unknown>): CompareSearch {
  const search: CompareSearch = {
    ...frameSearch(raw),
    type: textOf(raw, "type"),
    scope: textOf(raw, "scope"),
    focus: textOf(raw, "focus"),
  };
  for (const side of ["base", "target"] as const)
    for (const name of SIDE) search[`${side}_${name}`] = textOf(raw, `${side}_${name}`);
  return search;
}
