import { expect, test } from "vitest";

import { spansSearch } from "../spans/search";
import { parseSearchText, searchText } from "./text";

function check(search: Record<string, string>): void {
  expect(parseSearchText(searchText(search))).toEqual(search);
}

test("what is written is read back, whatever it contains", () => {
  check({ q: '{ resource.service.name = "a&b=c#d" && duration > 500ms }' });
  check({ q: "<img src=x onerror=alert(1)>", sel: "1,2,3,4" });
  check({ q: "\u202Eright to left %41 + %" });
});

test("an id of digits and a time of 19 digits stay text", () => {
  const search = { start: "1796076315462194529", span: "0123456789012345" };
  expect(searchText(search)).toBe("?start=1796076315462194529&span=0123456789012345");
  check(search);
});

test("absent and empty parameters are not in the address", () => {
  expect(searchText({ q: undefined, order: "" })).toBe("");
});

test("a word that a parameter cannot be counts as absent", () => {
  expect(spansSearch({ order: "fastest", scope: "subtree", q: "" })).toMatchObject({
    order: undefined,
    scope: "subtree",
    q: undefined,
  });
});
