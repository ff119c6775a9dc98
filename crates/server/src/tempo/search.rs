//! `GET /api/search` and `StreamingQuerier/Search`: traces by TraceQL or, in the legacy form, by tags.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde_json::{Value as Json, json};
use spanflame_model::{Tenant, TimeRange, Timestamp};
use spanflame_proto::tempo as wire;
use spanflame_query::traceql::Query;
use spanflame_query::{Engine, FoundTrace, MatchedSpan, Tags, TracesRequest};

use super::answer::{Answer, Object, Wire, attribute, key_values, list, runs, search_metrics};
use super::params::{self, Params};
use super::tags_query::TagsQuery;
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;
use crate::question::ask;

/// Traces where no limit is given.
const LIMIT_DEFAULT: u64 = 20;
/// Spans of a span set where no number is given.
const SPANS_DEFAULT: u64 = 3;
/// The most spans of a span set.
const SPANS_MAX: u64 = 10_000;
/// What stands for a root span that was not received.
const NO_ROOT: &str = "<root span not yet received>";

/// What is searched, whichever way it was asked.
pub(super) struct Search {
    /// TraceQL; `None` in the legacy form.
    query: Option<String>,
    /// The legacy form.
    tags: TagsQuery,
    range: TimeRange,
    limit: Option<u64>,
    /// 0 is all.
    spans: Option<u64>,
}

/// `GET /api/search`
pub(super) async fn search(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let mut tags = match params.text("tags") {
        Some(text) => TagsQuery::parse(text)?,
        None => TagsQuery::default(),
    };
    tags.duration_min_ns = params.duration_ns("minDuration")?;
    tags.duration_max_ns = params.duration_ns("maxDuration")?;
    let search = Search {
        query: params.text("q").map(str::to_owned),
        tags,
        range: params.range(now())?,
        limit: params.count("limit", 1)?,
        spans: params.count("spss", 0)?,
    };
    search.answer(&app, read_tenants(&headers)?, Wire::of(&headers)).await
}

impl Search {
    /// The question of a streaming request.
    pub(super) fn of_request(request: wire::SearchRequest) -> Result<Search, Failure> {
        let seconds = |seconds: u32| Timestamp::from_unix_nanos(u64::from(seconds) * 1_000_000_000).filter(|_| seconds > 0);
        let range = match (seconds(request.start), seconds(request.end)) {
            (None, None) => params::last_hour(now()),
            (start, end) => params::range(start, end, None, now())?,
        };
        let millis = |millis: u32| (millis > 0).then_some(u64::from(millis) * 1_000_000);
        Ok(Search {
            query: Some(request.query).filter(|query| !query.is_empty()),
            tags: TagsQuery {
                tags: request.tags.into_iter().collect(),
                duration_min_ns: millis(request.min_duration_ms),
                duration_max_ns: millis(request.max_duration_ms),
            },
            range,
            limit: Some(u64::from(request.limit)).filter(|limit| *limit > 0),
            spans: Some(u64::from(request.spans_per_span_set)).filter(|spans| *spans > 0),
        })
    }

    pub(super) async fn answer(self, app: &Arc<App>, tenants: Vec<Tenant>, wire: Wire) -> Result<Response, Failure> {
        let request = self.request(tenants)?;
        let asked = async move |engine: Engine| engine.traces(&request).await;
        ask(app, "tempo_search", asked, move |found: &Vec<FoundTrace>, _| {
            Ok(wire.write(response(found)))
        })
        .await
    }

    fn request(&self, tenants: Vec<Tenant>) -> Result<TracesRequest, Failure> {
        let text = match &self.query {
            Some(_) if !self.tags.is_empty() => {
                let message = "q is given together with tags, minDuration or maxDuration, expected one form";
                return Err(Failure::invalid("q", message));
            }
            Some(query) => query.clone(),
            None => self.tags.to_traceql(),
        };
        let limit = self.limit.unwrap_or(LIMIT_DEFAULT).min(TracesRequest::LIMIT_MAX as u64);
        let spans = match self.spans.unwrap_or(SPANS_DEFAULT) {
            0 => SPANS_MAX,
            spans => spans.min(SPANS_MAX),
        };
        Ok(TracesRequest {
            tenants,
            query: Query::parse(&text).map_err(spanflame_query::Error::TraceQl)?,
            tags: Tags::default(),
            range: self.range,
            limit: limit as usize,
            spans_max: spans as usize,
        })
    }
}

