//! Which samples of a trace count for a span, its subtree or the whole trace.
//!
//! Pure: spans and samples in, sums and evidence out; stacks are looked up afterwards, for the answer only.

use std::collections::{BTreeMap, HashSet};

use spanflame_model::{Span, SpanId, TimeRange};
use spanflame_store::StoredSample;

use crate::Error;
use crate::expired::Expired;
use crate::gather::Gather;
use crate::links::{Owner, Precision, TraceIndex, observed};
use crate::measure::TypeSelector;
use crate::profile::{Evidence, PrecisionCounts, Scope};
use crate::reasons::{Reason, ReasonCode, SKEW_NS, text_of_ns};
use crate::rows::RowCollector;
use crate::timeline::Moments;
use crate::trace::TraceData;

/// Sums and evidence of an answer whose stacks are still ids.
pub(crate) struct Draft {
    pub(crate) gather: Gather,
    pub(crate) rows: Option<RowCollector>,
    pub(crate) moments: Option<Moments>,
    pub(crate) evidence: Evidence,
    /// The time that the selection covers.
    pub(crate) range: Option<TimeRange>,
    /// The spans for whose services it is to be found out why there are no samples.
    pub(crate) unexplained: Vec<Span>,
}

/// What to keep of samples beside their sums by stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Nothing.
    Sums,
    /// What was sent, for a lossless export.
    Rows,
    /// When they were taken, of so many.
    Moments(usize),
}

impl From<bool> for Keep {
    /// Whether rows are asked for.
    fn from(rows: bool) -> Keep {
        match rows {
            true => Keep::Rows,
            false => Keep::Sums,
        }
    }
}

/// What is asked of one trace.
#[derive(Clone, Copy)]
pub(crate) struct ScopedQuestion<'a> {
    /// `None` is the whole trace.
    pub(crate) span: Option<SpanId>,
    pub(crate) scope: Scope,
    pub(crate) selector: &'a TypeSelector,
    pub(crate) range: Option<TimeRange>,
    pub(crate) keep: Keep,
}

impl Draft {
    pub(crate) fn new(selector: &TypeSelector, range: Option<TimeRange>, keep: impl Into<Keep>) -> Draft {
        let keep = keep.into();
        let moments = match keep {
            Keep::Moments(limit) => Some(Moments::new(selector.clone(), range, limit)),
            Keep::Sums | Keep::Rows => None,
        };
        Draft {
            gather: Gather::new(selector.clone(), range),
            rows: (keep == Keep::Rows).then(|| RowCollector::new(selector.clone(), range)),
            moments,
            evidence: Evidence::default(),
            range,
            unexplained: Vec::new(),
        }
    }

    /// Only evidence and the sum matter: all stacks are one.
    pub(crate) fn without_stacks(mut self) -> Draft {
        self.gather = self.gather.without_stacks();
        self
    }

    /// Counts a sample; answers its observations.
    pub(crate) fn add(&mut self, stored: &StoredSample, precision: Precision) -> u64 {
        let samples = self.gather.add(stored);
        self.evidence.precision.count(precision, samples);
        if let Some(rows) = self.rows.as_mut().filter(|_| samples > 0) {
            rows.add(stored);
        }
        if let Some(moments) = self.moments.as_mut().filter(|_| samples > 0) {
            moments.add(stored);
        }
        samples
    }

    /// Likewise, only what lies in `range`.
    pub(crate) fn add_within(&mut self, stored: &StoredSample, precision: Precision, range: Option<TimeRange>) -> u64 {
        let samples = self.gather.add_within(stored, range);
        self.evidence.precision.count(precision, samples);
        if let Some(rows) = self.rows.as_mut().filter(|_| samples > 0) {
            rows.add(stored);
        }
        samples
    }

    /// Counts what the rollup knows of samples that are no longer kept. Which spans they named is not known.
    pub(crate) fn add_expired(&mut self, expired: &Expired) {
        let mut samples = 0;
        for rest in expired.rests() {
            samples += rest.samples;
            self.gather.add_rest(&rest);
            self.evidence.precision.count(Precision::Window, rest.samples);
        }
        if samples > 0 {
            self.gather.facts.coverage.extend(expired.coverage());
            let text = format!(
                "{samples} samples are no longer kept: they are answered from sums by minute, of every minute that overlaps the range"
            );
            let hint = "ask for whole minutes; keep samples longer for links and times within a minute";
            self.evidence.reasons.push(Reason::new(ReasonCode::WholeMinutes, text, hint));
        }
    }

    /// Copies what the samples told into the evidence.
    pub(crate) fn settle(&mut self) {
        let facts = &self.gather.facts;
        self.evidence.period_ns = facts.period_ns;
        self.evidence.prorated = facts.prorated;
        self.evidence.prorated_profile_ns = facts.prorated_profile_ns;
        self.evidence.covered = facts.coverage.bounds();
        self.evidence.covered_ns = self.range.map_or(0, |range| facts.coverage.covered_ns(range));
    }
}

