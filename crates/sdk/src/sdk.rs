//! Starting, watching and stopping.

mod builder;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use spanflame_context::process::Published;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

pub use builder::Builder;

use crate::export::Outgoing;
use crate::sampler::{self, Command};
use crate::stats::{Counters, Stats};

/// Whether an [`Sdk`] lives: the signal handler and its tables are one per process.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Targets of spans that the plumbing of HTTP and gRPC makes: they are about connections, not about requests,
/// and sending telemetry would make more of it.
const PLUMBING: [&str; 5] = ["h2", "hyper", "tonic", "tower", "opentelemetry"];

/// The running SDK. Dropping it stops sampling, sends what is left and returns when that is done, at the
/// latest after some seconds.
#[must_use = "dropping the Sdk stops it at once"]
pub struct Sdk {
    provider: SdkTracerProvider,
    sampler: Option<JoinHandle<()>>,
    commands: SyncSender<Command>,
    exporter: Option<JoinHandle<()>>,
    queue: SyncSender<Outgoing>,
    counters: Arc<Counters>,
    publishes: bool,
    _process_context: Option<Published>,
}

impl Sdk {
    /// Begins the configuration for the service of this name.
    pub fn builder(service: impl Into<String>) -> Builder {
        Builder::new(service.into())
    }

    /// A `tracing` layer that makes OpenTelemetry spans, so that every enter and exit reaches the thread context
    /// record. Applications that have their own `tracing-opentelemetry` layer do not need it.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.provider.tracer("spanflame-sdk");
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_filter(filter_fn(|metadata| {
                let root = metadata.target().split("::").next().unwrap_or_default();
                !PLUMBING.contains(&root)
            }))
    }

    /// The provider whose spans the SDK exports if it was started with [`Builder::with_traces`].
    pub fn tracer_provider(&self) -> &SdkTracerProvider {
        &self.provider
    }

    /// A function that makes the calling thread sampled at once instead of within 100 ms: for
    /// `on_thread_start` of a runtime whose threads do not live long. Does nothing once the SDK stopped.
    pub fn thread_hook(&self) -> impl Fn() + Clone + Send + Sync + use<> {
        let commands = self.commands.clone();
        move || sampler::await_scan(&commands)
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.counters.stats()
    }

    /// Whether active spans reach the thread context record. They do not if something else installed
    /// OpenTelemetry's context observer first; samples then carry no links.
    pub fn publishes_spans(&self) -> bool {
        self.publishes
    }

    /// Whether profilers outside the process can find that record: see `docs/sdk.md` for the linker flag.
    pub fn is_visible_outside(&self) -> bool {
        spanflame_context::thread::is_exported()
    }

    /// Stops sampling, sends what is left, and returns the final counts.
    pub fn shutdown(mut self) -> Stats {
        self.stop();
        self.counters.stats()
    }

    fn stop(&mut self) {
        // Spans first, samples next, so that both are in the queue before it is told to end.
        let _ = self.provider.shutdown();
        if let Some(sampler) = self.sampler.take() {
            let _ = self.commands.send(Command::Stop);
            let _ = sampler.join();
        }
        if let Some(exporter) = self.exporter.take() {
            let _ = self.queue.send(Outgoing::Stop);
            let _ = exporter.join();
            RUNNING.store(false, Ordering::Release);
        }
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        self.stop();
    }
}
