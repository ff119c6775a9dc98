import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { type Theme, fillColour, markColour } from "./palette";

const NAMES = Array.from({ length: 200 }, (_, at) => `service-${at}`);
const CSS = readFileSync(new URL("tokens.css", import.meta.url), "utf8");

/** The value of a token in a theme. */
function tokenOf(name: string, theme: Theme): string {
  const [light = "", dark = ""] = CSS.split(':root[data-theme="dark"]');
  const found = new RegExp(`${name}: (#[0-9a-f]{6});`).exec(theme === "dark" ? dark : light)?.[1];
  if (!found) throw new Error(`${name} has no colour in ${theme}`);
  return found;
}

/** The ratio of WCAG 2. */
function contrast(a: string, b: string): number {
  const luminance = (colour: string): number => {
    const [r = 0, g = 0, bl = 0] = [1, 3, 5].map((at) => {
      const channel = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
      return channel <= 0.03928 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * bl;
  };
  const [high = 0, low = 0] = [luminance(a), luminance(b)].toSorted((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

function check(text: string, ground: string, atLeast: number, what: string): void {
  expect(contrast(text, ground), what).toBeGreaterThanOrEqual(atLeast);
}

for (const theme of ["light", "dark"] as const) {
  test(`text can be read on every ground, ${theme}`, () => {
    for (const ground of ["--ground", "--raised", "--sunken", "--hover", "--selected"]) {
      for (const text of ["--text", "--muted", "--accent", "--error", "--warning"]) {
        check(tokenOf(text, theme), tokenOf(ground, theme), 4.5, `${text} on ${ground}`);
      }
    }
    check(tokenOf("--accent-text", theme), tokenOf("--accent", theme), 4.5, "text on the accent");
    check(tokenOf("--error", theme), tokenOf("--error-ground", theme), 4.5, "error on its ground");
  });

  test(`text can be read on every frame, and marks be seen, ${theme}`, () => {
    for (const name of NAMES) {
      check(tokenOf("--text", theme), fillColour(name, theme), 4.5, `text on ${name}`);
      check(markColour(name, theme), tokenOf("--ground", theme), 3, `mark of ${name}`);
    }
  });

  test(`colours of data can be told from the ground, ${theme}`, () => {
    for (const name of [
      "--on-cpu",
      "--base",
      "--target",
      "--only-base",
      "--only-target",
      "--not-significant",
      "--line-strong",
    ]) {
      check(tokenOf(name, theme), tokenOf("--ground", theme), 3, name);
    }
  });
}

test("a name has one colour, and many names use the whole palette", () => {
  expect(markColour("cart", "light")).toBe(markColour("cart", "light"));
  expect(new Set(NAMES.map((name) => markColour(name, "light"))).size).toBe(16);
});