impl PrecisionCounts {
    fn count(&mut self, precision: Precision, samples: u64) {
        *(match precision {
            Precision::Span => &mut self.span,
            Precision::LocalRoot => &mut self.local_root,
            Precision::Trace => &mut self.trace,
            Precision::Window => &mut self.window,
        }) += samples;
    }
}

/// The most services of a trace whose lack of samples is explained.
const EXPLAINED_SERVICES_MAX: usize = 8;

impl TraceData {
    /// The profile of a span (scopes `span`, `subtree`, `trace`) or of the whole trace.
    pub(crate) fn draft(&self, question: ScopedQuestion<'_>) -> Result<Draft, Error> {
        let mut index = TraceIndex::new(self.trace_id, &self.spans);
        if let Some(span) = question.span {
            index = index.assuming(span);
        }
        self.check_known(&index, question.span)?;
        let members = match (question.span, question.scope) {
            (Some(span), Scope::Span) => Some(HashSet::from([span])),
            (Some(span), Scope::Subtree) => Some(index.subtree(span)),
            _ => None,
        };
        let mut count = Count {
            index: &index,
            question,
            members,
            draft: Draft::new(question.selector, question.range, question.keep),
            held_by_root: 0,
            skew: Skew::default(),
        };
        count.draft.range = question.range.or_else(|| count.selected_range(self));
        self.samples.iter().for_each(|stored| count.add(stored));
        Ok(count.finish(self))
    }

    /// Whether anything stored names what is asked for.
    pub(crate) fn check_known(&self, index: &TraceIndex<'_>, span: Option<SpanId>) -> Result<(), Error> {
        let Some(span) = span else {
            return match self.spans.is_empty() && self.samples.is_empty() {
                true => Err(not_found(format!(
                    "trace {} is not stored: neither span nor sample names it",
                    self.trace_id
                ))),
                false => Ok(()),
            };
        };
        let names_it = |stored: &StoredSample| match index.owner(stored) {
            Owner::Span(owner, _) => owner == span,
            Owner::Candidates(spans, _) => spans.contains(&span),
            Owner::TraceOnly | Owner::Elsewhere => false,
        };
        match index.contains(span) || self.samples.iter().any(names_it) {
            true => Ok(()),
            false => Err(not_found(format!(
                "span {span} of trace {} is not stored: neither span nor sample names it",
                self.trace_id
            ))),
        }
    }
}

fn not_found(what: String) -> Error {
    Error::NotFound { what }
}

/// One pass over the samples of a trace.
struct Count<'a> {
    index: &'a TraceIndex<'a>,
    question: ScopedQuestion<'a>,
    /// `None` is the whole trace.
    members: Option<HashSet<SpanId>>,
    draft: Draft,
    held_by_root: u64,
    skew: Skew,
}

/// Samples that lie outside the span they name.
#[derive(Default)]
struct Skew {
    samples: u64,
    distance_ns_max: u64,
}

