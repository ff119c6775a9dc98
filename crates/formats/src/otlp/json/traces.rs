//! Trace requests in JSON.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1 as wire;
use serde::Deserialize;

use super::fields::{HexId, KeyValue, Named, Names, Number, Resource, Scope, into_wire, nullable};

/// Reads a trace request.
pub(in crate::otlp) fn trace_request(bytes: &[u8]) -> Result<ExportTraceServiceRequest, serde_json::Error> {
    let request: Request = super::request(bytes)?;
    Ok(ExportTraceServiceRequest {
        resource_spans: request.resource_spans.into_iter().map(Into::into).collect(),
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Request {
    #[serde(alias = "resource_spans", deserialize_with = "nullable")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceSpans {
    resource: Option<Resource>,
    #[serde(alias = "scope_spans", deserialize_with = "nullable")]
    scope_spans: Vec<ScopeSpans>,
    #[serde(alias = "schema_url", deserialize_with = "nullable")]
    schema_url: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScopeSpans {
    scope: Option<Scope>,
    #[serde(deserialize_with = "nullable")]
    spans: Vec<Span>,
    #[serde(alias = "schema_url", deserialize_with = "nullable")]
    schema_url: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Span {
    #[serde(alias = "trace_id", deserialize_with = "nullable")]
    trace_id: HexId,
    #[serde(alias = "span_id", deserialize_with = "nullable")]
    span_id: HexId,
    #[serde(alias = "trace_state", deserialize_with = "nullable")]
    trace_state: String,
    #[serde(alias = "parent_span_id", deserialize_with = "nullable")]
    parent_span_id: HexId,
    #[serde(deserialize_with = "nullable")]
    flags: Number<u32>,
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    kind: Named<KindNames>,
    #[serde(alias = "start_time_unix_nano", deserialize_with = "nullable")]
    start_time_unix_nano: Number<u64>,
    #[serde(alias = "end_time_unix_nano", deserialize_with = "nullable")]
    end_time_unix_nano: Number<u64>,
    #[serde(deserialize_with = "nullable")]
    attributes: Vec<KeyValue>,
    #[serde(alias = "dropped_attributes_count", deserialize_with = "nullable")]
    dropped_attributes_count: Number<u32>,
    #[serde(deserialize_with = "nullable")]
    events: Vec<Event>,
    #[serde(alias = "dropped_events_count", deserialize_with = "nullable")]
    dropped_events_count: Number<u32>,
    #[serde(deserialize_with = "nullable")]
    links: Vec<Link>,
    #[serde(alias = "dropped_links_count", deserialize_with = "nullable")]
    dropped_links_count: Number<u32>,
    status: Option<Status>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event {
    #[serde(alias = "time_unix_nano", deserialize_with = "nullable")]
    time_unix_nano: Number<u64>,
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    attributes: Vec<KeyValue>,
    #[serde(alias = "dropped_attributes_count", deserialize_with = "nullable")]
    dropped_attributes_count: Number<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Link {
    #[serde(alias = "trace_id", deserialize_with = "nullable")]
    trace_id: HexId,
    #[serde(alias = "span_id", deserialize_with = "nullable")]
    span_id: HexId,
    #[serde(alias = "trace_state", deserialize_with = "nullable")]
    trace_state: String,
    #[serde(deserialize_with = "nullable")]
    attributes: Vec<KeyValue>,
    #[serde(alias = "dropped_attributes_count", deserialize_with = "nullable")]
    dropped_attributes_count: Number<u32>,
    #[serde(deserialize_with = "nullable")]
    flags: Number<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[serde(deserialize_with = "nullable")]
    message: String,
    #[serde(deserialize_with = "nullable")]
    code: Named<CodeNames>,
}

#[derive(Clone, Copy, Debug, Default)]
struct KindNames;

impl Names for KindNames {
    const NAMES: &'static [&'static str] = &[
        "SPAN_KIND_UNSPECIFIED",
        "SPAN_KIND_INTERNAL",
        "SPAN_KIND_SERVER",
        "SPAN_KIND_CLIENT",
        "SPAN_KIND_PRODUCER",
        "SPAN_KIND_CONSUMER",
    ];
}

#[derive(Clone, Copy, Debug, Default)]
struct CodeNames;

impl Names for CodeNames {
    const NAMES: &'static [&'static str] = &["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];
}

impl From<ResourceSpans> for wire::ResourceSpans {
    fn from(group: ResourceSpans) -> wire::ResourceSpans {
        wire::ResourceSpans {
            resource: group.resource.map(Into::into),
            scope_spans: group.scope_spans.into_iter().map(Into::into).collect(),
            schema_url: group.schema_url,
        }
    }
}

impl From<ScopeSpans> for wire::ScopeSpans {
    fn from(group: ScopeSpans) -> wire::ScopeSpans {
        wire::ScopeSpans {
            scope: group.scope.map(Into::into),
            spans: group.spans.into_iter().map(Into::into).collect(),
            schema_url: group.schema_url,
        }
    }
}

impl From<Span> for wire::Span {
    fn from(span: Span) -> wire::Span {
        wire::Span {
            trace_id: span.trace_id.0,
            span_id: span.span_id.0,
            trace_state: span.trace_state,
            parent_span_id: span.parent_span_id.0,
            flags: span.flags.0,
            name: span.name,
            kind: span.kind.0,
            start_time_unix_nano: span.start_time_unix_nano.0,
            end_time_unix_nano: span.end_time_unix_nano.0,
            attributes: into_wire(span.attributes),
            dropped_attributes_count: span.dropped_attributes_count.0,
            events: span.events.into_iter().map(Into::into).collect(),
            dropped_events_count: span.dropped_events_count.0,
            links: span.links.into_iter().map(Into::into).collect(),
            dropped_links_count: span.dropped_links_count.0,
            status: span.status.map(|status| wire::Status {
                message: status.message,
                code: status.code.0,
            }),
        }
    }
}

impl From<Event> for wire::span::Event {
    fn from(event: Event) -> wire::span::Event {
        wire::span::Event {
            time_unix_nano: event.time_unix_nano.0,
            name: event.name,
            attributes: into_wire(event.attributes),
            dropped_attributes_count: event.dropped_attributes_count.0,
        }
    }
}

impl From<Link> for wire::span::Link {
    fn from(link: Link) -> wire::span::Link {
        wire::span::Link {
            trace_id: link.trace_id.0,
            span_id: link.span_id.0,
            trace_state: link.trace_state,
            attributes: into_wire(link.attributes),
            dropped_attributes_count: link.dropped_attributes_count.0,
            flags: link.flags.0,
        }
    }
}
