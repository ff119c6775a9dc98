/**
 * The list under a field that offers what may be meant. The focus stays in the field: arrows move through the list, Enter or Tab
 * takes, Esc closes.
 */

import { type KeyboardEvent, type ReactNode, useId, useState } from "react";
import "./suggestions.css";

export interface SuggestionList {
  isListed: boolean;
  /** -1 for none: Enter then belongs to the field. */
  active: number;
  open: () => void;
  close: () => void;
  /** Puts the mark on none, after the list has changed. */
  reset: () => void;
  /** Handles keys of the list; `false` leaves them to the field. */
  onKeyDown: (event: KeyboardEvent) => boolean;
  /** For the field. */
  fieldProps: Record<string, unknown>;
  id: string;
}

/** State of a list of `count` lines; `onTake` gets the line. */
export function useSuggestionList(count: number, onTake: (at: number) => void): SuggestionList {
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const id = useId();
  const active = chosen < count ? chosen : -1;
  const isListed = isOpen && count > 0;

  function onKeyDown(event: KeyboardEvent): boolean {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      setOpen(true);
      if (count > 0) setChosen(active < 0 && step < 0 ? count - 1 : (active + step + count) % count);
    } else if ((event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) && isListed && active >= 0) {
      onTake(active);
      setChosen(-1);
    } else if (event.key === "Escape" && isListed) {
      setOpen(false);
      setChosen(-1);
    } else return false;
    event.preventDefault();
    return true;
  }

  return {
    isListed,
    active,
    id,
    open: () => setOpen(true),
    close: () => {
      setOpen(false);
      setChosen(-1);
    },
    reset: () => setChosen(-1),
    onKeyDown,
    fieldProps: {
      role: "combobox",
      "aria-expanded": isListed,
      "aria-controls": id,
      "aria-autocomplete": "list",
      "aria-activedescendant": isListed && active >= 0 ? `${id}-${active}` : undefined,
      autoComplete: "off",
      spellCheck: false,
    },
  };
}

/** The lines. `left` is where the text stands that they would replace. */
export function Suggestions({
  list,
  lines,
  onTake,
  left = "0px",
}: {
  list: SuggestionList;
  lines: readonly { key: string; text: ReactNode; detail?: ReactNode }[];
  onTake: (at: number) => void;
  left?: string;
}) {
  if (!list.isListed) return null;
  return (
    <ul id={list.id} role="listbox" aria-label="Suggestions" className="floating suggestions" style={{ left }}>
      {lines.map((line, at) => (
        // Keys act in the field, which keeps the focus.
        // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
        <li
          key={line.key}
          id={`${list.id}-${at}`}
          role="option"
          aria-selected={at === list.active}
          ref={at === list.active ? reveal : undefined}
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onTake(at)}
        >
          <span className="mono cut">{line.text}</span>
          <span className="muted">{line.detail}</span>
        </li>
      ))}
    </ul>
  );
}

function reveal(item: HTMLElement | null): void {
  item?.scrollIntoView({ block: "nearest" });
}