impl Count<'_> {
    fn add(&mut self, stored: &StoredSample) {
        match self.index.owner(stored) {
            Owner::Elsewhere => {}
            Owner::Span(span, precision) if self.holds(span) => {
                let samples = self.draft.add(stored, precision);
                self.skew.note(self.index, span, stored, samples);
            }
            Owner::Span(span, Precision::LocalRoot) if self.is_root_of_question(span) => {
                self.held_by_root += self.draft.gather.observe(stored);
            }
            Owner::Span(_, _) => {}
            Owner::TraceOnly => {
                if self.members.is_none() {
                    self.draft.add(stored, Precision::Trace);
                }
            }
            Owner::Candidates(spans, inside) => self.add_ambiguous(stored, &spans, inside),
        }
    }

    fn add_ambiguous(&mut self, stored: &StoredSample, spans: &[SpanId], inside: bool) {
        let (holds_all, holds_any) = match &self.members {
            None => (inside, true),
            Some(members) => {
                let held = spans.iter().filter(|span| members.contains(span)).count();
                (
                    inside && held == spans.len() && held > 0 && self.question.scope != Scope::Span,
                    held > 0,
                )
            }
        };
        self.draft.evidence.ambiguous += match (holds_all, holds_any) {
            (true, _) => self.draft.add(stored, Precision::Trace),
            (false, true) => self.draft.gather.observe(stored),
            (false, false) => 0,
        };
    }

    fn holds(&self, span: SpanId) -> bool {
        self.members.as_ref().is_none_or(|members| members.contains(&span))
    }

    fn is_root_of_question(&self, span: SpanId) -> bool {
        self.question
            .span
            .is_some_and(|asked| asked != span && self.index.local_root(asked) == span)
    }

    fn selected_range(&self, data: &TraceData) -> Option<TimeRange> {
        let selected = data.spans.iter().filter(|stored| self.holds(stored.span.span_id));
        selected.map(|stored| stored.span.range()).reduce(TimeRange::cover)
    }

    fn finish(mut self, data: &TraceData) -> Draft {
        self.draft.settle();
        let mut reasons = Vec::new();
        if let Some(span) = self.question.span.filter(|span| !self.index.contains(*span)) {
            let text = format!("span {span} was not received, only samples name it");
            reasons.push(Reason::new(
                ReasonCode::SpanNotReceived,
                text,
                "check the sampling and the export of traces",
            ));
        }
        if self.draft.gather.facts.samples == 0 {
            self.explain_from_trace(&mut reasons);
            if reasons.is_empty() {
                self.draft.unexplained = self.spans_to_explain(data);
            }
        }
        reasons.extend(self.skew.reason());
        if self.draft.gather.facts.samples == 0 {
            reasons.extend(self.draft.unexplained.iter().find_map(|span| skew_to_parent(self.index, span)));
        }
        self.draft.evidence.reasons = reasons;
        self.draft
    }

    /// Reasons that the trace's own samples tell.
    fn explain_from_trace(&self, reasons: &mut Vec<Reason>) {
        if let Some(asked) = self.question.span.filter(|_| self.held_by_root > 0) {
            let root = self.index.local_root(asked);
            let name = self.index.get(root).first().map_or("", |stored| stored.span.name.as_str());
            let text = format!(
                "{} samples of this process are labelled with its local root {root} ({name})",
                self.held_by_root
            );
            reasons.push(Reason::new(
                ReasonCode::HeldByLocalRoot,
                text,
                format!("ask for scope subtree of span {root}"),
            ));
        }
        if self.draft.evidence.ambiguous > 0 {
            let text = format!(
                "{} samples name this selection among others, none names it alone",
                self.draft.evidence.ambiguous
            );
            let hint = "ask for scope trace; only the client can say which span ran";
            reasons.push(Reason::new(ReasonCode::AmbiguousOnly, text, hint));
        }
        let facts = &self.draft.gather.facts;
        if facts.other_type_samples > 0 {
            let types: Vec<String> = facts.other_types.iter().map(ToString::to_string).collect();
            let text = format!("{} samples are there, of {}", facts.other_type_samples, types.join(", "));
            reasons.push(Reason::new(ReasonCode::TypeNotCollected, text, "ask for one of these types"));
        }
    }

    /// The span asked for, or of each service of the trace the longest.
    fn spans_to_explain(&self, data: &TraceData) -> Vec<Span> {
        if let Some(span) = self.question.span.filter(|_| self.question.scope != Scope::Trace) {
            return self.index.get(span).iter().take(1).map(|stored| stored.span.clone()).collect();
        }
        let mut longest: BTreeMap<&str, &Span> = BTreeMap::new();
        for stored in &data.spans {
            let entry = longest.entry(stored.span.resource.service()).or_insert(&stored.span);
            if stored.span.duration_ns > entry.duration_ns {
                *entry = &stored.span;
            }
        }
        longest.into_values().take(EXPLAINED_SERVICES_MAX).cloned().collect()
    }
}

impl Skew {
    fn note(&mut self, index: &TraceIndex<'_>, span: SpanId, stored: &StoredSample, samples: u64) {
        let when = observed(stored);
        let distances = index.get(span).iter().map(|known| distance_ns(known.span.range(), when));
        // Time of descendants is outside the span that holds it where they outlive it.
        if let Some(distance) = distances.min().filter(|distance| *distance > SKEW_NS) {
            self.samples += samples;
            self.distance_ns_max = self.distance_ns_max.max(distance);
        }
    }

    fn reason(&self) -> Option<Reason> {
        (self.samples > 0).then(|| {
            let text = format!(
                "{} samples lie up to {} outside the span they name: the clocks of profiler and tracer disagree",
                self.samples,
                text_of_ns(self.distance_ns_max)
            );
            Reason::new(
                ReasonCode::ClockSkew,
                text,
                "samples are counted by id; do not rely on scope window here",
            )
        })
    }
}

/// Nanoseconds between two ranges, 0 if they overlap.
fn distance_ns(a: TimeRange, b: TimeRange) -> u64 {
    b.start().nanos_since(a.end()).max(a.start().nanos_since(b.end()))
}

/// A span that begins before its parent in another process did shows that their clocks disagree.
pub(crate) fn skew_to_parent(index: &TraceIndex<'_>, span: &Span) -> Option<Reason> {
    let parent = index.get(span.parent_span_id?).first()?;
    let early = parent.span.start.nanos_since(span.start);
    let other_process = parent.span.resource.attributes() != span.resource.attributes();
    (other_process && early > SKEW_NS).then(|| {
        let text = format!(
            "the span begins {} before its parent: the clocks of their hosts disagree",
            text_of_ns(early)
        );
        Reason::new(
            ReasonCode::ClockSkew,
            text,
            "synchronise the clocks; matching by time does not work here",
        )
    })
}

#[cfg(test)]
mod tests;
