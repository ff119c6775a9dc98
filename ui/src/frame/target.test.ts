import { expect, test } from "vitest";

import { type Target, named, targetOf } from "./target";

const ID = "5732450b54c5f9e85941cd3567d0ee56";

function check(text: string, expected: Target | null): void {
  expect(targetOf(text)).toEqual(expected);
}

test("ids are found however they were copied", () => {
  for (const text of [
    ID,
    ID.toUpperCase(),
    ` ${ID}\n`,
    `"${ID}"`,
    "5732450b-54c5-f9e8-5941-cd3567d0ee56",
    `00-${ID}-f29bbc09d7f2d757-01`,
  ]) {
    check(text, { to: "trace", traceId: ID });
  }
  check("f29bbc09d7f2d757", { to: "trace", traceId: "f29bbc09d7f2d757" });
});

test("braces begin a query", () => {
  check("{ duration > 1s }", { to: "spans", q: "{ duration > 1s }" });
});

test("anything else is a service, and cannot break out of its string", () => {
  check("cart", { to: "spans", q: '{ resource.service.name = "cart" }' });
  check('a" || true', { to: "spans", q: '{ resource.service.name = "a\\" || true" }' });
  check("deadbeef", { to: "spans", q: '{ resource.service.name = "deadbeef" }' });
});

test("space is nothing", () => check("  ", null));

test("an exact name goes first, then what begins with the text", () => {
  const all = ["old-cart", "cartographer", "Cart", "pricing"].map((name) => ({ name }));
  expect(named(all, " cart ").map((one) => one.name)).toEqual(["Cart", "cartographer", "old-cart"]);
  expect(named(all, "").length).toBe(4);
});
