//! The profile of a selection: what is asked, what is answered, and which samples count.
//!
//! A selection is a span in one of four scopes, a trace, or services over time. CPU may exceed a span's wall
//! time (parallel threads, coarse periods) and is never clamped. An answer without samples is an answer: it
//! says why.

use spanflame_model::{Fingerprint, Label, Link, ProfileType, SpanId, StackId, StackSet, Tenant, TimeRange, TraceId, ValueType};

use crate::measure::TypeSelector;
use crate::reasons::Reason;
use crate::selector::LabelSelector;
use crate::tree::{CallTree, StackTotal};
use crate::window::WindowMatch;

/// What to profile.
#[derive(Clone, Debug)]
pub struct ProfileRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// What to add up.
    pub selection: Selection,
    /// Which values.
    pub profile_type: TypeSelector,
    /// Only samples in this time. `None` is everything for spans and traces; services need a range.
    pub range: Option<TimeRange>,
    /// Also answer [`ProfileAnswer::rows`], for a lossless export.
    pub rows: bool,
}

/// A set of samples.
#[derive(Clone, Debug)]
pub enum Selection {
    /// One span.
    Span {
        /// Its trace.
        trace_id: TraceId,
        /// Its id.
        span_id: SpanId,
        /// How much around it.
        scope: Scope,
    },
    /// A whole trace, all services.
    Trace {
        /// Its id.
        trace_id: TraceId,
    },
    /// Several spans or whole traces of profiles with some labels. Each sample counts once, wholly, if it or its profile
    /// overlaps the range; no span and no trace is nothing.
    Named {
        /// Spans by id alone: their traces are looked up. Each in scope `subtree` where its client labels local roots
        /// or where it has no samples of its own, else in scope `span`.
        span_ids: Vec<SpanId>,
        /// Traces, in scope `trace`.
        trace_ids: Vec<TraceId>,
        /// Which profiles.
        selector: LabelSelector,
    },
    /// Single profiles, each wholly if it overlaps the range.
    Profiles {
        /// Their identities.
        ids: Vec<Fingerprint>,
        /// Only of those with these labels.
        selector: LabelSelector,
    },
    /// Everything that the profiles of a selector's services hold, linked or not.
    Services {
        /// Which profiles.
        selector: LabelSelector,
    },
}

/// How much around a span counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The span itself.
    #[default]
    Span,
    /// With its descendants.
    Subtree,
    /// The whole trace.
    Trace,
    /// What ran at the same time and place, for samples without ids.
    Window,
}

impl Scope {
    /// The word used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Span => "span",
            Scope::Subtree => "subtree",
            Scope::Trace => "trace",
            Scope::Window => "window",
        }
    }

    /// The scope of a word, if it is one.
    pub fn from_word(word: &str) -> Option<Scope> {
        [Scope::Span, Scope::Subtree, Scope::Trace, Scope::Window]
            .into_iter()
            .find(|scope| scope.as_str() == word)
    }
}

/// A profile with what it rests on.
#[derive(Clone, Debug)]
pub struct ProfileAnswer {
    /// What the values measure; their unit is `profile_type.sample.unit`.
    pub profile_type: ProfileType,
    /// The scope that was asked for; `None` for services.
    pub scope: Option<Scope>,
    /// Sum of all values.
    pub total: i64,
    /// Observations behind it.
    pub samples: u64,
    /// Who called whom.
    pub tree: CallTree,
    /// The same by stack, in order of stack id.
    pub totals: Vec<StackTotal>,
    /// The stacks that `totals` and `rows` name.
    pub stacks: StackSet,
    /// Samples as they were sent, only if the request asked for rows.
    pub rows: Option<Rows>,
    /// The time the samples come from: the range asked for, else the spans', else the profiles'.
    pub range: Option<TimeRange>,
    /// What the answer rests on.
    pub evidence: Evidence,
}

impl ProfileAnswer {
    /// The answer to a question that nothing can match.
    pub fn empty(profile_type: TypeSelector) -> ProfileAnswer {
        ProfileAnswer {
            profile_type: profile_type.nominal(),
            scope: None,
            total: 0,
            samples: 0,
            tree: CallTree::build(&[], &StackSet::new()),
            totals: Vec::new(),
            stacks: StackSet::new(),
            rows: None,
            range: None,
            evidence: Evidence::default(),
        }
    }
}

/// Samples as they were sent, for formats that keep them.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// What the values of every row measure: all types of the profiles where they agree, else the wanted one.
    pub types: Vec<ValueType>,
    /// Between what two samples lie.
    pub period_type: ValueType,
    /// How far apart, in units of `period_type`; 0 if unknown or mixed.
    pub period: i64,
    /// By stack, then as sent.
    pub rows: Vec<Row>,
}

/// One sample of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its stack.
    pub stack: StackId,
    /// Parallel to [`Rows::types`].
    pub values: Vec<i64>,
    /// The span its client named.
    pub link: Link,
    /// Its thread's id.
    pub thread_id: Option<i64>,
    /// Its thread's name.
    pub thread_name: Option<String>,
    /// Its process.
    pub pid: Option<i64>,
    /// All other labels.
    pub labels: Vec<Label>,
}

/// What an answer over samples rests on. All counts are observations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// How far apart samples lie; the coarsest where profiles differ, `None` if unknown.
    pub period_ns: Option<u64>,
    /// How surely the samples belong to the selection.
    pub precision: PrecisionCounts,
    /// Observations that name several spans, one of them in the selection, and were therefore left out (or,
    /// where the selection holds every span they name, included).
    pub ambiguous: u64,
    /// Functions of the answer that have no name yet.
    pub unresolved_frames: u64,
    /// From the beginning of the first contributing profile to the end of the last; `None` if there is none.
    pub covered: Option<TimeRange>,
    /// How much of the selection's time the contributing profiles cover, in nanoseconds.
    pub covered_ns: u64,
    /// In scope `window`: by what the samples were matched.
    pub window_match: Option<WindowMatch>,
    /// Observations of profiles without sample times that only overlap the range: their values count in
    /// proportion.
    pub prorated: u64,
    /// The longest of those profiles, in nanoseconds; 0 if there is none. A 10 s profile tells little about a
    /// span of 0.3 s.
    pub prorated_profile_ns: u64,
    /// Why there are no samples, or why they are not what one might expect. The most likely one first.
    pub reasons: Vec<Reason>,
}

/// Observations by precision of their link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrecisionCounts {
    /// The span itself ran.
    pub span: u64,
    /// The span or one of its descendants in its process ran.
    pub local_root: u64,
    /// Known to belong to the selection, but not to which of its spans.
    pub trace: u64,
    /// It ran at the same time and place.
    pub window: u64,
}
