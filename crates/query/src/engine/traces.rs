//! Fetching for searches of traces.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;

use futures::stream::{self, StreamExt, TryStreamExt};
use spanflame_model::TraceId;
use spanflame_store::{SpanFields, SpanScan, StoredSpan};

use super::Engine;
use super::fetch::check_tenants;
use crate::Error;
use crate::trace::TraceData;
use crate::traces::{FoundTrace, Newest, TracesRequest};

/// Traces that are looked up at the same time.
const LOOKUPS: usize = 8;

impl Engine {
    /// The newest traces with a span that matches, by start, latest first.
    pub async fn traces(&self, request: &TracesRequest) -> Result<Vec<FoundTrace>, Error> {
        let fields = SpanFields {
            resource: true,
            ..request.fields()
        };
        let lookups = self.newest_traces(request).await?.into_iter().map(|trace_id| async move {
            let spans = self.snapshot.trace_spans_with(&request.tenants, trace_id, fields).await?;
            let samples = Vec::new();
            Ok::<_, Error>(TraceData { trace_id, spans, samples }.found(request))
        });
        let found = stream::iter(lookups)
            .buffer_unordered(LOOKUPS)
            .try_collect::<Vec<Option<FoundTrace>>>();
        let mut found: Vec<FoundTrace> = found.await?.into_iter().flatten().collect();
        found.sort_by_key(|trace| (Reverse(trace.range.start()), trace.trace_id));
        Ok(found)
    }

    /// The ids of the newest traces with a span that matches, by the start of the latest such span.
    pub async fn newest_traces(&self, request: &TracesRequest) -> Result<Vec<TraceId>, Error> {
        check_tenants(&request.tenants)?;
        let mut newest = Newest::new(request.checked_limit()?);
        let scan = SpanScan {
            tenants: request.tenants.clone(),
            range: request.range,
            conditions: request.query.conditions(),
            fields: request.fields(),
            received_before: None,
        };
        let facts = match request.query.needs_trace() {
            true => self.facts_of_candidates(&request.tenants, &request.query, &scan).await?,
            false => HashMap::new(),
        };
        self.visit_spans(&scan, |StoredSpan { span, .. }| {
            if request.query.test(&span, facts.get(&span.trace_id)) == Some(true) && request.tags.are_on(&span) {
                newest.add(&span);
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(newest.finish())
    }

    /// The spans of a trace with everything that is known of them; empty if none was received.
    pub async fn spans_of(&self, tenants: &[spanflame_model::Tenant], trace_id: TraceId) -> Result<Vec<StoredSpan>, Error> {
        check_tenants(tenants)?;
        Ok(self.snapshot.trace_spans_with(tenants, trace_id, SpanFields::ALL).await?)
    }
}
