// What the measurements of frame times share: the built page in Debian's chromium, acting once a frame, and the figures.
import { cpus } from "node:os";

import { chromium } from "playwright-core";
import { preview } from "vite";

/** A frame that took longer was dropped at 60 Hz. */
const FRAME_MS = 1000 / 60;

/** The built page in a browser whose questions `answer` answers: JSON by the path below /api/v1, else 404. */
export async function open(answer) {
  const server = await preview({ preview: { port: 0, host: "127.0.0.1" }, logLevel: "silent" });
  const { port } = server.httpServer.address();
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.route("**/api/v1/**", (route) => {
    const found = answer(new URL(route.request().url()).pathname.replace(/^\/api\/v1/, ""));
    return found
      ? route.fulfill({ json: found })
      : route.fulfill({
          status: 404,
          json: { error: { code: "not_found", message: "not asked for here", request_id: "0" } },
        });
  });
  return {
    page,
    address: `http://127.0.0.1:${port}`,
    machine: `1440x900, chromium ${browser.version()}, ${cpus().length} cores (${cpus()[0].model})`,
    async close() {
      await browser.close();
      await new Promise((done) => server.httpServer.close(done));
    },
  };
}

/** Until what was asked for is on screen. */
export const painted = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/**
 * Acts once a frame: `steps` is a handle of functions by name, each given the number of the frame. A line with the gaps between
 * frames, and how long the main thread worked in each.
 */
export async function act(page, steps, name, seconds) {
  const { gaps, work } = await page.evaluate(
    ({ steps, name, seconds }) =>
      new Promise((resolve) => {
        const gaps = [];
        const work = [];
        const begin = performance.now();
        let before = 0;
        let count = 0;
        const after = new MessageChannel();
        let started = 0;
        after.port1.onmessage = () => work.push(performance.now() - started);
        const frame = (now) => {
          if (before > 0) gaps.push(now - before);
          before = now;
          started = performance.now();
          steps[name](count);
          count += 1;
          // Runs when this frame's callbacks, rendering and painting are through.
          after.port2.postMessage(0);
          if (now - begin < seconds * 1000) requestAnimationFrame(frame);
          else resolve({ gaps, work });
        };
        requestAnimationFrame(frame);
      }),
    { steps, name, seconds },
  );
  const late = gaps.filter((gap) => gap > FRAME_MS * 1.5).length;
  return `${name}: frames ${told(gaps)}; ${late} of ${gaps.length} late; work of a frame ${told(work)}`;
}

function told(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(1);
  return `p50 ${at(0.5)} p95 ${at(0.95)} p99 ${at(0.99)} max ${at(1)} ms`;
}
