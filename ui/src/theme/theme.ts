/**
 * Light or dark: the viewer's choice, else the system's.
 *
 * The choice is a preference of the browser, not of the address, and is kept in its storage; public/theme.js applies it
 * before the first paint. CSS follows `data-theme` by itself; what draws on a canvas uses `useTheme` to draw again and
 * `token` for colours.
 */

import { useSyncExternalStore } from "react";

import { preference } from "../parts/preference";
import type { Theme } from "./palette";

const CHOICES = ["system", "light", "dark"] as const;
export type ThemeChoice = (typeof CHOICES)[number];

const stored = preference("theme", CHOICES);
const system = window.matchMedia("(prefers-color-scheme: dark)");

/** The theme on screen; changes render again. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, current);
}

/** What the viewer chose, and how to choose. */
export const useThemeChoice = stored.use;

function current(): Theme {
  const choice = stored.get();
  if (choice !== "system") return choice;
  return system.matches ? "dark" : "light";
}

function subscribe(listener: () => void): () => void {
  const changed = (): void => {
    document.documentElement.dataset.theme = current();
    listener();
  };
  system.addEventListener("change", changed);
  const unsubscribe = stored.subscribe(changed);
  return () => {
    system.removeEventListener("change", changed);
    unsubscribe();
  };
}

/**
 * The value of a token, for a canvas: `token("--on-cpu", useTheme())`. The theme is the one on screen; taking it makes what
 * draws depend on it.
 */
export function token(name: `--${string}`, theme: Theme): string {
  const key = `${theme} ${name}`;
  let value = tokens.get(key);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    tokens.set(key, value);
  }
  return value;
}

const tokens = new Map<string, string>();
