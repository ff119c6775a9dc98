//! From a body to the store: the one path of every dialect that writes.
//!
//! ```text
//! body -> hold its bytes -> [worker: decompress -> charge the rate -> decode -> check the clock] -> append
//! ```
//!
//! Decompressing and decoding run on a worker, as many at a time as there are cores, so that the reactor goes
//! on answering; bodies below [`INLINE_BYTES_MAX`] are decoded where they are, because handing them over
//! costs more. What is dropped on the way is counted by reason, in the metrics and in the answer.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use opentelemetry::trace::FutureExt;
use spanflame_formats::compression::{self, Encoding};
use spanflame_formats::{Decoded, Limits, Reason, Rejects, Subject};
use spanflame_model::{Batch, Tenant, TimeRange, Timestamp};
use spanflame_store::{Appended, Store};
use tokio::sync::Semaphore;

use crate::Config;
use crate::admission::{Admission, Load};
use crate::failure::{Failure, FailureKind};
use crate::metrics::{Metrics, Signal};
use crate::telemetry::stage;

/// Bodies up to this size are decoded on the reactor: a fraction of a millisecond.
const INLINE_BYTES_MAX: usize = 16 << 10;

/// Takes in what clients send.
pub(crate) struct Ingest {
    limits: Limits,
    request_bytes_max: u64,
    past_max: Option<Duration>,
    future_max: Option<Duration>,
    admission: Arc<Admission>,
    workers: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

/// A body as it arrived, with what it holds in memory.
pub(crate) struct Upload {
    pub(crate) tenant: Tenant,
    pub(crate) signal: Signal,
    pub(crate) body: Bytes,
    pub(crate) encoding: Encoding,
    pub(crate) load: Load,
}

/// What became of an upload.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) appended: Appended,
    pub(crate) rejects: Rejects,
}

impl Ingest {
    pub(crate) fn new(config: &Config, metrics: Arc<Metrics>) -> Ingest {
        let limits = Limits {
            decoded_bytes_max: size(config.request_bytes_max),
            stack_depth_max: size(config.stack_depth_max),
            strings_max: size(config.strings_max),
            table_entries_max: size(config.table_entries_max),
            ..Limits::default()
        };
        // As many decoders as cores: more would only hold more memory.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ingest {
            limits,
            request_bytes_max: config.request_bytes_max,
            past_max: config.past_max,
            future_max: config.future_max,
            admission: Arc::new(Admission::new(config.in_flight_bytes_max, config.rate_bytes_per_second)),
            workers: Arc::new(Semaphore::new(cores)),
            metrics,
        }
    }

    /// Largest body, before and after decompression.
    pub(crate) fn request_bytes_max(&self) -> u64 {
        self.request_bytes_max
    }

    /// What a new request holds: nothing yet.
    pub(crate) fn load(&self) -> Load {
        self.admission.load()
    }

    /// Decodes an upload, makes it durable, and counts what became of it. Who calls it counts refusals, because
    /// a request may be refused before it gets here.
    pub(crate) async fn take<D>(self: &Arc<Ingest>, store: &Store, upload: Upload, decode: D) -> Result<Taken, Failure>
    where
        D: FnOnce(&[u8], &Limits) -> Result<Decoded, Failure> + Send + 'static,
    {
        let (tenant, signal, started) = (upload.tenant.clone(), upload.signal, Instant::now());
        let (Decoded { batch, rejects }, load) = self.work(upload, decode).await?;
        let appended = match batch.is_empty() {
            true => Appended::default(),
            false => store.append(&tenant, batch).with_context(stage("append")).await?,
        };
        drop(load);
        let taken = Taken { appended, rejects };
        self.metrics.taken(signal, &taken, started.elapsed());
        Ok(taken)
    }

    /// Decompresses and gives the bytes to `work`, on a worker unless they are few.
    pub(crate) async fn work<T, D>(self: &Arc<Ingest>, upload: Upload, work: D) -> Result<(T, Load), Failure>
    where
        T: Send + Checked + 'static,
        D: FnOnce(&[u8], &Limits) -> Result<T, Failure> + Send + 'static,
    {
        if upload.body.len() <= INLINE_BYTES_MAX && upload.encoding == Encoding::Identity {
            let _attached = stage("decode").attach();
            return self.unpack(upload, work);
        }
        let permit = self.workers.clone().acquire_owned().await;
        let permit = permit.map_err(|_| Failure::new(FailureKind::Unavailable, "the server is stopping"))?;
        let ingest = self.clone();
        let decoding = stage("decode");
        let worker = tokio::task::spawn_blocking(move || {
            let _attached = decoding.attach();
            let result = ingest.unpack(upload, work);
            drop(permit);
            result
        });
        worker.await.map_err(|error| Failure::internal("decoding failed", &error))?
    }

    fn unpack<T: Checked>(
        &self,
        mut upload: Upload,
        work: impl FnOnce(&[u8], &Limits) -> Result<T, Failure>,
    ) -> Result<(T, Load), Failure> {
        let bytes = compression::decompress(upload.encoding, &upload.body, self.limits.decoded_bytes_max)?;
        if upload.encoding != Encoding::Identity {
            upload.load.grow_by(bytes.len() as u64)?;
        }
        self.metrics.received(upload.signal, upload.body.len(), bytes.len());
        self.admission.charge(&upload.tenant, bytes.len() as u64, Instant::now())?;
        let mut value = work(&bytes, &self.limits)?;
        value.check_clock(&Clock::new(self.past_max, self.future_max, now()));
        Ok((value, upload.load))
    }
}

