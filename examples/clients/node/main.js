// A service of slow and fast requests, profiled by @pyroscope/nodejs. It has no integration with OpenTelemetry, so the
// program links the busy part of a request by hand, with wrapWithLabels.
//
// usage: node main.js SERVER TRUTH SECONDS
const fs = require('fs');
const Pyroscope = require('@pyroscope/nodejs').default || require('@pyroscope/nodejs');
const { SpanKind, context, trace } = require('@opentelemetry/api');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto');
const { resourceFromAttributes } = require('@opentelemetry/resources');
const { BatchSpanProcessor, NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');

const SERVICE = 'conformance-node';
const [server, truth, seconds] = process.argv.slice(2);

function planted_hot_path(ms) {
  let s = 1;
  for (const end = performance.now() + ms; performance.now() < end; ) for (let i = 0; i < 20000; i++) s = (Math.imul(s, 1664525) + i) | 0;
  return s;
}

function ordinary_work(ms) {
  let s = 1;
  for (const end = performance.now() + ms; performance.now() < end; ) for (let i = 0; i < 20000; i++) s ^= (s << 3) + i;
  return s;
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const exporter = new OTLPTraceExporter({ url: `${server}/v1/traces`, compression: 'gzip' });
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': SERVICE }),
  spanProcessors: [new BatchSpanProcessor(exporter, { scheduledDelayMillis: 1000 })],
});
provider.register();
const tracer = trace.getTracer(SERVICE);
Pyroscope.init({ serverAddress: server, appName: SERVICE, flushIntervalMs: 3000, wall: { samplingDurationMs: 3000, collectCpuTime: true } });
Pyroscope.start();
const done = [];

async function handle(slow) {
  const root = tracer.startSpan(slow ? 'GET /slow' : 'GET /fast', { kind: SpanKind.SERVER });
  const ids = root.spanContext();
  await context.with(trace.setSpan(context.active(), root), async () => {
    await sleep(10);
    const child = tracer.startSpan('child.compute');
    Pyroscope.wrapWithLabels({ span_id: ids.spanId, trace_id: ids.traceId }, () => {
      slow ? planted_hot_path(100) : ordinary_work(12);
    });
    child.end();
    done.push({ trace: ids.traceId, root: ids.spanId, child: child.spanContext().spanId, slow });
    await sleep(20);
  });
  root.end();
}

(async () => {
  const stop = Date.now() + 1000 * Number(seconds);
  const work = async (worker) => {
    for (let i = worker; Date.now() < stop; i++) await handle(i % 5 === 0);
  };
  await Promise.all([0, 1, 2, 3].map(work));
  await Pyroscope.stop();
  await provider.shutdown();
  fs.writeFileSync(truth, JSON.stringify(done));
})();
