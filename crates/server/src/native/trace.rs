//! `GET /api/v1/traces/{trace_id}`: a trace with how much was profiled in each span.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_model::{ProfileType, Scope, Span, SpanEvent, SpanLink};
use spanflame_query::{Engine, SpanProfile, Trace, TraceRequest, TraceSpan};

use super::params::{Params, id};
use super::question::ask;
use super::text::{Object, known, time};
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;

pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Path(trace_id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    Params::parse(query.as_deref(), &[])?;
    let request = TraceRequest {
        tenants: read_tenants(&headers)?,
        trace_id: id("trace_id", &trace_id)?,
    };
    let several = request.tenants.len() > 1;
    let asked = async move |engine: Engine| engine.trace(&request).await;
    ask(&app, "trace", asked, move |trace: &Trace, watch| {
        Ok(watch.json(WireTrace::new(trace, several)))
    })
    .await
}

#[derive(Serialize)]
struct WireTrace<'a> {
    trace_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_unix_nano: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_unix_nano: Option<String>,
    services: &'a [String],
    complete: bool,
    spans: Vec<WireSpan<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unassigned_profiles: BTreeMap<String, WireSpanProfile>,
}

#[derive(Serialize)]
struct WireSpan<'a> {
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    local_root_span_id: String,
    service: &'a str,
    name: &'a str,
    kind: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    start_unix_nano: String,
    duration_ns: u64,
    attributes: Object<'a>,
    resource: Object<'a>,
    scope: WireScope<'a>,
    events: Vec<WireEvent<'a>>,
    links: Vec<WireLink<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<WireDropped>,
    #[serde(skip_serializing_if = "is_false")]
    parent_missing: bool,
    #[serde(skip_serializing_if = "is_false")]
    shared_id: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    profiles: BTreeMap<String, WireSpanProfile>,
}

#[derive(Serialize)]
struct WireScope<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<Object<'a>>,
}

#[derive(Serialize)]
struct WireEvent<'a> {
    time_unix_nano: String,
    name: &'a str,
    attributes: Object<'a>,
}

#[derive(Serialize)]
struct WireLink<'a> {
    trace_id: String,
    span_id: String,
    attributes: Object<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_state: Option<&'a str>,
}

/// What the SDK dropped before it sent the span.
#[derive(Serialize)]
struct WireDropped {
    attributes: u32,
    events: u32,
    links: u32,
}

#[derive(Serialize)]
struct WireSpanProfile {
    samples: u64,
    value: i64,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl<'a> WireTrace<'a> {
    fn new(trace: &'a Trace, several_tenants: bool) -> WireTrace<'a> {
        WireTrace {
            trace_id: trace.trace_id.to_string(),
            start_unix_nano: trace.range.map(|range| time(range.start())),
            end_unix_nano: trace.range.map(|range| time(range.end())),
            services: &trace.services,
            complete: trace.complete,
            spans: trace.spans.iter().map(|span| WireSpan::new(span, several_tenants)).collect(),
            unassigned_profiles: profiles(&trace.unassigned),
        }
    }
}

impl<'a> WireSpan<'a> {
    fn new(shown: &'a TraceSpan, several_tenants: bool) -> WireSpan<'a> {
        let span: &Span = &shown.stored.span;
        let [attributes, events, links] = span.dropped;
        WireSpan {
            span_id: span.span_id.to_string(),
            parent_span_id: span.parent_span_id.map(|parent| parent.to_string()),
            local_root_span_id: shown.local_root_span_id.to_string(),
            service: span.resource.service(),
            name: &span.name,
            kind: span.kind.as_str(),
            status: span.status.as_str(),
            status_message: known(&span.status_message),
            start_unix_nano: time(span.start),
            duration_ns: span.duration_ns,
            attributes: Object(&span.attributes),
            resource: Object(span.resource.attributes()),
            scope: WireScope::new(&span.scope),
            events: span.events.iter().map(WireEvent::new).collect(),
            links: span.links.iter().map(WireLink::new).collect(),
            trace_state: known(&span.trace_state),
            dropped: (span.dropped != [0; 3]).then_some(WireDropped { attributes, events, links }),
            parent_missing: shown.parent_missing,
            shared_id: shown.shared_id,
            tenant: several_tenants.then(|| shown.stored.tenant.as_str()),
            profiles: profiles(&shown.profiles),
        }
    }
}

impl<'a> WireScope<'a> {
    fn new(scope: &'a Scope) -> WireScope<'a> {
        WireScope {
            name: known(&scope.name),
            version: known(&scope.version),
            attributes: (!scope.attributes.is_empty()).then_some(Object(&scope.attributes)),
        }
    }
}

impl<'a> WireEvent<'a> {
    fn new(event: &'a SpanEvent) -> WireEvent<'a> {
        WireEvent {
            time_unix_nano: time(event.time),
            name: &event.name,
            attributes: Object(&event.attributes),
        }
    }
}

impl<'a> WireLink<'a> {
    fn new(link: &'a SpanLink) -> WireLink<'a> {
        WireLink {
            trace_id: link.trace_id.to_string(),
            span_id: link.span_id.to_string(),
            attributes: Object(&link.attributes),
            trace_state: known(&link.trace_state),
        }
    }
}

fn profiles(profiles: &BTreeMap<ProfileType, SpanProfile>) -> BTreeMap<String, WireSpanProfile> {
    let wire = |profile: &SpanProfile| WireSpanProfile {
        samples: profile.samples,
        value: profile.value,
    };
    profiles
        .iter()
        .map(|(profile_type, profile)| (profile_type.to_string(), wire(profile)))
        .collect()
}
