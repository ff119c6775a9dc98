//! From a body to the store: the one path of every dialect that writes.
//!
//! ```text
//! body -> hold its bytes -> [worker: decompress -> charge the rate -> decode -> check the clock -> encode for the log] -> wait for the disk
//! ```
//!
//! What costs CPU runs on a worker, as many at a time as there are cores, so that the reactor goes
//! on answering; bodies below [`INLINE_BYTES_MAX`] are decoded where they are, because handing them over
//! costs more. What is dropped on the way is counted by reason, in the metrics and in the answer.

mod clock;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Waker};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures::future::maybe_done;
use opentelemetry::Context;
use opentelemetry::trace::FutureExt;
use spanflame_formats::compression::{self, Encoding};
use spanflame_formats::{Decoded, Limits, Rejects};
use spanflame_model::{Batch, Tenant, Timestamp};
use spanflame_store::{Appended, Store};
use tokio::sync::Semaphore;

use self::clock::Clock;
use crate::Config;
use crate::admission::{Admission, Load};
use crate::failure::{Failure, FailureKind};
use crate::metrics::{Metrics, Signal};
use crate::telemetry::{end_stage, stage, stage_of};

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
        let (store, request) = (store.clone(), Context::current());
        let clock = Clock::new(self.past_max, self.future_max, now());
        let take = move |bytes: &[u8], limits: &Limits| {
            let Decoded { mut batch, mut rejects } = decode(bytes, limits)?;
            clock.check(&mut batch, &mut rejects);
            end_stage();
            Ok((begin_append(store, tenant, batch, &request), rejects))
        };
        let ((append, rejects), load) = self.work(upload, take).await?;
        let appended = append.await?;
        drop(load);
        let taken = Taken { appended, rejects };
        self.metrics.taken(signal, &taken, started.elapsed());
        Ok(taken)
    }

    /// Decompresses and gives the bytes to `work`, on a worker unless they are few.
    pub(crate) async fn work<T, D>(self: &Arc<Ingest>, upload: Upload, work: D) -> Result<(T, Load), Failure>
    where
        T: Send + 'static,
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

    fn unpack<T>(&self, mut upload: Upload, work: impl FnOnce(&[u8], &Limits) -> Result<T, Failure>) -> Result<(T, Load), Failure> {
        let bytes = compression::decompress(upload.encoding, &upload.body, self.limits.decoded_bytes_max)?;
        if upload.encoding != Encoding::Identity {
            upload.load.grow_by(bytes.len() as u64)?;
        }
        self.metrics.received(upload.signal, upload.body.len(), bytes.len());
        self.admission.charge(&upload.tenant, bytes.len() as u64, Instant::now())?;
        Ok((work(&bytes, &self.limits)?, upload.load))
    }
}

/// An append that has done its work up to the log: hashing, recognising and encoding take as long as decoding, so
/// they are done here, on the worker, and only the wait for the disk is left to the reactor.
fn begin_append(store: Store, tenant: Tenant, batch: Batch, request: &Context) -> impl Future<Output = Result<Appended, Failure>> + use<> {
    let append = async move {
        match batch.is_empty() {
            true => Ok(Appended::default()),
            false => Ok(store.append(&tenant, batch).await?),
        }
    };
    let mut append = maybe_done(Box::pin(append.with_context(stage_of(request, "append"))));
    // Whoever awaits it polls again with a waker of his own.
    let _ = Pin::new(&mut append).poll(&mut task::Context::from_waker(Waker::noop()));
    async move {
        (&mut append).await;
        Pin::new(&mut append)
            .take_output()
            .expect("it was awaited and its output not taken yet")
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
