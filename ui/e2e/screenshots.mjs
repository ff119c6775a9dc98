/**
 * Pictures of every screen, light and dark, of a server that holds the demo's data.
 *
 *   node e2e/screenshots.mjs http://127.0.0.1:4040 planted.json FOLDER
 */

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

const [address, plantedFile, folder] = process.argv.slice(2);
if (!address || !plantedFile || !folder) {
  process.stderr.write("usage: node e2e/screenshots.mjs SERVER planted.json FOLDER\n");
  process.exit(2);
}
const [cause] = JSON.parse(readFileSync(plantedFile, "utf8"));
const trace = await (await fetch(`${address}/api/v1/traces/${cause.trace_id}`)).json();
const span = trace.spans.find((one) => one.name === cause.span)?.span_id ?? "";
const RANGE = "start=now-1h&end=now";
const slow = encodeURIComponent(`{ name = "${cause.span}" && duration > 250ms }`);
const fast = encodeURIComponent(`{ name = "${cause.span}" && duration <= 250ms }`);
const SCREENS = {
  home: `/?${RANGE}`,
  spans: `/spans?${RANGE}&q=${encodeURIComponent(`{ resource.service.name = "${cause.service}" }`)}`,
  trace: `/trace/${cause.trace_id}?span=${span}`,
  "trace-table": `/trace/${cause.trace_id}?span=${span}&focus=m.both~p.rust`,
  timeline: `/trace/${cause.trace_id}?span=${span}&tab=timeline`,
  attributes: `/trace/${cause.trace_id}?span=${span}&tab=attributes`,
  compare: `/compare?base_q=${fast}&target_q=${slow}&base_${RANGE.replace("&", "&base_")}&target_${RANGE.replace("&", "&target_")}`,
  profiles: `/profiles?${RANGE}`,
  view: "/view",
};

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
for (const colorScheme of ["light", "dark"]) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme });
  for (const [name, path] of Object.entries(SCREENS)) {
    await page.goto(address + path, { waitUntil: "networkidle" });
    await page
      .locator("[aria-busy=true]")
      .waitFor({ state: "detached", timeout: 30_000 })
      .catch(() => undefined);
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
  }
  await page.close();
}
await browser.close();
