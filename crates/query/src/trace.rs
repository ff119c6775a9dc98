//! One trace with what was profiled in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spanflame_model::{ProfileInfo, ProfileType, Span, SpanId, Tenant, TimeRange, Timestamp, TraceId};
use spanflame_store::{StoredSample, StoredSpan};

use crate::gather::Gather;
use crate::links::{Owner, TraceIndex};
use crate::measure::{Measure, TypeSelector};
use crate::traceql::{Query, TraceFacts};

/// Which trace to show.
#[derive(Clone, Debug)]
pub struct TraceRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Its id.
    pub trace_id: TraceId,
}

/// A trace as far as it was received.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its id.
    pub trace_id: TraceId,
    /// From the first start to the last end; `None` if no span was received, only samples that name it.
    pub range: Option<TimeRange>,
    /// Services that took part, by name.
    pub services: Vec<String>,
    /// Exactly one span has no parent, and the parent of every other one was received.
    pub complete: bool,
    /// By start, then span id.
    pub spans: Vec<TraceSpan>,
    /// What samples that name no received span add: spans that only samples name, and the bare trace.
    pub unassigned: BTreeMap<ProfileType, SpanProfile>,
}

/// A span of a trace.
#[derive(Clone, Debug)]
pub struct TraceSpan {
    /// The span.
    pub stored: StoredSpan,
    /// Through which span its process entered the trace; itself if it is that.
    pub local_root_span_id: SpanId,
    /// Its parent is named and was not received.
    pub parent_missing: bool,
    /// Another span with the same ids and other content is stored too.
    pub shared_id: bool,
    /// It or one of its descendants was profiled: its profile in scope `subtree` has samples.
    pub subtree_profiled: bool,
    /// What was profiled in it, in scope `span`.
    pub profiles: BTreeMap<ProfileType, SpanProfile>,
}

/// How much was profiled of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanProfile {
    /// Observations.
    pub samples: u64,
    /// In the type's unit.
    pub value: i64,
}

/// The spans of one trace and every sample that may belong to it.
#[derive(Clone, Debug)]
pub struct TraceData {
    /// Its id.
    pub trace_id: TraceId,
    /// By start, then span id.
    pub spans: Vec<StoredSpan>,
    /// In no order.
    pub samples: Vec<StoredSample>,
}

/// A trace's time and root, as its spans stream by in any order.
#[derive(Default)]
pub(crate) struct Outline {
    range: Option<TimeRange>,
    root: Option<Root>,
}

struct Root {
    place: (Timestamp, SpanId),
    name: String,
    service: String,
}

impl Outline {
    pub(crate) fn add(&mut self, span: &Span) {
        let range = span.range();
        self.range = Some(self.range.map_or(range, |known| known.cover(range)));
        let place = (span.start, span.span_id);
        let is_first = self.root.as_ref().is_none_or(|root| place < root.place);
        if span.parent_span_id.is_none() && is_first {
            self.root = Some(Root {
                place,
                name: span.name.clone(),
                service: span.resource.service().to_owned(),
            });
        }
    }

    pub(crate) fn finish(self) -> TraceFacts {
        let (root_name, root_service) = self.root.map(|root| (root.name, root.service)).unzip();
        TraceFacts {
            duration_ns: self.range.map_or(0, TimeRange::duration_ns),
            root_name,
            root_service,
            ..TraceFacts::default()
        }
    }
}

