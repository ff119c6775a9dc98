//! A span of either form, on its way to OTLP's.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};

use crate::Limits;
use crate::foreign::{attribute, text};

/// A reference to another span.
#[derive(Default)]
pub(super) struct Reference {
    pub(super) trace_id: Vec<u8>,
    pub(super) span_id: Vec<u8>,
    pub(super) follows: bool,
}

/// What is put into a span beside its own fields. Lists hold one more than spans may keep, so that the excess is counted.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) tags: Vec<KeyValue>,
    pub(super) logs: Vec<Event>,
    pub(super) references: Vec<Reference>,
}

impl Parts {
    /// Whether one more tag is kept.
    pub(super) fn has_room(len: usize, max: usize) -> bool {
        len <= max
    }

    /// Puts the parts into `span`. The first reference to a span of the same trace is its parent, unless it has one.
    pub(super) fn finish(self, span: &mut Span, limits: &Limits) {
        span.attributes = self.tags;
        span.events = self.logs;
        let mut references = self.references;
        if span.parent_span_id.iter().all(|byte| *byte == 0) {
            let is_parent = |follows: bool| move |one: &Reference| one.follows == follows;
            let same_trace = |one: &Reference| one.trace_id == span.trace_id;
            let parent = references
                .iter()
                .position(|one| same_trace(one) && is_parent(false)(one))
                .or_else(|| references.iter().position(|one| same_trace(one) && is_parent(true)(one)));
            if let Some(parent) = parent {
                span.parent_span_id = references.remove(parent).span_id;
            }
        } else {
            references.retain(|one| one.trace_id != span.trace_id || one.span_id != span.parent_span_id);
        }
        span.links = references
            .into_iter()
            .take(limits.events_max + 1)
            .map(|one| Link {
                trace_id: one.trace_id,
                span_id: one.span_id,
                attributes: vec![attribute(
                    "opentracing.ref_type",
                    text(if one.follows { "follows_from" } else { "child_of" }),
                )],
                ..Link::default()
            })
            .collect();
    }
}

/// A log as an event: the field `event` is its name.
pub(super) fn event(time_unix_nano: u64, mut fields: Vec<KeyValue>) -> Event {
    let name = fields.iter().position(|field| field.key == "event").map(|at| fields.remove(at));
    let name = match name.and_then(|field| field.value?.value) {
        Some(Value::StringValue(name)) => name,
        _ => "log".to_owned(),
    };
    Event {
        time_unix_nano,
        name,
        attributes: fields,
        ..Event::default()
    }
}
