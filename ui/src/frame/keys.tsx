/**
 * Keys, and the list of them behind `?`.
 *
 * A part of the page that is on screen registers its keys with `useKeys`; of several parts that know a key the one that
 * came last runs, which makes Esc close the innermost. Where two parts on a screen use the same keys (arrows), each names the
 * element `within` which the focus must be. Keys typed into a field belong to the field, except Esc.
 */

import { type RefObject, useEffect, useId, useRef, useSyncExternalStore } from "react";

import { isField, isUnfocused, pressOf, takes } from "./press";

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
function reaches({ within, alsoUnfocused }: Reach, focus: HTMLElement | null): boolean {
  if (!within) return true;
  return isUnfocused(focus) ? alsoUnfocused === true : (within.current?.contains(focus) ?? false);
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented) return;
  const target = event.target instanceof HTMLElement ? event.target : null;
  if (takes(target, event.key) || (isField(target) && event.key !== "Escape")) return;
  const press = pressOf(event);
  const focus = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  for (const part of registered.toReversed()) {
    if (!reaches(part.reach(), focus)) continue;
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
