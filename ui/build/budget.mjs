// Fails when the JavaScript of a first screen outgrows its budget, or when the page gained something that the content
// security policy forbids. Reads dist/, which `vite build` wrote.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const DIST = new URL("../dist/", import.meta.url).pathname;
/** Gzip, of everything that must load before the first screen shows. */
const FIRST_SCREEN_BYTES_MAX = 250 * 1024;
/** The screens one may land on; each is measured with all that it imports at once. */
const SCREENS = ["src/home/HomeScreen.tsx", "src/spans/SpansScreen.tsx", "src/trace/TraceScreen.tsx"];

const manifest = JSON.parse(readFileSync(join(DIST, ".vite/manifest.json"), "utf8"));
const findings = [];

function reach(key, seen) {
  const chunk = manifest[key];
  if (!chunk || seen.has(key)) return seen;
  seen.add(key);
  for (const next of chunk.imports ?? []) reach(next, seen);
  return seen;
}

function gzipBytes(keys) {
  const files = new Set([...keys].map((key) => manifest[key].file).filter((file) => file.endsWith(".js")));
  return [...files].reduce((sum, file) => sum + gzipSync(readFileSync(join(DIST, file)), { level: 9 }).length, 0);
}

for (const screen of SCREENS) {
  if (!manifest[screen]) {
    findings.push(`${screen} is no chunk of its own: its route must be lazy`);
    continue;
  }
  const bytes = gzipBytes(reach(screen, reach("index.html", new Set())));
  const text = `${screen}: ${(bytes / 1024).toFixed(1)} KB of JavaScript (gzip) of ${FIRST_SCREEN_BYTES_MAX / 1024} KB`;
  process.stdout.write(`${text}\n`);
  if (bytes > FIRST_SCREEN_BYTES_MAX) findings.push(text);
}

const html = readFileSync(join(DIST, "index.html"), "utf8");
if (/<script(?![^>]*\bsrc=)/.test(html)) findings.push("index.html has an inline script");
if (/<style|\sstyle=|\son[a-z]+=/.test(html)) findings.push("index.html has an inline style or handler");
if (/(?:src|href)="(?:https?:)?\/\//.test(html)) findings.push("index.html loads from another host");

for (const finding of findings) process.stderr.write(`budget: ${finding}\n`);
process.exitCode = findings.length > 0 ? 1 : 0;
