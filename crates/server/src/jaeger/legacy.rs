//! The legacy API: everything in one envelope, traces in Jaeger's own JSON.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Request};
use serde::Serialize;
use spanflame_formats::Limits;
use spanflame_formats::otlp::traces;
use spanflame_model::{Span, Tenant, TimeRange, TraceId};
use spanflame_query::{Call, CatalogRequest, Engine, Error, Operation, TraceRequest};

use super::json::{Envelope, JaegerTrace, Missing};
use super::params::Params;
use super::search::{Search, whole_traces};
use crate::admission::read_tenants;
use crate::app::App;
use crate::body;
use crate::failure::{Failure, FailureKind};
use crate::ingest::now;
use crate::question::{ask, json};
use crate::shown;

/// The header that says how many older traces did not fit an answer.
const LEFT_OUT_HEADER: &str = "x-spanflame-left-out";

/// Most traces that one request may name.
const IDS_MAX: usize = 1_000;

/// Dependencies are counted over this much where nothing is said, in milliseconds.
const LOOKBACK_MS: u64 = 86_400_000;

/// `GET /api/services`
pub(super) async fn services(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failure> {
    let tenants = read_tenants(&headers)?;
    let asked = async move |engine: Engine| engine.span_services(&tenants).await;
    ask(&app, "jaeger_services", asked, |services, _| {
        Ok(json(&Envelope::of(services, services.len())))
    })
    .await
}

/// `GET /api/services/{service}/operations`
pub(super) async fn operations_of(
    State(app): State<Arc<App>>,
    Path(service): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    list_operations(&app, read_tenants(&headers)?, Some(service), |operations| {
        let mut names: Vec<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
        names.dedup();
        json(&Envelope::of(&names, names.len()))
    })
    .await
}

/// `GET /api/operations?service&spanKind`
pub(super) async fn operations(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let service = params.text(&["service"]).map(str::to_owned);
    let kind = params.text(&["spanKind"]).map(str::to_owned);
    list_operations(&app, read_tenants(&headers)?, service, move |operations| {
        let wire = WireOperation::list(operations, kind.as_deref());
        json(&Envelope::of(&wire, wire.len()))
    })
    .await
}

/// Asks for the operations of a service and writes them.
pub(super) async fn list_operations(
    app: &Arc<App>,
    tenants: Vec<Tenant>,
    service: Option<String>,
    write: impl FnOnce(&[Operation]) -> Response + Send + 'static,
) -> Result<Response, Failure> {
    let request = CatalogRequest {
        tenants,
        range: TimeRange::ALL,
    };
    let asked = async move |engine: Engine| engine.operations(&request, service.as_deref()).await;
    ask(app, "jaeger_operations", asked, move |operations: &Vec<Operation>, _| {
        Ok(write(operations))
    })
    .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireOperation<'a> {
    name: &'a str,
    span_kind: &'static str,
}

impl<'a> WireOperation<'a> {
    /// Those of a kind, or all.
    pub(super) fn list(operations: &'a [Operation], kind: Option<&str>) -> Vec<WireOperation<'a>> {
        let wanted = |operation: &&Operation| kind.is_none_or(|kind| kind.eq_ignore_ascii_case(span_kind(operation)));
        operations
            .iter()
            .filter(wanted)
            .map(|operation| WireOperation {
                name: &operation.name,
                span_kind: span_kind(operation),
            })
            .collect()
    }
}

/// Jaeger's word for the kind: nothing for one that is not said.
fn span_kind(operation: &Operation) -> &'static str {
    match operation.kind {
        spanflame_model::SpanKind::Unspecified => "",
        kind => kind.as_str(),
    }
}

/// `GET /api/traces`: a search, or the traces that `traceID` names.
pub(super) async fn search(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let ids: Vec<&str> = params.all("traceID").collect();
    if !ids.is_empty() {
        return named_traces(&app, &ids, read_tenants(&headers)?).await;
    }
    let request = Search::legacy(&params)?.request(read_tenants(&headers)?)?;
    let asked = async move |engine: Engine| whole_traces(&engine, &request).await;
    ask(&app, "jaeger_search", asked, |(traces, left_out): &(Vec<Vec<Span>>, usize), _| {
        let mut response = json(&envelope(traces, Vec::new()));
        if *left_out > 0 {
            response.headers_mut().insert(LEFT_OUT_HEADER, HeaderValue::from(*left_out));
        }
        Ok(response)
    })
    .await
}

/// Traces by their ids; those that are no ids or are not stored are named in `errors`.
async fn named_traces(app: &Arc<App>, ids: &[&str], tenants: Vec<Tenant>) -> Result<Response, Failure> {
    if ids.len() > IDS_MAX {
        let message = format!("{} traces are named, expected at most {IDS_MAX}", ids.len());
        return Err(Failure::invalid("traceID", message));
    }
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let asked = async move |engine: Engine| {
        let (mut traces, mut missing) = (Vec::new(), Vec::new());
        for id in ids {
            match id.parse::<TraceId>() {
                Ok(trace_id) => match engine.spans_of(&tenants, trace_id).await? {
                    spans if spans.is_empty() => missing.push((404, "trace not found".to_owned(), id)),
                    spans => traces.push(shown::grouped(spans.into_iter().map(|stored| stored.span))),
                },
                Err(error) => missing.push((400, error.to_string(), id)),
            }
        }
        Ok((traces, missing))
    };
    ask(app, "jaeger_traces", asked, |(traces, missing): &(Vec<Vec<Span>>, Vec<_>), _| {
        Ok(json(&envelope(traces, missing.clone())))
    })
    .await
}

fn envelope(traces: &[Vec<Span>], missing: Vec<(u16, String, String)>) -> Envelope<Vec<JaegerTrace<'_>>> {
    let errors = missing.into_iter().map(|(code, msg, trace_id)| Missing {
        code,
        msg,
        trace_id: trace_id.chars().take(80).collect(),
    });
    let errors: Vec<Missing> = errors.collect();
    Envelope {
        errors: (!errors.is_empty()).then_some(errors),
        ..Envelope::of(traces.iter().map(|spans| JaegerTrace(spans)).collect(), 0)
    }
}

