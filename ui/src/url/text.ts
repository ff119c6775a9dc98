/**
 * The query string of the page's own addresses: every parameter is text, written as it is.
 *
 * The router would write JSON (`q=%22...%22`, and numbers that lose digits); ours stays readable and can be typed by hand.
 * What a screen reads from it is decided by its `search.ts`.
 */

/** What the query string says; the last one counts where a name comes twice. */
export type RawSearch = Record<string, string | undefined>;

/** `?a=1&b=x` -> `{ a: "1", b: "x" }`. */
export function parseSearchText(text: string): RawSearch {
  return Object.fromEntries(new URLSearchParams(text));
}

/** The other way; absent and empty values are left out. */
export function searchText(search: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== "") query.append(name, String(value));
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

/** The text of one parameter; absent if it is not said or empty. */
export function textOf(raw: Record<string, unknown>, name: string): string | undefined {
  const value = raw[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** One of the words a parameter may be; absent if it is another. */
export function wordOf<T extends string>(
  raw: Record<string, unknown>,
  name: string,
  words: readonly T[],
): T | undefined {
  const value = raw[name];
  return words.find((word) => word === value);
}

/** The parameters that every screen has: the stretch of time, and whether it is asked for again and again. */
export interface FrameSearch {
  start?: string | undefined;
  end?: string | undefined;
  live?: "on" | undefined;
}

/** Reads them. */
export function frameSearch(raw: Record<string, unknown>): FrameSearch {
  return { start: textOf(raw, "start"), end: textOf(raw, "end"), live: wordOf(raw, "live", ["on"]) };
}
