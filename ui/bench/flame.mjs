// Frame times of the flame graph with 100,000 nodes, in Debian's chromium: `npm run build && node bench/flame.mjs`.
//
// The page is the built one; the server's answers are made here, so nothing but the page is measured. Each scenario acts once
// a frame for some seconds and reports how far apart the frames came, and how long the work of each took.
import { act, open, painted } from "./frames.mjs";

const NODES = 100_000;
const FUNCTIONS = 4_000;
const SECONDS = 4;

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

const made = answer();
const { page, address, machine, close } = await open((path) => (path.startsWith("/view") ? made : undefined));
await page.goto(`${address}/view`);
const since = Date.now();
await page.setInputFiles("input[type=file]", {
  name: "big.pprof",
  mimeType: "application/octet-stream",
  buffer: Buffer.from("x"),
});
await page.waitForSelector(".flame-scroll canvas");
await painted(page);
const lines = [
  `${NODES} nodes, ${FUNCTIONS} functions, ${machine}`,
  `file chosen to first picture: ${Date.now() - since} ms`,
];
const steps = await page.evaluateHandle(() => {
  const canvas = document.querySelector(".flame-scroll canvas");
  const scroll = document.querySelector(".flame-scroll");
  const event = (type, part, row) => {
    const { left, top, width } = canvas.getBoundingClientRect();
    const init = { bubbles: true, clientX: left + part * width, clientY: top + row * 18 + 9, pointerType: "mouse" };
    canvas.dispatchEvent(type === "click" ? new MouseEvent(type, init) : new PointerEvent(type, init));
  };
  return {
    hover: (count) => event("pointermove", (count * 0.0137) % 1, count % 28),
    scroll: (count) =>
      (scroll.scrollTop = (Math.sin(count / 20) + 1) * 0.5 * (scroll.scrollHeight - scroll.clientHeight)),
    zoom: (count) => count % 6 === 0 && event("click", 0.5, count % 12 === 0 ? 0 : 6 + (count % 11)),
  };
});
for (const name of ["hover", "scroll", "zoom"]) lines.push(await act(page, steps, name, SECONDS));
process.stdout.write(`${lines.join("\n")}\n`);
await close();
process.exit(0);
