/** A flame graph as a file: SVG, and PNG of the whole height. */

import { value } from "../text/quantity";
import type { Theme } from "../theme/palette";
import { token } from "../theme/theme";
import { type Layout, WHOLE, visitLevel } from "./layout";
import { nameOf, signOf } from "./figures";
import { ROW, colourOf, draw, plain, rowCount, topOf } from "./paint";
import { shortName } from "./names";
import type { FlameTree } from "./tree";

const WIDTH = 1600;
/** Browsers refuse higher canvases. */
const PNG_HEIGHT_MAX = 16_000;
const CHARACTER = 6.65;

/** An SVG that says each frame's name and value as its title; the whole, without zoom. */
export function svg(tree: FlameTree, layout: Layout, isFlame: boolean, unit: string, theme: Theme): string {
  const rows = rowCount(layout);
  const parts: string[] = [];
  const title = (text: string): string => `<title>${escape(text)}</title>`;
  const last = tree.sides.length - 1;
  for (let level = 0; level < rows; level += 1) {
    const y = topOf(level, rows, isFlame);
    visitLevel(layout, level, WHOLE, WIDTH, {
      node: (node, x, width) => {
        const name = nameOf(tree, node);
        const total = tree.sides[last].total[node];
        const fill = colourOf(tree, node, theme);
        const sign = signOf(tree, node);
        const text = width >= 24 ? sign + shortName(name, Math.floor((width - 8) / CHARACTER) - sign.length) : "";
        parts.push(
          `<g>${title(`${name} ${value(total, unit)}`)}<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.5, width - 0.5).toFixed(2)}" height="${ROW - 1}" fill="${fill}"/>` +
            (text ? `<text x="${(x + 4).toFixed(2)}" y="${y + 12.5}">${escape(text)}</text>` : "") +
            "</g>",
        );
      },
      small: (x, width, count) =>
        parts.push(
          `<rect x="${x.toFixed(2)}" y="${y + 3}" width="${width.toFixed(2)}" height="${ROW - 7}" fill="#b0b0aa">${title(`${count} small frames`)}</rect>`,
        ),
    });
  }
  const height = rows * ROW;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" ` +
    `font-family="monospace" font-size="11" fill="${token("--text", theme)}">` +
    `<rect width="${WIDTH}" height="${height}" fill="${token("--ground", theme)}"/>${parts.join("")}</svg>\n`
  );
}

function escape(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return plain(text).replace(/[&<>"]/g, (character) => entities[character]);
}

/** A PNG of the whole; of very deep graphs the part next to the root. */
export async function png(tree: FlameTree, layout: Layout, isFlame: boolean, theme: Theme): Promise<Blob> {
  const whole = rowCount(layout) * ROW;
  const height = Math.min(whole, PNG_HEIGHT_MAX);
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = height;
  const context = canvas.getContext("2d");
  if (!context) throw new Error("the browser has no 2d canvas");
  draw(context, {
    tree,
    layout,
    view: WHOLE,
    above: [0],
    found: undefined,
    hovered: undefined,
    cursor: undefined,
    isFlame,
    width: WIDTH,
    height,
    scroll: isFlame ? whole - height : 0,
    theme,
  });
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png"),
  );
}

/** Hands a file to the browser's downloads. */
export function save(content: Blob | string, name: string, type: string): void {
  const blob = typeof content === "string" ? new Blob([content], { type }) : content;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download has its own hold on the content once it began.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