/// `GET /api/traces/{id}`
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    // A range only helps a store that cannot find a trace by its id. Grafana sends milliseconds, Jaeger microseconds.
    Params::parse(query.as_deref())?.range(&["start"], &["end"], now())?;
    let request = trace_request(&id, &headers)?;
    let asked = async move |engine: Engine| one_trace(&engine, &request).await;
    ask(&app, "jaeger_trace", asked, |spans: &Vec<Span>, _| {
        Ok(json(&envelope(std::slice::from_ref(spans), Vec::new())))
    })
    .await
}

/// The question for the trace with this id.
pub(super) fn trace_request(id: &str, headers: &HeaderMap) -> Result<TraceRequest, Failure> {
    Ok(TraceRequest {
        tenants: read_tenants(headers)?,
        trace_id: id.parse().map_err(|error| Failure::invalid("trace id", format!("{error}")))?,
    })
}

/// A whole trace, with the ids of its profiles.
pub(super) async fn one_trace(engine: &Engine, request: &TraceRequest) -> Result<Vec<Span>, Error> {
    let spans = shown::with_profile_ids(engine.trace(request).await?.spans);
    match spans.is_empty() {
        true => Err(Error::NotFound {
            what: format!("trace {} is not stored", request.trace_id),
        }),
        false => Ok(spans),
    }
}

/// `GET /api/dependencies?endTs&lookback`, both in milliseconds.
pub(super) async fn dependencies(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let end = params.time(&["endTs"])?.unwrap_or_else(now);
    let lookback = params.read(&["lookback"], "milliseconds", |text| text.parse::<u64>().ok())?;
    let lookback_ns = lookback.unwrap_or(LOOKBACK_MS).saturating_mul(1_000_000);
    let request = CatalogRequest {
        tenants: read_tenants(&headers)?,
        range: TimeRange::lasting(end.saturating_sub(lookback_ns), lookback_ns),
    };
    let asked = async move |engine: Engine| engine.calls(&request).await;
    ask(&app, "jaeger_dependencies", asked, |calls: &Vec<Call>, _| {
        let wire: Vec<WireCall<'_>> = calls.iter().map(WireCall::new).collect();
        Ok(json(&Envelope::of(&wire, wire.len())))
    })
    .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireCall<'a> {
    parent: &'a str,
    child: &'a str,
    call_count: u64,
}

impl<'a> WireCall<'a> {
    fn new(call: &'a Call) -> WireCall<'a> {
        WireCall {
            parent: &call.caller,
            child: &call.callee,
            call_count: call.count,
        }
    }
}

/// `POST /api/transform`: OTLP/JSON to Jaeger's JSON; nothing is stored.
pub(super) async fn transform(State(app): State<Arc<App>>, request: Request<Body>) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let mut load = app.ingest.load();
    let body = body::read(&parts.headers, body, app.ingest.request_bytes_max(), &mut load).await?;
    let limits = Limits::default();
    let spans = tokio::task::spawn_blocking(move || traces::decode_json(&body, &limits));
    let decoded = spans
        .await
        .map_err(|error| Failure::internal("the transformation failed", &error))??;
    if let (true, Some(message)) = (decoded.batch.spans.is_empty(), decoded.rejects.message()) {
        return Err(Failure::new(FailureKind::Invalid, message));
    }
    let mut numbers = HashMap::new();
    let mut traces: Vec<Vec<Span>> = Vec::new();
    for span in decoded.batch.spans {
        let number = *numbers.entry(span.trace_id).or_insert(traces.len());
        if number == traces.len() {
            traces.push(Vec::new());
        }
        traces[number].push(span);
    }
    let traces: Vec<Vec<Span>> = traces.into_iter().map(shown::grouped).collect();
    Ok(json(&envelope(&traces, Vec::new())))
}
