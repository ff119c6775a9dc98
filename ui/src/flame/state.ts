/**
 * How a flame graph is looked at, as one short text of the address: `m.sandwich~f.parse~s.json`. What is as usual is left
 * out, so a plain graph has no text.
 */

import type { SiblingOrder } from "./layout";
import type { FlameTree } from "./tree";
import { fnv1a } from "../theme/palette";

export type Mode = "graph" | "table" | "both" | "sandwich";
const MODES: readonly Mode[] = ["graph", "table", "both", "sandwich"];

export interface FlameState {
  mode: Mode;
  /** The path that is zoomed to, by `pathKey`. */
  zoom: string | undefined;
  /** The function whose callers and callees are shown. */
  function: string | undefined;
  search: string;
  order: SiblingOrder;
  /** Root at the bottom. */
  isFlame: boolean;
  collapseRecursion: boolean;
  /** Ids of presets whose frames are left out. */
  presets: readonly string[];
  /** Functions that are left out. */
  hidden: readonly string[];
}

export const USUAL: FlameState = {
  mode: "graph",
  zoom: undefined,
  function: undefined,
  search: "",
  order: "name",
  isFlame: false,
  collapseRecursion: false,
  presets: [],
  hidden: [],
};

export function parseState(text: string | undefined): FlameState {
  const state: FlameState = { ...USUAL, presets: [], hidden: [] };
  const hidden: string[] = [];
  for (const part of (text ?? "").split("~")) {
    const said = decode(part.slice(2));
    switch (part.slice(0, 2)) {
      case "m.":
        state.mode = MODES.find((mode) => mode === said) ?? "graph";
        break;
      case "z.":
        state.zoom = said;
        break;
      case "f.":
        state.function = said;
        break;
      case "s.":
        state.search = said;
        break;
      case "o.":
        state.order = said === "value" ? "value" : "name";
        break;
      case "i.":
        state.isFlame = said === "flame";
        break;
      case "r.":
        state.collapseRecursion = said === "1";
        break;
      case "p.":
        state.presets = said.split(",").filter(Boolean);
        break;
      case "h.":
        hidden.push(said);
        break;
      default:
    }
  }
  return { ...state, hidden };
}

/** `undefined` for the usual. */
export function stateText(state: FlameState): string | undefined {
  const parts = [
    state.mode === "graph" ? "" : `m.${state.mode}`,
    state.zoom ? `z.${encode(state.zoom)}` : "",
    state.function ? `f.${encode(state.function)}` : "",
    state.search ? `s.${encode(state.search)}` : "",
    state.order === "name" ? "" : `o.${state.order}`,
    state.isFlame ? "i.flame" : "",
    state.collapseRecursion ? "r.1" : "",
    state.presets.length > 0 ? `p.${state.presets.join(",")}` : "",
    ...state.hidden.map((name) => `h.${encode(name)}`),
  ];
  return parts.filter(Boolean).join("~") || undefined;
}

// The separator is the one character that names may hold and a part may not.
function encode(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("~", "%7E");
}

function decode(text: string): string {
  return text.replaceAll("%7E", "~").replaceAll("%25", "%");
}

/** A short name of the way from the root to a node: the same in every answer that has this way. */
export function pathKey(tree: FlameTree, node: number): string {
  const { hash, depth } = pathsOf(tree);
  return `${hash[node].toString(36)}.${depth[node].toString(36)}`;
}

/** The node with a path, if the tree has it. */
export function nodeOfPath(tree: FlameTree, key: string | undefined): number {
  const [wanted, far] = (key ?? "").split(".").map((part) => Number.parseInt(part, 36));
  if (!wanted || !far) return 0;
  const { hash, depth } = pathsOf(tree);
  const found = hash.findIndex((one, node) => one === wanted && depth[node] === far);
  return Math.max(0, found);
}

const paths = new WeakMap<FlameTree, { hash: Uint32Array; depth: Uint32Array }>();

/** Hash of the names on the way to each node, and their number; step by step, so it costs once per node. */
function pathsOf(tree: FlameTree): { hash: Uint32Array; depth: Uint32Array } {
  const known = paths.get(tree);
  if (known) return known;
  const names = tree.frames.map((frame) => fnv1a(frame.function));
  const found = { hash: new Uint32Array(tree.frame.length), depth: new Uint32Array(tree.frame.length) };
  for (let node = 1; node < tree.frame.length; node += 1) {
    const caller = tree.parent[node];
    found.hash[node] = Math.imul(found.hash[caller] ^ names[tree.frame[node]], 0x01000193);
    found.depth[node] = found.depth[caller] + 1;
  }
  paths.set(tree, found);
  return found;
}
