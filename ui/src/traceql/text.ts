/**
 * TraceQL as text: quoting, conditions, and joining them to a query of one spanset filter `{ ... }`.
 *
 * The page never parses the language: the server does, and says where a mistake is. What is written here is right by
 * construction, whatever names and values the data has.
 */

import type { AttributeScope, ValueKind } from "../api/answers";

/** A string literal. The language knows the escapes below and no others; everything else stands for itself. */
export function quoted(text: string): string {
  const escapes: Record<string, string> = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  return `"${text.replaceAll(/[\\"\n\r\t]/g, (sign) => escapes[sign] ?? sign)}"`;
}

/** What ends a bare name. */
const NOT_BARE = /[\s{}()=~!<>&|^,"]/;

/** The intrinsics by the names that the API gives them. */
const INTRINSICS: Record<string, string> = { service: "resource.service.name" };

/** `span.http.route`, `resource."a b"`, `name`. */
export function field(scope: AttributeScope, key: string): string {
  if (scope === "intrinsic") return INTRINSICS[key] ?? key;
  return `${scope}.${key === "" || NOT_BARE.test(key) ? quoted(key) : key}`;
}

/** `span.cart.size = "large"`; `null` where the language has no such literal (bytes, not a number). */
export function equals(scope: AttributeScope, key: string, value: string, type: ValueKind): string | null {
  const literal = literalOf(value, type);
  return literal === null ? null : `${field(scope, key)} = ${literal}`;
}

/** The value as it stands behind an operator. */
export function literalOf(value: string, type: ValueKind): string | null {
  switch (type) {
    case "string":
      return quoted(value);
    case "int":
    case "double":
      return /^-?[0-9.]+(?:[eE][-+]?[0-9]+)?$/.test(value) ? value : null;
    case "bool":
    case "keyword":
      return /^[A-Za-z_]+$/.test(value) ? value : null;
    default:
      return null;
  }
}

/** What stands between the braces; `null` if the text is no single filter. */
function inside(q: string): string | null {
  const text = q.trim();
  if (text === "") return "";
  if (!text.startsWith("{") || !text.endsWith("}")) return null;
  const inner = text.slice(1, -1).trim();
  return /[{}]/.test(withoutStrings(inner)) ? null : inner;
}

function withoutStrings(text: string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|`[^`]*`/g, '""');
}

/** The query with further conditions; the query as it is where it is no single filter, which the server then explains. */
export function withConditions(q: string, conditions: readonly string[]): string {
  const inner = inside(q);
  if (inner === null || conditions.length === 0) return q;
  // `||` binds weaker than what is joined.
  const first = withoutStrings(inner).includes("||") ? `(${inner})` : inner;
  return `{ ${[first, ...conditions].filter((part) => part !== "").join(" && ")} }`;
}

/** The spans that the query leaves out; `null` where it leaves out none, or is no single filter. */
export function negated(q: string): string | null {
  const inner = inside(q);
  return inner ? `{ !(${inner}) }` : null;
}

/** Whether the query selects every span. */
export function isEverything(q: string): boolean {
  return inside(q) === "";
}

/** The spans of a service. */
export function serviceQuery(service: string): string {
  return `{ resource.service.name = ${quoted(service)} }`;
}
