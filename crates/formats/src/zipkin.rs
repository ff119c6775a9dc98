//! Zipkin's JSON, version 2: a list of spans.
//!
//! Ids of 64 bits are padded on the left, times are microseconds, tags texts. The two halves of a shared span (`shared`: the server
//! took over the client's id) are kept as two spans with one id, the server's marked by `zipkin.shared`. The parent of a span
//! of kind server or consumer ran elsewhere, which OTLP's flags then say.
//!
//! Spans are read one by one and lists within them up to their limits, so that the text never unfolds as a whole.

mod bounded;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::{Span, SpanFlags};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use self::bounded::{List, Micros, Tags};
use crate::foreign::{SpanBatch, attribute, kind, text};
use crate::{Decoded, Error, Limits, Reason, Subject};

/// The attribute that marks the server's half of a shared span.
pub const SHARED: &str = "zipkin.shared";

const FORMAT: &str = "list of Zipkin spans";

/// Reads a list of spans.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Decoded, Error> {
    let mut reader = SpanReader {
        batch: SpanBatch::new(limits),
        groups: HashMap::new(),
        failed: None,
    };
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = (&mut reader).deserialize(&mut json).and_then(|()| json.end());
    match (reader.failed.take(), read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(Error::malformed(FORMAT, error)),
        (None, Ok(())) => Ok(reader.batch.finish()),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonSpan<'a> {
    #[serde(borrow, default)]
    trace_id: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    timestamp: Option<Micros>,
    #[serde(default)]
    duration: Option<Micros>,
    #[serde(borrow, default)]
    local_endpoint: Option<Endpoint<'a>>,
    #[serde(borrow, default)]
    remote_endpoint: Option<Endpoint<'a>>,
    #[serde(borrow, default)]
    annotations: Option<List<Annotation<'a>>>,
    #[serde(default)]
    tags: Option<Tags>,
    #[serde(default)]
    debug: Option<bool>,
    #[serde(default)]
    shared: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint<'a> {
    #[serde(borrow, default)]
    service_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    ipv4: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    ipv6: Option<Cow<'a, str>>,
    #[serde(default)]
    port: Option<u32>,
}

#[derive(Deserialize)]
struct Annotation<'a> {
    #[serde(default)]
    timestamp: Option<Micros>,
    #[serde(borrow, default)]
    value: Cow<'a, str>,
}

struct SpanReader<'l> {
    batch: SpanBatch<'l>,
    /// Position of the spans of a service.
    groups: HashMap<String, usize>,
    /// Why reading ended, where the text is not at fault.
    failed: Option<Error>,
}

impl<'de> DeserializeSeed<'de> for &mut SpanReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut SpanReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of spans")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut spans: A) -> Result<(), A::Error> {
        while let Some(span) = spans.next_element::<JsonSpan<'de>>()? {
            if let Err(error) = self.add(span) {
                let text = error.to_string();
                self.failed = Some(error);
                return Err(serde::de::Error::custom(text));
            }
        }
        Ok(())
    }
}

impl SpanReader<'_> {
    fn add(&mut self, mut sent: JsonSpan<'_>) -> Result<(), Error> {
        let name = sent.name.clone().unwrap_or_default();
        let refusal = |what: &str, digits: &str, digits_max: usize| {
            let shown: String = digits.chars().take(80).collect();
            format!("span {name:?} has {what} {shown:?}, expected 1 to {digits_max} hex digits")
        };
        if id::<16>(&sent.trace_id).is_none() {
            let text = || refusal("trace id", &sent.trace_id, 32);
            self.batch.refuse(Subject::Span, Reason::InvalidTraceId, text);
            return Ok(());
        }
        if id::<8>(&sent.id).is_none() {
            let text = || refusal("id", &sent.id, 16);
            self.batch.refuse(Subject::Span, Reason::InvalidSpanId, text);
            return Ok(());
        }
        if let Some(parent) = sent.parent_id.take_if(|parent| !parent.is_empty() && id::<8>(parent).is_none()) {
            let text = || refusal("parent id", &parent, 16);
            self.batch.refuse(Subject::Link, Reason::InvalidParentSpanId, text);
        }
        let local = sent.local_endpoint.as_ref();
        let service = local.and_then(|endpoint| endpoint.service_name.as_deref()).unwrap_or_default();
        let group = match self.groups.get(service) {
            Some(known) => *known,
            None => {
                let group = self.batch.group(service, Vec::new())?;
                self.groups.insert(service.to_owned(), group);
                group
            }
        };
        self.batch.push(group, to_span(sent))
    }
}

