//! The API v3: traces in OTLP/JSON, and summaries of them for a list.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_formats::otlp::traces::{JsonSpans, JsonStyle};
use spanflame_model::Span;
use spanflame_query::{Engine, FoundTrace, SpanCount};

use super::legacy::{WireOperation, list_operations, one_trace, trace_request};
use super::params::Params;
use super::search::{Search, whole_traces};
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::question::{ask, json};

/// `GET /api/v3/services`
pub(super) async fn services(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Wire<T> {
        services: T,
    }
    let tenants = read_tenants(&headers)?;
    let asked = async move |engine: Engine| engine.span_services(&tenants).await;
    ask(&app, "jaeger_services", asked, |services, _| Ok(json(&Wire { services }))).await
}

/// `GET /api/v3/operations?service&spanKind`
pub(super) async fn operations(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    #[derive(Serialize)]
    struct Wire<'a> {
        operations: Vec<WireOperation<'a>>,
    }
    let params = Params::parse(query.as_deref())?;
    let service = params.text(&["service"]).map(str::to_owned);
    let kind = params.text(&["spanKind", "span_kind"]).map(str::to_owned);
    list_operations(&app, read_tenants(&headers)?, service, move |operations| {
        json(&Wire {
            operations: WireOperation::list(operations, kind.as_deref()),
        })
    })
    .await
}

#[derive(Serialize)]
struct WireResult<'a> {
    result: WireTraces<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireTraces<'a> {
    resource_spans: JsonSpans<'a>,
}

fn result(spans: &[Span]) -> Response {
    json(&WireResult {
        result: WireTraces {
            resource_spans: JsonSpans::new(spans, JsonStyle::Otlp),
        },
    })
}

/// `GET /api/v3/traces/{id}`
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    params.time(&["startTime", "start_time"])?;
    params.time(&["endTime", "end_time"])?;
    let request = trace_request(&id, &headers)?;
    let asked = async move |engine: Engine| one_trace(&engine, &request).await;
    ask(&app, "jaeger_trace", asked, |spans: &Vec<Span>, _| Ok(result(spans))).await
}

/// `GET /api/v3/traces`
pub(super) async fn search(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let request = Search::v3(&params)?.request(read_tenants(&headers)?)?;
    let asked = async move |engine: Engine| {
        let (traces, _) = whole_traces(&engine, &request).await?;
        Ok(traces.into_iter().flatten().collect())
    };
    ask(&app, "jaeger_search", asked, |spans: &Vec<Span>, _| Ok(result(spans))).await
}

/// `GET /api/v3/trace-summaries`
pub(super) async fn summaries(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let request = Search::v3(&params)?.request(read_tenants(&headers)?)?;
    let asked = async move |engine: Engine| engine.traces(&request).await;
    ask(&app, "jaeger_summaries", asked, |found: &Vec<FoundTrace>, _| {
        Ok(json(&WireSummaries {
            summaries: found.iter().map(WireSummary::new).collect(),
        }))
    })
    .await
}

#[derive(Serialize)]
struct WireSummaries<'a> {
    summaries: Vec<WireSummary<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireSummary<'a> {
    trace_id: String,
    root_service_name: &'a str,
    root_operation_name: &'a str,
    min_start_time_unix_nano: String,
    max_end_time_unix_nano: String,
    span_count: u64,
    error_span_count: u64,
    orphan_span_count: u64,
    services: Vec<WireService<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireService<'a> {
    name: &'a str,
    span_count: u64,
    error_span_count: u64,
}

impl<'a> WireSummary<'a> {
    fn new(found: &'a FoundTrace) -> WireSummary<'a> {
        let sum = |count: fn(&SpanCount) -> u64| found.services.values().map(count).sum();
        WireSummary {
            trace_id: found.trace_id.to_string(),
            root_service_name: found.root_service.as_deref().unwrap_or_default(),
            root_operation_name: found.root_name.as_deref().unwrap_or_default(),
            min_start_time_unix_nano: found.range.start().to_string(),
            max_end_time_unix_nano: found.range.end().to_string(),
            span_count: sum(|count| count.spans),
            error_span_count: sum(|count| count.errors),
            orphan_span_count: found.orphans,
            services: found.services.iter().map(WireService::new).collect(),
        }
    }
}

impl<'a> WireService<'a> {
    fn new((name, count): (&'a String, &SpanCount)) -> WireService<'a> {
        WireService {
            name,
            span_count: count.spans,
            error_span_count: count.errors,
        }
    }
}
