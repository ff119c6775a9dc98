//! Fetching for the profile of many spans.
//!
//! Few traces are looked up one by one, which costs the same however much is stored. Many are read in two scans,
//! of spans and of samples, which cost the same however many are selected.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use futures::stream::{self, StreamExt, TryStreamExt};
use spanflame_model::{SpanId, Tenant, TimeRange, TraceId};
use spanflame_store::{SampleScan, SpanFields, SpanScan, StoredSpan};

use super::Engine;
use super::fetch::check_tenants;
use super::search::{LOOKUPS, PLACES};
use crate::attributes::SpanSet;
use crate::links::NEAR_NS;
use crate::measure::TypeSelector;
use crate::scoped::Draft;
use crate::selected::{Matches, Places, SelectedProfile, SelectedRequest, SpanSelection};
use crate::trace::TraceData;
use crate::{Error, Scope};

/// Up to so many traces are looked up one by one.
const TRACES_LOOKED_UP_MAX: usize = 400;
/// Spans, selected or in the same traces, that one question holds in memory: some hundred bytes each.
const SPANS_HELD_MAX: usize = 3_000_000;

impl Engine {
    /// The profile of all spans that match.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for another scope than `span` and `subtree`, [`Error::TooLarge`] for selections whose
    /// traces have more than 3,000,000 spans.
    pub async fn selected_profile(&self, request: &SelectedRequest) -> Result<SelectedProfile, Error> {
        let set = SpanSet::Matching(request.spans.clone());
        self.profile_of_set(request.into(), &set).await
    }

    /// The profile of all spans of a set.
    pub(super) async fn profile_of_set(&self, request: SetProfile<'_>, set: &SpanSet) -> Result<SelectedProfile, Error> {
        check_tenants(request.tenants)?;
        if !matches!(request.scope, Scope::Span | Scope::Subtree) {
            return Err(Error::Invalid {
                field: "scope",
                message: format!(
                    "scope is {}, expected span or subtree for a selection of spans",
                    request.scope.as_str()
                ),
            });
        }
        let mut matches = match set {
            SpanSet::Matching(selection) => self.matches(request.tenants, selection).await?,
            SpanSet::OfTrace { trace_id, span_id } => self.matches_of_trace(request.tenants, *trace_id, *span_id).await?,
        };
        let mut draft = Draft::new(request.profile_type, None, request.rows);
        draft.range = matches.covered;
        let mut places = Places::new(request.scope, std::mem::take(&mut matches.by_trace));
        match (matches.covered, places.traces_selected().count() <= TRACES_LOOKED_UP_MAX) {
            (None, _) => {}
            (Some(_), true) => self.look_up_selected(request.tenants, &mut places, &mut draft).await?,
            (Some(covered), false) => self.scan_selected(request.tenants, covered, &mut places, &mut draft).await?,
        }
        draft.settle();
        if let Some(longest) = matches.longest.take().filter(|_| draft.gather.facts.samples == 0) {
            let asked = (request.tenants, request.profile_type);
            draft.evidence.reasons = self.explain(asked, &longest, request.scope).await?;
        }
        let without_samples = places.without_samples();
        Ok(SelectedProfile {
            profile: self
                .complete((request.tenants, request.profile_type), Some(request.scope), draft)
                .await?,
            spans: matches.finish(without_samples),
        })
    }

    async fn matches_of_trace(&self, tenants: &[Tenant], trace: TraceId, span: Option<SpanId>) -> Result<Matches, Error> {
        let mut matches = Matches::default();
        let spans = self.snapshot.trace_spans_with(tenants, trace, PLACES).await?;
        spans
            .into_iter()
            .map(|stored| stored.span)
            .filter(|known| span.is_none_or(|span| known.span_id == span))
            .for_each(|span| matches.add(span));
        match matches.count {
            0 => Err(Error::NotFound {
                what: match span {
                    Some(span) => format!("span {span} of trace {trace} is not stored"),
                    None => format!("trace {trace} is not stored"),
                },
            }),
            _ => Ok(matches),
        }
    }

