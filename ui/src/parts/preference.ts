/**
 * A choice of the viewer that belongs to the browser and not to the address: theme, zone.
 *
 * Kept in the browser's storage under `spanflame.NAME`; where storage is forbidden it lasts as long as the page. Follows
 * other tabs.
 */

import { useSyncExternalStore } from "react";

export interface Preference<T extends string> {
  get: () => T;
  set: (value: T) => void;
  subscribe: (listener: () => void) => () => void;
  /** As a hook: the value, and how to set it. */
  use: () => [T, (value: T) => void];
}

/** The first word is the default, which is not stored. */
export function preference<T extends string>(name: string, words: readonly [T, ...T[]]): Preference<T> {
  const key = `spanflame.${name}`;
  const listeners = new Set<() => void>();
  let value = read();

  function read(): T {
    try {
      const text = localStorage.getItem(key);
      return words.find((word) => word === text) ?? words[0];
    } catch {
      return words[0];
    }
  }

  function tell(next: T): void {
    value = next;
    for (const listener of listeners) listener();
  }

  function set(next: T): void {
    try {
      if (next === words[0]) localStorage.removeItem(key);
      else localStorage.setItem(key, next);
    } catch {
      // See above: it lasts as long as the page.
    }
    tell(next);
  }

  window.addEventListener("storage", (event) => {
    if (event.key === key || event.key === null) tell(read());
  });

  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const get = (): T => value;
  return { get, set, subscribe, use: () => [useSyncExternalStore(subscribe, get), set] };
}
