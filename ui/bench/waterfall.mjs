// Frame times of the waterfall with 20,000 spans, in Debian's chromium: `npm run build && node bench/waterfall.mjs`.
//
// The page is the built one; the server's answers are made here, so nothing but the page is measured.
import { act, open, painted } from "./frames.mjs";

const SPANS = 20_000;
const SECONDS = 4;
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const START = 1_790_000_000_000_000_000n;
const DURATION = 20_000_000_000;

const id = (at) => (at + 1).toString(16).padStart(16, "0");

/** Twelve services, up to 40 levels, each span within its parent; every fifth has samples. */
function trace() {
  let seed = 1;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const made = [{ begin: 0, length: DURATION, depth: 0 }];
  const spans = [];
  for (let at = 0; at < SPANS; at += 1) {
    let parent;
    if (at > 0) {
      parent = Math.max(0, at - 1 - Math.floor(random() ** 2 * Math.min(at, 500)));
      if (made[parent].depth >= 40) parent = 0;
      const above = made[parent];
      const length = above.length * (0.05 + 0.8 * random());
      made.push({ begin: above.begin + random() * (above.length - length), length, depth: above.depth + 1 });
    }
    spans.push({
      span_id: id(at),
      ...(parent === undefined ? {} : { parent_span_id: id(parent) }),
      local_root_span_id: id(at),
      service: `service-${at % 12}`,
      name: `operation ${at % 211}`,
      kind: "server",
      status: at % 97 === 0 ? "error" : "ok",
      start_unix_nano: String(START + BigInt(Math.floor(made[at].begin))),
      duration_ns: Math.floor(made[at].length),
      attributes: { "http.route": `/route/${at % 89}`, "item.number": at },
      resource: { "service.name": `service-${at % 12}` },
      scope: {},
      events: [],
      links: [],
      profiles:
        at % 5 === 0 ? { "process_cpu:cpu:nanoseconds:cpu:nanoseconds": { samples: 1 + (at % 30), value: 5e7 } } : {},
    });
  }
  return {
    trace_id: TRACE,
    start_unix_nano: String(START),
    end_unix_nano: String(START + BigInt(DURATION)),
    services: Array.from({ length: 12 }, (_, at) => `service-${at}`),
    complete: true,
    spans,
    took_ms: 0,
  };
}

const made = trace();
const { page, address, machine, close } = await open((path) => (path === `/traces/${TRACE}` ? made : undefined));
const since = Date.now();
await page.goto(`${address}/trace/${TRACE}?panel=closed`);
await page.waitForSelector(".waterfall-scroll canvas");
await painted(page);
const lines = [`${SPANS} spans, ${machine}`, `address to first picture: ${Date.now() - since} ms`];
const steps = await page.evaluateHandle(() => {
  const canvas = document.querySelector(".waterfall-scroll canvas");
  const scroll = document.querySelector(".waterfall-scroll");
  return {
    scroll: (count) =>
      (scroll.scrollTop = (Math.sin(count / 20) + 1) * 0.5 * (scroll.scrollHeight - scroll.clientHeight)),
    hover: (count) => {
      const { left, top, width } = canvas.getBoundingClientRect();
      const [clientX, clientY] = [left + width * (0.4 + ((count * 0.0137) % 0.6)), top + (count % 28) * 24 + 12];
      canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY, pointerType: "mouse" }));
    },
    select: () => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true })),
  };
});
for (const name of ["scroll", "hover", "select"]) lines.push(await act(page, steps, name, SECONDS));
process.stdout.write(`${lines.join("\n")}\n`);
await close();
process.exit(0);
