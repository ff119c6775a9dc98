/**
 * The file that is looked at. It lives in this tab only, until the tab is closed or another is opened; the server gets it
 * with each question and keeps nothing.
 */

import { useSyncExternalStore } from "react";

export interface OpenFile {
  /** Tells two files of the same name apart. */
  id: number;
  file: File;
}

let current: OpenFile | null = null;
let opened = 0;
const listeners = new Set<() => void>();

export function openFile(file: File | null): void {
  opened += 1;
  current = file && { id: opened, file };
  for (const listener of listeners) listener();
}

export function useOpenFile(): OpenFile | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
