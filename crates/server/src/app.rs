//! What every handler shares.

use std::sync::{Arc, OnceLock};

use spanflame_store::Store;
use tokio::sync::Semaphore;

use crate::Config;
use crate::failure::{Failure, FailureKind};
use crate::ingest::Ingest;
use crate::metrics::Metrics;
use crate::rejections::RejectionLog;
use crate::spanmetrics::SpanMetrics;
use crate::telemetry::Telemetry;

/// Questions wait for files as well as for cores.
const QUESTIONS_PER_CORE: usize = 2;

/// The state of one server. The store arrives later than the listeners, because replaying its log may take
/// long and probes want an answer meanwhile.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) ingest: Arc<Ingest>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) rejections: RejectionLog,
    pub(crate) telemetry: Telemetry,
    pub(crate) span_metrics: SpanMetrics,
    /// One permit for each question that may run at a time.
    pub(crate) questions: Arc<Semaphore>,
    store: OnceLock<Store>,
    stopping: OnceLock<()>,
}

impl App {
    pub(crate) fn new(config: Config) -> App {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let metrics = Arc::new(Metrics::new());
        App {
            ingest: Arc::new(Ingest::new(&config, metrics.clone())),
            config,
            metrics,
            rejections: RejectionLog::default(),
            telemetry: Telemetry::default(),
            span_metrics: SpanMetrics::new(),
            questions: Arc::new(Semaphore::new(QUESTIONS_PER_CORE * cores)),
            store: OnceLock::new(),
            stopping: OnceLock::new(),
        }
    }

    /// From here on questions and exports are served.
    pub(crate) fn open(&self, store: Store) {
        self.metrics.open(store.clone());
        let first = self.store.set(store).is_ok();
        debug_assert!(first, "a server opens one store");
    }

    /// From here on the server says that it is not ready; requests are still served.
    pub(crate) fn stop(&self) {
        let _ = self.stopping.set(());
    }

    /// The store; fails while it opens.
    pub(crate) fn store(&self) -> Result<&Store, Failure> {
        self.store
            .get()
            .ok_or_else(|| Failure::new(FailureKind::Unavailable, "the server is starting: its log is being replayed"))
    }

    /// Whether new requests should be sent here.
    pub(crate) fn ready(&self) -> Result<(), Failure> {
        if self.stopping.get().is_some() {
            return Err(Failure::new(FailureKind::Unavailable, "the server is stopping"));
        }
        self.store().map(drop)
    }
}
