//! What can be set before the start.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use spanflame_context::ProcessContext;
use spanflame_context::process::Published;
use spanflame_model::{Attributes, Batch, Resource, Scope, Value};

use super::{RUNNING, Sdk};
use crate::export::{Callback, Client, Exporter, Outgoing, QUEUE_MAX, SpanQueue, Target};
use crate::profile::ProfileBuilder;
use crate::resolve::Resolver;
use crate::sampler::Sampler;
use crate::stats::Counters;
use crate::{Error, active, resource};

const RATE_HZ_DEFAULT: u32 = 19;
/// Timers on CPU clocks expire on the scheduler's tick; no kernel is built with more than 1000 of them a second.
const RATE_HZ_MAX: u32 = 1000;
const INTERVAL_DEFAULT: Duration = Duration::from_secs(2);
const INTERVAL_MAX: Duration = Duration::from_secs(60);
const ENDPOINT_DEFAULT: &str = "http://127.0.0.1:4317";
/// Threads that may wait for their timer at the same time; others get theirs with the next scan.
const COMMANDS_MAX: usize = 64;
/// How long finished spans wait for company.
const SPAN_DELAY: Duration = Duration::from_millis(500);

/// The configuration of an [`Sdk`].
#[must_use = "nothing happens before `start`"]
pub struct Builder {
    service: String,
    endpoint: Option<String>,
    callback: Option<Callback>,
    rate_hz: u32,
    interval: Duration,
    attributes: Attributes,
    traces: bool,
}

impl Builder {
    pub(super) fn new(service: String) -> Builder {
        Builder {
            service,
            endpoint: None,
            callback: None,
            rate_hz: RATE_HZ_DEFAULT,
            interval: INTERVAL_DEFAULT,
            attributes: Attributes::new(),
            traces: false,
        }
    }

    /// Where to send: OTLP over gRPC, `http://host:port`. Default: `OTEL_EXPORTER_OTLP_ENDPOINT`, else
    /// `http://127.0.0.1:4317`.
    pub fn endpoint(mut self, url: impl Into<String>) -> Builder {
        self.endpoint = Some(url.into());
        self
    }

    /// Hands batches to a function instead of a server. It is called on the exporting thread, one batch at a
    /// time; while it blocks, batches queue up and are then dropped.
    pub fn exporter(mut self, callback: Box<dyn Fn(Batch) + Send + Sync>) -> Builder {
        self.callback = Some(callback);
        self
    }

    /// Samples per second of CPU time and thread, 1 to 1000, default 19. 100 shows spans of 10 ms and costs five
    /// times as much; more than the kernel's CONFIG_HZ (often 250) is not reached.
    pub fn rate_hz(mut self, rate_hz: u32) -> Builder {
        self.rate_hz = rate_hz;
        self
    }

    /// How often profiles are sent, up to a minute, default 2 s. Longer sends less and shows later.
    pub fn interval(mut self, interval: Duration) -> Builder {
        self.interval = interval;
        self
    }

    /// An attribute of the resource, on spans and profiles.
    pub fn attribute(mut self, key: impl Into<String>, value: impl Into<Value>) -> Builder {
        self.attributes.insert(key, value);
        self
    }

    /// Exports spans as well, makes the provider and W3C trace context propagation OpenTelemetry's global ones.
    pub fn with_traces(mut self) -> Builder {
        self.traces = true;
        self
    }

    /// Starts. All threads that exist are sampled when this returns, later ones within 100 ms of their start.
    pub fn start(mut self) -> Result<Sdk, Error> {
        self.check()?;
        let target = self.target()?;
        if RUNNING.swap(true, Ordering::AcqRel) {
            return Err(Error::AlreadyRunning);
        }
        let started = self.start_alone(target);
        if started.is_err() {
            RUNNING.store(false, Ordering::Release);
        }
        started
    }