fn response(found: &[FoundTrace]) -> wire::SearchResponse {
    wire::SearchResponse {
        traces: found.iter().map(metadata).collect(),
        metrics: Some(wire::SearchMetrics {
            inspected_traces: count(found.len() as u64),
            completed_jobs: 1,
            total_jobs: 1,
            ..wire::SearchMetrics::default()
        }),
    }
}

fn metadata(found: &FoundTrace) -> wire::TraceSearchMetadata {
    let set = wire::SpanSet {
        spans: found.spans.iter().map(span).collect(),
        matched: count(found.matched),
        attributes: Vec::new(),
    };
    let stats = found.services.iter().map(|(service, counts)| {
        let stats = wire::ServiceStats {
            span_count: count(counts.spans),
            error_count: count(counts.errors),
        };
        (service.clone(), stats)
    });
    wire::TraceSearchMetadata {
        trace_id: format!("{:x}", u128::from_be_bytes(*found.trace_id.as_bytes())),
        root_service_name: found.root_service.clone().unwrap_or_else(|| NO_ROOT.to_owned()),
        root_trace_name: found.root_name.clone().unwrap_or_default(),
        start_time_unix_nano: found.range.start().unix_nanos() as u64,
        duration_ms: count(found.range.duration_ns() / 1_000_000),
        span_set: Some(set.clone()),
        span_sets: vec![set],
        service_stats: stats.collect::<HashMap<_, _>>(),
    }
}

fn span(matched: &MatchedSpan) -> wire::Span {
    wire::Span {
        span_id: matched.span.span_id.to_string(),
        name: matched.span.name.clone(),
        start_time_unix_nano: matched.span.start.unix_nanos() as u64,
        duration_nanos: matched.span.duration_ns,
        attributes: matched.named.iter().map(|(key, value)| attribute(key, value)).collect(),
    }
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Answer for wire::SearchResponse {
    fn json(&self) -> Json {
        json!({ "traces": list(&self.traces, trace_json), "metrics": search_metrics(&self.metrics) })
    }

    fn parts(self) -> Vec<Self> {
        let metrics = self.metrics;
        let mut parts: Vec<Self> = runs(self.traces)
            .into_iter()
            .map(|traces| wire::SearchResponse { traces, metrics })
            .collect();
        if parts.is_empty() {
            parts.push(wire::SearchResponse {
                traces: Vec::new(),
                metrics,
            });
        }
        parts
    }
}

fn trace_json(trace: &wire::TraceSearchMetadata) -> Json {
    let stats = trace.service_stats.iter().map(|(service, stats)| {
        let stats = Object::new()
            .with("spanCount", stats.span_count)
            .with("errorCount", stats.error_count);
        (service.clone(), Json::from(stats))
    });
    Object::new()
        .with("traceID", trace.trace_id.as_str())
        .with("rootServiceName", trace.root_service_name.as_str())
        .with("rootTraceName", trace.root_trace_name.as_str())
        .long("startTimeUnixNano", trace.start_time_unix_nano)
        .with("durationMs", trace.duration_ms)
        .with("spanSet", trace.span_set.as_ref().map_or(Json::Null, set_json))
        .with("spanSets", list(&trace.span_sets, set_json))
        .with("serviceStats", Json::Object(stats.collect()))
        .into()
}

fn set_json(set: &wire::SpanSet) -> Json {
    let span = |span: &wire::Span| {
        Object::new()
            .with("spanID", span.span_id.as_str())
            .with("name", span.name.as_str())
            .long("startTimeUnixNano", span.start_time_unix_nano)
            .long("durationNanos", span.duration_nanos)
            .with("attributes", key_values(&span.attributes))
            .into()
    };
    Object::new()
        .always("spans", list(&set.spans, span))
        .with("matched", set.matched)
        .with("attributes", key_values(&set.attributes))
        .into()
}
