/**
 * How the first data is sent, for each language: settings that can be copied as they are.
 *
 * Everything goes to the address that the page came from: it takes OTLP by gRPC and by HTTP and what Pyroscope's clients
 * send, so no second port has to be known. Each recipe links samples to spans where the language's clients can.
 */

/** One thing to copy. */
export interface Step {
  /** What it does, one line. */
  title: string;
  code: string;
}

export interface Recipe {
  language: string;
  /** How samples of this language find their span, and what to know about it. */
  note: string;
  steps: readonly Step[];
}

/** What every OpenTelemetry SDK reads. */
function environment(origin: string): Step {
  return {
    title: "Traces: any OpenTelemetry SDK reads these",
    code: [
      "export OTEL_SERVICE_NAME=my-service",
      `export OTEL_EXPORTER_OTLP_ENDPOINT=${origin}`,
      "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
      "export OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none",
    ].join("\n"),
  };
}

/** All recipes for a server at `origin` (`http://127.0.0.1:4040`). */
export function recipes(origin: string): readonly Recipe[] {
  return [
    go(origin),
    java(origin),
    python(origin),
    node(origin),
    dotnet(origin),
    ruby(origin),
    rust(origin),
    cpp(origin),
    collector(origin),
  ];
}

function go(origin: string): Recipe {
  return {
    language: "Go",
    note: "CPU samples carry the id of the span that ran. ScopeAllSpans links every span, not only the first one of a request.",
    steps: [
      environment(origin),
      { title: "Profiles", code: "go get github.com/grafana/pyroscope-go github.com/grafana/otel-profiling-go" },
      {
        title: "In main, where the tracer provider is set",
        code: [
          "pyroscope.Start(pyroscope.Config{",
          '\tApplicationName: "my-service",',
          `\tServerAddress:   "${origin}",`,
          "})",
          "// otelpyroscope is github.com/grafana/otel-profiling-go",
          "otel.SetTracerProvider(otelpyroscope.NewTracerProvider(tracerProvider,",
          "\totelpyroscope.WithSpanIDLabelScope(otelpyroscope.ScopeAllSpans)))",
        ].join("\n"),
      },
    ],
  };
}

function java(origin: string): Recipe {
  return {
    language: "Java",
    note: "Three jars: OpenTelemetry's agent, Pyroscope's agent (io.pyroscope:agent) and the extension that links them (io.pyroscope:otel). Thread pools may give a sample to the wrong span.",
    steps: [
      environment(origin),
      {
        title: "Profiles",
        code: [
          "export PYROSCOPE_APPLICATION_NAME=my-service",
          `export PYROSCOPE_SERVER_ADDRESS=${origin}`,
          "export PYROSCOPE_FORMAT=jfr PYROSCOPE_PROFILER_EVENT=itimer",
        ].join("\n"),
      },
      {
        title: "Start",
        code: [
          "java -javaagent:pyroscope.jar -javaagent:opentelemetry-javaagent.jar \\",
          "  -Dotel.javaagent.extensions=pyroscope-otel.jar \\",
          "  -Dotel.pyroscope.start.profiling=false \\",
          "  -jar my-service.jar",
        ].join("\n"),
      },
    ],
  };
}

function python(origin: string): Recipe {
  return {
    language: "Python",
    note: "Threads are linked exactly. With asyncio the client names several spans in one sample; such samples count as ambiguous and are never given to one of them.",
    steps: [
      {
        title: "Packages",
        code: "pip install pyroscope-io pyroscope-otel opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
      },
      {
        title: "At the start of the program",
        code: [
          "import pyroscope",
          "from pyroscope.otel import PyroscopeSpanProcessor",
          "from opentelemetry import trace",
          "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter",
          "from opentelemetry.sdk.resources import Resource",
          "from opentelemetry.sdk.trace import TracerProvider",
          "from opentelemetry.sdk.trace.export import BatchSpanProcessor",
          "",
          `pyroscope.configure(application_name="my-service", server_address="${origin}")`,
          'provider = TracerProvider(resource=Resource.create({"service.name": "my-service"}))',
          "provider.add_span_processor(PyroscopeSpanProcessor())",
          `provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint="${origin}/v1/traces")))`,
          "trace.set_tracer_provider(provider)",
        ].join("\n"),
      },
    ],
  };
}

function node(origin: string): Recipe {
  return {
    language: "Node.js",
    note: "The client has no link of its own: wrap what is expensive and synchronous, as below. Without it samples count for the service, and for a span by time (scope window).",
    steps: [
      environment(origin),
      {
        title: "Packages",
        code: "npm install @pyroscope/nodejs @opentelemetry/api @opentelemetry/auto-instrumentations-node",
      },
      {
        title: "At the start of the program",
        code: [
          "const Pyroscope = require('@pyroscope/nodejs');",
          `Pyroscope.init({ serverAddress: '${origin}', appName: 'my-service', wall: { collectCpuTime: true } });`,
          "Pyroscope.start();",
        ].join("\n"),
      },
      {
        title: "Around expensive work",
        code: [
          "const { spanId, traceId } = require('@opentelemetry/api').trace.getActiveSpan().spanContext();",
          "Pyroscope.wrapWithLabels({ span_id: spanId, trace_id: traceId }, () => work());",
        ].join("\n"),
      },
      { title: "Start", code: "node --require @opentelemetry/auto-instrumentations-node/register app.js" },
    ],
  };
}