    fn check(&self) -> Result<(), Error> {
        if !(1..=RATE_HZ_MAX).contains(&self.rate_hz) {
            return Err(Error::Setting {
                setting: "rate_hz",
                value: self.rate_hz.to_string(),
                expected: "1 to 1000",
            });
        }
        if self.interval.is_zero() || self.interval > INTERVAL_MAX {
            return Err(Error::Setting {
                setting: "interval",
                value: format!("{:?}", self.interval),
                expected: "more than nothing and at most 60s",
            });
        }
        Ok(())
    }

    fn start_alone(self, target: Target) -> Result<Sdk, Error> {
        let attributes = resource::describe(&self.service, &self.attributes);
        let counters = Arc::new(Counters::default());
        let (queue, queued) = sync_channel(QUEUE_MAX);
        let period_ns = 1_000_000_000 / u64::from(self.rate_hz);
        let publishes = active::install();
        let process_context = publish(&attributes);
        let sampler = Sampler::start(period_ns, self.interval, counters.clone())?;
        let profiles = ProfileBuilder {
            resource: Arc::new(without_pid(attributes.clone())),
            scope: Arc::new(scope()),
            period_ns,
            resolver: Resolver::default(),
        };
        let exporter_counters = counters.clone();
        let exporter = spawn("spanflame-send", move || {
            explain(publishes);
            Exporter::new(target, profiles, exporter_counters).run(&queued);
        })?;
        let (commands, commanded) = sync_channel(COMMANDS_MAX);
        let windows = queue.clone();
        let sampler = spawn("spanflame-scan", move || sampler.run(&commanded, &windows))?;
        Ok(Sdk {
            provider: self.provider(&attributes, &queue, &counters),
            sampler: Some(sampler),
            commands,
            exporter: Some(exporter),
            queue,
            counters,
            publishes,
            _process_context: process_context,
        })
    }

    fn target(&mut self) -> Result<Target, Error> {
        if let Some(callback) = self.callback.take() {
            return Ok(Target::Callback(callback));
        }
        let endpoint = self.endpoint.take().or_else(|| std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").ok());
        let client = Client::new(endpoint.as_deref().unwrap_or(ENDPOINT_DEFAULT))?;
        Ok(Target::Server(Box::new(client)))
    }

    fn provider(&self, attributes: &Attributes, queue: &SyncSender<Outgoing>, counters: &Arc<Counters>) -> SdkTracerProvider {
        let builder = SdkTracerProvider::builder().with_resource(resource::to_opentelemetry(attributes));
        if !self.traces {
            return builder.build();
        }
        let config = BatchConfigBuilder::default().with_scheduled_delay(SPAN_DELAY).build();
        let spans = SpanQueue::new(queue.clone(), counters.clone());
        let processor = BatchSpanProcessor::builder(spans).with_batch_config(config).build();
        let provider = builder.with_span_processor(processor).build();
        opentelemetry::global::set_tracer_provider(provider.clone());
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        provider
    }
}

/// Readers outside are a courtesy: without a mapping the SDK works all the same.
fn publish(attributes: &Attributes) -> Option<Published> {
    Published::new(&ProcessContext::new(attributes.clone()))
        .inspect_err(|error| tracing::warn!(%error, "process context is not published"))
        .ok()
}

fn without_pid(mut attributes: Attributes) -> Resource {
    attributes.remove("process.pid");
    Resource::new(attributes)
}

fn scope() -> Scope {
    Scope {
        name: "spanflame-sdk".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        attributes: Attributes::new(),
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    spawned.map_err(|source| Error::System {
        call: "starting a thread",
        source,
    })
}

/// Says at start what will be missing.
fn explain(publishes: bool) {
    if !publishes {
        tracing::warn!("another OpenTelemetry context observer was installed first, samples will name no span");
    }
    if !spanflame_context::thread::is_exported() {
        tracing::warn!(
            symbol = spanflame_context::thread::SLOT_SYMBOL,
            "binary does not export the thread context, profilers outside the process cannot see its spans; \
             print cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1 in its build script"
        );
    }
}
