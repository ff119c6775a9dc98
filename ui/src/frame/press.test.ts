import { expect, test } from "vitest";

import { type Focused, isField, isUnfocused, pressOf, takes } from "./press";

const NO_MODIFIERS = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

function element(tagName: string, more: Partial<Focused> = {}): Focused {
  return { tagName, isContentEditable: false, id: "", ...more };
}

test("a key has one name, however it is reached on a keyboard", () => {
  expect(pressOf({ ...NO_MODIFIERS, key: "?", shiftKey: true })).toBe("?");
  expect(pressOf({ ...NO_MODIFIERS, key: "ArrowUp", shiftKey: true })).toBe("Shift+ArrowUp");
  expect(pressOf({ ...NO_MODIFIERS, key: "k", metaKey: true })).toBe("Ctrl+k");
});

test("letters typed into a field are no commands", () => {
  expect(["INPUT", "TEXTAREA", "SELECT"].every((tag) => isField(element(tag)))).toBe(true);
  expect(isField(element("DIV", { isContentEditable: true }))).toBe(true);
  expect([isField(element("BUTTON")), isField(null)]).toEqual([false, false]);
});

test("a focused button keeps Enter and Space, and gives arrows away", () => {
  expect([
    takes(element("BUTTON"), "Enter"),
    takes(element("A"), " "),
    takes(element("A"), "ArrowDown"),
    takes(element("DIV"), "Enter"),
  ]).toEqual([true, true, false, false]);
});

test("the screen itself counts as no focus", () => {
  expect([
    isUnfocused(null),
    isUnfocused(element("BODY")),
    isUnfocused(element("MAIN", { id: "screen" })),
    isUnfocused(element("A")),
  ]).toEqual([true, true, true, false]);
});
