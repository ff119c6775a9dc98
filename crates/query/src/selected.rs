//! The profile of a set of spans: which samples count, each once, however the spans nest.
//!
//! Pure: [`Places`] knows of every span around the selection what a claim on it is worth, in some tens of bytes,
//! so that a million selected spans fit; samples then stream by. What counts is what would count if every span
//! were asked for alone (`scoped.rs`), added without counting a sample twice.

use std::collections::{HashMap, HashSet};

use spanflame_model::{Claim, Link, Span, SpanId, Tenant, TimeRange, TraceId};
use spanflame_store::{StoredSample, StoredSpan};

use crate::catalog::Quantiles;
use crate::links::{NEAR_NS, Precision, TraceIndex, observed};
use crate::measure::TypeSelector;
use crate::profile::{ProfileAnswer, Scope};
use crate::scoped::Draft;
use crate::stats::Durations;
use crate::traceql::Query;

/// When a span belongs to a range of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeRule {
    /// When it overlaps the range.
    #[default]
    Overlap,
    /// When it began in the range: what a cell of a heatmap counts.
    Start,
}

impl RangeRule {
    /// The rule of a word, if it is one.
    pub fn from_word(word: &str) -> Option<RangeRule> {
        match word {
            "overlap" => Some(RangeRule::Overlap),
            "start" => Some(RangeRule::Start),
            _ => None,
        }
    }

    /// The word used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            RangeRule::Overlap => "overlap",
            RangeRule::Start => "start",
        }
    }

    /// Whether a span that overlaps `range` belongs to it.
    pub(crate) fn holds(self, range: TimeRange, span: &Span) -> bool {
        self == RangeRule::Overlap || range.contains(span.start)
    }
}

/// A set of spans.
#[derive(Clone, Debug)]
pub struct SpanSelection {
    /// What they look like.
    pub query: Query,
    /// When they ran.
    pub range: TimeRange,
    /// What that means.
    pub rule: RangeRule,
}

/// Which spans to profile together.
#[derive(Clone, Debug)]
pub struct SelectedRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Which spans.
    pub spans: SpanSelection,
    /// How much around each: [`Scope::Span`] or [`Scope::Subtree`].
    pub scope: Scope,
    /// Which values.
    pub profile_type: TypeSelector,
    /// Also answer the samples as they were sent, for a lossless export.
    pub rows: bool,
}

/// One profile of many spans.
#[derive(Clone, Debug)]
pub struct SelectedProfile {
    /// Their profile.
    pub profile: ProfileAnswer,
    /// The spans.
    pub spans: SelectedSpans,
}

/// What was selected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelectedSpans {
    /// How many spans.
    pub spans: u64,
    /// Those without a sample in the scope asked for.
    pub without_samples: u64,
    /// Sum of their durations, in nanoseconds.
    pub wall_ns: u64,
    /// Their durations by rank; `None` without spans.
    pub quantiles: Option<Quantiles>,
}

/// The spans that match, as they stream by.
#[derive(Default)]
pub(crate) struct Matches {
    /// How many rows of each span; several only where a span was stored twice.
    pub(crate) by_trace: HashMap<TraceId, HashMap<SpanId, u32>>,
    pub(crate) count: u64,
    wall_ns: u64,
    durations: Durations,
    /// When they ran.
    pub(crate) covered: Option<TimeRange>,
    /// The one whose lack of samples would be the most surprising.
    pub(crate) longest: Option<Span>,
}

impl Matches {
    pub(crate) fn add(&mut self, span: Span) {
        *self.by_trace.entry(span.trace_id).or_default().entry(span.span_id).or_default() += 1;
        self.count += 1;
        self.wall_ns = self.wall_ns.saturating_add(span.duration_ns);
        self.durations.add(span.duration_ns);
        let range = span.range();
        self.covered = Some(self.covered.map_or(range, |covered| covered.cover(range)));
        if self.longest.as_ref().is_none_or(|longest| longest.duration_ns < span.duration_ns) {
            self.longest = Some(span);
        }
    }
}

/// What samples count for a selection.
pub(crate) struct Places {
    scope: Scope,
    places: HashMap<(TraceId, SpanId), Place>,
    /// Traces in which a span id is, for samples that name no trace.
    traces: HashMap<SpanId, Vec<TraceId>>,
    selected: HashMap<TraceId, HashMap<SpanId, u32>>,
    sampled: HashSet<(TraceId, SpanId)>,
}

/// One span of a trace with a selected span.
struct Place {
    tenant: Tenant,
    parent: Option<SpanId>,
    range: TimeRange,
    /// What a plain label on it is worth.
    label: Precision,
    /// It is selected, or below a selected span where subtrees are asked for.
    is_member: bool,
}

impl Places {
    pub(crate) fn new(scope: Scope, selected: HashMap<TraceId, HashMap<SpanId, u32>>) -> Places {
        Places {
            scope,
            places: HashMap::new(),
            traces: HashMap::new(),
            selected,
            sampled: HashSet::new(),
        }
    }

