//! Spans as JSON, written straight to the serializer: a trace of 100,000 spans is never a tree of values.
//!
//! Two dialects share the shape. OTLP/JSON has ids in hex and enums as numbers. Protobuf's own mapping, which Tempo
//! answers with, has ids in base64 and enums by name. In both, 64-bit numbers are strings.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use spanflame_model::{Attributes, Scope, Span, SpanEvent, SpanKind, SpanLink, StatusCode, Value};

/// How ids and enums are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStyle {
    /// OTLP/JSON: hex ids, enums as numbers.
    Otlp,
    /// Protobuf's mapping: base64 ids, enums by name.
    Protobuf,
}

/// Spans as a list of OTLP's `ResourceSpans`; neighbours that share a resource and a scope share a group.
#[derive(Clone, Copy, Debug)]
pub struct JsonSpans<'a> {
    spans: &'a [Span],
    style: JsonStyle,
}

impl<'a> JsonSpans<'a> {
    /// `spans` in their order.
    pub fn new(spans: &'a [Span], style: JsonStyle) -> JsonSpans<'a> {
        JsonSpans { spans, style }
    }
}

impl Serialize for JsonSpans<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let groups = self.spans.chunk_by(|a, b| super::super::traces::same(&a.resource, &b.resource));
        serializer.collect_seq(groups.map(|spans| WireResourceSpans {
            resource: WireAttributed {
                attributes: List(spans[0].resource.attributes()),
            },
            scope_spans: WireScopes(JsonSpans { spans, style: self.style }),
        }))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireResourceSpans<'a> {
    resource: WireAttributed<'a>,
    scope_spans: WireScopes<'a>,
}

#[derive(Serialize)]
struct WireAttributed<'a> {
    attributes: List<'a>,
}

/// The scopes of one resource.
struct WireScopes<'a>(JsonSpans<'a>);

impl Serialize for WireScopes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let groups = self.0.spans.chunk_by(|a, b| super::super::traces::same(&a.scope, &b.scope));
        serializer.collect_seq(groups.map(|spans| WireScopeSpans {
            scope: WireScope::new(&spans[0].scope),
            spans: WireSpans(JsonSpans {
                spans,
                style: self.0.style,
            }),
        }))
    }
}

#[derive(Serialize)]
struct WireScopeSpans<'a> {
    scope: WireScope<'a>,
    spans: WireSpans<'a>,
}

#[derive(Serialize)]
struct WireScope<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "List::is_empty")]
    attributes: List<'a>,
}

impl<'a> WireScope<'a> {
    fn new(scope: &'a Arc<Scope>) -> WireScope<'a> {
        WireScope {
            name: &scope.name,
            version: &scope.version,
            attributes: List(&scope.attributes),
        }
    }
}

/// The spans of one scope.
struct WireSpans<'a>(JsonSpans<'a>);

impl Serialize for WireSpans<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.spans.iter().map(|span| WireSpan::new(span, self.0.style)))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireSpan<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    trace_state: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    flags: u32,
    name: &'a str,
    kind: Enum,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: List<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped_attributes_count: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<WireEvent<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped_events_count: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<WireLink<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped_links_count: u32,
    status: WireStatus<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent<'a> {
    time_unix_nano: String,
    name: &'a str,
    #[serde(skip_serializing_if = "List::is_empty")]
    attributes: List<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped_attributes_count: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireLink<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    trace_state: &'a str,
    #[serde(skip_serializing_if = "List::is_empty")]
    attributes: List<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped_attributes_count: u32,
    #[serde(skip_serializing_if = "is_zero")]
    flags: u32,
}

#[derive(Serialize)]
struct WireStatus<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Enum>,
}

