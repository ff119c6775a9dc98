//! Spans by TraceQL, ordered and paged.
//!
//! A search visits every span of the range that the store cannot rule out, keeps the best `limit` of those that
//! match in a heap, and counts all of them. A page continues behind the last span of the page before it and sees
//! only what had arrived when the walk began, so that all pages together are every match exactly once.

use spanflame_model::{StatusCode, Tenant, TimeRange};
use spanflame_store::StoredSpan;

use crate::traceql::Query;

/// Which spans to find.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// What they look like.
    pub query: Query,
    /// Spans that overlap this.
    pub range: TimeRange,
    /// In which order.
    pub order: Order,
    /// How many at most: 1 to [`SearchRequest::LIMIT_MAX`].
    pub limit: usize,
    /// [`SearchAnswer::next_page`] of the page before, with everything else unchanged.
    pub page: Option<String>,
}

impl SearchRequest {
    /// The limit where none is given.
    pub const LIMIT_DEFAULT: usize = 20;
    /// The largest limit.
    pub const LIMIT_MAX: usize = 10_000;
}

/// In which order spans are found; ties by trace and span id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Longest first.
    #[default]
    Duration,
    /// Newest first.
    Start,
}

impl Order {
    /// The word used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Order::Duration => "duration",
            Order::Start => "start",
        }
    }

    /// The order of a word, if it is one.
    pub fn from_word(word: &str) -> Option<Order> {
        [Order::Duration, Order::Start].into_iter().find(|order| order.as_str() == word)
    }
}

/// One page of a search.
#[derive(Clone, Debug)]
pub struct SearchAnswer {
    /// In the order asked for.
    pub spans: Vec<FoundSpan>,
    /// How many spans match in all, on every page together.
    pub matched: u64,
    /// Where to go on; `None` on the last page.
    pub next_page: Option<String>,
}

/// A span that matches.
#[derive(Clone, Debug)]
pub struct FoundSpan {
    /// The span; only ids, times, name, kind, status and service are sure to be filled in.
    pub stored: StoredSpan,
    /// Name of the trace's root span, if it was received.
    pub root_name: Option<String>,
    /// Service of the trace's root span, if it was received.
    pub root_service: Option<String>,
    /// CPU time of its samples in scope `span`; `None` without samples.
    pub cpu_ns: Option<i64>,
    /// Observations in scope `span`.
    pub samples: u64,
}

impl FoundSpan {
    /// Its outcome.
    pub fn status(&self) -> StatusCode {
        self.stored.span.status
    }
}
