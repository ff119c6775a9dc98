//! Spans of other formats, written as OTLP's messages.
//!
//! Zipkin and Jaeger say in tags what OTLP has fields for, and otherwise less than OTLP. So their spans become OTLP's,
//! whose decoder then checks ids, times and limits, and nothing of that is done twice. What a request unfolds into on
//! the way is charged to its account.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

use crate::budget::Budget;
use crate::rejects::Rejects;
use crate::{Decoded, Error, Limits, Reason, Subject, otlp};

/// Collects the spans of one request.
pub(crate) struct SpanBatch<'a> {
    limits: &'a Limits,
    budget: Budget,
    groups: Vec<ResourceSpans>,
    rejects: Rejects,
}

impl<'a> SpanBatch<'a> {
    pub(crate) fn new(limits: &'a Limits) -> SpanBatch<'a> {
        SpanBatch {
            limits,
            budget: Budget::new(limits),
            groups: Vec::new(),
            rejects: Rejects::new(),
        }
    }

    /// Counts what is left out because OTLP's messages could not even say it.
    pub(crate) fn refuse(&mut self, subject: Subject, reason: Reason, example: impl FnOnce() -> String) {
        self.rejects.add(subject, reason, example);
    }

    /// Charges what is about to be kept; fails if the request has unfolded into too much.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), Error> {
        self.budget.take(bytes).map_err(|_| Error::TooLarge {
            what: "bytes that the spans unfold into",
            max: self.limits.expanded_bytes_max,
        })
    }

    /// Begins the spans of a service; answers the position for [`SpanBatch::push`].
    pub(crate) fn group(&mut self, service: &str, mut attributes: Vec<KeyValue>) -> Result<usize, Error> {
        if !service.is_empty() {
            attributes.push(attribute("service.name", text(service)));
        }
        self.charge(size_of::<ResourceSpans>() + attributes_bytes(&attributes))?;
        self.groups.push(ResourceSpans {
            resource: Some(Resource {
                attributes,
                ..Resource::default()
            }),
            ..ResourceSpans::default()
        });
        Ok(self.groups.len() - 1)
    }

    /// Adds a span to a group. What its tags say about it is moved to where OTLP has it.
    pub(crate) fn push(&mut self, group: usize, mut span: Span) -> Result<(), Error> {
        let attributes =
            attributes_bytes(&span.attributes) + span.events.iter().map(|event| attributes_bytes(&event.attributes)).sum::<usize>();
        self.charge(size_of::<Span>() + span.name.len() + attributes)?;
        let scope = read_tags(&mut span);
        let scopes = &mut self.groups[group].scope_spans;
        match scopes.last_mut().filter(|last| last.scope == scope) {
            Some(last) => last.spans.push(span),
            None => scopes.push(ScopeSpans {
                scope,
                spans: vec![span],
                ..ScopeSpans::default()
            }),
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Decoded {
        let request = ExportTraceServiceRequest {
            resource_spans: self.groups,
        };
        let mut decoded = otlp::traces::from_message(request, self.limits);
        decoded.rejects.merge(self.rejects);
        decoded
    }
}

/// Takes the tags out that are not attributes; answers the scope that they name.
fn read_tags(span: &mut Span) -> Option<InstrumentationScope> {
    let mut scope = InstrumentationScope::default();
    let mut status = Status::default();
    let mut error = None;
    span.attributes.retain_mut(|pair| {
        let value = pair.value.as_ref().and_then(|value| value.value.as_ref());
        let as_text = match value {
            Some(Value::StringValue(text)) => text.as_str(),
            _ => "",
        };
        match pair.key.as_str() {
            "span.kind" => match kind(as_text) {
                Some(kind) => span.kind = kind as i32,
                None => return true,
            },
            "otel.status_code" => match as_text {
                "OK" => status.code = StatusCode::Ok as i32,
                "ERROR" => status.code = StatusCode::Error as i32,
                _ => return true,
            },
            "otel.status_description" => as_text.clone_into(&mut status.message),
            "otel.scope.name" | "otel.library.name" => as_text.clone_into(&mut scope.name),
            "otel.scope.version" | "otel.library.version" => as_text.clone_into(&mut scope.version),
            "w3c.tracestate" => as_text.clone_into(&mut span.trace_state),
            // How the client wrote the span down says nothing about it.
            "internal.span.format" => {}
            "error" => {
                error = match value {
                    Some(Value::BoolValue(false)) => None,
                    _ => Some(as_text.to_owned()).filter(|text| text != "false"),
                };
                return true;
            }
            _ => return true,
        }
        false
    });
    if let Some(text) = error.filter(|_| status.code == StatusCode::Unset as i32) {
        status.code = StatusCode::Error as i32;
        if status.message.is_empty() && text != "true" {
            status.message = text;
        }
    }
    span.status = (status != Status::default()).then_some(status);
    (scope != InstrumentationScope::default()).then_some(scope)
}

/// The kind of a word, of either case.
pub(crate) fn kind(word: &str) -> Option<SpanKind> {
    Some(match word.to_ascii_lowercase().as_str() {
        "internal" => SpanKind::Internal,
        "server" => SpanKind::Server,
        "client" => SpanKind::Client,
        "producer" => SpanKind::Producer,
        "consumer" => SpanKind::Consumer,
        _ => return None,
    })
}

pub(crate) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

pub(crate) fn text(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

/// About how much memory attributes take.
fn attributes_bytes(attributes: &[KeyValue]) -> usize {
    let bytes = |pair: &KeyValue| {
        let value = match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(Value::StringValue(text)) => text.len(),
            Some(Value::BytesValue(bytes)) => bytes.len(),
            _ => 0,
        };
        size_of::<KeyValue>() + pair.key.len() + value
    };
    attributes.iter().map(bytes).sum()
}
