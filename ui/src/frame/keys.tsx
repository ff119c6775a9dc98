/**
 * Keys, and the list of them behind `?`.
 *
 * A part of the page that is on screen registers its keys with `useKeys`; of several parts that know a key the one that
 * came last runs, which makes Esc close the innermost. Where two parts on a screen use the same keys (arrows), each names the
 * element `within` which the focus must be. Keys typed into a field belong to the field, except Esc.
 */

import { type RefObject, useEffect, useId, useRef, useSyncExternalStore } from "react";

export interface Key {
  /** As `KeyboardEvent.key` has it, with `Ctrl+`, `Alt+` or `Shift+` (for named keys) in front: `?`, `Escape`, `Shift+ArrowUp`. */
  press: string;
  /** What it does, in a few words. Absent: not listed. */
  does?: string;
  /** Returns `false` to leave the key to who registered before. */
  run: () => unknown;
}

export interface Reach {
  /** Where the focus must be. Absent: anywhere. */
  within?: RefObject<HTMLElement | null>;
  /** Also where nothing has the focus. Of the parts on a screen that use the same keys, one at most. */
  alsoUnfocused?: boolean;
}

interface Registered {
  id: string;
  /** The part of the page. */
  title: string;
  keys: () => readonly Key[];
  reach: () => Reach;
  listing: string;
}

let registered: readonly Registered[] = [];
const listeners = new Set<() => void>();

function change(next: readonly Registered[]): void {
  registered = next;
  for (const listener of listeners) listener();
}

/** Registers keys while the component is on screen. */
export function useKeys(title: string, keys: readonly Key[], reach: Reach = {}): void {
  const id = useId();
  const latest = useRef({ keys, reach });
  useEffect(() => {
    latest.current = { keys, reach };
  });
  const listing = JSON.stringify(keys.filter((key) => key.does).map((key) => [key.press, key.does]));
  useEffect(() => {
    const one = { id, title, listing, keys: () => latest.current.keys, reach: () => latest.current.reach };
    change([...registered, one]);
    return () => change(registered.filter((other) => other.id !== id));
  }, [id, title, listing]);
}

/** Whether a part may have the key, by where the focus is. */
function reaches({ within, alsoUnfocused }: Reach, focus: Element | null): boolean {
  if (!within) return true;
  if (focus === null || focus === document.body || focus.id === "screen") return alsoUnfocused === true;
  return within.current?.contains(focus) ?? false;
}

function pressOf(event: KeyboardEvent): string {
  const isNamed = event.key.length > 1;
  const modifiers = [
    event.ctrlKey || event.metaKey ? "Ctrl+" : "",
    event.altKey ? "Alt+" : "",
    event.shiftKey && isNamed ? "Shift+" : "",
  ];
  return modifiers.join("") + event.key;
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** A focused button or link takes Enter and Space itself. */
function isTakenByFocus(event: KeyboardEvent): boolean {
  return (
    event.target instanceof HTMLElement &&
    /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName) &&
    ["Enter", " "].includes(event.key)
  );
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || isTakenByFocus(event) || (isField(event.target) && event.key !== "Escape")) return;
  const press = pressOf(event);
  for (const part of registered.toReversed()) {
    if (!reaches(part.reach(), document.activeElement)) continue;
    const key = part.keys().find((one) => one.press === press);
    if (key && key.run() !== false) {
      event.preventDefault();
      return;
    }
  }
}

/** Mounted once, by the frame. */
export function useKeyboard(): void {
  useEffect(() => {
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}

const NAMES: Record<string, string> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  " ": "Space",
};

/** All keys that work now. */
export function KeyHelp({ onClose }: { onClose: () => void }) {
  const parts = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => registered,
  );
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const titles = [...new Set(parts.map((part) => part.title))];
  const listed = titles
    .map((title) => ({
      title,
      rows: parts
        .filter((part) => part.title === title)
        .flatMap((part) => JSON.parse(part.listing) as [string, string][]),
    }))
    .filter((part) => part.rows.length > 0);
  return (
    <dialog ref={dialog} className="key-help" aria-label="Keys" onClose={onClose}>
      <h2>Keys</h2>
      {listed.map((part) => (
        <section key={part.title}>
          <h3>{part.title}</h3>
          <dl>
            {part.rows.map(([press, does]) => (
              <div key={press + does}>
                <dt>
                  <kbd>{press.replace(/[A-Za-z ]+$/, (name) => NAMES[name] ?? name).replace("+", " ")}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <form method="dialog">
        <button type="submit" className="button">
          Close
        </button>
      </form>
    </dialog>
  );
}
