//! Hands profiles and spans to their receiver, on a thread of its own.
//!
//! One loop: take what the sampler and the span processor queued, name its addresses, keep it until the
//! receiver took it. While the receiver is away the oldest requests wait, up to [`PENDING_BYTES_MAX`], and are
//! tried again after a growing pause; what does not fit is dropped and counted, the oldest first.

mod otlp;
mod spans;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use spanflame_formats::Limits;
use spanflame_model::Batch;

pub(crate) use otlp::Client;
pub(crate) use spans::SpanQueue;

use crate::profile::ProfileBuilder;
use crate::stats::{Counters, add};
use crate::window::Window;
use otlp::{Failure, REQUEST_TIME_MAX, Request};

/// Items queued for this thread; whoever finds the queue full drops and counts.
pub(crate) const QUEUE_MAX: usize = 64;
/// Encoded requests kept for a receiver that is away: some minutes of a busy service.
const PENDING_BYTES_MAX: usize = 16 << 20;
const BACKOFF_MIN: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How long the last requests may take when the SDK stops.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(5);
/// How long to sleep when there is nothing to send.
const IDLE: Duration = Duration::from_secs(60);

/// What others queue for the exporting thread.
pub(crate) enum Outgoing {
    /// A window of samples, still addresses.
    Window(Window),
    /// Finished spans.
    Spans(ExportTraceServiceRequest),
    /// Send what is left and end.
    Stop,
}

/// A function that takes batches in this process instead of a server.
pub(crate) type Callback = Box<dyn Fn(Batch) + Send + Sync>;

/// Who gets the data.
pub(crate) enum Target {
    /// A server that speaks OTLP over gRPC.
    Server(Box<Client>),
    /// A function in this process.
    Callback(Callback),
}

/// The state of the exporting thread.
pub(crate) struct Exporter {
    target: Target,
    profiles: ProfileBuilder,
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    next_try: Instant,
    backoff: Duration,
    counters: Arc<Counters>,
}

struct Pending {
    request: Request,
    bytes: usize,
}

impl Exporter {
    pub(crate) fn new(target: Target, profiles: ProfileBuilder, counters: Arc<Counters>) -> Exporter {
        Exporter {
            target,
            profiles,
            pending: VecDeque::new(),
            pending_bytes: 0,
            next_try: Instant::now(),
            backoff: BACKOFF_MIN,
            counters,
        }
    }

    /// Runs until it is told to stop.
    pub(crate) fn run(mut self, queue: &Receiver<Outgoing>) {
        // Else a traced client would make spans about sending spans.
        let _quiet = opentelemetry::Context::enter_telemetry_suppressed_scope();
        loop {
            let wait = match self.pending.is_empty() {
                true => IDLE,
                false => self.next_try.saturating_duration_since(Instant::now()),
            };
            match queue.recv_timeout(wait) {
                Ok(Outgoing::Window(window)) => self.take_window(window),
                Ok(Outgoing::Spans(request)) => self.take_spans(request),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Outgoing::Stop) | Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
            if Instant::now() >= self.next_try {
                self.send_pending(REQUEST_TIME_MAX);
            }
        }
    }

    fn take_window(&mut self, window: Window) {
        let observations = window.observations as u64;
        let batch = self.profiles.batch(window);
        match &self.target {
            Target::Callback(callback) => {
                callback(batch);
                add(&self.counters.delivered, observations);
            }
            Target::Server(_) => self.push(Request::profiles(&batch, observations)),
        }
    }

    fn take_spans(&mut self, request: ExportTraceServiceRequest) {
        let spans = spans::count(&request);
        match &self.target {
            Target::Callback(callback) => {
                let decoded = spanflame_formats::otlp::traces::from_message(request, &Limits::default());
                callback(decoded.batch);
            }
            Target::Server(_) => self.push(Request::traces(request, spans)),
        }
    }

    fn push(&mut self, request: Request) {
        let bytes = request.encoded_bytes();
        self.pending_bytes += bytes;
        self.pending.push_back(Pending { request, bytes });
        while self.pending_bytes > PENDING_BYTES_MAX {
            match self.pop() {
                Some(request) => self.drop_request(&request),
                None => break,
            }
        }
    }

    fn pop(&mut self) -> Option<Request> {
        let pending = self.pending.pop_front()?;
        self.pending_bytes -= pending.bytes;
        Some(pending.request)
    }

    /// Sends until nothing is left, the receiver fails or the time is over.
    fn send_pending(&mut self, time_max: Duration) {
        let deadline = Instant::now() + time_max;
        while let Some(front) = self.pending.front() {
            let Target::Server(client) = &mut self.target else { return };
            let outcome = client.send(&front.request, deadline.saturating_duration_since(Instant::now()));
            let Err(failure) = outcome else {
                self.backoff = BACKOFF_MIN;
                if let Some(Request::Profiles { observations, .. }) = self.pop() {
                    add(&self.counters.delivered, observations);
                }
                continue;
            };
            add(&self.counters.failed_requests, 1);
            match failure {
                Failure::Refused(status) => {
                    tracing::warn!(code = %status.code(), message = status.message(), "receiver refused telemetry, dropping it");
                    if let Some(request) = self.pop() {
                        self.drop_request(&request);
                    }
                }
                Failure::Away(status) => {
                    if self.backoff == BACKOFF_MIN {
                        tracing::warn!(code = %status.code(), message = status.message(), "receiver is away, keeping telemetry for it");
                    }
                    self.next_try = Instant::now() + self.backoff;
                    self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
                    return;
                }
            }
        }
    }

    fn flush(mut self) {
        self.send_pending(FLUSH_TIME_MAX);
        while let Some(request) = self.pop() {
            self.drop_request(&request);
        }
    }

    fn drop_request(&self, request: &Request) {
        match request {
            Request::Profiles { observations, .. } => add(&self.counters.dropped_export, *observations),
            Request::Traces { spans, .. } => add(&self.counters.dropped_spans, *spans),
        }
    }
}
