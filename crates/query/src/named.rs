//! The profile of spans and traces that are named by id alone, among the profiles of some labels.
//!
//! Who asks so knows neither the trace of a span nor how its client labels samples, so the scope follows the client:
//! where a span's samples are labelled with it as local root, they hold its descendants' time, and the answer is that
//! of scope `subtree`; where the span that ran is labelled, scope `span`. A span without samples of its own is
//! answered with its descendants', rather than with nothing.
//!
//! A sample that names what is asked for counts wholly if it overlaps the range: a range around a span is there to find
//! its profiles, not to cut them. Observations with times of their own count one by one. Pure.

use std::collections::HashSet;

use spanflame_model::{SpanId, TimeRange};
use spanflame_store::StoredSample;

use crate::links::{Owner, Precision, TraceIndex};
use crate::profile::Scope;
use crate::scoped::Draft;
use crate::selector::LabelSelector;
use crate::trace::TraceData;

/// One growing answer over several traces.
pub(crate) struct NamedCount<'a> {
    selector: &'a LabelSelector,
    range: Option<TimeRange>,
    pub(crate) draft: Draft,
    /// The widest scope in which a span was answered.
    pub(crate) scope: Option<Scope>,
}

impl<'a> NamedCount<'a> {
    /// Nothing yet. `draft` adds up without a range of its own.
    pub(crate) fn new(selector: &'a LabelSelector, range: Option<TimeRange>, draft: Draft) -> NamedCount<'a> {
        NamedCount {
            selector,
            range,
            draft,
            scope: None,
        }
    }

    /// Adds what a trace holds of `spans`; of the whole trace for `None`.
    pub(crate) fn add_trace(&mut self, data: &TraceData, spans: Option<&[SpanId]>) {
        let mut index = TraceIndex::new(data.trace_id, &data.spans);
        if let Some([span]) = spans {
            index = index.assuming(*span);
        }
        let members = spans.map(|spans| self.members(&index, data, spans));
        if members.is_none() {
            self.scope = Some(Scope::Trace);
        }
        for stored in &data.samples {
            let owner = index.owner(stored);
            let held = |span: &SpanId| members.as_ref().is_none_or(|members| members.contains(span));
            match owner {
                Owner::Span(span, precision) if held(&span) => self.add(stored, precision),
                Owner::TraceOnly if members.is_none() => self.add(stored, Precision::Trace),
                Owner::Candidates(candidates, true) if !candidates.is_empty() && candidates.iter().all(held) => {
                    self.draft.evidence.ambiguous += 1;
                    self.add(stored, Precision::Trace);
                }
                Owner::Candidates(candidates, _) if candidates.iter().any(held) => self.draft.evidence.ambiguous += 1,
                _ => {}
            }
        }
    }

    /// Adds a sample that names a span of which no trace is known.
    pub(crate) fn add_loose(&mut self, stored: &StoredSample) {
        self.scope.get_or_insert(Scope::Span);
        self.add(stored, Precision::Span);
    }

    fn add(&mut self, stored: &StoredSample, precision: Precision) {
        if !self.selector.selects(&stored.info) {
            return;
        }
        let within = match (self.range, stored.sample.times.is_empty()) {
            (Some(range), true) if stored.info.range().overlap(range).is_none() => return,
            (range, false) => range,
            (_, true) => None,
        };
        self.draft.add_within(stored, precision, within);
    }

    /// The spans whose samples count, each asked-for span in its scope.
    fn members(&mut self, index: &TraceIndex<'_>, data: &TraceData, spans: &[SpanId]) -> HashSet<SpanId> {
        let mut own: HashSet<SpanId> = HashSet::new();
        let mut local_roots: HashSet<SpanId> = HashSet::new();
        for stored in &data.samples {
            if let Owner::Span(span, precision) = index.owner(stored)
                && self.selector.selects(&stored.info)
            {
                own.insert(span);
                if precision == Precision::LocalRoot {
                    local_roots.insert(span);
                }
            }
        }
        let mut members = HashSet::new();
        for span in spans {
            match own.contains(span) && !local_roots.contains(span) {
                true => {
                    self.scope.get_or_insert(Scope::Span);
                    members.insert(*span);
                }
                false => {
                    self.scope = Some(Scope::Subtree);
                    members.extend(index.subtree(*span));
                }
            }
        }
        members
    }
}

#[cfg(test)]
mod tests;
