//! Fetching for searches.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use futures::stream::{self, StreamExt, TryStreamExt};
use spanflame_model::{Span, SpanId, Tenant, TraceId};
use spanflame_store::{SpanFields, SpanScan, StoredSpan};

use super::Engine;
use super::fetch::check_tenants;
use crate::Error;
use crate::links::NEAR_NS;
use crate::search::{Cursor, FoundSpan, Ranking, SearchAnswer, SearchRequest};
use crate::trace::{Outline, SpanProfile, TraceData};
use crate::traceql::{Query, TraceFacts};

/// Traces that are looked up at the same time.
pub(super) const LOOKUPS: usize = 8;
/// The most traces that a query about traces may have to look at.
const TRACES_MAX: usize = 200_000;

/// Up to so many traces a query about their structure looks up one by one; more are read in one scan.
const TRACES_LOOKED_UP_MAX: usize = 400;
/// Spans of such traces that one question holds in memory.
const SPANS_HELD_MAX: usize = 1_000_000;

/// What tells the place of a sample among the spans of its trace, and which of these is the root.
pub(super) const PLACES: SpanFields = SpanFields {
    attributes: false,
    resource: true,
    events: false,
};

impl Engine {
    /// Spans by TraceQL.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, Error> {
        check_tenants(&request.tenants)?;
        let limit = request.checked_limit()?;
        let Some(last_received) = self.snapshot.last_received() else {
            return Ok(SearchAnswer {
                spans: Vec::new(),
                matched: 0,
                next_page: None,
            });
        };
        let cursor = request.cursor(last_received)?;
        let facts = match request.query.needs_trace() {
            true => {
                self.facts_of_candidates(&request.tenants, &request.query, &scan(request, &cursor))
                    .await?
            }
            false => HashMap::new(),
        };
        let mut ranking = Ranking::new(request.order, limit, &cursor);
        self.visit_spans(&scan(request, &cursor), |stored| {
            if request.rule.holds(cursor.range, &stored.span)
                && request.query.test(&stored.span, facts.get(&stored.span.trace_id)) == Some(true)
            {
                ranking.add(stored);
            }
            ControlFlow::Continue(())
        })
        .await?;
        let (spans, matched, next_page) = ranking.finish(request, &cursor);
        Ok(SearchAnswer {
            spans: self.found(request, spans).await?,
            matched,
            next_page,
        })
    }

    /// Facts about every trace with a span for which the answer depends on them.
    pub(super) async fn facts_of_candidates(
        &self,
        tenants: &[Tenant],
        query: &Query,
        scan: &SpanScan,
    ) -> Result<HashMap<TraceId, TraceFacts>, Error> {
        let mut traces = HashSet::new();
        self.visit_spans(scan, |stored| {
            if query.test(&stored.span, None).is_none() {
                traces.insert(stored.span.trace_id);
            }
            match traces.len() > TRACES_MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .await?;
        if traces.len() > TRACES_MAX {
            return Err(Error::TooLarge {
                message: format!(
                    "the query asks about more than {TRACES_MAX} traces, expected a shorter range or more conditions on spans"
                ),
            });
        }
        match (traces.len() > TRACES_LOOKED_UP_MAX, query.is_structural()) {
            (true, true) => return self.scan_facts(query, scan, &traces).await,
            (true, false) => return self.scan_outlines(scan, traces).await,
            (false, _) => {}
        }
        let lookups = traces.into_iter().map(|trace_id| async move {
            let spans = self.snapshot.trace_spans_with(tenants, trace_id, query.trace_fields()).await?;
            let samples = Vec::new();
            Ok::<_, Error>((trace_id, TraceData { trace_id, spans, samples }.facts_for(query)))
        });
        stream::iter(lookups).buffer_unordered(LOOKUPS).try_collect().await
    }

    /// Time and root of many traces from one scan, of which nothing but these is held. As far as [`Engine::scan_facts`].
    async fn scan_outlines(&self, scan: &SpanScan, traces: HashSet<TraceId>) -> Result<HashMap<TraceId, TraceFacts>, Error> {
        let around = SpanScan {
            tenants: scan.tenants.clone(),
            range: scan.range.widened(NEAR_NS),
            conditions: Vec::new(),
            fields: SpanFields::default(),
            received_before: None,
        };
        let mut outlines: HashMap<TraceId, Outline> = traces.into_iter().map(|trace| (trace, Outline::default())).collect();
        self.visit_spans(&around, |stored| {
            if let Some(outline) = outlines.get_mut(&stored.span.trace_id) {
                outline.add(&stored.span);
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(outlines.into_iter().map(|(trace, outline)| (trace, outline.finish())).collect())
    }

    /// Facts about many traces from one scan of their time. Of traces that last for more than an hour beyond the range
    /// only what lies within it is known.
    async fn scan_facts(&self, query: &Query, scan: &SpanScan, traces: &HashSet<TraceId>) -> Result<HashMap<TraceId, TraceFacts>, Error> {
        let around = SpanScan {
            tenants: scan.tenants.clone(),
            range: scan.range.widened(NEAR_NS),
            conditions: Vec::new(),
            fields: query.trace_fields(),
            received_before: None,
        };
        let mut held: usize = 0;
        let mut by_trace: HashMap<TraceId, Vec<StoredSpan>> = HashMap::new();
        self.visit_spans(&around, |stored| {
            if traces.contains(&stored.span.trace_id) {
                held += 1;
                by_trace.entry(stored.span.trace_id).or_default().push(stored);
            }
            match held > SPANS_HELD_MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .await?;
        if held > SPANS_HELD_MAX {
            return Err(Error::TooLarge {
                message: format!(
                    "the query asks about traces with more than {SPANS_HELD_MAX} spans, expected a shorter range or more conditions on spans"
                ),
            });
        }
        let facts = by_trace.into_iter().map(|(trace_id, mut spans)| {
            // A span that was sent again is in several files until these are merged.
            let key = |stored: &StoredSpan| (stored.span.start, stored.span.span_id, stored.span.kind as u8);
            spans.sort_by_key(key);
            spans.dedup_by_key(|stored| key(stored));
            let samples = Vec::new();
            (trace_id, TraceData { trace_id, spans, samples }.facts_for(query))
        });
        Ok(facts.collect())
    }

    /// Adds what the traces of found spans tell.
    async fn found(&self, request: &SearchRequest, spans: Vec<StoredSpan>) -> Result<Vec<FoundSpan>, Error> {
        let mut traces: HashMap<TraceId, HashSet<SpanId>> = HashMap::new();
        for Span { trace_id, span_id, .. } in spans.iter().map(|stored| &stored.span) {
            traces.entry(*trace_id).or_default().insert(*span_id);
        }
        let lookups = traces.into_iter().map(|(trace, wanted)| async move {
            let mut data = self.fetch_named(&request.tenants, trace, PLACES).await?;
            self.add_loose(&request.tenants, &wanted, &mut data).await?;
            Ok::<_, Error>((trace, (data.facts(), data.cpu_by_span())))
        });
        let looked_up = stream::iter(lookups).buffer_unordered(LOOKUPS).try_collect();
        let by_trace: HashMap<TraceId, (TraceFacts, BTreeMap<SpanId, SpanProfile>)> = looked_up.await?;
        let complete = |stored: StoredSpan| {
            let known = by_trace.get(&stored.span.trace_id);
            let cpu = known
                .and_then(|(_, cpu)| cpu.get(&stored.span.span_id))
                .filter(|cpu| cpu.samples > 0);
            FoundSpan {
                root_name: known.and_then(|(facts, _)| facts.root_name.clone()),
                root_service: known.and_then(|(facts, _)| facts.root_service.clone()),
                cpu_ns: cpu.map(|cpu| cpu.value),
                samples: cpu.map_or(0, |cpu| cpu.samples),
                stored,
            }
        };
        Ok(spans.into_iter().map(complete).collect())
    }

    /// Visits the spans of a scan until `visit` breaks.
    pub(crate) async fn visit_spans(
        &self,
        scan: &SpanScan,
        mut visit: impl FnMut(StoredSpan) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        let each = |batch: Vec<StoredSpan>| batch.into_iter().try_for_each(&mut visit);
        self.snapshot.scan_spans(scan, each).await?;
        Ok(())
    }
}

fn scan(request: &SearchRequest, cursor: &Cursor) -> SpanScan {
    SpanScan {
        tenants: request.tenants.clone(),
        range: cursor.range,
        conditions: request.query.conditions(),
        fields: request.query.fields(),
        received_before: Some(cursor.received_before),
    }
}
