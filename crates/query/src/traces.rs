//! Traces by TraceQL: the newest ones that hold a span which matches.
//!
//! A search visits every span of the range that the store cannot rule out and keeps the traces whose matching spans
//! began last. These are then read whole, which tells how many of their spans match and what they are about. Which
//! traces are found depends on what is stored and on nothing else: not on files, memory or the order of arrival.

use std::collections::{BTreeMap, HashMap, HashSet};

use spanflame_model::{Span, SpanId, StatusCode, Tenant, TimeRange, Timestamp, TraceId, Value};

use crate::Error;
use crate::tags::Tags;
use spanflame_store::SpanFields;

use crate::trace::TraceData;
use crate::traceql::Query;

/// Which traces to find.
#[derive(Clone, Debug)]
pub struct TracesRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// What one of their spans looks like.
    pub query: Query,
    /// What that span also has somewhere.
    pub tags: Tags,
    /// That span overlaps this.
    pub range: TimeRange,
    /// How many at most: 1 to [`TracesRequest::LIMIT_MAX`].
    pub limit: usize,
    /// How many of the spans that match are answered for each trace.
    pub spans_max: usize,
}

impl TracesRequest {
    /// The largest limit.
    pub const LIMIT_MAX: usize = 10_000;

    /// The parts of a span that its conditions read.
    pub(crate) fn fields(&self) -> SpanFields {
        match self.tags.is_empty() {
            true => self.query.fields(),
            false => SpanFields::ALL,
        }
    }

    /// The limit, if it is within bounds.
    pub(crate) fn checked_limit(&self) -> Result<usize, Error> {
        match (1..=TracesRequest::LIMIT_MAX).contains(&self.limit) {
            true => Ok(self.limit),
            false => Err(Error::Invalid {
                field: "limit",
                message: format!("limit is {}, expected 1 to {}", self.limit, TracesRequest::LIMIT_MAX),
            }),
        }
    }
}

/// A trace that holds spans which match.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundTrace {
    /// Its id.
    pub trace_id: TraceId,
    /// Name of its root span, if that was received.
    pub root_name: Option<String>,
    /// Service of its root span, if that was received.
    pub root_service: Option<String>,
    /// From its first start to its last end, the spans that do not match included.
    pub range: TimeRange,
    /// Spans by service.
    pub services: BTreeMap<String, SpanCount>,
    /// Spans whose parent is named and was not received.
    pub orphans: u64,
    /// The first of the spans that match, by start, then span id.
    pub spans: Vec<MatchedSpan>,
    /// How many match.
    pub matched: u64,
}

/// How many spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCount {
    /// All of them.
    pub spans: u64,
    /// Those with status error.
    pub errors: u64,
}

/// A span that matches, with what the query asks about it.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchedSpan {
    /// The span; attributes are filled in where the query reads them.
    pub span: Span,
    /// What the query names of it, in the order of the query: key and value of what is there.
    pub named: Vec<(String, Value)>,
}

/// The traces whose matching spans began last, at most `limit`.
///
/// Holds at most a few times as many: a trace that is dropped began earlier than `limit` others, and comes back if a
/// later span of it is seen.
pub(crate) struct Newest {
    limit: usize,
    starts: HashMap<TraceId, Timestamp>,
}

/// The least number of traces that are held before old ones are dropped.
const HELD_MIN: usize = 10_000;

impl Newest {
    pub(crate) fn new(limit: usize) -> Newest {
        Newest {
            limit,
            starts: HashMap::new(),
        }
    }

    pub(crate) fn add(&mut self, span: &Span) {
        let start = self.starts.entry(span.trace_id).or_insert(span.start);
        *start = span.start.max(*start);
        if self.starts.len() >= HELD_MIN.max(4 * self.limit) {
            let best = self.take_best();
            self.starts.extend(best);
        }
    }

    /// By start of their latest matching span, latest first, then by id.
    pub(crate) fn finish(mut self) -> Vec<TraceId> {
        self.take_best().into_iter().map(|(trace, _)| trace).collect()
    }

    fn take_best(&mut self) -> Vec<(TraceId, Timestamp)> {
        let mut all: Vec<(TraceId, Timestamp)> = self.starts.drain().collect();
        all.sort_unstable_by_key(|(trace, start)| (std::cmp::Reverse(*start), *trace));
        all.truncate(self.limit);
        all
    }
}

impl TraceData {
    /// What a search answers about this trace; `None` if no span of it matches.
    pub(crate) fn found(&self, request: &TracesRequest) -> Option<FoundTrace> {
        let facts = self.facts_for(&request.query);
        let mut found = FoundTrace {
            trace_id: self.trace_id,
            range: self.spans.iter().map(|stored| stored.span.range()).reduce(TimeRange::cover)?,
            services: BTreeMap::new(),
            orphans: 0,
            spans: Vec::new(),
            matched: 0,
            root_name: facts.root_name.clone(),
            root_service: facts.root_service.clone(),
        };
        let received: HashSet<SpanId> = self.spans.iter().map(|stored| stored.span.span_id).collect();
        let mut matching: Vec<&Span> = Vec::new();
        for span in self.spans.iter().map(|stored| &stored.span) {
            let count = found.services.entry(span.resource.service().to_owned()).or_default();
            count.spans += 1;
            count.errors += u64::from(span.status == StatusCode::Error);
            found.orphans += u64::from(span.parent_span_id.is_some_and(|parent| !received.contains(&parent)));
            let is_inside = span.range().overlap(request.range).is_some();
            if is_inside && request.query.test(span, Some(&facts)) == Some(true) && request.tags.are_on(span) {
                matching.push(span);
            }
        }
        matching.sort_by_key(|span| (span.start, span.span_id));
        found.matched = matching.len() as u64;
        let shown = |span: &&Span| MatchedSpan {
            span: (*span).clone(),
            named: request.query.named(span, &facts),
        };
        found.spans = matching.iter().take(request.spans_max).map(shown).collect();
        (found.matched > 0).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use spanflame_testkit::SpanBuilder;

    use super::*;

    #[test]
    fn the_newest_survive_however_many_came_before() {
        let mut newest = Newest::new(2);
        let traces = 3 * HELD_MIN as u64;
        // Trace 1 begins first and again last; the others begin in between, latest first.
        newest.add(&SpanBuilder::new(1, 1, "s").time(0, 1).build());
        for n in (2..traces).rev() {
            newest.add(&SpanBuilder::new(n, 1, "s").time(n, 1).build());
        }
        newest.add(&SpanBuilder::new(1, 2, "s").time(traces + 1, 1).build());
        let expected = [1, traces - 1].map(spanflame_testkit::trace_id);
        assert_eq!(newest.finish(), expected);
    }
}
