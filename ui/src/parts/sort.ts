/** What rows are sorted by; `undefined` is unknown. */
export type Value = number | string | undefined;

/** Numbers the largest first, text from A, or the other way round; what is unknown comes last in both. */
export function sortedBy<Row>(rows: readonly Row[], by: (row: Row) => Value, isReversed: boolean): Row[] {
  return rows.toSorted((first, second) => {
    const [a, b] = [by(first), by(second)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    const order = typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : b - a;
    return isReversed ? -order : order;
  });
}