    async fn matches(&self, tenants: &[Tenant], selection: &SpanSelection) -> Result<Matches, Error> {
        let mut matches = Matches::default();
        let SpanSelection { query, range, rule } = selection;
        let fields = SpanFields {
            resource: true,
            ..query.fields()
        };
        let scan = SpanScan {
            tenants: tenants.to_vec(),
            range: *range,
            conditions: query.conditions(),
            fields,
            received_before: None,
        };
        let facts = match query.needs_trace() {
            true => self.facts_of_candidates(tenants, query, &scan).await?,
            false => HashMap::new(),
        };
        self.visit_spans(&scan, |stored| {
            let span = stored.span;
            if rule.holds(*range, &span) && query.test(&span, facts.get(&span.trace_id)) == Some(true) {
                matches.add(span);
            }
            held(matches.count as usize)
        })
        .await?;
        check_held(matches.count as usize)?;
        Ok(matches)
    }

    async fn look_up_selected(&self, tenants: &[Tenant], places: &mut Places, draft: &mut Draft) -> Result<(), Error> {
        let traces: Vec<TraceId> = places.traces_selected().collect();
        let lookups = traces.into_iter().map(|trace| async move {
            let mut data = self.fetch_named(tenants, trace, PLACES).await?;
            let ids = data.spans.iter().map(|stored| stored.span.span_id).collect();
            self.add_loose(tenants, &ids, &mut data).await?;
            Ok::<TraceData, Error>(data)
        });
        let looked_up: Vec<TraceData> = stream::iter(lookups).buffer_unordered(LOOKUPS).try_collect().await?;
        looked_up.iter().for_each(|data| places.add_trace(data.trace_id, &data.spans));
        for data in &looked_up {
            for stored in &data.samples {
                if places.home(stored) == Some(data.trace_id) {
                    places.add(stored, draft);
                }
            }
        }
        Ok(())
    }

    async fn scan_selected(&self, tenants: &[Tenant], covered: TimeRange, places: &mut Places, draft: &mut Draft) -> Result<(), Error> {
        let traces: HashSet<TraceId> = places.traces_selected().collect();
        let range = covered.widened(NEAR_NS);
        let scan = SpanScan {
            tenants: tenants.to_vec(),
            range,
            conditions: Vec::new(),
            fields: PLACES,
            received_before: None,
        };
        let mut around: Vec<StoredSpan> = Vec::new();
        self.visit_spans(&scan, |mut stored| {
            if traces.contains(&stored.span.trace_id) {
                stored.span.name = String::new();
                around.push(stored);
            }
            held(around.len())
        })
        .await?;
        check_held(around.len())?;
        around.sort_by_key(|stored| (stored.span.trace_id, stored.span.start, stored.span.span_id));
        for spans in around.chunk_by(|a, b| a.span.trace_id == b.span.trace_id) {
            places.add_trace(spans[0].span.trace_id, spans);
        }
        drop(around);
        let scan = SampleScan {
            tenants: tenants.to_vec(),
            range,
            services: None,
            unlinked_only: false,
            received_before: None,
        };
        self.visit_samples(&scan, |stored| {
            places.add(stored, draft);
            ControlFlow::Continue(())
        })
        .await
    }
}

/// What is asked of the samples of a set of spans.
#[derive(Clone, Copy)]
pub(super) struct SetProfile<'a> {
    pub(super) tenants: &'a [Tenant],
    pub(super) profile_type: &'a TypeSelector,
    pub(super) scope: Scope,
    pub(super) rows: bool,
}

impl<'a> From<&'a SelectedRequest> for SetProfile<'a> {
    fn from(request: &'a SelectedRequest) -> SetProfile<'a> {
        SetProfile {
            tenants: &request.tenants,
            profile_type: &request.profile_type,
            scope: request.scope,
            rows: request.rows,
        }
    }
}

fn held(spans: usize) -> ControlFlow<()> {
    match spans > SPANS_HELD_MAX {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

fn check_held(spans: usize) -> Result<(), Error> {
    match spans > SPANS_HELD_MAX {
        true => Err(Error::TooLarge {
            message: format!(
                "the selected spans and their traces are more than {SPANS_HELD_MAX} spans, expected a shorter range or more conditions"
            ),
        }),
        false => Ok(()),
    }
}
