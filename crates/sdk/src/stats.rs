//! What the SDK counts about itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start. What is dropped appears under exactly one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Observations taken out of the rings.
    pub observations: u64,
    /// Those of them that name a span.
    pub linked: u64,
    /// Time that threads spent interrupted, without the kernel's part; by the wall clock, so longer where the
    /// scheduler took the CPU away meanwhile.
    pub handler_ns: u64,
    /// Observations handed to the receiver and accepted by it.
    pub delivered: u64,
    /// Threads that are sampled now.
    pub threads: u64,
    /// Times that a thread could not be sampled: too many threads, or no timer left in the system.
    pub threads_refused: u64,
    /// Observations lost because a ring was full.
    pub dropped_ring: u64,
    /// Observations lost because a window held too many.
    pub dropped_window: u64,
    /// Observations lost because the receiver was away for too long or refused them.
    pub dropped_export: u64,
    /// Spans lost because the receiver was away for too long or refused them.
    pub dropped_spans: u64,
    /// Requests that failed, whether or not a later try succeeded.
    pub failed_requests: u64,
}

/// The live counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) observations: AtomicU64,
    pub(crate) linked: AtomicU64,
    pub(crate) handler_ns: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) threads: AtomicU64,
    pub(crate) threads_refused: AtomicU64,
    pub(crate) dropped_ring: AtomicU64,
    pub(crate) dropped_window: AtomicU64,
    pub(crate) dropped_export: AtomicU64,
    pub(crate) dropped_spans: AtomicU64,
    pub(crate) failed_requests: AtomicU64,
}

impl Counters {
    pub(crate) fn stats(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            observations: get(&self.observations),
            linked: get(&self.linked),
            handler_ns: get(&self.handler_ns),
            delivered: get(&self.delivered),
            threads: get(&self.threads),
            threads_refused: get(&self.threads_refused),
            dropped_ring: get(&self.dropped_ring),
            dropped_window: get(&self.dropped_window),
            dropped_export: get(&self.dropped_export),
            dropped_spans: get(&self.dropped_spans),
            failed_requests: get(&self.failed_requests),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
