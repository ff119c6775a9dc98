//! `GET /api/traces/{id}` and `GET /api/v2/traces/{id}`: a whole trace.
//!
//! Grafana reads traces without asking whether a part is there, and drops resources without attributes. So every
//! answer has a trace, every group a resource with `service.name`, every scope and every status, even if empty.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Status, TracesData};
use prost::Message;
use serde::Serialize;
use spanflame_formats::otlp::traces::{JsonSpans, JsonStyle, encode};
use spanflame_model::{Span, TraceId};
use spanflame_proto::tempo as wire;
use spanflame_query::{Engine, Error, TraceRequest};

use super::answer::{Wire, json_response, protobuf};
use super::params::Params;
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::{Failure, FailureKind};
use crate::ingest::now;
use crate::question::ask;
use crate::shown;

/// Which of the two shapes is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// `GET /api/traces/{id}`
pub(super) async fn v1(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    trace(&app, &id, query.as_deref(), &headers, Version::One).await
}

/// `GET /api/v2/traces/{id}`
pub(super) async fn v2(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    trace(&app, &id, query.as_deref(), &headers, Version::Two).await
}

async fn trace(app: &Arc<App>, id: &str, query: Option<&str>, headers: &HeaderMap, version: Version) -> Result<Response, Failure> {
    let params = Params::parse(query)?;
    // A range only helps a store that cannot find a trace by its id.
    params.given_range(now())?;
    for name in ["q", "span_pruning", "match_depth", "ancestor_depth", "keep_hierarchy"] {
        if params.text(name).is_some() {
            return Err(Failure::invalid(
                name,
                format!("{name} is not supported: traces are answered whole"),
            ));
        }
    }
    let trace_id: TraceId = id.parse().map_err(|error| Failure::invalid("trace id", format!("{error}")))?;
    let request = TraceRequest {
        tenants: read_tenants(headers)?,
        trace_id,
    };
    let wire = Wire::of(headers);
    let asked = async move |engine: Engine| match engine.trace(&request).await {
        Ok(trace) => Ok(shown::with_profile_ids(trace.spans)),
        Err(Error::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    ask(app, "tempo_trace", asked, move |spans: &Vec<Span>, _| {
        if spans.is_empty() && version == Version::One {
            return Err(Failure::new(FailureKind::NotFound, format!("trace {trace_id} is not stored")));
        }
        Ok(respond(spans, version, wire))
    })
    .await
}

fn respond(spans: &[Span], version: Version, wire: Wire) -> Response {
    match (version, wire) {
        (Version::One, Wire::Json) => {
            let batches = JsonSpans::new(spans, JsonStyle::Protobuf);
            to_json(&V1 { batches })
        }
        (Version::Two, Wire::Json) => to_json(&V2 {
            trace: V2Trace {
                resource_spans: (!spans.is_empty()).then(|| JsonSpans::new(spans, JsonStyle::Protobuf)),
            },
            metrics: Nothing {},
        }),
        (Version::One, _) => protobuf(traces_data(spans).encode_to_vec()),
        (Version::Two, _) => protobuf(
            wire::TraceByIdResponse {
                trace: Some(traces_data(spans).encode_to_vec()),
                metrics: Some(wire::TraceByIdMetrics::default()),
                ..wire::TraceByIdResponse::default()
            }
            .encode_to_vec(),
        ),
    }
}

fn traces_data(spans: &[Span]) -> TracesData {
    let mut resource_spans: Vec<ResourceSpans> = encode(spans).resource_spans;
    for scope in resource_spans.iter_mut().flat_map(|group| &mut group.scope_spans) {
        scope.scope.get_or_insert_with(InstrumentationScope::default);
        for span in &mut scope.spans {
            span.status.get_or_insert_with(Status::default);
        }
    }
    TracesData { resource_spans }
}

#[derive(Serialize)]
struct V1<'a> {
    batches: JsonSpans<'a>,
}

#[derive(Serialize)]
struct V2<'a> {
    trace: V2Trace<'a>,
    metrics: Nothing,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct V2Trace<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_spans: Option<JsonSpans<'a>>,
}

#[derive(Serialize)]
struct Nothing {}

fn to_json(value: &impl Serialize) -> Response {
    // Wire structs have string keys and no numbers that JSON lacks.
    json_response(serde_json::to_string(value).unwrap_or_default())
}
