import { expect, test } from "vitest";

import { equals, field, isEverything, negated, quoted, withConditions } from "./text";

function check(q: string, conditions: string[], expected: string): void {
  expect(withConditions(q, conditions)).toBe(expected);
}

test("conditions are joined by and, and bind before what is there", () => {
  check("", ["duration >= 5ns"], "{ duration >= 5ns }");
  check("{}", ["duration >= 5ns"], "{ duration >= 5ns }");
  check('{ name = "a" }', ["duration >= 5ns"], '{ name = "a" && duration >= 5ns }');
  check(
    "{ status = error || kind = server }",
    ["duration >= 5ns"],
    "{ (status = error || kind = server) && duration >= 5ns }",
  );
});

test("signs inside of strings are no language", () => {
  check('{ name = "a || b" }', ["kind = server"], '{ name = "a || b" && kind = server }');
  check('{ name = "}{" }', ["kind = server"], '{ name = "}{" && kind = server }');
  check('{ name = "\\"}" }', ["kind = server"], '{ name = "\\"}" && kind = server }');
});

test("what is no single filter is left to the server", () => {
  for (const q of ["{ a } >> { b }", "{ name = ", "cart", '{ name = "a" } | count() > 2'])
    check(q, ["kind = server"], q);
});

test("a name or value of the data cannot break out of its place", () => {
  expect(quoted('a" || true')).toBe('"a\\" || true"');
  expect(quoted("back\\slash\nline")).toBe('"back\\\\slash\\nline"');
  expect(field("span", "http.route")).toBe("span.http.route");
  expect(field("resource", 'odd } "key"')).toBe('resource."odd } \\"key\\""');
  expect(field("span", "")).toBe('span.""');
});

test("values are written by their type", () => {
  expect(equals("span", "cart.size", "large", "string")).toBe('span.cart.size = "large"');
  expect(equals("span", "items", "12", "int")).toBe("span.items = 12");
  expect(equals("span", "ratio", "1e-7", "double")).toBe("span.ratio = 1e-7");
  expect(equals("span", "ratio", "NaN", "double")).toBeNull();
  expect(equals("span", "ok", "true", "bool")).toBe("span.ok = true");
  expect(equals("intrinsic", "status", "error", "keyword")).toBe("status = error");
  expect(equals("intrinsic", "status", "error } || {", "keyword")).toBeNull();
  expect(equals("span", "body", "AAEC", "bytes")).toBeNull();
  expect(equals("intrinsic", "service", "cart", "string")).toBe('resource.service.name = "cart"');
});

test("everything is asked for by nothing, or by empty braces", () => {
  expect([isEverything(""), isEverything(" { } "), isEverything("{ kind = server }"), isEverything("{")]).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("what a query leaves out is its negation", () => {
  expect(negated("{ status = error || kind = server }")).toBe("{ !(status = error || kind = server) }");
  expect([negated(""), negated("{ }"), negated("{ a } >> { b }")]).toEqual([null, null, null]);
});
