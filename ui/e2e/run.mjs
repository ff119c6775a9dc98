/**
 * Browser tests of the page, on a server that holds the demo's data.
 *
 *   node e2e/run.mjs http://127.0.0.1:4040 planted.json [only part of a name]
 *
 * `planted.json` is what the demo planted: [{ "trace_id", "service", "span", "function" }, ...]. A test's name is its claim. No test
 * sleeps: each waits for what it needs, and fails after PATIENCE_MS.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gunzipSync } from "node:zlib";

import { chromium } from "playwright-core";

const [address, plantedFile, only = ""] = process.argv.slice(2);
if (!address || !plantedFile) {
  process.stderr.write("usage: node e2e/run.mjs SERVER planted.json [part of a test's name]\n");
  process.exit(2);
}
const planted = JSON.parse(readFileSync(plantedFile, "utf8"));
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE_MS = 30_000;
const traces = await Promise.all(
  planted.map(async (one) => (await fetch(`${address}/api/v1/traces/${one.trace_id}`)).json()),
);
const starts = traces.map((trace) => BigInt(trace.start_unix_nano)).toSorted((a, b) => (a < b ? -1 : 1));
/** What was planted, with some seconds around it. */
const RANGE = `start=${starts[0] - 20_000_000_000n}&end=${starts[starts.length - 1] + 20_000_000_000n}`;
/** Of a test that sends spans itself. */
const NOW = "start=now-5m&end=now";
const SCREENS = ["/", `/spans?${RANGE}`, "/compare", `/profiles?${RANGE}`, "/view", `/trace/${planted[0].trace_id}`];

const tests = [];
const test = (name, run) => tests.push({ name, run });

function check(condition, claim) {
  if (!condition) throw new Error(claim);
}

