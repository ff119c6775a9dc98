//! TraceQL: spansets `{ ... }`, their relations and pipelines (`spanset`), and metrics of the spans that it selects (`metrics`).
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
mod spanset;

use std::collections::HashSet;

use spanflame_model::{Span, Value};
use spanflame_store::{SpanCondition, SpanFields};

pub use error::{Error, Position};
pub use metrics::MetricsQuery;
pub(crate) use metrics::{Function, Then};

use ast::Field;
use spanset::{SpanKey, Spanset, Traced};

/// A parsed query.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
    spans: Spanset,
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
    /// The spans of the trace that the query selects; `None` where a span tells that by itself.
    pub(crate) selected: Option<HashSet<SpanKey>>,
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
        let spans = parser::parse(text)?;
        Ok(Query {
            text: text.to_owned(),
            spans,
        })
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it asks about the trace around a span, so that [`Query::test`] needs [`TraceFacts`].
    pub fn needs_trace(&self) -> bool {
        self.spans.plain().is_none_or(conditions::needs_trace)
    }

    /// Whether a span matches; `None` if that depends on the trace and `trace` is not given.
    pub fn test(&self, span: &Span, trace: Option<&TraceFacts>) -> Option<bool> {
        if let Some(filter) = self.spans.plain() {
            return eval::test(filter, span, trace);
        }
        match trace.and_then(|facts| facts.selected.as_ref()) {
            Some(selected) => Some(selected.contains(&spanset::key(span))),
            None => (!self.spans.may_select(span)).then_some(false),
        }
    }

    /// Whether it has to see a trace as a whole to tell which of its spans match.
    pub(crate) fn is_structural(&self) -> bool {
        self.spans.plain().is_none()
    }

    /// `facts` of a trace of which `spans` are all spans, with what this query selects of them. They are then facts for
    /// this query alone.
    pub(crate) fn with_selected<'a>(&self, facts: TraceFacts, spans: impl Iterator<Item = &'a Span>) -> TraceFacts {
        match self.spans.plain() {
            Some(_) => facts,
            None => {
                let selected = Some(Traced::new(spans.collect(), &facts).select(&self.spans));
                TraceFacts { selected, ..facts }
            }
        }
    }

    /// The parts of a span that [`Query::with_selected`] reads; nothing where it does nothing.
    pub(crate) fn trace_fields(&self) -> SpanFields {
        match self.spans.plain() {
            Some(_) => SpanFields::default(),
            None => self.spans.fields(),
        }
    }

    /// What the query names of a span, in its order and each once: the key, without scope, and the value of what is
    /// there. Name and duration, which every answer has anyway, are left out.
    pub fn named(&self, span: &Span, trace: &TraceFacts) -> Vec<(String, Value)> {
        let mut fields: Vec<&Field> = Vec::new();
        let mut add = |field| {
            if !fields.contains(&field) {
                fields.push(field);
            }
        };
        self.spans
            .each_expression(&mut |expr| conditions::named(expr).into_iter().for_each(&mut add));
        self.spans.stage_fields().into_iter().for_each(add);
        fields
            .into_iter()
            .filter_map(|field| Some((field.key()?, eval::value(field, span, Some(trace))?)))
            .collect()
    }

    /// What every matching span meets.
    pub fn conditions(&self) -> Vec<SpanCondition> {
        self.spans.conditions()
    }

    /// The parts of a span that [`Query::test`] reads.
    pub fn fields(&self) -> SpanFields {
        self.spans.fields()
    }
}

#[cfg(test)]
mod tests;
