//! Spans by TraceQL, ordered and paged.
//!
//! A search visits every span of the range that the store cannot rule out, keeps the best `limit` of those that
//! match in a heap, and counts all of them. A page continues behind the last span of the page before it and sees
//! only what had arrived when the walk began, so that all pages together are every match exactly once.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use spanflame_model::{Hasher, SpanId, StatusCode, Tenant, TimeRange, Timestamp, TraceId};
use spanflame_store::StoredSpan;

use crate::Error;
use crate::selected::RangeRule;
use crate::traceql::Query;

/// Which spans to find.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// What they look like.
    pub query: Query,
    /// Spans of this time.
    pub range: TimeRange,
    /// What "of this time" means.
    pub rule: RangeRule,
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

/// The place of a span in an order: smaller comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    value: Reverse<u64>,
    trace: TraceId,
    span: SpanId,
    /// Tells spans apart that share their ids.
    content: u64,
}

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Only what arrived before this counts.
    pub(crate) received_before: Timestamp,
    /// The range of the first page, which may have meant "the last hour" then.
    pub(crate) range: TimeRange,
    /// The last span of the page before; `None` on the first page.
    after: Option<Rank>,
}

/// The best spans so far, at most `limit`, and how many there were.
pub(crate) struct Ranking {
    order: Order,
    limit: usize,
    after: Option<Rank>,
    best: BinaryHeap<Ranked>,
    matched: u64,
    behind: u64,
}

struct Ranked {
    rank: Rank,
    stored: StoredSpan,
}

/// Changes when the text of a cursor does.
const CURSOR_VERSION: &str = "1";

impl Rank {
    fn of(stored: &StoredSpan, order: Order) -> Rank {
        let span = &stored.span;
        let mut content = Hasher::new();
        content.text(stored.tenant.as_str());
        content.text(span.resource.service());
        content.text(&span.name);
        content.number(span.kind as u64);
        content.number(span.start.unix_nanos() as u64);
        content.number(span.duration_ns);
        content.number(span.status as u64);
        content.number(stored.received.unix_nanos() as u64);
        Rank {
            value: Reverse(match order {
                Order::Duration => span.duration_ns,
                Order::Start => span.start.unix_nanos() as u64,
            }),
            trace: span.trace_id,
            span: span.span_id,
            content: content.finish64(),
        }
    }
}

impl SearchRequest {
    /// The limit, if it is within bounds.
    pub(crate) fn checked_limit(&self) -> Result<usize, Error> {
        match (1..=SearchRequest::LIMIT_MAX).contains(&self.limit) {
            true => Ok(self.limit),
            false => Err(Error::Invalid {
                field: "limit",
                message: format!("limit is {}, expected 1 to {}", self.limit, SearchRequest::LIMIT_MAX),
            }),
        }
    }

    /// Where this page begins; `last_received` bounds a walk that begins here.
    pub(crate) fn cursor(&self, last_received: Timestamp) -> Result<Cursor, Error> {
        match &self.page {
            None => Ok(Cursor {
                received_before: last_received.saturating_add(1),
                range: self.range,
                after: None,
            }),
            Some(text) => self.parse_cursor(text),
        }
    }

    fn parse_cursor(&self, text: &str) -> Result<Cursor, Error> {
        let invalid = |message: &str| Error::Invalid {
            field: "page",
            message: message.to_owned(),
        };
        let malformed = || invalid("page is no page of this server, expected the next_page of an answer");
        let parts: Vec<&str> = text.split('.').collect();
        let [version, question, bound, start, end, value, trace, span, content] = parts[..] else {
            return Err(malformed());
        };
        if version != CURSOR_VERSION {
            return Err(malformed());
        }
        if question != format!("{:x}", self.question()) {
            return Err(invalid(
                "page belongs to another question, expected the same query, order and tenants",
            ));
        }
        let number = |text: &str| u64::from_str_radix(text, 16).map_err(|_| malformed());
        let time = |text: &str| number(text).and_then(|nanos| Timestamp::from_unix_nanos(nanos).ok_or_else(malformed));
        Ok(Cursor {
            received_before: time(bound)?,
            range: TimeRange::new(time(start)?, time(end)?).ok_or_else(malformed)?,
            after: Some(Rank {
                value: Reverse(number(value)?),
                trace: trace.parse().map_err(|_| malformed())?,
                span: span.parse().map_err(|_| malformed())?,
                content: number(content)?,
            }),
        })
    }

    /// What must not change from page to page.
    fn question(&self) -> u64 {
        let mut hasher = Hasher::new();
        hasher.text(self.query.text());
        hasher.text(self.order.as_str());
        hasher.text(self.rule.as_str());
        self.tenants.iter().for_each(|tenant| hasher.text(tenant.as_str()));
        hasher.finish64()
    }

    fn page_text(&self, cursor: &Cursor, last: &Rank) -> String {
        let (start, end) = (cursor.range.start().unix_nanos(), cursor.range.end().unix_nanos());
        let bound = cursor.received_before.unix_nanos();
        let Rank {
            value,
            trace,
            span,
            content,
        } = last;
        format!(
            "{CURSOR_VERSION}.{:x}.{bound:x}.{start:x}.{end:x}.{:x}.{trace}.{span}.{content:x}",
            self.question(),
            value.0
        )
    }
}

impl Ranking {
    pub(crate) fn new(order: Order, limit: usize, cursor: &Cursor) -> Ranking {
        Ranking {
            order,
            limit,
            after: cursor.after,
            best: BinaryHeap::new(),
            matched: 0,
            behind: 0,
        }
    }

    /// Counts a span that matches, and keeps it if it belongs to this page so far.
    pub(crate) fn add(&mut self, stored: StoredSpan) {
        self.matched += 1;
        let rank = Rank::of(&stored, self.order);
        if self.after.is_some_and(|after| rank <= after) {
            return;
        }
        self.behind += 1;
        let is_full = self.best.len() == self.limit;
        if is_full && self.best.peek().is_some_and(|worst| worst.rank <= rank) {
            return;
        }
        if is_full {
            self.best.pop();
        }
        self.best.push(Ranked { rank, stored });
    }

    /// The spans of this page in order, how many match in all, and where to go on.
    pub(crate) fn finish(self, request: &SearchRequest, cursor: &Cursor) -> (Vec<StoredSpan>, u64, Option<String>) {
        let ranked = self.best.into_sorted_vec();
        let more = self.behind > ranked.len() as u64;
        let next = ranked.last().filter(|_| more).map(|last| request.page_text(cursor, &last.rank));
        (ranked.into_iter().map(|ranked| ranked.stored).collect(), self.matched, next)
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

#[cfg(test)]
mod tests;
