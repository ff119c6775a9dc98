//! TraceQL: one spanset filter `{ ... }`, and metrics of the spans that it selects (`metrics`).
//!
//! Text -> tokens (`lexer`) -> expression (`ast`, `parser`) -> checked types (`check`) -> yes or no for a span
//! (`eval`), and what a store may prune by (`conditions`). The parser knows the rest of the language
//! well enough to name what it does not support, with its place.
//!
//! Rules as Tempo's: a comparison with an absent attribute or one of another type is false whatever the
//! operator, `= nil` asks for absence, regular expressions are anchored at both ends, numbers and durations
//! compare with each other, of a list `=` and `=~` want any element and `!=` and `!~` want none.

mod ast;
mod check;
mod conditions;
mod error;
mod eval;
mod lexer;
mod metrics;
mod parser;

use spanflame_model::{Span, Value};
use spanflame_store::{SpanCondition, SpanFields};

pub use error::{Error, Position};
pub use metrics::MetricsQuery;
pub(crate) use metrics::{Function, Then};

use ast::Expr;

/// A parsed query.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
    filter: Expr,
}

/// What a query may ask about the trace around a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFacts {
    /// From the first start to the last end.
    pub duration_ns: u64,
    /// Name of the root span; `None` if it was not received.
    pub root_name: Option<String>,
    /// Service of the root span; `None` if it was not received.
    pub root_service: Option<String>,
}

impl Query {
    /// Longest text, in bytes.
    pub const BYTES_MAX: usize = 128 << 10;

    /// Reads a query. Empty text is `{}`, which selects every span.
    pub fn parse(text: &str) -> Result<Query, Error> {
        if text.len() > Query::BYTES_MAX {
            let message = format!("query has {} bytes, at most {} are read", text.len(), Query::BYTES_MAX);
            return Err(Error::new(Position::START, message));
        }
        let filter = parser::parse(text)?;
        check::check(&filter)?;
        Ok(Query {
            text: text.to_owned(),
            filter,
        })
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it asks about the trace around a span, so that [`Query::test`] needs [`TraceFacts`].
    pub fn needs_trace(&self) -> bool {
        conditions::needs_trace(&self.filter)
    }

    /// Whether a span matches; `None` if that depends on the trace and `trace` is not given.
    pub fn test(&self, span: &Span, trace: Option<&TraceFacts>) -> Option<bool> {
        eval::test(&self.filter, span, trace)
    }

    /// What the query names of a span, in its order and each once: the key, without scope, and the value of what is
    /// there. Name and duration, which every answer has anyway, are left out.
    pub fn named(&self, span: &Span, trace: &TraceFacts) -> Vec<(String, Value)> {
        conditions::named(&self.filter)
            .into_iter()
            .filter_map(|field| Some((field.key()?, eval::value(field, span, Some(trace))?)))
            .collect()
    }

    /// What every matching span meets.
    pub fn conditions(&self) -> Vec<SpanCondition> {
        conditions::of(&self.filter)
    }

    /// The parts of a span that [`Query::test`] reads.
    pub fn fields(&self) -> SpanFields {
        conditions::fields(&self.filter)
    }
}

#[cfg(test)]
mod tests;