/// What the clock limits are applied to after decoding.
pub(crate) trait Checked {
    /// Drops and counts what lies outside.
    fn check_clock(&mut self, _clock: &Clock) {}
}

impl Checked for u64 {}

impl Checked for Decoded {
    fn check_clock(&mut self, clock: &Clock) {
        clock.check(&mut self.batch, &mut self.rejects);
    }
}

/// The event times that are taken: `earliest..latest`.
pub(crate) struct Clock {
    earliest: Option<Timestamp>,
    latest: Option<Timestamp>,
}

impl Clock {
    fn new(past_max: Option<Duration>, future_max: Option<Duration>, now: Timestamp) -> Clock {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Clock {
            earliest: past_max.map(|past| now.saturating_sub(nanos(past))),
            latest: future_max.map(|future| now.saturating_add(nanos(future))),
        }
    }

    fn check(&self, batch: &mut Batch, rejects: &mut Rejects) {
        if self.earliest.is_none() && self.latest.is_none() {
            return;
        }
        let Batch { spans, profiles, .. } = batch;
        spans.retain(|span| {
            let outside = self.outside(span.range());
            if let Some(expected) = outside {
                let example = || format!("span {} starts at {}, expected {expected}", span.span_id, span.start);
                rejects.add(Subject::Span, Reason::TimeOutOfRange, example);
            }
            outside.is_none()
        });
        profiles.retain(|profile| {
            let outside = self.outside(profile.info.range());
            if let Some(expected) = outside {
                let example = || format!("a profile starts at {}, expected {expected}", profile.info.start);
                rejects.add(Subject::Profile, Reason::TimeOutOfRange, example);
            }
            outside.is_none()
        });
    }

    /// What was expected of a range that is not taken.
    fn outside(&self, range: TimeRange) -> Option<&'static str> {
        if self.earliest.is_some_and(|earliest| range.end() <= earliest) {
            return Some("an end within past_max");
        }
        self.latest
            .is_some_and(|latest| range.start() > latest)
            .then_some("a start within future_max")
    }
}

fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// The present time on the clock that all data shares.
pub(crate) fn now() -> Timestamp {
    let nanos = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    u64::try_from(nanos)
        .ok()
        .and_then(Timestamp::from_unix_nanos)
        .unwrap_or(Timestamp::MAX)
}