    /// Adds the spans of a trace.
    pub(crate) fn add_trace(&mut self, trace: TraceId, spans: &[StoredSpan]) {
        let index = TraceIndex::new(trace, spans);
        let mut members: HashSet<SpanId> = HashSet::new();
        for span in self.selected.get(&trace).into_iter().flat_map(HashMap::keys) {
            match self.scope {
                Scope::Subtree if !members.contains(span) => members.extend(index.subtree(*span)),
                _ => drop(members.insert(*span)),
            }
        }
        for StoredSpan { tenant, span, .. } in spans {
            let id = span.span_id;
            let place = self.places.entry((trace, id)).or_insert_with(|| Place {
                tenant: tenant.clone(),
                parent: span.parent_span_id,
                range: span.range(),
                label: index.precision(id, Claim::Label),
                is_member: members.contains(&id),
            });
            // The halves of a shared span have one time here.
            place.range = place.range.cover(span.range());
            let traces = self.traces.entry(id).or_default();
            if traces.last() != Some(&trace) {
                traces.push(trace);
            }
        }
    }

    /// The traces of the selected spans.
    pub(crate) fn traces_selected(&self) -> impl Iterator<Item = TraceId> {
        self.selected.keys().copied()
    }

    /// The one trace, of those that were added, through which a sample is counted: it may be found through several.
    pub(crate) fn home(&self, stored: &StoredSample) -> Option<TraceId> {
        match &stored.sample.link {
            Link::None => None,
            Link::One { trace_id, span_id, .. } => trace_id.or_else(|| self.trace_near((*span_id)?, stored)),
            Link::Candidates { trace_ids, span_ids } => {
                let named = trace_ids.iter().copied().find(|trace| self.selected.contains_key(trace));
                named.or_else(|| span_ids.iter().find_map(|span| self.trace_near(*span, stored)))
            }
        }
    }

    /// Counts a sample, if it belongs to the selection.
    pub(crate) fn add(&mut self, stored: &StoredSample, draft: &mut Draft) {
        match &stored.sample.link {
            Link::None => {}
            Link::One { trace_id, span_id, claim } => {
                let Some(span) = *span_id else { return };
                let Some(trace) = trace_id.or_else(|| self.trace_near(span, stored)) else {
                    return;
                };
                let Some(place) = self.places.get(&(trace, span)).filter(|place| place.is_member) else {
                    return;
                };
                let precision = match claim {
                    Claim::Active => Precision::Span,
                    Claim::LocalRoot => Precision::LocalRoot,
                    Claim::Label => place.label,
                };
                if draft.add(stored, precision) > 0 {
                    self.sampled.insert((trace, span));
                }
            }
            Link::Candidates { trace_ids, span_ids } => self.add_ambiguous(stored, trace_ids, span_ids, draft),
        }
    }

    /// A sample that names several spans belongs to the selection only where all of them do.
    fn add_ambiguous(&mut self, stored: &StoredSample, traces: &[TraceId], spans: &[SpanId], draft: &mut Draft) {
        let of = |span: &SpanId| {
            let named = traces.iter().copied().find(|trace| self.places.contains_key(&(*trace, *span)));
            let trace = named.or_else(|| traces.is_empty().then(|| self.trace_near(*span, stored)).flatten())?;
            self.places[&(trace, *span)].is_member.then_some((trace, *span))
        };
        let held: Vec<(TraceId, SpanId)> = spans.iter().filter_map(of).collect();
        if held.is_empty() {
            return;
        }
        let holds_all = held.len() == spans.len() && self.scope != Scope::Span;
        draft.evidence.ambiguous += match holds_all {
            true => {
                let samples = draft.add(stored, Precision::Trace);
                self.sampled.extend(held.into_iter().filter(|_| samples > 0));
                samples
            }
            false => draft.gather.observe(stored),
        };
    }

    /// The trace that a sample means which names a span and no trace.
    fn trace_near(&self, span: SpanId, stored: &StoredSample) -> Option<TraceId> {
        let when = observed(stored);
        let is_near = |trace: &&TraceId| {
            let place = &self.places[&(**trace, span)];
            place.tenant == stored.tenant && place.range.widened(NEAR_NS).overlap(when).is_some()
        };
        self.traces.get(&span)?.iter().find(is_near).copied()
    }

    /// Rows of selected spans that have no sample in the scope asked for.
    pub(crate) fn without_samples(&self) -> u64 {
        let mut reached: HashSet<(TraceId, SpanId)> = HashSet::new();
        for (trace, span) in &self.sampled {
            let mut at = Some(*span);
            // Every sampled span is in the subtrees of those above it.
            while let Some(span) = at.filter(|span| reached.insert((*trace, *span))) {
                at = match self.scope {
                    Scope::Subtree => self.places.get(&(*trace, span)).and_then(|place| place.parent),
                    _ => None,
                };
            }
        }
        let rows = self.selected.iter().flat_map(|(trace, spans)| {
            let reached = &reached;
            spans.iter().filter(move |(span, _)| !reached.contains(&(*trace, **span)))
        });
        rows.map(|(_, count)| u64::from(*count)).sum()
    }
}

impl Matches {
    /// The selection as a whole; `without_samples` is for the samples to tell.
    pub(crate) fn finish(self, without_samples: u64) -> SelectedSpans {
        SelectedSpans {
            spans: self.count,
            without_samples,
            wall_ns: self.wall_ns,
            quantiles: self.durations.quantiles(),
        }
    }
}