/** Waits until `find` gives something. */
async function until(claim, find) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await find();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain for: ${claim}`);
    await new Promise((next) => setTimeout(next, 50));
  }
}

const api = async (path) => (await fetch(`${address}/api/v1${path}`)).json();

const isPlanted = (href) => planted.find((one) => href?.includes(one.trace_id));

/** `312 spans, 41 without samples ...` -> 312. */
const spansIn = (figures) => Number(/([\d,]+) spans?/.exec(figures ?? "")?.[1].replaceAll(",", "") ?? 0);

/** What the table of functions lists first. */
async function firstFunction(page) {
  const first = page.locator(".function-table tbody tr .function-name").first();
  await first.waitFor();
  return first.textContent();
}

test("the planted cause is found from the home page with the mouse only", async (page) => {
  const cause = planted[0];
  await page.goto(`${address}/?${RANGE}`);
  await page.getByRole("link", { name: cause.service, exact: true }).first().click();
  await page.waitForURL(/\/spans/);
  const links = page.locator('.span-row a[href*="/trace/"]');
  await links.first().waitFor();
  const hrefs = await links.evaluateAll((all) => all.map((one) => one.getAttribute("href")));
  const at = hrefs.findIndex(isPlanted);
  check(at >= 0, `one of the slowest spans is a planted one: ${hrefs.slice(0, 5)}`);
  await links.nth(at).click();
  const found = isPlanted(hrefs[at]);
  const canvas = page.getByRole("application", { name: /^Waterfall/ });
  await canvas.waitFor();
  const box = await canvas.boundingBox();
  // The pointer goes down the rows until the bubble names the span.
  const tip = page.locator(".waterfall .tip");
  let isThere = false;
  for (let y = 12; y < box.height && !isThere; y += 24) {
    await page.mouse.move(box.x + box.width * 0.7, box.y + y);
    const text = (await tip.count()) > 0 ? await tip.first().textContent() : "";
    if (text?.includes(found.span)) {
      await page.mouse.click(box.x + box.width * 0.7, box.y + y);
      isThere = true;
    }
  }
  check(isThere, `the waterfall has a row ${found.span}`);
  await page.getByRole("button", { name: "Table", exact: true }).click();
  const name = await firstFunction(page);
  check(name?.includes(found.function), `the hottest function is ${found.function}: ${name}`);
});

test("the planted cause is found from the home page with the keyboard only", async (page) => {
  const cause = planted[0];
  await page.goto(`${address}/?${RANGE}`);
  await page.locator("main table").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(`{ name = "${cause.span}" && trace:id = "${cause.trace_id}" }`);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/spans/);
  await page.locator('.span-row a[href*="/trace/"]').first().waitFor();
  await page.keyboard.press("Escape");
  await until("the trace", async () => {
    await page.keyboard.press("Enter");
    return page.url().includes(cause.trace_id);
  });
  await page.locator(".flame-toolbar").waitFor();
  await until("the button Table has the focus", async () => {
    await page.keyboard.press("Tab");
    return page.evaluate(() => document.activeElement?.textContent === "Table");
  });
  await page.keyboard.press("Enter");
  const name = await firstFunction(page);
  check(name?.includes(cause.function), `the hottest function is ${cause.function}: ${name}`);
});

test("dragging in the heatmap selects spans, and flame graph, list and address follow", async (page) => {
  await page.goto(`${address}/spans?${RANGE}`);
  const heatmap = page.getByRole("application", { name: /^Heatmap/ });
  await heatmap.waitFor();
  const figures = page.locator(".selection .figures");
  await figures.waitFor();
  const before = await figures.textContent();
  const box = await heatmap.boundingBox();
  await page.mouse.move(box.x + 70, box.y + 12);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 4, box.y + box.height * 0.6, { steps: 6 });
  await page.mouse.up();
  await page.waitForURL(/sel=/);
  const text = await until("other figures", async () => {
    const now = await figures.textContent();
    return now !== before && now;
  });
  const spans = spansIn(text);
  check(spans > 0, `the selection holds spans: ${text}`);
  const selected = page.url();
  await page.reload();
  await figures.waitFor();
  check(page.url() === selected, "a reload keeps the address");
  // The load goes on meanwhile, so there may be more of them.
  await until("the selection after a reload", async () => spansIn(await figures.textContent()) >= spans);
  await page.goBack();
  await until("no selection after going back", async () => !page.url().includes("sel="));
});

test("every export opens in its own format", async (page) => {
  const cause = planted[0];
  const trace = await api(`/traces/${cause.trace_id}`);
  const span = trace.spans.find((one) => one.name === cause.span);
  await page.goto(`${address}/trace/${cause.trace_id}?span=${span.span_id}`);
  await page.locator(".flame-toolbar").waitFor();
  await page.getByText("Export", { exact: true }).click();
  const body = async (name) => {
    const href = await page.getByRole("link", { name, exact: true }).getAttribute("href");
    return Buffer.from(await (await fetch(new URL(href, address))).arrayBuffer());
  };
  const pprof = gunzipSync(await body("pprof"));
  check(pprof.includes(cause.function), "pprof names the function");
  const collapsed = (await body("collapsed stacks")).toString().trimEnd().split("\n");
  check(
    collapsed.every((line) => / \d+$/.test(line)) && collapsed.some((line) => line.includes(cause.function)),
    "collapsed lines",
  );
  const speedscope = JSON.parse((await body("speedscope")).toString());
  check(speedscope.$schema?.includes("speedscope") && speedscope.profiles.length > 0, "speedscope has profiles");
  const saved = async (name) => {
    const menu = page.locator("details.menu").filter({ hasText: "Export" });
    await menu.evaluate((details) => {
      details.open = true;
    });
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name, exact: true }).click(),
    ]);
    return readFileSync(await download.path());
  };
  const svg = (await saved("SVG")).toString();
  const errors = await page.evaluate(
    (text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll("parsererror").length,
    svg,
  );
  check(errors === 0 && svg.includes("<title>"), "SVG parses");
  const png = await saved("PNG");
  check(png.subarray(0, 8).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])), "PNG");
});

for (const scheme of ["light", "dark"]) {
  test(`no screen has an accessibility fault that axe knows, ${scheme}`, async (page) => {
    await page.emulateMedia({ colorScheme: scheme });
    for (const screen of SCREENS) {
      await page.goto(address + screen);
      await page.locator("main h1, main h2, main table, main canvas").first().waitFor({ state: "attached" });
      await until("nothing is loading", async () => (await page.locator("[aria-busy=true]").count()) === 0);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      const told = violations.map((one) => `${one.id} (${one.impact}): ${one.nodes[0]?.html.slice(0, 160)}`);
      check(told.length === 0, `${screen}: ${told.join("; ")}`);
    }
  });
}

/** Sends spans of one service, as an SDK would. */
async function send(service, spans) {
  const resource = { attributes: [{ key: "service.name", value: { stringValue: service } }] };
  const sent = await fetch(`${address}/v1/traces`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }),
  });
  check(sent.ok, `the spans are taken: ${sent.status}`);
}

test("names from the data are text, whatever they hold", async (page) => {
  const names = [
    "<img src=x onerror=alert(1)>",
    "\u202eevil\u202c",
    "x".repeat(64 * 1024),
    "</script><script>alert(2)</script>",
    "",
  ];
  const now = BigInt(Date.now()) * 1_000_000n;
  const traceId = "5eed".repeat(8);
  const spans = names.map((name, at) => ({
    traceId,
    spanId: (at + 1).toString(16).padStart(16, "0"),
    ...(at > 0 ? { parentSpanId: "1".padStart(16, "0") } : {}),
    name,
    kind: 2,
    // Longer than all others: the list begins with the longest.
    startTimeUnixNano: String(now - 120_000_000_000n),
    endTimeUnixNano: String(now),
    attributes: [{ key: "<b>key</b>", value: { stringValue: name } }],
  }));
  await send(names[0], spans);
  let asked = false;
  page.on("dialog", (dialog) => {
    asked = true;
    void dialog.dismiss();
  });
  for (const path of [`/?${NOW}`, `/spans?${NOW}`, `/trace/${traceId}?span=${spans[0].spanId}&tab=attributes`]) {
    await page.goto(address + path);
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    check((await page.locator('img[src="x"]').count()) === 0, `${path}: no element came out of a name`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(wide <= 0, `${path}: the page does not grow wider than the window (${wide} px)`);
  }
  check(!asked, "no script of a name ran");
});

test("a trace of 20,000 spans scrolls, is searched and told apart", async (page) => {
  const SPANS = 20_000;
  const traceId = "b16".padEnd(32, "0");
  const id = (at) => (at + 1).toString(16).padStart(16, "0");
  const begin = BigInt(Date.now()) * 1_000_000n - 60_000_000_000n;
  const spans = Array.from({ length: SPANS }, (_, at) => ({
    traceId,
    spanId: id(at),
    ...(at > 0 ? { parentSpanId: id(Math.floor((at - 1) / 40)) } : {}),
    name: at === SPANS - 1 ? "the very last" : `operation ${at % 211}`,
    kind: 1,
    startTimeUnixNano: String(begin + BigInt(at) * 1_000_000n),
    endTimeUnixNano: String(begin + BigInt(at + 1) * 1_000_000n),
  }));
  for (let at = 0; at < SPANS; at += 5_000) await send("big", spans.slice(at, at + 5_000));
  await page.goto(`${address}/trace/${traceId}?panel=closed`);
  const canvas = page.getByRole("application", { name: "Waterfall of 20,000 spans" });
  await canvas.waitFor();
  const box = await canvas.boundingBox();
  check(box.height < 900, `the canvas is as high as what is on screen: ${box.height} px`);
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  check(nodes < 1_000, `spans are no elements: ${nodes} of them`);
  await canvas.focus();
  await page.keyboard.press("End");
  await page.waitForURL(/span=/);
  const scroll = page.locator(".waterfall-scroll");
  await until("the last row is in view", () =>
    scroll.evaluate(
      (element) => element.scrollTop > 0 && element.scrollTop + element.clientHeight >= element.scrollHeight - 1,
    ),
  );
  await page.getByLabel("Levels").selectOption("1");
  await until("one row is left", () => scroll.evaluate((element) => element.scrollHeight <= element.clientHeight));
  await page.getByRole("searchbox", { name: /^Find spans/ }).fill("the very last");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`span=${id(SPANS - 1)}`));
  await until("its parents opened", () => scroll.evaluate((element) => element.scrollHeight > element.clientHeight));
});

test("a span without samples says why where the pointer rests", async (page) => {
  const traceId = "cafe".repeat(8);
  const begin = BigInt(Date.now() - 3_600_000) * 1_000_000n;
  const span = { traceId, spanId: "1".padStart(16, "0"), name: "not profiled", kind: 2 };
  await send("not-profiled", [
    { ...span, startTimeUnixNano: String(begin), endTimeUnixNano: String(begin + 1_000_000_000n) },
  ]);
  await page.goto(`${address}/trace/${traceId}?panel=closed`);
  const canvas = page.getByRole("application", { name: /^Waterfall/ });
  await canvas.waitFor();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 12);
  await page.locator(".waterfall .tip").getByText("no profile of not-profiled").waitFor();
});

test("the address holds the state of every screen", async (page) => {
  const trace = await api(`/traces/${planted[0].trace_id}`);
  const [span] = trace.spans;
  const query = encodeURIComponent(`{ resource.service.name = "${planted[0].service}" }`);
  const states = [
    `/?${RANGE}`,
    `/spans?${RANGE}&q=${query}`,
    `/trace/${trace.trace_id}?span=${span.span_id}&scope=subtree&tab=timeline&find=cart`,
    `/profiles?${RANGE}`,
    `/compare?${RANGE}`,
  ];
  // What the controls say, whatever it is: the load goes on, so figures change.
  const controls = async () => {
    await page.locator("main h1, main h2, main table, main canvas").first().waitFor({ state: "attached" });
    await until("nothing is loading", async () => (await page.locator("[aria-busy=true]").count()) === 0);
    return page.locator("main").evaluate((main) =>
      [...main.querySelectorAll("input, select, textarea, [aria-pressed], [aria-selected=true]")]
        .filter((one) => !one.closest("table"))
        .map(
          (one) =>
            `${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent.slice(0, 40)} ${one.value} ${one.ariaPressed}`,
        )
        .join("\n"),
    );
  };
  const seen = [];
  for (const state of states) {
    await page.goto(address + state);
    const before = await controls();
    const url = page.url();
    await page.reload();
    check((await controls()) === before && page.url() === url, `${state}: the same after a reload`);
    seen.push({ state, before, url });
  }
  for (const { state, before, url } of seen.slice(0, -1).toReversed()) {
    await page.goBack();
    await until(`${state} after going back`, () => page.url() === url);
    const now = await controls();
    check(now === before, `${state}: the same after going back:\n${now}\n--\n${before}`);
  }
});

test("the link of what is on screen is copied", async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(`${address}/spans?${RANGE}`);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  check(copied === page.url(), `${copied} is the address`);
});

test("a trace that is not stored says so", async (page) => {
  await page.goto(`${address}/trace/${"0".repeat(31)}1`);
  await page.getByText("This trace is not stored").waitFor();
});

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
let failed = 0;
for (const { name, run } of tests.filter((one) => one.name.includes(only))) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints = [];
  // A refused question is told by its own test; scripts and policy must never complain.
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of (404|400)/.test(message.text())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  const begin = Date.now();
  try {
    await run(page);
    check(complaints.length === 0, `the console complains: ${complaints.join(" | ").slice(0, 800)}`);
    process.stdout.write(`ok      ${name} (${Date.now() - begin} ms)\n`);
  } catch (error) {
    failed += 1;
    process.stdout.write(
      `FAILED  ${name}\n        ${String(error.message).split("\n").slice(0, 4).join("\n        ")}\n        at ${page.url().slice(0, 300)}\n`,
    );
    if (process.env.E2E_PICTURES)
      await page.screenshot({ path: `${process.env.E2E_PICTURES}/${failed}.png` }).catch(() => undefined);
  }
  await context.close();
}
await browser.close();
process.exit(failed > 0 ? 1 : 0);
