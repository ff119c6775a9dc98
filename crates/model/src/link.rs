//! What a sample's client claimed about the span that ran it.

use crate::{SpanId, TraceId};

/// On what grounds a client names a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The span that ran: an OTLP link, a thread context, our SDK.
    Active,
    /// The local root of the span that ran: the key said so.
    LocalRoot,
    /// A plain `span_id` label, which may name either.
    Label,
}

impl Claim {
    /// The word used in tables and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Claim::Active => "active",
            Claim::LocalRoot => "local_root",
            Claim::Label => "label",
        }
    }

    /// The claim of a word, if it is one.
    pub fn from_word(word: &str) -> Option<Claim> {
        [Claim::Active, Claim::LocalRoot, Claim::Label]
            .into_iter()
            .find(|claim| claim.as_str() == word)
    }
}

/// The link of a sample: stored as claimed. How precise it is, is derived when asked (design, "Links").
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Link {
    /// The client named no span.
    #[default]
    None,
    /// The client named one.
    One {
        /// Absent where the client sends none, or zero: it is found through the span id.
        trace_id: Option<TraceId>,
        /// Absent where the client names only the trace.
        span_id: Option<SpanId>,
        /// On what grounds.
        claim: Claim,
    },
    /// The client named several, so none can be held responsible. The two lists do not pair by position.
    Candidates {
        /// Every trace named, sorted.
        trace_ids: Vec<TraceId>,
        /// Every span named, sorted.
        span_ids: Vec<SpanId>,
    },
}

impl Link {
    /// The trace, where exactly one is named.
    pub fn trace_id(&self) -> Option<TraceId> {
        match self {
            Link::One { trace_id, .. } => *trace_id,
            _ => None,
        }
    }

    /// The span, where exactly one is named.
    pub fn span_id(&self) -> Option<SpanId> {
        match self {
            Link::One { span_id, .. } => *span_id,
            _ => None,
        }
    }
}
