/** The TraceQL field: completes, runs on Enter, and shows the server's complaint at its place. */

import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, type ReactNode, useRef, useState } from "react";

import type { Failure } from "../api/client";
import { type Selection, attributeValues, attributes } from "../api/questions";
import { Suggestions, useSuggestionList } from "../parts/suggestions";
import type { TimeRange } from "../time/range";
import { type Place, type Suggestion, complete, placeOf, suggest } from "./completion";
import "./query-bar.css";

export function QueryBar({
  q,
  range,
  failure,
  onRun,
  children,
}: {
  /** What runs now. A change of it replaces what was typed. */
  q: string;
  /** Where names and values are looked for. */
  range: TimeRange;
  /** Why what runs now cannot be read. */
  failure: Failure | null;
  onRun: (q: string) => void;
  /** Beside the field: what was found. */
  children?: ReactNode;
}) {
  const [text, setText] = useState(q);
  const [running, setRunning] = useState(q);
  if (running !== q) {
    setRunning(q);
    setText(q);
  }
  const field = useRef<HTMLInputElement>(null);
  const [caret, setCaret] = useState(0);
  const [isFocused, setFocused] = useState(false);
  const place = placeOf(text, caret);
  const suggestions = useCompletions(place, range, isFocused);
  const list = useSuggestionList(suggestions.length, take);

  function take(at: number): void {
    const done = complete(text, place, suggestions[at]);
    setText(done.text);
    setCaret(done.caret);
    field.current?.focus();
    // The caret can only be set in the field once it holds the text.
    requestAnimationFrame(() => field.current?.setSelectionRange(done.caret, done.caret));
  }

  function run(): void {
    list.close();
    onRun(text.trim());
  }

  function onKeyDown(event: KeyboardEvent<HTMLInputElement>): void {
    if (list.onKeyDown(event)) return;
    if (event.key === "Escape") event.currentTarget.blur();
  }

  return (
    <form
      className="query-bar"
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <div className="query-field">
        <input
          ref={field}
          className="field mono"
          aria-label="TraceQL query"
          aria-invalid={failure !== null}
          placeholder='{ resource.service.name = "cart" && duration > 500ms }'
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setCaret(event.target.selectionStart ?? event.target.value.length);
            list.open();
            list.reset();
          }}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart ?? 0)}
          onKeyDown={onKeyDown}
          onFocus={() => setFocused(true)}
          onBlur={() => {
            setFocused(false);
            list.close();
          }}
          {...list.fieldProps}
        />
        <Suggestions
          list={list}
          lines={suggestions.map((one) => ({ key: one.text, text: <bdi>{one.text}</bdi>, detail: one.detail }))}
          onTake={take}
          left={`min(calc(${place.from}ch + 8px), 60%)`}
        />
        {failure && <Mistake q={q} failure={failure} />}
      </div>
      <button type="submit" className="button primary">
        Run
      </button>
      {children}
    </form>
  );
}

/** Names are asked for when the field is gone to, values when the caret stands behind an operator. */
function useCompletions(place: Place, range: TimeRange, isFocused: boolean): Suggestion[] {
  const everything: Selection = { start: range.start, end: range.end };
  const names = useQuery({ ...attributes(everything), enabled: isFocused, staleTime: 60_000 });
  const { scope = "any", key = "" } = place.of ?? {};
  const known = names.data?.attributes.find((one) => one.key === key && (scope === "any" || one.scope === scope));
  const asked = scope === "any" ? known?.scope : scope;
  const hasValues = asked !== "intrinsic" || ["name", "rootName", "rootServiceName"].includes(key);
  const values = useQuery({
    ...attributeValues(asked ?? "span", key, everything),
    enabled: isFocused && place.expects === "value" && asked !== undefined && hasValues,
    staleTime: 60_000,
    // The values of the field before would be wrong ones.
    placeholderData: undefined,
  });
  if (!isFocused) return [];
  return suggest(place, {
    ...(names.data ? { attributes: names.data } : {}),
    ...(values.data ? { values: values.data } : {}),
  });
}

/** The query as it was sent, with a mark at the place; the message says what was expected there. */
function Mistake({ q, failure }: { q: string; failure: Failure }) {
  const { line = 1, column = 1 } = failure.detail;
  const letters = [...(q.split("\n")[line - 1] ?? "")];
  return (
    <div className="mistake" role="alert">
      <pre aria-hidden="true">
        {letters.slice(0, column - 1).join("")}
        <mark>{letters[column - 1] ?? " "}</mark>
        {letters.slice(column).join("")}
      </pre>
      <p>
        <span className="error-text">{failure.message}</span>
        <span className="muted mono"> request {failure.detail.requestId}</span>
      </p>
    </div>
  );
}
