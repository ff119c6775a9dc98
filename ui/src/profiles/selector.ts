/**
 * Label selectors as text: `service.name="cart", region="eu-1"`. The server reads the language; what is written here is right
 * by construction, whatever names and values the data has.
 */

/** What a name may hold without quotes. */
const BARE = /^[A-Za-z_][A-Za-z0-9_.]*$/;

/** `service.name="cart"`. */
export function labelEquals(name: string, value: string): string {
  return `${BARE.test(name) ? name : quoted(name)}=${quoted(value)}`;
}

/** A selector with one more condition. Braces are left out: they say nothing. */
export function withLabel(selector: string, condition: string): string {
  const inner = selector
    .trim()
    .replace(/^\{([^]*)\}$/, "$1")
    .trim()
    .replace(/,$/, "")
    .trim();
  if (inner === "") return condition;
  return inner.split(", ").includes(condition) ? inner : `${inner}, ${condition}`;
}

function quoted(text: string): string {
  const escapes: Record<string, string> = { "\\": "\\\\", '"': '\\"', "\n": "\\n" };
  return `"${text.replaceAll(/[\\"\n]/g, (sign) => escapes[sign] ?? sign)}"`;
}

/** A chosen stretch of the chart in the address, `START-END` in nanoseconds; `null` if it is none. */
export function parseStretch(text: string | undefined): { start: bigint; end: bigint } | null {
  const found = /^(\d{1,20})-(\d{1,20})$/.exec(text ?? "");
  if (!found) return null;
  const [start, end] = [BigInt(found[1]), BigInt(found[2])];
  return start < end ? { start, end } : null;
}

export function stretchText({ start, end }: { start: bigint; end: bigint }): string {
  return `${start}-${end}`;
}

/** What a series is called: the values of the labels that it is grouped by; the server leaves out those that it lacks. */
export function seriesName(labels: Record<string, string>): string {
  return (
    Object.values(labels)
      .map((value) => value || '""')
      .join(" · ") || "(without the label)"
  );
}

/** The conditions that select a series: a label that it lacks is the empty one. */
export function seriesSelector(selector: string, labels: Record<string, string>, by: readonly string[]): string {
  return by.reduce((all, name) => withLabel(all, labelEquals(name, labels[name] ?? "")), selector);
}
