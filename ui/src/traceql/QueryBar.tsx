/** The TraceQL field: completes, runs on Enter, and shows the server's complaint at its place. */

import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from "react";

import type { Failure } from "../api/client";
import { type Selection, attributeValues, attributes } from "../api/questions";
import type { TimeRange } from "../time/range";
import { type Suggestion, complete, placeOf, suggest } from "./completion";
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
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const list = useId();
  const suggestions = useSuggestions({ text, caret, range, isOpen });
  const place = placeOf(text, caret);

  function take(suggestion: Suggestion): void {
    const done = complete(text, place, suggestion);
    setText(done.text);
    setCaret(done.caret);
    setActive(-1);
    field.current?.focus();
    // The caret can only be set in the field once it holds the text.
    requestAnimationFrame(() => field.current?.setSelectionRange(done.caret, done.caret));
  }

  function run(): void {
    setOpen(false);
    onRun(text.trim());
  }

  function onKeyDown(event: KeyboardEvent<HTMLInputElement>): void {
    const count = suggestions.length;
    const isListed = isOpen && count > 0;
    if (event.key === "Enter") {
      event.preventDefault();
      if (isListed && active >= 0) take(suggestions[active]);
      else run();
    } else if (event.key === "Tab" && isListed && !event.shiftKey && place.typed !== "") {
      event.preventDefault();
      take(suggestions[Math.max(0, active)]);
    } else if (event.key === "Escape" && isListed) {
      event.preventDefault();
      setOpen(false);
    } else if (event.key === "Escape") {
      event.currentTarget.blur();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (count > 0) setActive(active < 0 && step < 0 ? count - 1 : (active + step + count) % count);
    }
  }

  const isListed = isOpen && suggestions.length > 0;
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
          role="combobox"
          aria-label="TraceQL query"
          aria-expanded={isListed}
          aria-controls={list}
          aria-autocomplete="list"
          aria-activedescendant={isListed && active >= 0 ? `${list}-${active}` : undefined}
          aria-invalid={failure !== null}
          placeholder='{ resource.service.name = "cart" && duration > 500ms }'
          spellCheck={false}
          autoComplete="off"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setCaret(event.target.selectionStart ?? event.target.value.length);
            setOpen(true);
            setActive(-1);
          }}
          onSelect={(event) => setCaret(event.currentTarget.selectionStart ?? 0)}
          onKeyDown={onKeyDown}
          onFocus={() => setOpen(text === "" || text === "{}")}
          onBlur={() => setOpen(false)}
        />
        {isListed && (
          <ul
            id={list}
            role="listbox"
            aria-label="Suggestions"
            className="floating suggestions"
            style={{ left: `min(calc(${place.from}ch + 8px), 60%)` }}
          >
            {suggestions.map((suggestion, at) => (
              // Keys act in the field, which keeps the focus.
              // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
              <li
                key={suggestion.text}
                id={`${list}-${at}`}
                role="option"
                aria-selected={at === active}
                className="mono"
                ref={at === active ? scrollTo : undefined}
                onPointerDown={(event) => event.preventDefault()}
                onClick={() => take(suggestion)}
              >
                <bdi>{suggestion.text}</bdi>
                <span className="muted">{suggestion.detail}</span>
              </li>
            ))}
          </ul>
        )}
        {failure && <Mistake q={q} failure={failure} />}
      </div>
      <button type="submit" className="button primary">
        Run
      </button>
      {children}
    </form>
  );
}

function scrollTo(item: HTMLElement | null): void {
  item?.scrollIntoView({ block: "nearest" });
}

/** Names are asked for when the list first opens, values when the caret stands behind an operator. */
function useSuggestions({
  text,
  caret,
  range,
  isOpen,
}: {
  text: string;
  caret: number;
  range: TimeRange;
  isOpen: boolean;
}): Suggestion[] {
  const everything: Selection = { start: range.start, end: range.end };
  const place = placeOf(text, caret);
  const names = useQuery({ ...attributes(everything), enabled: isOpen, staleTime: 60_000 });
  const found = names.data?.attributes.find(
    (one) => one.key === place.of?.key && (place.of.scope === "any" || one.scope === place.of.scope),
  );
  const scope =
    place.of?.scope === "intrinsic"
      ? "intrinsic"
      : (found?.scope ?? (place.of?.scope === "any" ? undefined : place.of?.scope));
  const isFixed = scope === "intrinsic" && !["name", "rootName", "rootServiceName"].includes(place.of?.key ?? "");
  const values = useQuery({
    ...attributeValues(scope ?? "span", place.of?.key ?? "", everything),
    enabled: isOpen && place.expects === "value" && scope !== undefined && !isFixed,
    staleTime: 60_000,
  });
  if (!isOpen) return [];
  // The values of the field before would be wrong ones.
  const isOther = values.isPlaceholderData;
  return suggest(place, {
    ...(names.data ? { attributes: names.data } : {}),
    ...(values.data && !isOther ? { values: values.data } : {}),
  });
}

/** The query as it was sent, with a mark at the place; the message says what was expected there. */
function Mistake({ q, failure }: { q: string; failure: Failure }) {
  const { line = 1, column = 1 } = failure.detail;
  const text = q.split("\n")[line - 1] ?? "";
  const letters = [...text];
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
