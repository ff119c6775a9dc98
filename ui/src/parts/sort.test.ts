import { expect, test } from "vitest";

import { type Value, sortedBy } from "./sort";

function check(values: Value[], isReversed: boolean, expected: Value[]): void {
  expect(sortedBy(values, (value) => value, isReversed)).toEqual(expected);
}

test("the largest number and the first name are on top, or the other way round", () => {
  check([2, 10, 3], false, [10, 3, 2]);
  check([2, 10, 3], true, [2, 3, 10]);
  check(["b", "a"], false, ["a", "b"]);
  check(["a", "b"], true, ["b", "a"]);
});

test("what is unknown is last either way", () => {
  check([undefined, 1, 2], false, [2, 1, undefined]);
  check([undefined, 2, 1], true, [1, 2, undefined]);
});
