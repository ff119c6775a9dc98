/**
 * What may come next in a TraceQL text, from what stands before the caret.
 *
 * This is no parser: it looks at the few tokens before the caret and guesses. A wrong guess offers too little; what is right
 * is decided by the server when the query runs.
 */

import type { AttributeScope, Attributes, AttributeValues } from "../api/answers";
import { field, literalOf } from "./text";

/** The place of the caret: what is expected there, and the part of the text that a suggestion replaces. */
export interface Place {
  expects: "field" | "operator" | "value" | "connective";
  from: number;
  to: number;
  /** What was typed of it. */
  typed: string;
  /** For a value: the field before the operator. */
  of?: { scope: AttributeScope | "any"; key: string };
}

/** One line of the list. */
export interface Suggestion {
  /** What is put in. */
  text: string;
  /** How often, or what it is. */
  detail?: string;
}

interface Token {
  kind: "word" | "string" | "operator" | "connective" | "open" | "close";
  from: number;
  to: number;
  text: string;
}

const PATTERN =
  /(?<string>"(?:[^"\\]|\\.)*"?|`[^`]*`?)|(?<operator>=~|!~|!=|>=|<=|=|>|<)|(?<connective>&&|\|\|)|(?<open>[{(!])|(?<close>[})])|(?<word>(?:[^\s{}()=~!<>&|^,"`]|(?<=\.)"(?:[^"\\]|\\.)*"?)+)/g;

function tokens(text: string): Token[] {
  return [...text.matchAll(PATTERN)].map((match) => {
    const groups = match.groups ?? {};
    const kind = (Object.keys(groups).find((name) => groups[name] !== undefined) ?? "word") as Token["kind"];
    return { kind, from: match.index, to: match.index + match[0].length, text: match[0] };
  });
}

/** What is expected at the caret. */
export function placeOf(text: string, caret: number): Place {
  const all = tokens(text);
  const touched = all.find(
    (token) =>
      ["word", "string"].includes(token.kind) &&
      token.from < caret &&
      caret <= token.to &&
      !(isClosed(token) && caret === token.to),
  );
  const before = all.filter((token) => token.to <= (touched?.from ?? caret));
  const last = before.at(-1);
  // A string without its closing quote reaches to the end of the text: what follows the caret is not meant to be in it.
  const isOpen = touched?.kind === "string" && !isClosed(touched);
  const place = touched
    ? { from: touched.from, to: isOpen ? caret : touched.to, typed: text.slice(touched.from, caret) }
    : { from: caret, to: caret, typed: "" };
  if (last === undefined || last.kind === "open" || last.kind === "connective") return { expects: "field", ...place };
  if (last.kind === "operator") {
    const subject = before.at(-2);
    const of = subject?.kind === "word" ? subjectOf(subject.text) : undefined;
    return { expects: "value", ...place, ...(of ? { of } : {}) };
  }
  if (last.kind === "word" && before.at(-2)?.kind !== "operator") return { expects: "operator", ...place };
  return { expects: "connective", ...place };
}

/** A string with both quotes. */
function isClosed(token: Token): boolean {
  return token.kind === "string" && token.text.length > 1 && token.text.endsWith(token.text[0]);
}

function subjectOf(word: string): { scope: AttributeScope | "any"; key: string } {
  const found = /^(span|resource|instrumentation|event|link)?\.(.*)$/.exec(word);
  if (!found) return { scope: "intrinsic", key: word };
  const key = found[2].startsWith('"') ? found[2].replaceAll(/^"|"$/g, "").replaceAll('\\"', '"') : found[2];
  return { scope: (found[1] as AttributeScope | undefined) ?? "any", key };
}

const INTRINSICS: readonly Suggestion[] = [
  { text: "duration", detail: "of the span" },
  { text: "name", detail: "operation" },
  { text: "status", detail: "unset, ok, error" },
  { text: "kind", detail: "server, client, ..." },
  { text: "statusMessage", detail: "text of an error" },
  { text: "traceDuration", detail: "of the trace" },
  { text: "rootName", detail: "operation of the trace's root" },
  { text: "rootServiceName", detail: "service of the trace's root" },
  { text: "trace:id", detail: "id of the trace" },
  { text: "span:id", detail: "id of the span" },
];

/** Values of intrinsics that are words of the language. */
const WORDS: Record<string, readonly string[]> = {
  status: ["error", "ok", "unset"],
  kind: ["server", "client", "internal", "producer", "consumer", "unspecified"],
};

const EXAMPLES: Record<string, readonly string[]> = {
  duration: ["10ms", "100ms", "500ms", "1s", "5s"],
  traceDuration: ["100ms", "1s", "10s"],
};

const OPERATORS: readonly Suggestion[] = [
  { text: "=", detail: "equal" },
  { text: "!=", detail: "not equal" },
  { text: ">", detail: "greater" },
  { text: ">=", detail: "greater or equal" },
  { text: "<", detail: "less" },
  { text: "<=", detail: "less or equal" },
  { text: "=~", detail: "matches a regular expression" },
  { text: "!~", detail: "does not match" },
];

const CONNECTIVES: readonly Suggestion[] = [
  { text: "&&", detail: "and" },
  { text: "||", detail: "or" },
];

/** How many lines the list shows at most. */
const SUGGESTIONS_MAX = 60;

/** What to offer at a place, of what is known about the data. */
export function suggest(place: Place, known: { attributes?: Attributes; values?: AttributeValues }): Suggestion[] {
  return matching(candidates(place, known), place.typed).slice(0, SUGGESTIONS_MAX);
}

function candidates(place: Place, known: { attributes?: Attributes; values?: AttributeValues }): readonly Suggestion[] {
  if (place.expects === "operator") return OPERATORS;
  if (place.expects === "connective") return CONNECTIVES;
  if (place.expects === "field") {
    const attributes = (known.attributes?.attributes ?? [])
      .filter((one) => one.scope !== "intrinsic")
      // Every span has it, like its neighbours of the resource, and it is what people look for.
      .toSorted((a, b) => Number(b.key === "service.name") - Number(a.key === "service.name"));
    return [
      ...INTRINSICS,
      ...attributes.map((one) => ({
        text: field(one.scope, one.key),
        detail: `${one.spans.toLocaleString("en-US")} spans`,
      })),
    ];
  }
  const { scope, key } = place.of ?? { scope: "any", key: "" };
  const fixed = scope === "intrinsic" ? (WORDS[key] ?? EXAMPLES[key]) : undefined;
  if (fixed) return fixed.map((text) => ({ text }));
  return (known.values?.values ?? []).flatMap((one) => {
    const text = literalOf(one.value, one.value_type);
    return text === null ? [] : [{ text, detail: `${one.spans.toLocaleString("en-US")} spans` }];
  });
}

/** What begins with the typed text before what only contains it; quotes do not count. */
function matching(all: readonly Suggestion[], typed: string): Suggestion[] {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/["`]/g, "");
  const wanted = plain(typed);
  const rank = (suggestion: Suggestion): number => {
    const text = plain(suggestion.text);
    if (text === wanted && suggestion.text === typed) return -1;
    if (text.startsWith(wanted)) return 2;
    return text.includes(wanted) ? 1 : -1;
  };
  return all
    .map((suggestion) => ({ suggestion, rank: rank(suggestion) }))
    .filter((one) => one.rank >= 0)
    .toSorted((a, b) => b.rank - a.rank)
    .map((one) => one.suggestion);
}

/** The text with a suggestion in its place, and the caret behind it. */
export function complete(text: string, place: Place, suggestion: Suggestion): { text: string; caret: number } {
  const after = text.slice(place.to);
  const space = after.startsWith(" ") ? "" : " ";
  const put = `${text.slice(0, place.from)}${suggestion.text}${space}`;
  return { text: put + after, caret: put.length + (space === "" ? 1 : 0) };
}
