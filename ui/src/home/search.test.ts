import { expect, test } from "vitest";

import { homeSearch, orderOf, orderText } from "./search";

test("an order survives the way through the address", () => {
  for (const text of ["p99", "-p99", "-name", "linked"] as const) {
    expect(orderText(orderOf(text))).toBe(text);
    expect(homeSearch({ order: text }).order).toBe(text);
  }
  expect(orderText(orderOf())).toBeUndefined();
  expect(homeSearch({ order: "--p99" }).order).toBeUndefined();
});
