//! Traces in Jaeger's JSON, written straight to the serializer.
//!
//! What OpenTelemetry has fields for are tags here (`span.kind`, `error`, `otel.scope.name`, ...), resources are
//! processes, events are logs, times are microseconds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::Serializer;
use spanflame_model::{Attributes, Span, SpanEvent, SpanId, SpanKind, StatusCode, TraceId, Value};

use crate::text;

/// What every answer of the legacy API is wrapped in.
#[derive(Serialize)]
pub(super) struct Envelope<T> {
    pub(super) data: T,
    pub(super) total: usize,
    pub(super) limit: usize,
    pub(super) offset: usize,
    pub(super) errors: Option<Vec<Missing>>,
}

/// A trace that was asked for and is not there.
#[derive(Serialize)]
pub(super) struct Missing {
    pub(super) code: u16,
    pub(super) msg: String,
    #[serde(rename = "traceID")]
    pub(super) trace_id: String,
}

impl<T> Envelope<T> {
    /// Without errors.
    pub(super) fn of(data: T, total: usize) -> Envelope<T> {
        Envelope {
            data,
            total,
            limit: 0,
            offset: 0,
            errors: None,
        }
    }
}

/// One trace, of spans that are grouped by resource.
pub(super) struct JaegerTrace<'a>(pub(super) &'a [Span]);

impl Serialize for JaegerTrace<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spans = self.0;
        let mut processes = BTreeMap::new();
        for (n, group) in groups(spans).enumerate() {
            processes.insert(format!("p{}", n + 1), Process::new(&group[0]));
        }
        WireTrace {
            trace_id: spans.first().map(|span| span.trace_id.to_string()).unwrap_or_default(),
            spans: Spans(spans),
            processes,
            warnings: None,
        }
        .serialize(serializer)
    }
}

fn groups(spans: &[Span]) -> impl Iterator<Item = &[Span]> {
    spans.chunk_by(|a, b| a.resource == b.resource)
}

#[derive(Serialize)]
struct WireTrace<'a> {
    #[serde(rename = "traceID")]
    trace_id: String,
    spans: Spans<'a>,
    processes: BTreeMap<String, Process<'a>>,
    warnings: Option<Vec<String>>,
}

struct Spans<'a>(&'a [Span]);

impl Serialize for Spans<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let numbered = groups(self.0).enumerate();
        let spans = numbered.flat_map(|(n, group)| group.iter().map(move |span| WireSpan::new(span, format!("p{}", n + 1))));
        serializer.collect_seq(spans)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Process<'a> {
    service_name: &'a str,
    tags: Vec<Tag<'a>>,
}

