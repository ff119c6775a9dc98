/** Which key was pressed, and whom it belongs to: the part of `keys` that needs no screen. */

/** What of a keyboard event counts. */
export type Pressed = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">;

/** `?`, `Ctrl+k`, `Shift+ArrowUp`. Shift is part of a character already, so it is named only with named keys. */
export function pressOf(event: Pressed): string {
  const isNamed = event.key.length > 1;
  const modifiers = [
    event.ctrlKey || event.metaKey ? "Ctrl+" : "",
    event.altKey ? "Alt+" : "",
    event.shiftKey && isNamed ? "Shift+" : "",
  ];
  return modifiers.join("") + event.key;
}

/** What of an element counts. */
export type Focused = Pick<HTMLElement, "tagName" | "isContentEditable" | "id">;

/** Whether keys are typed into it; only Esc then leaves it. */
export function isField(focus: Focused | null): boolean {
  return focus !== null && (focus.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(focus.tagName));
}

/** Whether it takes the key itself, as a focused button or link takes Enter. */
export function takes(focus: Focused | null, key: string): boolean {
  return focus !== null && /^(?:BUTTON|A|SUMMARY)$/.test(focus.tagName) && (key === "Enter" || key === " ");
}

/** Whether nothing in particular has the focus. */
export function isUnfocused(focus: Focused | null): boolean {
  return focus === null || focus.tagName === "BODY" || focus.id === "screen";
}