/// An enum's value by number or name.
#[derive(Serialize)]
#[serde(untagged)]
enum Enum {
    Number(i32),
    Name(&'static str),
}

impl<'a> WireSpan<'a> {
    fn new(span: &'a Span, style: JsonStyle) -> WireSpan<'a> {
        let [attributes, events, links] = span.dropped;
        WireSpan {
            trace_id: id(span.trace_id.as_bytes(), style),
            span_id: id(span.span_id.as_bytes(), style),
            parent_span_id: span.parent_span_id.map(|parent| id(parent.as_bytes(), style)),
            trace_state: &span.trace_state,
            flags: span.flags,
            name: &span.name,
            kind: kind(span.kind, style),
            start_time_unix_nano: span.start.to_string(),
            end_time_unix_nano: span.start.saturating_add(span.duration_ns).to_string(),
            attributes: List(&span.attributes),
            dropped_attributes_count: attributes,
            events: span.events.iter().map(WireEvent::new).collect(),
            dropped_events_count: events,
            links: span.links.iter().map(|link| WireLink::new(link, style)).collect(),
            dropped_links_count: links,
            status: WireStatus {
                message: &span.status_message,
                code: (span.status != StatusCode::Unset).then(|| status(span.status, style)),
            },
        }
    }
}

impl<'a> WireEvent<'a> {
    fn new(event: &'a SpanEvent) -> WireEvent<'a> {
        WireEvent {
            time_unix_nano: event.time.to_string(),
            name: &event.name,
            attributes: List(&event.attributes),
            dropped_attributes_count: event.dropped,
        }
    }
}

impl<'a> WireLink<'a> {
    fn new(link: &'a SpanLink, style: JsonStyle) -> WireLink<'a> {
        WireLink {
            trace_id: id(link.trace_id.as_bytes(), style),
            span_id: id(link.span_id.as_bytes(), style),
            trace_state: &link.trace_state,
            attributes: List(&link.attributes),
            dropped_attributes_count: link.dropped,
            flags: link.flags,
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn id(bytes: &[u8], style: JsonStyle) -> String {
    match style {
        JsonStyle::Otlp => hex::encode(bytes),
        JsonStyle::Protobuf => STANDARD.encode(bytes),
    }
}

fn kind(kind: SpanKind, style: JsonStyle) -> Enum {
    match (style, kind) {
        (JsonStyle::Otlp, kind) => Enum::Number(kind as i32),
        (_, SpanKind::Unspecified) => Enum::Name("SPAN_KIND_UNSPECIFIED"),
        (_, SpanKind::Internal) => Enum::Name("SPAN_KIND_INTERNAL"),
        (_, SpanKind::Server) => Enum::Name("SPAN_KIND_SERVER"),
        (_, SpanKind::Client) => Enum::Name("SPAN_KIND_CLIENT"),
        (_, SpanKind::Producer) => Enum::Name("SPAN_KIND_PRODUCER"),
        (_, SpanKind::Consumer) => Enum::Name("SPAN_KIND_CONSUMER"),
    }
}

fn status(code: StatusCode, style: JsonStyle) -> Enum {
    match (style, code) {
        (JsonStyle::Otlp, code) => Enum::Number(code as i32),
        (_, StatusCode::Unset) => Enum::Name("STATUS_CODE_UNSET"),
        (_, StatusCode::Ok) => Enum::Name("STATUS_CODE_OK"),
        (_, StatusCode::Error) => Enum::Name("STATUS_CODE_ERROR"),
    }
}

/// Attributes as a list of key and value.
struct List<'a>(&'a Attributes);

impl List<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(key, value)| Pair { key, value: Any(value) }))
    }
}

#[derive(Serialize)]
struct Pair<'a> {
    key: &'a str,
    value: Any<'a>,
}

/// A value under the name of its type.
struct Any<'a>(&'a Value);