impl<'a> Process<'a> {
    fn new(span: &'a Span) -> Process<'a> {
        let attributes = span.resource.attributes().iter().filter(|(key, _)| *key != "service.name");
        Process {
            service_name: span.resource.service(),
            tags: attributes.map(|(key, value)| Tag::new(key, value)).collect(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireSpan<'a> {
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
    operation_name: &'a str,
    references: Vec<Reference>,
    start_time: u64,
    duration: u64,
    tags: Vec<Tag<'a>>,
    logs: Vec<Log<'a>>,
    #[serde(rename = "processID")]
    process_id: String,
    warnings: Option<Vec<String>>,
}

#[derive(Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Reference {
    ref_type: &'static str,
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
}

#[derive(Serialize)]
struct Log<'a> {
    timestamp: u64,
    fields: Vec<Tag<'a>>,
}

/// Key, type and value, of a span, a process or a log.
#[derive(Serialize)]
pub(super) struct Tag<'a> {
    key: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    value: TagValue<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TagValue<'a> {
    Text(Cow<'a, str>),
    Bool(bool),
    Int(i64),
    Double(f64),
}

impl<'a> WireSpan<'a> {
    fn new(span: &'a Span, process_id: String) -> WireSpan<'a> {
        WireSpan {
            trace_id: span.trace_id.to_string(),
            span_id: span.span_id.to_string(),
            operation_name: &span.name,
            references: references(span),
            start_time: micros(span.start.unix_nanos() as u64),
            duration: micros(span.duration_ns),
            tags: tags(span),
            logs: span.events.iter().map(Log::new).collect(),
            process_id,
            warnings: None,
        }
    }
}

impl Reference {
    fn new(ref_type: &'static str, trace: TraceId, span: SpanId) -> Reference {
        Reference {
            ref_type,
            trace_id: trace.to_string(),
            span_id: span.to_string(),
        }
    }
}

/// The parent first, then links, each once.
fn references(span: &Span) -> Vec<Reference> {
    let parent = span.parent_span_id.map(|parent| Reference::new("CHILD_OF", span.trace_id, parent));
    let mut references: Vec<Reference> = parent.into_iter().collect();
    for link in &span.links {
        let is_parent = link.attributes.get_str("opentracing.ref_type") == Some("child_of");
        let ref_type = if is_parent { "CHILD_OF" } else { "FOLLOWS_FROM" };
        let reference = Reference::new(ref_type, link.trace_id, link.span_id);
        if !references.contains(&reference) {
            references.push(reference);
        }
    }
    references
}

fn tags(span: &Span) -> Vec<Tag<'_>> {
    let text = |key: &'static str, text: &'static str| Tag::text(key, text);
    let known = |key: &'static str, text: &'_ str| (!text.is_empty()).then(|| Tag::text(key, text.to_owned()));
    let mut tags = Vec::with_capacity(span.attributes.len() + 4);
    tags.extend(known("otel.scope.name", &span.scope.name));
    tags.extend(known("otel.scope.version", &span.scope.version));
    tags.extend(of(&span.scope.attributes));
    tags.extend(of(&span.attributes));
    if span.kind != SpanKind::Unspecified {
        tags.push(text("span.kind", span.kind.as_str()));
    }
    match span.status {
        StatusCode::Unset => {}
        StatusCode::Ok => tags.push(text("otel.status_code", "OK")),
        StatusCode::Error => {
            tags.push(text("otel.status_code", "ERROR"));
            // A client's own tag says the same and stays.
            if span.attributes.get("error").is_none() {
                tags.push(Tag {
                    key: "error".into(),
                    kind: "bool",
                    value: TagValue::Bool(true),
                });
            }
        }
    }
    tags.extend(known("otel.status_description", &span.status_message));
    tags.extend(known("w3c.tracestate", &span.trace_state));
    tags
}

fn of(attributes: &Attributes) -> impl Iterator<Item = Tag<'_>> {
    attributes.iter().map(|(key, value)| Tag::new(key, value))
}

impl<'a> Log<'a> {
    fn new(event: &'a SpanEvent) -> Log<'a> {
        let name = (!event.name.is_empty()).then(|| Tag::text("event", event.name.as_str()));
        Log {
            timestamp: micros(event.time.unix_nanos() as u64),
            fields: name.into_iter().chain(of(&event.attributes)).collect(),
        }
    }
}

impl<'a> Tag<'a> {
    fn text(key: &'a str, text: impl Into<Cow<'a, str>>) -> Tag<'a> {
        Tag {
            key: key.into(),
            kind: "string",
            value: TagValue::Text(text.into()),
        }
    }

    fn new(key: &'a str, value: &'a Value) -> Tag<'a> {
        let (kind, value) = match value {
            Value::Str(text) => ("string", TagValue::Text(text.into())),
            Value::Bool(value) => ("bool", TagValue::Bool(*value)),
            Value::Int(number) => ("int64", TagValue::Int(*number)),
            Value::Double(number) if number.is_finite() => ("float64", TagValue::Double(*number)),
            // JSON has no such number.
            Value::Double(number) => ("string", TagValue::Text(number.to_string().into())),
            Value::Bytes(bytes) => ("binary", TagValue::Text(STANDARD.encode(bytes).into())),
            list @ (Value::Array(_) | Value::Map(_)) => ("string", TagValue::Text(text::json_of(list).into())),
        };
        Tag {
            key: key.into(),
            kind,
            value,
        }
    }
}

fn micros(nanos: u64) -> u64 {
    nanos / 1_000
}
