//! `GET /api/v1/spans`: spans by TraceQL, ordered and paged.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_query::traceql::Query;
use spanflame_query::{Engine, FoundSpan, Order, RangeRule, SearchAnswer, SearchRequest, SpanSelection, SpanSet};

use super::params::{Params, id};
use super::question::ask;
use super::text::time;
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;

/// The query that selects every span.
const EVERYTHING: &str = "{}";

pub(super) async fn search(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["q", "start", "end", "range", "order", "limit", "page"])?;
    let SpanSelection { query, range, rule } = selection(&params, RangeRule::Overlap)?;
    let request = SearchRequest {
        tenants: read_tenants(&headers)?,
        query,
        range,
        rule,
        order: params.word("order", Order::from_word, "duration or start")?.unwrap_or_default(),
        limit: params
            .count("limit", SearchRequest::LIMIT_MAX)?
            .unwrap_or(SearchRequest::LIMIT_DEFAULT),
        page: params.text("page").map(str::to_owned),
    };
    let several = request.tenants.len() > 1;
    let asked = async move |engine: Engine| engine.search(&request).await;
    ask(&app, "search", asked, move |found: &SearchAnswer, watch| {
        Ok(watch.json(WireSearch {
            spans: found.spans.iter().map(|span| WireFound::new(span, several)).collect(),
            matched: found.matched,
            next_page: found.next_page.as_deref(),
        }))
    })
    .await
}

/// The spans that `q`, `start`, `end` and `range` select.
pub(super) fn selection(params: &Params, rule: RangeRule) -> Result<SpanSelection, Failure> {
    let text = params.text("q").unwrap_or(EVERYTHING);
    Ok(SpanSelection {
        query: Query::parse(text).map_err(spanflame_query::Error::TraceQl)?,
        range: params.range(now())?,
        rule: params.word("range", RangeRule::from_word, "overlap or start")?.unwrap_or(rule),
    })
}

/// One side of a question about two sets of spans: parameters that begin with `prefix` select as [`selection`] does, or
/// name a trace or one of its spans.
pub(super) fn side(params: &Params, prefix: &'static str, rule: RangeRule) -> Result<SpanSet, Failure> {
    let params = params.beginning_with(prefix);
    let set = match (params.text("trace"), params.text("span")) {
        (Some(_), _) if params.text("q").is_some() => {
            Err(Failure::invalid("trace", "trace and q are given, expected one of them".to_owned()))
        }
        (Some(trace), span) => id("trace", trace).and_then(|trace_id| {
            let span_id = span.map(|span| id("span", span)).transpose()?;
            Ok(SpanSet::OfTrace { trace_id, span_id })
        }),
        (None, Some(_)) => Err(Failure::invalid("span", "span is given without trace, expected both".to_owned())),
        (None, None) => selection(&params, rule).map(SpanSet::Matching),
    };
    set.map_err(|failure| failure.of_field_beginning_with(prefix))
}

#[derive(Serialize)]
struct WireSearch<'a> {
    spans: Vec<WireFound<'a>>,
    matched: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<&'a str>,
}

#[derive(Serialize)]
struct WireFound<'a> {
    trace_id: String,
    span_id: String,
    service: &'a str,
    name: &'a str,
    kind: &'static str,
    start_unix_nano: String,
    duration_ns: u64,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_service: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns: Option<i64>,
    samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
}

impl<'a> WireFound<'a> {
    fn new(found: &'a FoundSpan, several_tenants: bool) -> WireFound<'a> {
        let span = &found.stored.span;
        WireFound {
            trace_id: span.trace_id.to_string(),
            span_id: span.span_id.to_string(),
            service: span.resource.service(),
            name: &span.name,
            kind: span.kind.as_str(),
            start_unix_nano: time(span.start),
            duration_ns: span.duration_ns,
            status: span.status.as_str(),
            root_name: found.root_name.as_deref(),
            root_service: found.root_service.as_deref(),
            cpu_ns: found.cpu_ns,
            samples: found.samples,
            tenant: several_tenants.then(|| found.stored.tenant.as_str()),
        }
    }
}
