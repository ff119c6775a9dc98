//! Which span a sample belongs to, and how surely: the precision of a link, derived when asked.
//!
//! Stored is the client's claim. What it is worth depends on the spans around it, which may arrive later or
//! never: a plain `span_id` label is exact on a span that has no children in its process, while on a local
//! root with children it may stand for any of them (design, "Links").
//!
//! A span is a *local root* if OTLP's flags say that its parent is remote, else if its parent is absent (or was
//! not received) or has another resource. Spans may be missing, stored twice under one id (Zipkin's shared
//! halves) or name each other in a circle: every walk here ends.

use std::collections::{HashMap, HashSet};

use spanflame_model::{Claim, Link, Span, SpanId, TimeRange, TraceId};
use spanflame_store::{StoredSample, StoredSpan};

use crate::profile::Scope;

/// How far a sample that names no trace may lie from the span whose id it names: more than any clock is off,
/// and less than the time in which a 64-bit id is drawn twice.
pub const NEAR_NS: u64 = 3600 * 1_000_000_000;

/// How surely a sample belongs to the span it is counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// The span itself ran.
    Span,
    /// The span or one of its descendants in its process ran.
    LocalRoot,
    /// Only the trace is known.
    Trace,
    /// It ran at the same time and place.
    Window,
}

/// What a sample has to do with one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It names another trace or no span at all.
    Elsewhere,
    /// It belongs to one span, received or not.
    Span(SpanId, Precision),
    /// It names the trace and no span.
    TraceOnly,
    /// It names several spans; true if all of them belong to this trace.
    Candidates(Vec<SpanId>, bool),
}

/// Who called whom in one trace, over the spans that were received.
pub struct TraceIndex<'a> {
    trace: TraceId,
    spans: HashMap<SpanId, Vec<&'a StoredSpan>>,
    children: HashMap<SpanId, Vec<SpanId>>,
    /// Spans with a child in their own process.
    has_local_children: HashSet<SpanId>,
    assumed: Option<SpanId>,
}

impl<'a> TraceIndex<'a> {
    /// An index of `spans`, all of which belong to `trace`.
    pub fn new(trace: TraceId, spans: &'a [StoredSpan]) -> TraceIndex<'a> {
        let mut index = TraceIndex {
            trace,
            spans: HashMap::with_capacity(spans.len()),
            children: HashMap::new(),
            has_local_children: HashSet::new(),
            assumed: None,
        };
        for span in spans {
            index.spans.entry(span.span.span_id).or_default().push(span);
        }
        for stored in spans {
            let Some(parent) = stored.span.parent_span_id else { continue };
            if parent == stored.span.span_id {
                continue;
            }
            let siblings = index.children.entry(parent).or_default();
            if siblings.last() != Some(&stored.span.span_id) {
                siblings.push(stored.span.span_id);
            }
            if !index.starts_process(&stored.span) {
                index.has_local_children.insert(parent);
            }
        }
        index
    }

    /// Takes samples that name `span` and no trace for this trace's, although that span was not received.
    pub fn assuming(mut self, span: SpanId) -> TraceIndex<'a> {
        self.assumed = Some(span);
        self
    }

