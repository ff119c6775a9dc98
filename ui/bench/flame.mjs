// Frame times of the flame graph with 100,000 nodes, in Debian's chromium: `npm run build && node bench/flame.mjs`.
//
// The page is the built one; the server's answers are made here, so nothing but the page is measured. Each scenario acts once
// a frame for some seconds and reports how far apart the frames came, and how long the work of each took.
import { cpus } from "node:os";

import { chromium } from "playwright-core";
import { preview } from "vite";

const NODES = 100_000;
const FUNCTIONS = 4_000;
const SECONDS = 4;
/** A frame that took longer was dropped at 60 Hz. */
const FRAME_MS = 1000 / 60;

/** A tree with many small frames, as programs have them: each node has some children, most of them narrow. */
function tree() {
  let seed = 1;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const [frame, parent, self] = [[0], [0], [0]];
  for (let node = 1; node < NODES; node += 1) {
    // Mostly below recent nodes: deep and wide at once.
    const above = node < 20 ? node - 1 : Math.max(0, node - 1 - Math.floor(random() ** 3 * Math.min(node, 2_000)));
    parent.push(above);
    frame.push(1 + Math.floor(random() * FUNCTIONS));
    self.push(1 + Math.floor(random() ** 6 * 400));
  }
  const total = [...self];
  for (let node = NODES - 1; node > 0; node -= 1) total[parent[node]] += total[node];
  const ms = (values) => values.map((value) => value * 1e7);
  return { frame, parent, self: ms(self), total: ms(total), samples: total };
}

function answer() {
  const made = tree();
  const frames = [{ function: "root", kind: "root" }];
  for (let at = 0; at < FUNCTIONS; at += 1)
    frames.push({
      function: `crate_${at % 97}::module_${at % 13}::function_${at}`,
      file: `src/file_${at % 211}.rs`,
      line: at,
    });
  return {
    format: "pprof",
    profiles: 1,
    types: [{ type: "cpu:cpu:nanoseconds:cpu:nanoseconds", unit: "nanoseconds", samples: made.samples[0] }],
    type: "cpu:cpu:nanoseconds:cpu:nanoseconds",
    unit: "nanoseconds",
    total: made.total[0],
    samples: made.samples[0],
    frames,
    tree: made,
    evidence: {
      precision: { span: 0, local_root: 0, trace: 0, window: 0 },
      ambiguous: 0,
      unresolved_frames: 0,
      covered_ns: 0,
      window_match: null,
      reasons: [],
    },
    labels: {},
    took_ms: 0,
  };
}

/** In the page: acts once a frame; the gaps between frames, and how long the main thread worked in each. */
async function act(page, name, seconds) {
  return page.evaluate(
    ({ name, seconds }) =>
      new Promise((resolve) => {
        const canvas = document.querySelector(".flame-scroll canvas");
        const scroll = document.querySelector(".flame-scroll");
        const gaps = [];
        const work = [];
        const begin = performance.now();
        let before = 0;
        let count = 0;
        const after = new MessageChannel();
        let started = 0;
        after.port1.onmessage = () => work.push(performance.now() - started);
        const box = () => canvas.getBoundingClientRect();
        const event = (type, part, row) => {
          const { left, top, width } = box();
          const init = {
            bubbles: true,
            clientX: left + part * width,
            clientY: top + row * 18 + 9,
            pointerType: "mouse",
          };
          canvas.dispatchEvent(type === "click" ? new MouseEvent(type, init) : new PointerEvent(type, init));
        };
        const steps = {
          hover: () => event("pointermove", (count * 0.0137) % 1, count % 28),
          scroll: () =>
            (scroll.scrollTop = (Math.sin(count / 20) + 1) * 0.5 * (scroll.scrollHeight - scroll.clientHeight)),
          zoom: () => count % 6 === 0 && event("click", 0.5, count % 12 === 0 ? 0 : 6 + (count % 11)),
        };
        const frame = (now) => {
          if (before > 0) gaps.push(now - before);
          before = now;
          started = performance.now();
          steps[name]();
          count += 1;
          // Runs when this frame's callbacks, rendering and painting are through.
          after.port2.postMessage(0);
          if (now - begin < seconds * 1000) requestAnimationFrame(frame);
          else resolve({ gaps, work });
        };
        requestAnimationFrame(frame);
      }),
    { name, seconds },
  );
}

function told(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(1);
  return `p50 ${at(0.5)} p95 ${at(0.95)} p99 ${at(0.99)} max ${at(1)} ms`;
}

const server = await preview({ preview: { port: 0, host: "127.0.0.1" }, logLevel: "silent" });
const { port } = server.httpServer.address();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await page.route("**/api/v1/**", (route) =>
  route.request().url().includes("/view")
    ? route.fulfill({ json: made })
    : route.fulfill({
        status: 404,
        json: { error: { code: "not_found", message: "not asked for here", request_id: "0" } },
      }),
);
const made = answer();
await page.goto(`http://127.0.0.1:${port}/view`);
const since = Date.now();
await page.setInputFiles("input[type=file]", {
  name: "big.pprof",
  mimeType: "application/octet-stream",
  buffer: Buffer.from("x"),
});
await page.waitForSelector(".flame-scroll canvas");
await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const lines = [
  `${NODES} nodes, ${FUNCTIONS} functions, 1440x900, chromium ${browser.version()}, ${cpus().length} cores (${cpus()[0].model})`,
  `file chosen to first picture: ${Date.now() - since} ms`,
];
for (const name of ["hover", "scroll", "zoom"]) {
  const { gaps, work } = await act(page, name, SECONDS);
  const late = gaps.filter((gap) => gap > FRAME_MS * 1.5).length;
  lines.push(`${name}: frames ${told(gaps)}; ${late} of ${gaps.length} late; work of a frame ${told(work)}`);
}
process.stdout.write(`${lines.join("\n")}\n`);
await browser.close();
await new Promise((done) => server.httpServer.close(done));
process.exit(0);
