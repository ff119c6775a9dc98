/** What the names of functions tell: the package, the short form, and frames that are a runtime's own. */

import type { Frame } from "../api/answers";

/**
 * The package that a frame belongs to: what its colour stands for. `shop::cart::price` is of `shop`, `github.com/a/b.F` of
 * `github.com/a/b`, `com.acme.Cart.price` of `com.acme`, `./app.js:price:3` of `app.js`; else its file or module.
 */
export function packageOf(frame: Frame): string {
  const name = frame.function;
  const script = /^(?:\.\/)?(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(frame.file ?? name);
  if (script) return script[1];
  const bare = name.replace(/^<+/, "").replace(/^&/, "");
  const rust = /^([A-Za-z_][\w]*)::/.exec(bare);
  if (rust) return rust[1];
  const file = /^(?:\.\/)?([\w./-]+\.(?:js|ts|mjs|cjs|py|rb|php)):/.exec(name);
  if (file) return file[1];
  const go = /^((?:[\w.-]+\/)+[\w-]+)\./.exec(name);
  if (go) return go[1];
  const java = /^((?:[a-z_][\w$]*\.)+)[A-Z]/.exec(name.replaceAll("/", "."));
  if (java) return java[1].split(".").slice(0, 2).join(".");
  const dotted = /^([a-z_]\w*)\.[\w(*]/.exec(name);
  if (dotted) return dotted[1];
  if (frame.file) return frame.file.split("/").slice(-2, -1)[0] || frame.file;
  return frame.module?.split("/").at(-1) ?? "";
}

/** A name in `room` characters: cut at the left of its path, where the least is told. */
export function shortName(name: string, room: number): string {
  if (name.length <= room) return name;
  if (room < 4) return "";
  const tail = name.slice(name.length - room + 3);
  const part = tail.search(/(?:::|[./])\w/);
  return `...${part >= 0 && part < tail.length / 2 ? tail.slice(part) : tail}`;
}

export interface Preset {
  id: string;
  /** For people. */
  name: string;
  matches: RegExp;
}

/** Frames that a runtime puts around everybody's code. */
export const PRESETS: readonly Preset[] = [
  {
    id: "rust",
    name: "Rust runtime (tokio, std)",
    matches:
      /^(tokio::|futures_util::|futures_core::|<?core::(ops|future|pin|panic)|<?std::(panic|panicking|rt|thread|sys)|<?alloc::boxed|__rust|<?tracing::instrument)|\/(tokio(-[a-z]+)?|futures-[a-z]+|hyper(-[a-z]+)?|axum(-[a-z]+)?|tower(-[a-z]+)?|tracing)-\d[^/]*\/src\/|^\/rustc\/|\/library\/(core|std|alloc)\//,
  },
  {
    id: "go",
    name: "Go scheduler and start-up",
    // Allocation and collection stay: they are cost that one wants to see.
    matches:
      /^runtime\.(goexit|main|mcall|mstart\d*|schedule|park_m|findRunnable|gopark\w*|goready|ready|systemstack(_switch)?|morestack\w*|newstack|asyncPreempt\d*|gosched\w*|goschedImpl|gopreempt_m|preemptPark|rt0_go|startm|stopm|handoffp|wakep|execute|stealWork|runqsteal|runqgrab|checkTimers|resetspinning|note(sleep|wakeup|tsleepg)|netpoll\w*|epollwait|futex\w*|usleep|osyield)(\.|$)/,
  },
  {
    id: "java",
    name: "Java thread pools",
    matches:
      /^(java\.lang\.Thread\.|java\.util\.concurrent\.|java\/util\/concurrent\/|java\/lang\/Thread\.|jdk\.internal\.|sun\.)/,
  },
  {
    id: "node",
    name: "Node internals",
    matches: /^(node:|\(anonymous\) \[node|processTicksAndRejections|.*node:internal)/,
  },
  {
    id: "python",
    name: "Python asyncio and threading",
    matches:
      /(^|\/)(asyncio|threading|concurrent\/futures|selectors)(\.py|\/|\.|$)|^(Thread\.|_bootstrap|run_forever|_run_once)/,
  },
];

/** Whether a preset leaves a frame out; a file counts as well as a name. */
export function isOfPreset(preset: Preset, frame: Frame): boolean {
  return preset.matches.test(frame.function) || (frame.file !== undefined && preset.matches.test(frame.file));
}

/** Reads what was typed into a search: words that a name holds, whatever their case; `/.../` is a regular expression. */
export function matcher(text: string): ((name: string) => boolean) | undefined {
  const wanted = text.trim();
  if (wanted === "") return undefined;
  const pattern = /^\/(.+)\/$/.exec(wanted);
  if (pattern) {
    try {
      const regular = new RegExp(pattern[1], "i");
      return (name) => regular.test(name);
    } catch {
      // Half typed: looked for as it stands.
    }
  }
  const lower = wanted.toLowerCase();
  return (name) => name.toLowerCase().includes(lower);
}