fn to_span(sent: JsonSpan<'_>) -> Span {
    let events: Vec<Event> = sent
        .annotations
        .map_or_else(Vec::new, |list| list.0.into_iter().map(to_event).collect());
    // A span that a half was lost of may have annotations only.
    let start = sent.timestamp.map_or_else(
        || events.iter().map(|event| event.time_unix_nano).min(),
        |micros| Some(micros.nanos()),
    );
    let start = start.unwrap_or(u64::MAX);
    let duration = sent.duration.map_or(0, |micros| micros.nanos());
    let kind = sent.kind.and_then(|word| kind(&word)).unwrap_or(SpanKind::Unspecified);
    let shared = sent.shared == Some(true);
    let parent = sent.parent_id.as_deref().filter(|id| !id.is_empty());
    let is_remote = shared || parent.is_some() && matches!(kind, SpanKind::Server | SpanKind::Consumer);
    let mut attributes: Vec<KeyValue> = sent.tags.map_or_else(Vec::new, |tags| {
        tags.0.iter().map(|(key, value)| attribute(key, text(value))).collect()
    });
    endpoint(&mut attributes, sent.local_endpoint.as_ref(), "network.local");
    endpoint(&mut attributes, sent.remote_endpoint.as_ref(), "network.peer");
    let peer = sent.remote_endpoint.as_ref().and_then(|peer| peer.service_name.as_deref());
    attributes.extend(
        peer.filter(|name| !name.is_empty())
            .map(|name| attribute("peer.service", text(name))),
    );
    for (key, set) in [(SHARED, shared), ("zipkin.debug", sent.debug == Some(true))] {
        attributes.extend(set.then(|| attribute(key, Value::BoolValue(true))));
    }
    Span {
        trace_id: id::<16>(&sent.trace_id).unwrap_or_default(),
        span_id: id::<8>(&sent.id).unwrap_or_default(),
        parent_span_id: parent.and_then(id::<8>).unwrap_or_default(),
        name: sent.name.map_or_else(String::new, Cow::into_owned),
        kind: kind as i32,
        flags: match is_remote {
            true => SpanFlags::ContextHasIsRemoteMask as u32 | SpanFlags::ContextIsRemoteMask as u32,
            false => 0,
        },
        start_time_unix_nano: start,
        end_time_unix_nano: start.saturating_add(duration),
        attributes,
        events,
        ..Span::default()
    }
}

fn to_event(sent: Annotation<'_>) -> Event {
    Event {
        time_unix_nano: sent.timestamp.map_or(u64::MAX, |micros| micros.nanos()),
        name: sent.value.into_owned(),
        ..Event::default()
    }
}

fn endpoint(attributes: &mut Vec<KeyValue>, endpoint: Option<&Endpoint<'_>>, prefix: &str) {
    let Some(endpoint) = endpoint else {
        return;
    };
    if let Some(address) = endpoint.ipv4.as_ref().or(endpoint.ipv6.as_ref()) {
        attributes.push(attribute(&format!("{prefix}.address"), text(address)));
    }
    if let Some(port) = endpoint.port.filter(|port| *port != 0) {
        attributes.push(attribute(&format!("{prefix}.port"), Value::IntValue(i64::from(port))));
    }
}

