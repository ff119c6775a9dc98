/**
 * A line the size of a word: what a number did over the range. Bars for counts, a line for values; no axes.
 *
 * The largest value stands at full height, so lines of different rows are not comparable; the number beside it is.
 */

const WIDTH = 90;
const HEIGHT = 20;

export function Sparkline({
  values,
  kind,
  label,
  colour,
}: {
  values: readonly (number | null)[];
  kind: "bars" | "line";
  label: string;
  colour: string;
}) {
  const max = Math.max(0, ...values.map((value) => value ?? 0));
  return (
    <svg
      className="sparkline"
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={label}
    >
      <path d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} stroke="var(--line)" />
      {max > 0 &&
        (kind === "bars" ? (
          <path d={bars(values, max)} fill={colour} />
        ) : (
          <path d={line(values, max)} fill="none" stroke={colour} strokeWidth={1.5} />
        ))}
    </svg>
  );
}

/** One rectangle a value, at least a pixel high so that one error among thousands is seen. */
export function bars(values: readonly (number | null)[], max: number): string {
  const step = WIDTH / values.length;
  const width = Math.max(1, step - 1);
  return values
    .map((value, at) => {
      if (!value) return "";
      const height = Math.max(1, (value / max) * (HEIGHT - 2));
      return `M${round(at * step)} ${HEIGHT - 1}v${-round(height)}h${round(width)}v${round(height)}z`;
    })
    .join("");
}

/** Through the middles; a gap where there is no value, a dot where a value stands alone. */
export function line(values: readonly (number | null)[], max: number): string {
  const step = WIDTH / values.length;
  let path = "";
  values.forEach((value, at) => {
    if (value === null) return;
    const x = round((at + 0.5) * step);
    const y = round(HEIGHT - 1.5 - (value / max) * (HEIGHT - 4));
    const joins = at > 0 && values[at - 1] !== null;
    const alone = !joins && (at + 1 >= values.length || values[at + 1] === null);
    path += `${joins ? "L" : "M"}${x} ${y}${alone ? `h1` : ""}`;
  });
  return path;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
