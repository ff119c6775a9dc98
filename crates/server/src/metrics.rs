//! What `/metrics` says, in the OpenMetrics text format.
//!
//! Names begin with `spanflame_`; labels come from small closed sets, never from what clients send.

mod store;

use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use spanflame_store::Store;

use self::store::StoreCollector;
use crate::ingest::Taken;

/// The content type of [`Metrics::encode`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Signal {
    Traces,
    Profiles,
    Metrics,
    Logs,
}

impl Signal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Profiles => "profiles",
            Signal::Metrics => "metrics",
            Signal::Logs => "logs",
        }
    }
}

type One = [(&'static str, &'static str); 1];
type Two = [(&'static str, &'static str); 2];

/// The counters of one server.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<Two, Counter>,
    received_bytes: Family<Two, Counter>,
    stored: Family<One, Counter>,
    duplicates: Family<One, Counter>,
    dropped: Family<Two, Counter>,
    unsupported: Family<One, Counter>,
    ingest_seconds: Family<One, Histogram>,
    own_dropped: Family<One, Counter>,
    query_seconds: Family<One, Histogram>,
    query_failures: Family<Two, Counter>,
    store: StoreCollector,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// From 0.25 ms to 65 s, each bound four times the one before.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 4.0, 10))
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let metrics = Metrics {
            registry: Mutex::new(Registry::with_prefix("spanflame")),
            requests: Family::default(),
            received_bytes: Family::default(),
            stored: Family::default(),
            duplicates: Family::default(),
            dropped: Family::default(),
            unsupported: Family::default(),
            ingest_seconds: Family::new_with_constructor(seconds),
            own_dropped: Family::default(),
            query_seconds: Family::new_with_constructor(seconds),
            query_failures: Family::default(),
            store: StoreCollector::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock();
        let registry = &mut *registry;
        registry.register_collector(Box::new(self.store.clone()));
        registry.register(
            "ingest_requests",
            "Requests that write, by signal and outcome",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "ingest_received",
            "Bytes of request bodies, by signal and form (wire, decompressed)",
            Unit::Bytes,
            self.received_bytes.clone(),
        );
        registry.register("ingest_stored", "Spans, profiles and samples stored", self.stored.clone());
        registry.register(
            "ingest_duplicates",
            "Spans and profiles that were stored before and are kept once",
            self.duplicates.clone(),
        );
        registry.register(
            "ingest_dropped",
            "What could not be kept, by what it was and why",
            self.dropped.clone(),
        );
        registry.register(
            "ingest_unsupported",
            "Data points and log records refused, because only traces and profiles are kept",
            self.unsupported.clone(),
        );
        registry.register_with_unit(
            "ingest_duration",
            "Time from a read body to the acknowledgement, by signal",
            Unit::Seconds,
            self.ingest_seconds.clone(),
        );
        registry.register(
            "own_telemetry_dropped",
            "Spans and profiles of the server itself that could not be kept",
            self.own_dropped.clone(),
        );
        registry.register_with_unit(
            "query_duration",
            "Time to answer, by question",
            Unit::Seconds,
            self.query_seconds.clone(),
        );
        registry.register(
            "query_failures",
            "Questions without an answer, by question and code",
            self.query_failures.clone(),
        );
    }

    /// From here on a scrape also says what this store counts.
    pub(crate) fn open(&self, store: Store) {
        self.store.open(store);
    }

    /// Everything as text.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        match text::encode(&mut text, &self.registry.lock()) {
            Ok(()) => text,
            Err(error) => format!("# metrics could not be written: {error}\n# EOF\n"),
        }
    }

    /// A body was read and decompressed.
    pub(crate) fn received(&self, signal: Signal, wire_bytes: usize, bytes: usize) {
        let count = |form, bytes: usize| {
            let labels = [("signal", signal.as_str()), ("form", form)];
            self.received_bytes.get_or_create(&labels).inc_by(bytes as u64);
        };
        count("wire", wire_bytes);
        count("decompressed", bytes);
    }

    /// A request was acknowledged.
    pub(crate) fn taken(&self, signal: Signal, taken: &Taken, elapsed: Duration) {
        self.outcome(signal, if taken.rejects.is_empty() { "accepted" } else { "partial" });
        self.ingest_seconds
            .get_or_create(&[("signal", signal.as_str())])
            .observe(elapsed.as_secs_f64());
        let appended = &taken.appended;
        for (kind, count) in [
            ("spans", appended.spans),
            ("profiles", appended.profiles),
            ("samples", appended.samples),
        ] {
            self.stored.get_or_create(&[("kind", kind)]).inc_by(count);
        }
        for (kind, count) in [("spans", appended.duplicate_spans), ("profiles", appended.duplicate_profiles)] {
            self.duplicates.get_or_create(&[("kind", kind)]).inc_by(count);
        }
        for (subject, reason, count) in taken.rejects.iter() {
            self.dropped
                .get_or_create(&[("kind", subject.as_str()), ("reason", reason.as_str())])
                .inc_by(count);
        }
    }

    /// A request was refused as a whole.
    pub(crate) fn refused(&self, signal: Signal, code: &'static str) {
        self.outcome(signal, code);
    }

    /// A signal that is not kept was sent.
    pub(crate) fn unsupported(&self, signal: Signal, count: u64) {
        self.outcome(signal, "unsupported");
        self.unsupported.get_or_create(&[("signal", signal.as_str())]).inc_by(count);
    }

    /// Spans and profiles of the server itself could not be kept.
    pub(crate) fn own_dropped(&self, (spans, profiles): (u64, u64)) {
        self.own_dropped.get_or_create(&[("kind", "spans")]).inc_by(spans);
        self.own_dropped.get_or_create(&[("kind", "profiles")]).inc_by(profiles);
    }

    /// A question was answered, or not, with `code`.
    pub(crate) fn asked(&self, question: &'static str, elapsed: Duration, failure: Option<&'static str>) {
        self.query_seconds
            .get_or_create(&[("question", question)])
            .observe(elapsed.as_secs_f64());
        if let Some(code) = failure {
            self.query_failures.get_or_create(&[("question", question), ("code", code)]).inc();
        }
    }

    fn outcome(&self, signal: Signal, outcome: &'static str) {
        self.requests
            .get_or_create(&[("signal", signal.as_str()), ("outcome", outcome)])
            .inc();
    }
}
