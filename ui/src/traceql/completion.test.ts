import { expect, test } from "vitest";

import { complete, placeOf, suggest } from "./completion";

/** The caret is where `|` stands in `marked`. */
function at(marked: string) {
  const caret = marked.indexOf("|");
  const text = marked.slice(0, caret) + marked.slice(caret + 1);
  return { text, place: placeOf(text, caret) };
}

function check(marked: string, expects: string, typed: string, key?: string): void {
  const { place } = at(marked);
  expect([place.expects, place.typed, place.of?.key], marked).toEqual([expects, typed, key]);
}

test("a field is expected where a condition begins", () => {
  check("{ | }", "field", "");
  check("{ res| }", "field", "res");
  check("{ duration > 5ms && res|", "field", "res");
  check("{ !(|", "field", "");
  check("|", "field", "");
  check("{ resource.service.na|me = 5 }", "field", "resource.service.na");
});

test("an operator is expected behind a field", () => {
  check("{ duration |", "operator", "");
  check("{ span.http.route | }", "operator", "");
});

test("a value is expected behind an operator, of the field before it", () => {
  check("{ duration > | }", "value", "", "duration");
  check("{ span.http.route = | }", "value", "", "http.route");
  check('{ span.http.route = "/ca| }', "value", '"/ca', "http.route");
  check('{ resource.service.name="ca|rt" && duration > 1s }', "value", '"ca', "service.name");
  check('{ span."odd key" = | }', "value", "", "odd key");
  expect(at("{ .region = |").place.of).toEqual({ scope: "any", key: "region" });
});

test("a connective is expected behind a whole condition", () => {
  check('{ name = "a" | }', "connective", "");
  check('{ name = "a"| }', "connective", "");
  check("{ duration > 5ms | }", "connective", "");
});

const KNOWN = {
  attributes: {
    attributes: [
      { scope: "span" as const, key: "cart.size", value_types: ["string" as const], spans: 800 },
      { scope: "resource" as const, key: "service.name", value_types: ["string" as const], spans: 5000 },
      { scope: "span" as const, key: "odd key", value_types: ["string" as const], spans: 2 },
    ],
    truncated: false,
    took_ms: 1,
  },
  values: {
    values: [
      { value: "cart", value_type: "string" as const, spans: 900 },
      { value: 'quo"te', value_type: "string" as const, spans: 1 },
    ],
    truncated: false,
    took_ms: 1,
  },
};

function texts(marked: string): string[] {
  return suggest(at(marked).place, KNOWN).map((suggestion) => suggestion.text);
}

test("what begins with the typed text goes before what contains it", () => {
  expect(texts("{ na|")).toEqual(["name", "rootName", "rootServiceName", "resource.service.name"]);
  expect(texts("{ odd|")).toEqual(['span."odd key"']);
});

test("the service goes before what is as frequent", () => {
  expect(texts("{ |").find((text) => text.includes("."))).toBe("resource.service.name");
});

test("values are offered as literals", () => {
  expect(texts("{ resource.service.name = |")).toEqual(['"cart"', '"quo\\"te"']);
  expect(texts("{ status = |")).toEqual(["error", "ok", "unset"]);
  expect(texts("{ duration > 5|")).toEqual(["500ms", "5s"]);
});

test("nothing is offered where all is typed", () => {
  expect(texts("{ status = error|")).toEqual([]);
});

test("a suggestion replaces what was typed, and leaves the rest", () => {
  const value = at('{ resource.service.name = "ca| && duration > 1s }');
  expect(complete(value.text, value.place, { text: '"cart"' }).text).toBe(
    '{ resource.service.name = "cart" && duration > 1s }',
  );
  const field = at("{ res| && duration > 1s }");
  expect(complete(field.text, field.place, { text: "resource.service.name" })).toEqual({
    text: "{ resource.service.name && duration > 1s }",
    caret: 24,
  });
});
