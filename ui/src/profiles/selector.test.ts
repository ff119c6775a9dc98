import { expect, test } from "vitest";

import { labelEquals, parseStretch, seriesName, seriesSelector, stretchText, withLabel } from "./selector";

test("names and values are quoted where the language needs it", () => {
  expect(labelEquals("service.name", "cart")).toBe('service.name="cart"');
  expect(labelEquals("a-b c", 'say "hi"\n\\')).toBe('"a-b c"="say \\"hi\\"\\n\\\\"');
});

test("conditions are joined once, with or without braces", () => {
  const region = 'region="eu-1"';
  expect(withLabel("", region)).toBe(region);
  expect(withLabel(' {service.name="cart",} ', region)).toBe('service.name="cart", region="eu-1"');
  expect(withLabel(region, region)).toBe(region);
});

test("a stretch of time goes through the address and back", () => {
  const stretch = { start: 1_790_000_000_000_000_000n, end: 1_790_000_030_000_000_000n };
  expect(parseStretch(stretchText(stretch))).toEqual(stretch);
  for (const wrong of [undefined, "", "5-5", "9-1", "-1-2", "a-b"]) expect(parseStretch(wrong)).toBeNull();
});

test("a series is called by the values of its labels, and never by nothing", () => {
  expect(seriesName({ "service.name": "cart", region: "" })).toBe('cart · ""');
  expect(seriesName({})).toBe("(without the label)");
});

test("a series without the label is selected by the empty value", () => {
  expect(seriesSelector('region="eu"', {}, ["service.version"])).toBe('region="eu", service.version=""');
  expect(seriesSelector("", { a: "1", b: "2" }, ["a", "b"])).toBe('a="1", b="2"');
});