    /// The spans stored under an id: none, one, or the halves of a shared one.
    pub fn get(&self, id: SpanId) -> &[&'a StoredSpan] {
        self.spans.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Whether a span was received.
    pub fn contains(&self, id: SpanId) -> bool {
        self.spans.contains_key(&id)
    }

    /// Whether the span is where its process entered the trace.
    pub fn is_local_root(&self, id: SpanId) -> bool {
        self.get(id).iter().any(|stored| self.starts_process(&stored.span))
    }

    /// The span through which the process of `id` entered the trace: itself if it is one. Where the way up is
    /// broken, the highest span that was received.
    pub fn local_root(&self, id: SpanId) -> SpanId {
        let mut seen = HashSet::new();
        let mut at = id;
        while seen.insert(at) && !self.is_local_root(at) {
            let parent = self.get(at).iter().find_map(|stored| stored.span.parent_span_id);
            match parent {
                Some(parent) if self.contains(parent) && !seen.contains(&parent) => at = parent,
                _ => break,
            }
        }
        at
    }

    /// The span and all its descendants.
    pub fn subtree(&self, id: SpanId) -> HashSet<SpanId> {
        let mut found = HashSet::from([id]);
        let mut pending = vec![id];
        while let Some(at) = pending.pop() {
            for child in self.children.get(&at).into_iter().flatten() {
                if found.insert(*child) {
                    pending.push(*child);
                }
            }
        }
        found
    }

    /// The spans whose profile in scope `subtree` has samples.
    pub(crate) fn profiled_subtrees(&self, samples: &[StoredSample]) -> HashSet<SpanId> {
        let mut profiled = HashSet::new();
        let mut ambiguous: HashSet<Vec<SpanId>> = HashSet::new();
        for stored in samples {
            match self.owner(stored) {
                Owner::Span(span, _) => self.add_ancestry(span, &mut profiled),
                Owner::Candidates(spans, true) => drop(ambiguous.insert(spans)),
                Owner::Candidates(_, false) | Owner::TraceOnly | Owner::Elsewhere => {}
            }
        }
        // A subtree holds an ambiguous sample where it holds every span that the sample names.
        for spans in ambiguous {
            let lines = spans.into_iter().map(|span| {
                let mut line = HashSet::new();
                self.add_ancestry(span, &mut line);
                line
            });
            profiled.extend(lines.reduce(|a, b| &a & &b).into_iter().flatten());
        }
        profiled
    }

    /// Adds a span and everything above it; what is in `found` has its ancestors there too.
    fn add_ancestry(&self, id: SpanId, found: &mut HashSet<SpanId>) {
        let mut pending = vec![id];
        while let Some(at) = pending.pop() {
            if found.insert(at) {
                pending.extend(self.get(at).iter().filter_map(|stored| stored.span.parent_span_id));
            }
        }
    }

    /// The received spans whose samples an answer may need: the selected ones, and the local root that may hold
    /// their time.
    pub(crate) fn relevant(&self, span: Option<SpanId>, scope: Scope) -> HashSet<SpanId> {
        let mut wanted = match (span, scope) {
            (Some(span), Scope::Span | Scope::Window) => HashSet::from([span]),
            (Some(span), Scope::Subtree) => self.subtree(span),
            _ => self.spans.keys().copied().collect(),
        };
        wanted.extend(span.map(|span| self.local_root(span)));
        wanted
    }

    /// What a sample has to do with this trace.
    pub fn owner(&self, stored: &StoredSample) -> Owner {
        match &stored.sample.link {
            Link::None => Owner::Elsewhere,
            Link::One { trace_id, span_id, claim } => match (trace_id, span_id) {
                (Some(trace), _) if *trace != self.trace => Owner::Elsewhere,
                (Some(_), None) => Owner::TraceOnly,
                (Some(_), Some(span)) => Owner::Span(*span, self.precision(*span, *claim)),
                (None, Some(span)) if self.is_near(*span, stored) => Owner::Span(*span, self.precision(*span, *claim)),
                (None, _) => Owner::Elsewhere,
            },
            Link::Candidates { trace_ids, span_ids } => self.candidates(trace_ids, span_ids, stored),
        }
    }

    fn candidates(&self, traces: &[TraceId], spans: &[SpanId], stored: &StoredSample) -> Owner {
        let inside = match traces {
            [] => spans.iter().all(|span| self.is_near(*span, stored)),
            [one] => *one == self.trace,
            _ => false,
        };
        let named = traces.contains(&self.trace) || spans.iter().any(|span| self.is_near(*span, stored));
        match named {
            true => Owner::Candidates(spans.to_vec(), inside),
            false => Owner::Elsewhere,
        }
    }

    /// What a claim on a span is worth.
    pub(crate) fn precision(&self, span: SpanId, claim: Claim) -> Precision {
        let may_hold_children = self.is_local_root(span) && self.has_local_children.contains(&span);
        match claim {
            Claim::Active => Precision::Span,
            Claim::LocalRoot => Precision::LocalRoot,
            Claim::Label if may_hold_children => Precision::LocalRoot,
            Claim::Label => Precision::Span,
        }
    }

    /// Whether a sample that names `span` and no trace means the span of this trace.
    fn is_near(&self, span: SpanId, stored: &StoredSample) -> bool {
        if self.assumed == Some(span) {
            return true;
        }
        let when = observed(stored);
        let same =
            |candidate: &&StoredSpan| candidate.tenant == stored.tenant && candidate.span.range().widened(NEAR_NS).overlap(when).is_some();
        self.get(span).iter().any(same)
    }

    fn starts_process(&self, span: &Span) -> bool {
        let Some(parent) = span.parent_span_id else { return true };
        if let Some(remote) = span.parent_is_remote() {
            return remote;
        }
        let parents = self.get(parent);
        let same_resource = |stored: &&StoredSpan| {
            std::sync::Arc::ptr_eq(&stored.span.resource, &span.resource) || stored.span.resource.attributes() == span.resource.attributes()
        };
        !parents.iter().any(same_resource)
    }
}

/// When a sample was taken: from its first to its last time, else as long as its profile.
pub(crate) fn observed(stored: &StoredSample) -> TimeRange {
    match (stored.sample.times.first(), stored.sample.times.last()) {
        (Some(first), Some(last)) => TimeRange::lasting(*first, last.nanos_since(*first) + 1),
        _ => stored.info.range(),
    }
}

#[cfg(test)]
mod tests;
