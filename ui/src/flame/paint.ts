/** Draws a flame graph. Where frames lie is decided in `layout`; here they get pixels, colours and as much text as fits. */

import type { Theme } from "../theme/palette";
import { fillColour } from "../theme/palette";
import { token } from "../theme/theme";
import { isFaint, isSignificant, nameOf, shareDifference, signOf } from "./figures";
import type { Layout, View } from "./layout";
import { visitLevel } from "./layout";
import { packageOf, shortName } from "./names";
import type { FlameTree } from "./tree";

export const ROW = 18;
/** Of the monospaced system fonts at 11 px. */
const CHARACTER = 6.65;
const FADE = 14;
/** Narrower frames have no text. */
const TEXT_MIN = 24;

export interface Picture {
  tree: FlameTree;
  layout: Layout;
  view: View;
  /** Nodes from the root to the one that is zoomed to: they take the whole width. */
  above: readonly number[];
  /** By frame index; absent without a search. */
  found: Uint8Array | undefined;
  hovered: number | undefined;
  cursor: number | undefined;
  /** Root at the bottom. */
  isFlame: boolean;
  width: number;
  height: number;
  /** First pixel of the whole that is on screen. */
  scroll: number;
  theme: Theme;
}

/** Rows of the whole picture. */
export function rowCount(layout: Layout): number {
  return layout.levels.length;
}

/** Top of a level, in pixels of the whole. */
export function topOf(level: number, rows: number, isFlame: boolean): number {
  return (isFlame ? rows - 1 - level : level) * ROW;
}

export function levelAt(y: number, rows: number, isFlame: boolean): number {
  const row = Math.floor(y / ROW);
  return isFlame ? rows - 1 - row : row;
}

export function paint(canvas: HTMLCanvasElement, picture: Picture): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(picture.width * ratio), Math.round(picture.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw(context, picture);
}

/** The same on any context, for pictures to save. */
export function draw(context: CanvasRenderingContext2D, picture: Picture): void {
  const { layout, view, isFlame, width, height, scroll, theme } = picture;
  context.fillStyle = token("--ground", theme);
  context.fillRect(0, 0, width, height);
  context.font = `11px ${token("--mono", theme)}`;
  context.textBaseline = "middle";
  const rows = rowCount(layout);
  const small = token("--line-strong", theme);
  const visitor = {
    node: (node: number, x: number, w: number) =>
      paintNode(context, picture, node, x, topOf(layout.level[node], rows, isFlame) - scroll, w),
    small: (x: number, w: number) => {
      context.fillStyle = small;
      context.globalAlpha = 0.45;
      context.fillRect(x, y + 3, w, ROW - 7);
      context.globalAlpha = 1;
    },
  };
  let y = 0;
  for (let level = 0; level < rows; level += 1) {
    y = topOf(level, rows, isFlame) - scroll;
    if (y + ROW <= 0 || y >= height) continue;
    const above = picture.above[level];
    if (above !== undefined && level < picture.above.length - 1) paintNode(context, picture, above, 0, y, width, true);
    else visitLevel(layout, level, view, width, visitor);
  }
}

function paintNode(
  context: CanvasRenderingContext2D,
  picture: Picture,
  node: number,
  x: number,
  y: number,
  width: number,
  isAbove = false,
): void {
  const { tree, theme, found } = picture;
  const frame = tree.frame[node];
  const isDim = found !== undefined && found[frame] === 0;
  const box = Math.max(1, width - (width > 3 ? 1 : 0));
  context.globalAlpha = isDim ? 0.28 : isAbove ? 0.6 : 1;
  context.fillStyle = colourOf(tree, node, theme);
  if (width > FADE && isFaint(tree, node) && node !== 0) {
    context.fillRect(x, y, box - FADE, ROW - 1);
    paintFade(context, x + box - FADE, y, context.fillStyle as string);
  } else context.fillRect(x, y, box, ROW - 1);
  if (found?.[frame] === 1) {
    context.fillStyle = token("--accent", theme);
    context.fillRect(x, y + ROW - 3, box, 2);
  }
  if (node === picture.hovered || node === picture.cursor) {
    context.globalAlpha = 1;
    context.strokeStyle = token(node === picture.cursor ? "--accent" : "--text", theme);
    context.lineWidth = node === picture.cursor ? 2 : 1;
    context.strokeRect(x + 0.5, y + 0.5, box - 1, ROW - 2);
  }
  if (width >= TEXT_MIN) {
    context.globalAlpha = isDim ? 0.5 : 1;
    context.fillStyle = token("--text", theme);
    const sign = signOf(tree, node);
    const text = sign + shortName(nameOf(tree, node), Math.floor((width - 8) / CHARACTER) - sign.length);
    context.fillText(plain(text), x + 4, y + ROW / 2, width - 6);
  }
  context.globalAlpha = 1;
}

/** An uncertain frame has no right edge. */
function paintFade(context: CanvasRenderingContext2D, x: number, y: number, colour: string): void {
  const gradient = context.createLinearGradient(x, 0, x + FADE, 0);
  gradient.addColorStop(0, colour);
  gradient.addColorStop(1, `${colour}00`);
  context.fillStyle = gradient;
  context.fillRect(x, y, FADE, ROW - 1);
}

/** Right-to-left marks and line breaks of a name must not move its neighbours. */
export function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

const packages = new WeakMap<readonly unknown[], string[]>();

/** The package of each frame, found once an answer. */
export function packagesOf(tree: FlameTree): string[] {
  let known = packages.get(tree.frames);
  if (known === undefined) {
    known = tree.frames.map(packageOf);
    packages.set(tree.frames, known);
  }
  return known;
}

/** The ground of a frame: its package, or what changed. */
export function colourOf(tree: FlameTree, node: number, theme: Theme): string {
  if (tree.sides.length > 1) return diffColour(tree, node, theme);
  if (node === 0) return token("--line", theme);
  // What belongs to no package is told apart by its name.
  return fillColour(packagesOf(tree)[tree.frame[node]] || nameOf(tree, node), theme);
}

/** Of a difference that the samples can tell; the sign is written in the frame too. */
function diffColour(tree: FlameTree, node: number, theme: Theme): string {
  const [base, target] = tree.sides;
  if (tree.parent[node] === node || !isSignificant(tree, node)) return token("--line", theme);
  if (base.total[node] === 0) return mixed("--only-target", 0.55, theme);
  if (target.total[node] === 0) return mixed("--only-base", 0.55, theme);
  const difference = shareDifference(tree, node);
  const strength = Math.min(1, Math.abs(difference) / 0.2);
  return mixed(difference > 0 ? "--target" : "--base", 0.2 + 0.45 * strength, theme);
}

const mixtures = new Map<string, string>();

/** A token on the theme's ground, as `#rrggbb`. */
function mixed(name: `--${string}`, part: number, theme: Theme): string {
  const step = Math.round(part * 20) / 20;
  const key = `${name} ${step} ${theme}`;
  let colour = mixtures.get(key);
  if (colour === undefined) {
    const [top, ground] = [channels(token(name, theme)), channels(token("--ground", theme))];
    const channel = (at: number): string =>
      Math.round(top[at] * step + ground[at] * (1 - step))
        .toString(16)
        .padStart(2, "0");
    colour = `#${channel(0)}${channel(1)}${channel(2)}`;
    mixtures.set(key, colour);
  }
  return colour;
}

function channels(hex: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) || 0);
}