impl Serialize for Any<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.0 {
            Value::Str(text) => map.serialize_entry("stringValue", text)?,
            Value::Bool(value) => map.serialize_entry("boolValue", value)?,
            Value::Int(number) => map.serialize_entry("intValue", &number.to_string())?,
            Value::Double(number) if number.is_finite() => map.serialize_entry("doubleValue", number)?,
            Value::Double(number) => map.serialize_entry("doubleValue", &not_finite(*number))?,
            Value::Bytes(bytes) => map.serialize_entry("bytesValue", &STANDARD.encode(bytes))?,
            Value::Array(values) => map.serialize_entry(
                "arrayValue",
                &Values {
                    values: values.iter().map(Any).collect(),
                },
            )?,
            Value::Map(pairs) => map.serialize_entry(
                "kvlistValue",
                &Pairs {
                    values: pairs.iter().map(|(key, value)| Pair { key, value: Any(value) }).collect(),
                },
            )?,
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Values<'a> {
    values: Vec<Any<'a>>,
}

#[derive(Serialize)]
struct Pairs<'a> {
    values: Vec<Pair<'a>>,
}

/// What JSON has no number for, in protobuf's words.
fn not_finite(number: f64) -> Cow<'static, str> {
    match number {
        number if number.is_nan() => "NaN".into(),
        number if number > 0.0 => "Infinity".into(),
        _ => "-Infinity".into(),
    }
}

#[cfg(test)]
mod tests {
    use spanflame_model::{Resource, SpanId, Timestamp, TraceId};

    use super::*;

    fn span(service: &str) -> Span {
        Span {
            trace_id: TraceId::from_bytes([1; 16]).expect("not zero"),
            span_id: SpanId::from_bytes([2; 8]).expect("not zero"),
            parent_span_id: None,
            trace_state: String::new(),
            flags: 0,
            name: "GET /".to_owned(),
            kind: SpanKind::Server,
            start: Timestamp::from_unix_nanos(5).expect("in range"),
            duration_ns: 2,
            status: StatusCode::Error,
            status_message: String::new(),
            attributes: [("n", Value::Int(1 << 60)), ("x", Value::Double(f64::NAN))].into_iter().collect(),
            events: Vec::new(),
            links: Vec::new(),
            dropped: [0; 3],
            resource: Arc::new(Resource::new([("service.name", service)].into_iter().collect())),
            scope: Arc::default(),
        }
    }

    fn check(style: JsonStyle, expected_span: &str) {
        let spans = [span("a"), span("a"), span("b")];
        let text = serde_json::to_string(&JsonSpans::new(&spans, style)).expect("JSON");
        let group = |service: &str, spans: &str| {
            format!(
                r#"{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"{service}"}}}}]}},"scopeSpans":[{{"scope":{{}},"spans":[{spans}]}}]}}"#
            )
        };
        let two = format!("{expected_span},{expected_span}");
        assert_eq!(text, format!("[{},{}]", group("a", &two), group("b", expected_span)));
    }

    #[test]
    fn otlp_has_hex_ids_and_numbers() {
        check(
            JsonStyle::Otlp,
            r#"{"traceId":"01010101010101010101010101010101","spanId":"0202020202020202","name":"GET /","kind":2,"startTimeUnixNano":"5","endTimeUnixNano":"7","attributes":[{"key":"n","value":{"intValue":"1152921504606846976"}},{"key":"x","value":{"doubleValue":"NaN"}}],"status":{"code":2}}"#,
        );
    }

    #[test]
    fn protobuf_has_base64_ids_and_names() {
        check(
            JsonStyle::Protobuf,
            r#"{"traceId":"AQEBAQEBAQEBAQEBAQEBAQ==","spanId":"AgICAgICAgI=","name":"GET /","kind":"SPAN_KIND_SERVER","startTimeUnixNano":"5","endTimeUnixNano":"7","attributes":[{"key":"n","value":{"intValue":"1152921504606846976"}},{"key":"x","value":{"doubleValue":"NaN"}}],"status":{"code":"STATUS_CODE_ERROR"}}"#,
        );
    }
}