impl TraceData {
    /// The trace with the profiles of its spans.
    pub fn to_trace(&self) -> Trace {
        let index = TraceIndex::new(self.trace_id, &self.spans);
        let (mut by_span, unassigned) = self.profiles(&index);
        let range = self.spans.iter().map(|stored| stored.span.range()).reduce(TimeRange::cover);
        let services: BTreeSet<&str> = self.spans.iter().map(|stored| stored.span.resource.service()).collect();
        let profiled = index.profiled_subtrees(&self.samples);
        let mut spans: Vec<TraceSpan> = Vec::with_capacity(self.spans.len());
        for stored in &self.spans {
            let id = stored.span.span_id;
            spans.push(TraceSpan {
                local_root_span_id: index.local_root(id),
                parent_missing: stored.span.parent_span_id.is_some_and(|parent| !index.contains(parent)),
                shared_id: index.get(id).len() > 1,
                subtree_profiled: profiled.contains(&id),
                profiles: by_span.remove(&id).unwrap_or_default(),
                stored: stored.clone(),
            });
        }
        spans.sort_by_key(|span| (span.stored.span.start, span.stored.span.span_id));
        let roots = spans.iter().filter(|span| span.stored.span.parent_span_id.is_none()).count();
        Trace {
            trace_id: self.trace_id,
            range,
            services: services.into_iter().map(str::to_owned).collect(),
            complete: roots == 1 && !spans.iter().any(|span| span.parent_missing),
            spans,
            unassigned,
        }
    }

    /// What a query may ask about the trace.
    pub(crate) fn facts(&self) -> TraceFacts {
        let mut outline = Outline::default();
        self.spans.iter().for_each(|stored| outline.add(&stored.span));
        outline.finish()
    }

    /// The same for one query, with what it selects of the trace.
    pub(crate) fn facts_for(&self, query: &Query) -> TraceFacts {
        query.with_selected(self.facts(), self.spans.iter().map(|stored| &stored.span))
    }

    /// CPU of each span in scope `span`.
    pub fn cpu_by_span(&self) -> BTreeMap<SpanId, SpanProfile> {
        let index = TraceIndex::new(self.trace_id, &self.spans);
        let mut gathers: BTreeMap<SpanId, Gather> = BTreeMap::new();
        for stored in &self.samples {
            if let Owner::Span(span, _) = index.owner(stored) {
                gathers
                    .entry(span)
                    .or_insert_with(|| Gather::new(TypeSelector::Cpu, None))
                    .add(stored);
            }
        }
        gathers.into_iter().map(|(span, gather)| (span, gather.sum())).collect()
    }

    /// Profiles by span and type, and what belongs to no received span. A span stored twice shows its profiles
    /// once, at the half that comes first.
    fn profiles(&self, index: &TraceIndex<'_>) -> (BTreeMap<SpanId, Profiles>, Profiles) {
        let mut gathers: BTreeMap<(Option<SpanId>, usize), Gather> = BTreeMap::new();
        let mut types = TypeTable::default();
        for stored in &self.samples {
            let span = match index.owner(stored) {
                Owner::Span(span, _) => Some(span).filter(|span| index.contains(*span)),
                Owner::TraceOnly => None,
                Owner::Candidates(_, _) | Owner::Elsewhere => continue,
            };
            types.look_at(&stored.info);
            for number in &types.recent_numbers {
                let gather = || Gather::new(TypeSelector::from(types.types[*number].clone()), None);
                gathers.entry((span, *number)).or_insert_with(gather).add(stored);
            }
        }
        let (mut by_span, mut unassigned): (BTreeMap<SpanId, Profiles>, Profiles) = Default::default();
        for ((span, number), gather) in gathers {
            let profile_type = types.types[number].clone();
            match span {
                Some(span) => by_span.entry(span).or_default().insert(profile_type, gather.sum()),
                None => unassigned.insert(profile_type, gather.sum()),
            };
        }
        (by_span, unassigned)
    }
}

type Profiles = BTreeMap<ProfileType, SpanProfile>;

/// The types that were seen, by number, and the numbers of the profile that was looked at last.
#[derive(Default)]
struct TypeTable {
    types: Vec<ProfileType>,
    recent: Option<Arc<ProfileInfo>>,
    recent_numbers: Vec<usize>,
}

impl TypeTable {
    fn look_at(&mut self, info: &Arc<ProfileInfo>) {
        if self.recent.as_ref().is_some_and(|recent| Arc::ptr_eq(recent, info)) {
            return;
        }
        self.recent = Some(info.clone());
        self.recent_numbers.clear();
        for measure in Measure::all(info) {
            let known = self.types.iter().position(|known| *known == measure.profile_type);
            self.recent_numbers.push(known.unwrap_or(self.types.len()));
            if known.is_none() {
                self.types.push(measure.profile_type);
            }
        }
    }
}
