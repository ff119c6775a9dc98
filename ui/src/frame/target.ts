/** What the text in the search box means: a trace id, a TraceQL query, or the name of a service. */

import { serviceQuery } from "../traceql/text";

export type Target = { to: "trace"; traceId: string } | { to: "spans"; q: string };

/** A trace id has 32 hex digits; many systems write 16 for ids whose upper half is zero. */
const TRACE_ID = /^(?:[0-9a-f]{32}|[0-9a-f]{16})$/i;
/** `00-<trace id>-<span id>-01`, as it stands in logs. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/i;

/** `null` for nothing but space. */
export function targetOf(text: string): Target | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const bare = trimmed.replaceAll(/^["']|["']$/g, "");
  const parent = TRACEPARENT.exec(bare);
  if (parent?.[1]) return { to: "trace", traceId: parent[1].toLowerCase() };
  const undashed = bare.replaceAll("-", "");
  if (TRACE_ID.test(undashed)) return { to: "trace", traceId: undashed.toLowerCase() };
  if (trimmed.startsWith("{")) return { to: "spans", q: trimmed };
  return { to: "spans", q: serviceQuery(bare) };
}

/** The names that have the text in them: the exact one first, then those that begin with it. */
export function named<T extends { name: string }>(all: readonly T[], text: string): T[] {
  const wanted = text.trim().toLowerCase();
  const rank = (name: string): number =>
    name === wanted ? 0 : name.startsWith(wanted) ? 1 : name.includes(wanted) ? 2 : 3;
  return all
    .map((one) => ({ one, rank: rank(one.name.toLowerCase()) }))
    .filter((ranked) => ranked.rank < 3)
    .toSorted((a, b) => a.rank - b.rank)
    .map((ranked) => ranked.one);
}