/// The bytes of an id in hex, leading zeros left out or not; `None` for what is none.
fn id<const BYTES: usize>(digits: &str) -> Option<Vec<u8>> {
    if digits.len() > 2 * BYTES || digits.is_empty() {
        return None;
    }
    hex::decode(format!("{digits:0>width$}", width = 2 * BYTES)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanflame_model::{SpanKind, StatusCode};

    fn read(json: &str) -> Decoded {
        decode(json.as_bytes(), &Limits::default()).expect("usable")
    }

    #[test]
    fn a_span_says_what_its_fields_and_tags_say() {
        let decoded = read(
            r#"[{"traceId":"5af7183fb1d4cf5f","id":"352bff9a74ca9ad2","parentId":"6b221d5bc9e6496c","name":"get /api","kind":"CLIENT",
                "timestamp":1556604172355737,"duration":1431,"localEndpoint":{"serviceName":"backend","ipv4":"192.168.99.1","port":3306},
                "remoteEndpoint":{"serviceName":"db","ipv6":"::1","port":9411},"annotations":[{"timestamp":1556604172355800,"value":"retry"}],
                "tags":{"http.method":"GET","error":"timed out","otel.scope.name":"lib"},"debug":true}]"#,
        );
        assert_eq!(decoded.rejects.message(), None);
        let span = &decoded.batch.spans[0];
        assert_eq!(span.trace_id.to_string(), "00000000000000005af7183fb1d4cf5f");
        assert_eq!(span.parent_span_id.expect("a parent").to_string(), "6b221d5bc9e6496c");
        assert_eq!((span.start.unix_nanos(), span.duration_ns), (1_556_604_172_355_737_000, 1_431_000));
        assert_eq!(
            (span.kind, span.status, span.status_message.as_str()),
            (SpanKind::Client, StatusCode::Error, "timed out")
        );
        assert_eq!((span.resource.service(), span.scope.name.as_str()), ("backend", "lib"));
        assert_eq!(span.events[0].name, "retry");
        let keys: Vec<&str> = span.attributes.iter().map(|(key, _)| key).collect();
        let expected = [
            "error",
            "http.method",
            "network.local.address",
            "network.local.port",
            "network.peer.address",
            "network.peer.port",
            "peer.service",
            "zipkin.debug",
        ];
        assert_eq!(keys, expected);
        assert_eq!(span.parent_is_remote(), None);
    }

    #[test]
    fn both_halves_of_a_shared_span_are_kept() {
        let decoded = read(
            r#"[{"traceId":"1","id":"2","kind":"CLIENT","timestamp":10,"duration":9,"localEndpoint":{"serviceName":"a"}},
                {"traceId":"1","id":"2","kind":"SERVER","timestamp":12,"duration":5,"shared":true,"localEndpoint":{"serviceName":"b"}}]"#,
        );
        let spans = &decoded.batch.spans;
        assert_eq!((spans.len(), spans[0].span_id), (2, spans[1].span_id));
        assert_eq!(spans[1].parent_is_remote(), Some(true));
    }

    #[test]
    fn a_bad_span_costs_itself_only() {
        let decoded =
            read(r#"[{"traceId":"xyz","id":"2","timestamp":1},{"traceId":"1","id":"2"},{"traceId":"1","id":"3","timestamp":"7"}]"#);
        assert_eq!(decoded.batch.spans.len(), 1);
        assert_eq!(decoded.rejects.count_of(Subject::Span, Reason::InvalidTraceId), 1);
        assert_eq!(decoded.rejects.count_of(Subject::Span, Reason::TimeOutOfRange), 1);
        assert_eq!(
            decoded.rejects.examples()[1],
            "span \"\" has trace id \"xyz\", expected 1 to 32 hex digits"
        );
        for bad in ["{}", "[", "[1]", r#"[{"traceId":1}]"#] {
            assert!(decode(bad.as_bytes(), &Limits::default()).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_that_cannot_be_read_is_named() {
        let decoded = read(
            r#"[{"traceId":"1","id":"00000000000000002","timestamp":1},{"traceId":"1","id":"2","parentId":"0x3","name":"get","timestamp":1}]"#,
        );
        assert_eq!(
            decoded.rejects.examples(),
            [
                "span \"\" has id \"00000000000000002\", expected 1 to 16 hex digits",
                "span \"get\" has parent id \"0x3\", expected 1 to 16 hex digits",
            ]
        );
        assert_eq!(decoded.rejects.count_of(Subject::Link, Reason::InvalidParentSpanId), 1);
        assert_eq!((decoded.batch.spans.len(), decoded.batch.spans[0].parent_span_id), (1, None));
    }

    #[test]
    fn times_before_1970_and_durations_below_none_are_refused() {
        for part in [r#""timestamp":-5"#, r#""timestamp":5,"duration":-1"#, r#""timestamp":"NaN""#] {
            let body = format!(r#"[{{"traceId":"1","id":"2",{part}}},{{"traceId":"1","id":"3","timestamp":5}}]"#);
            let decoded = read(&body);
            assert_eq!(decoded.batch.spans.len(), 1, "{part}");
            assert_eq!(decoded.rejects.count_of(Subject::Span, Reason::TimeOutOfRange), 1, "{part}");
        }
    }

    #[test]
    fn lists_and_requests_are_bounded() {
        let many = format!(
            r#"[{{"traceId":"1","id":"2","timestamp":1,"annotations":[{}{{"timestamp":1,"value":"x"}}]}}]"#,
            r#"{"timestamp":1,"value":"x"},"#.repeat(5000)
        );
        assert_eq!(read(&many).batch.spans[0].events.len(), Limits::default().events_max);
        let limits = Limits {
            expanded_bytes_max: 1000,
            ..Limits::default()
        };
        let spans = format!("[{}]", [r#"{"traceId":"1","id":"2","timestamp":1}"#; 10].join(","));
        let error = decode(spans.as_bytes(), &limits).expect_err("too much");
        assert_eq!(error.kind(), crate::ErrorKind::TooLarge);
    }
}
