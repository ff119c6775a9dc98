/**
 * Colours of services and packages: by hash of the name, so the same on every screen and after every reload.
 *
 * A *fill* lies under text (a frame of a flame graph), a *mark* stands beside it (a bar of the waterfall, a swatch). Both
 * exist in two lightness sets. Reds are left out: red means failed.
 */

/** Which of the two sets of colours is in use. */
export type Theme = "light" | "dark";

/** Degrees on the OKLCH circle; neighbours in the list are far apart, so similar hashes look different. */
const HUES = [55, 255, 145, 310, 90, 220, 175, 285, 70, 200, 120, 340, 240, 105, 270, 160];

interface Tone {
  lightness: number;
  chroma: number;
}

const FILL: Record<Theme, Tone> = {
  light: { lightness: 0.85, chroma: 0.075 },
  dark: { lightness: 0.42, chroma: 0.07 },
};
const MARK: Record<Theme, Tone> = { light: { lightness: 0.62, chroma: 0.12 }, dark: { lightness: 0.7, chroma: 0.11 } };

const coloured = new Map<string, string>();

/** Ground of a frame whose text is the theme's text colour. */
export function fillColour(name: string, theme: Theme): string {
  return colourOf("fill", FILL[theme], name, theme);
}

/** A bar, line or swatch on the theme's ground. */
export function markColour(name: string, theme: Theme): string {
  return colourOf("mark", MARK[theme], name, theme);
}

function colourOf(role: string, tone: Tone, name: string, theme: Theme): string {
  const hash = fnv1a(name);
  const key = `${role} ${theme} ${hash % HUES.length}`;
  let colour = coloured.get(key);
  if (colour === undefined) {
    colour = oklch(tone, HUES[hash % HUES.length] ?? 0);
    coloured.set(key, colour);
  }
  return colour;
}

/** 32-bit FNV-1a over UTF-16 units. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash ^= text.charCodeAt(at);
    hash = Math.imul(hash, 0x01000193);
  }
  // The low bits of short names differ little; fold the high ones in.
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** `#rrggbb`. Constants are those of the definition of Oklab. */
function oklch({ lightness, chroma }: Tone, hue: number): string {
  const angle = (hue / 180) * Math.PI;
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return `#${linear.map(channel).join("")}`;
}

function channel(linear: number): string {
  const encoded = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(Math.min(1, Math.max(0, encoded)) * 255)
    .toString(16)
    .padStart(2, "0");
}
