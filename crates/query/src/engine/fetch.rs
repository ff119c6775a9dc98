//! What several questions fetch.

use std::collections::HashSet;
use std::ops::ControlFlow;

use spanflame_model::{Span, SpanId, Tenant, TimeRange, TraceId};
use spanflame_store::{SampleScan, SpanFields, StoredSample};

use super::Engine;
use crate::Error;
use crate::links::NEAR_NS;
use crate::trace::TraceData;

impl Engine {
    /// The spans of a trace and every sample that may belong to it.
    pub(crate) async fn fetch_trace(&self, tenants: &[Tenant], trace_id: TraceId) -> Result<TraceData, Error> {
        let mut data = self.fetch_named(tenants, trace_id, SpanFields::ALL).await?;
        let ids = data.spans.iter().map(|stored| stored.span.span_id).collect();
        self.add_loose(tenants, &ids, &mut data).await?;
        Ok(data)
    }

    /// The spans of a trace, with `fields` of them, and the samples that name it.
    pub(crate) async fn fetch_named(&self, tenants: &[Tenant], trace_id: TraceId, fields: SpanFields) -> Result<TraceData, Error> {
        check_tenants(tenants)?;
        let spans = self.snapshot.trace_spans_with(tenants, trace_id, fields);
        let samples = self.snapshot.trace_samples(tenants, trace_id);
        let (spans, samples) = futures::try_join!(spans, samples)?;
        Ok(TraceData { trace_id, spans, samples })
    }

    /// Adds the samples that name one of the trace's received spans `wanted` and not the trace itself. The fewer spans
    /// are wanted, the less the store has to compare.
    pub(crate) async fn add_loose(&self, tenants: &[Tenant], wanted: &HashSet<SpanId>, data: &mut TraceData) -> Result<(), Error> {
        let received = data
            .spans
            .iter()
            .map(|stored| &stored.span)
            .filter(|span| wanted.contains(&span.span_id));
        let Some(range) = received.clone().map(Span::range).reduce(TimeRange::cover) else {
            return Ok(());
        };
        let mut ids: Vec<SpanId> = received.map(|span| span.span_id).collect();
        ids.sort_unstable();
        ids.dedup();
        self.add_samples_by_span(tenants, &ids, range.widened(NEAR_NS), data).await
    }

    /// Adds the samples that name one of `spans` without its trace.
    pub(crate) async fn add_samples_by_span(
        &self,
        tenants: &[Tenant],
        spans: &[SpanId],
        near: TimeRange,
        data: &mut TraceData,
    ) -> Result<(), Error> {
        let found = self.snapshot.samples_by_span(tenants, spans, near).await?;
        // Those that have the trace among their candidates were found through it already.
        data.samples
            .extend(found.into_iter().filter(|stored| !names_trace(stored, data.trace_id)));
        Ok(())
    }

    /// Visits the samples of a scan until `visit` breaks.
    pub(crate) async fn visit_samples(
        &self,
        scan: &SampleScan,
        mut visit: impl FnMut(&StoredSample) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        let each = |batch: Vec<StoredSample>| batch.iter().try_for_each(&mut visit);
        self.snapshot.scan_samples(scan, each).await?;
        Ok(())
    }
}

/// A question needs someone whose data it is about.
pub(crate) fn check_tenants(tenants: &[Tenant]) -> Result<(), Error> {
    match tenants.is_empty() {
        true => Err(Error::Invalid {
            field: "tenant",
            message: "no tenant is named, expected at least one".to_owned(),
        }),
        false => Ok(()),
    }
}

fn names_trace(stored: &StoredSample, trace: TraceId) -> bool {
    match &stored.sample.link {
        spanflame_model::Link::Candidates { trace_ids, .. } => trace_ids.contains(&trace),
        link => link.trace_id() == Some(trace),
    }
}
