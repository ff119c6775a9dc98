//! Fetching for spans and traces that are named by id alone.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use futures::stream::{self, StreamExt};
use spanflame_model::{Fingerprint, SpanId, TimeRange, TraceId};
use spanflame_store::{SampleScan, SpanFields};

use super::Engine;
use super::profile::claimed_precision;
use crate::Error;
use crate::links::{NEAR_NS, TraceIndex};
use crate::named::NamedCount;
use crate::profile::{ProfileRequest, Scope};
use crate::reasons::{Reason, ReasonCode};
use crate::scoped::Draft;
use crate::selector::LabelSelector;
use crate::trace::TraceData;

/// The most ids of one question.
const IDS_MAX: usize = 10_000;
/// Traces that are looked up at the same time.
const LOOKUPS: usize = 8;

/// What tells the place of a sample among the spans of its trace.
const PLACES: SpanFields = SpanFields {
    attributes: false,
    resource: true,
    events: false,
};

impl Engine {
    pub(super) async fn named_draft(
        &self,
        request: &ProfileRequest,
        span_ids: &[SpanId],
        trace_ids: &[TraceId],
        selector: &LabelSelector,
    ) -> Result<(Option<Scope>, Draft), Error> {
        if span_ids.len() + trace_ids.len() > IDS_MAX {
            return Err(Error::Invalid {
                field: "span_selector",
                message: format!("{} ids are named, expected at most {IDS_MAX}", span_ids.len() + trace_ids.len()),
            });
        }
        let near = request.range.unwrap_or(TimeRange::ALL);
        let known = match span_ids.is_empty() {
            true => Vec::new(),
            false => {
                self.snapshot
                    .traces_of_spans(&request.tenants, span_ids, near.widened(NEAR_NS))
                    .await?
            }
        };
        let mut wanted: BTreeMap<TraceId, Option<Vec<SpanId>>> = BTreeMap::new();
        for (span, trace) in &known {
            if let Some(spans) = wanted.entry(*trace).or_insert_with(|| Some(Vec::new())) {
                spans.push(*span);
            }
        }
        wanted.extend(trace_ids.iter().map(|trace| (*trace, None)));
        let mut count = NamedCount::new(selector, request.range, Draft::new(&request.profile_type, None, request.rows));
        let lookups = wanted.into_iter().map(|(trace, spans)| async move {
            let data = self.fetch_for_spans(request, trace, spans.as_deref()).await?;
            Ok::<_, Error>((data, spans))
        });
        let mut lookups = std::pin::pin!(stream::iter(lookups).buffer_unordered(LOOKUPS));
        let mut asked = None;
        while let Some(looked_up) = lookups.next().await {
            let (data, spans) = looked_up?;
            count.add_trace(&data, spans.as_deref());
            if let [only] = span_ids {
                asked = data.spans.into_iter().find(|stored| stored.span.span_id == *only);
            }
        }
        let traced: HashSet<SpanId> = known.into_iter().map(|(span, _)| span).collect();
        let loose: Vec<SpanId> = span_ids.iter().filter(|span| !traced.contains(span)).copied().collect();
        if !loose.is_empty() {
            let samples = self.snapshot.samples_by_span(&request.tenants, &loose, near).await?;
            let is_named = |link: &spanflame_model::Link| link.span_id().is_some();
            samples
                .iter()
                .filter(|stored| is_named(&stored.sample.link))
                .for_each(|stored| count.add_loose(stored));
        }
        let (mut draft, scope) = (count.draft, count.scope);
        draft.range = request.range;
        draft.settle();
        if draft.gather.facts.samples == 0 {
            draft.evidence.reasons = match &asked {
                Some(stored) => {
                    self.explain((&request.tenants, &request.profile_type), &stored.span, scope.unwrap_or_default())
                        .await?
                }
                None => nothing_named(span_ids, trace_ids),
            };
        }
        Ok((scope, draft))
    }

    /// Profiles by identity: no index leads to them, so the range is to be short.
    pub(super) async fn profiles_draft(
        &self,
        request: &ProfileRequest,
        ids: &[Fingerprint],
        selector: &LabelSelector,
    ) -> Result<Draft, Error> {
        let wanted: HashSet<&Fingerprint> = ids.iter().collect();
        let scan = SampleScan {
            tenants: request.tenants.clone(),
            range: request.range.unwrap_or(TimeRange::ALL),
            services: selector.services(),
            unlinked_only: false,
            received_before: None,
        };
        let mut draft = Draft::new(&request.profile_type, None, request.rows);
        let mut selected = selector.remembering();
        self.visit_samples(&scan, |stored| {
            if wanted.contains(&stored.profile) && selected.selects(&stored.info) {
                draft.add(stored, claimed_precision(&stored.sample.link));
            }
            ControlFlow::Continue(())
        })
        .await?;
        draft.range = request.range;
        draft.settle();
        Ok(draft)
    }

    /// The trace with the samples that its spans `spans` may need; all of it for `None`.
    async fn fetch_for_spans(&self, request: &ProfileRequest, trace: TraceId, spans: Option<&[SpanId]>) -> Result<TraceData, Error> {
        let mut data = self.fetch_named(&request.tenants, trace, PLACES).await?;
        let index = TraceIndex::new(trace, &data.spans);
        let relevant: HashSet<SpanId> = match spans {
            Some(spans) => spans.iter().flat_map(|span| index.relevant(Some(*span), Scope::Subtree)).collect(),
            None => index.relevant(None, Scope::Trace),
        };
        self.add_loose(&request.tenants, &relevant, &mut data).await?;
        Ok(data)
    }
}

fn nothing_named(spans: &[SpanId], traces: &[TraceId]) -> Vec<Reason> {
    let text = match (spans, traces) {
        ([], []) => "no span and no trace is named".to_owned(),
        ([span], []) => format!("neither span nor sample names span {span} in this range"),
        _ => "no sample of the selected profiles names these spans or traces in this range".to_owned(),
    };
    let hint = "check the id, the range and the labels";
    vec![Reason::new(ReasonCode::SpanNotReceived, text, hint)]
}