function dotnet(origin: string): Recipe {
  return {
    language: ".NET",
    note: "Linux only. The two native libraries are in the releases of grafana/pyroscope-dotnet. The link is lost at await: samples after it count for the service.",
    steps: [
      environment(origin),
      {
        title: "Profiles",
        code: [
          "export PYROSCOPE_APPLICATION_NAME=my-service",
          `export PYROSCOPE_SERVER_ADDRESS=${origin}`,
          "export PYROSCOPE_PROFILING_ENABLED=1",
          "export CORECLR_ENABLE_PROFILING=1",
          "export CORECLR_PROFILER={BD1A650D-AC5D-4896-B64F-D6FA25D6B26A}",
          "export CORECLR_PROFILER_PATH=$PWD/Pyroscope.Profiler.Native.so",
          "export LD_PRELOAD=$PWD/Pyroscope.Linux.ApiWrapper.x64.so",
        ].join("\n"),
      },
      { title: "Link", code: "dotnet add package Pyroscope.OpenTelemetry" },
      {
        title: "Where tracing is configured",
        code: [
          "builder.Services.AddOpenTelemetry().WithTracing(tracing => tracing",
          "    .AddAspNetCoreInstrumentation()",
          "    .AddProcessor(new Pyroscope.OpenTelemetry.PyroscopeSpanProcessor())",
          "    .AddOtlpExporter());",
        ].join("\n"),
      },
    ],
  };
}

function ruby(origin: string): Recipe {
  return {
    language: "Ruby",
    note: "The root span of a process is linked; its samples hold the time of its children too, and the evidence says so.",
    steps: [
      environment(origin),
      { title: "Packages", code: "bundle add pyroscope pyroscope-otel opentelemetry-sdk opentelemetry-exporter-otlp" },
      {
        title: "In an initializer",
        code: [
          "Pyroscope.configure do |config|",
          '  config.application_name = "my-service"',
          `  config.server_address = "${origin}"`,
          "end",
          "OpenTelemetry::SDK.configure do |config|",
          `  config.add_span_processor Pyroscope::Otel::SpanProcessor.new("my-service.cpu", "${origin}")`,
          "end",
        ].join("\n"),
      },
    ],
  };
}

function rust(origin: string): Recipe {
  return {
    language: "Rust",
    note: "Spanflame's own SDK, for Linux and tokio: every sample carries the span that was polled. It sends traces and profiles.",
    steps: [
      {
        title: "In Cargo.toml: line tables, for functions with files and lines",
        code: '[profile.release]\ndebug = "line-tables-only"',
      },
      {
        title: "In main (crate spanflame-sdk)",
        code: [
          'let spanflame = spanflame_sdk::Sdk::builder("my-service")',
          `    .endpoint("${origin}")`,
          "    .with_traces()",
          "    .start()?;",
          "tracing_subscriber::registry().with(spanflame.layer()).init();",
          "// keep `spanflame` until the end of main",
        ].join("\n"),
      },
    ],
  };
}

function cpp(origin: string): Recipe {
  return {
    language: "C++",
    note: "Traces by opentelemetry-cpp; profiles from outside the process by perf, without links: they count for the service, and for a span by time (scope window).",
    steps: [
      environment(origin),
      {
        title: "Profiles: 10 s of a process, with frame pointers in the binary (-fno-omit-frame-pointer)",
        code: [
          "perf record -F 99 -g -p $(pidof my-service) -- sleep 10",
          `perf script | curl --data-binary @- '${origin}/api/v1/ingest?service=my-service&format=perf_script'`,
        ].join("\n"),
      },
    ],
  };
}

function collector(origin: string): Recipe {
  return {
    language: "Collector",
    note: "The batch processor does not take profiles; the exporter batches by itself. Samples of the OpenTelemetry eBPF profiler arrive the same way.",
    steps: [
      {
        title: "config.yaml",
        code: [
          "receivers:",
          "  otlp: { protocols: { grpc: {}, http: {} } }",
          "exporters:",
          "  otlp_http:",
          `    endpoint: ${origin}`,
          "service:",
          "  pipelines:",
          "    traces: { receivers: [otlp], exporters: [otlp_http] }",
          "    profiles: { receivers: [otlp], exporters: [otlp_http] }",
        ].join("\n"),
      },
      { title: "Start", code: "otelcol --config config.yaml --feature-gates=+service.profilesSupport" },
    ],
  };
}
