//! Fetches what a question needs from a snapshot, and hands it to the function that answers.

mod attributes;
mod catalog;
mod compare;
mod expired;
mod fetch;
mod histogram;
mod metrics;
mod named;
mod operations;
mod profile;
mod search;
mod selected;
mod series;
mod timeline;
mod traces;

use spanflame_model::Timestamp;
use spanflame_store::Snapshot;

use crate::links::TraceIndex;
use crate::reasons::Clock;
use crate::{Error, Trace, TraceRequest};

/// Answers questions about one snapshot.
#[derive(Clone)]
pub struct Engine {
    snapshot: Snapshot,
    clock: Clock,
}

impl Engine {
    /// Questions about `snapshot`, as if asked when its latest data arrived.
    pub fn new(snapshot: Snapshot) -> Engine {
        let clock = Clock {
            now: snapshot.last_received().unwrap_or(Timestamp::ZERO),
            retention_ns: None,
        };
        Engine { snapshot, clock }
    }

    /// Asked at `now`: tells samples that are under way from samples that will never come.
    pub fn at(mut self, now: Timestamp) -> Engine {
        self.clock.now = self.clock.now.max(now);
        self
    }

    /// Samples are kept this long after their arrival.
    pub fn with_retention_ns(mut self, retention_ns: u64) -> Engine {
        self.clock.retention_ns = Some(retention_ns);
        self
    }

    /// A trace with the profiles of its spans. [`Error::NotFound`] if neither span nor sample names it.
    pub async fn trace(&self, request: &TraceRequest) -> Result<Trace, Error> {
        let data = self.fetch_trace(&request.tenants, request.trace_id).await?;
        data.check_known(&TraceIndex::new(request.trace_id, &[]), None)?;
        let mut trace = data.to_trace();
        // What a damaged file held may belong to it.
        trace.complete &= self.snapshot.damaged_files().is_empty();
        Ok(trace)
    }
}
