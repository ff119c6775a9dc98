//! OTLP traces: `ExportTraceServiceRequest` to spans and back.

use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1 as wire;
use prost::Message;
use spanflame_model::{Resource, Scope, Span, SpanEvent, SpanId, SpanKind, SpanLink, StatusCode, Timestamp, TraceId};

use super::attributes::{AttributeReader, key_values, no_strings, wire_resource, wire_scope};
pub use super::json::{JsonSpans, JsonStyle};
use super::{expansion, json};
use crate::rejects::cut;
use crate::{Decoded, Error, Limits, Reason, Rejects, Subject};

/// Reads a request in protobuf.
pub fn decode_protobuf(bytes: &[u8], limits: &Limits) -> Result<Decoded, Error> {
    check_size(bytes, limits)?;
    expansion::check_protobuf(bytes, limits)?;
    let request = ExportTraceServiceRequest::decode(bytes).map_err(|e| Error::malformed("OTLP trace request", wire_error(&e)))?;
    Ok(from_message(request, limits))
}

/// Reads a request in JSON.
pub fn decode_json(bytes: &[u8], limits: &Limits) -> Result<Decoded, Error> {
    check_size(bytes, limits)?;
    expansion::check_json(bytes, limits)?;
    let request = json::trace_request(bytes).map_err(|e| Error::malformed("OTLP/JSON trace request", e))?;
    Ok(from_message(request, limits))
}

/// Takes over a request that was already decoded, e.g. by gRPC.
pub fn from_message(request: ExportTraceServiceRequest, limits: &Limits) -> Decoded {
    let mut decoded = Decoded::default();
    let spans = request.resource_spans.iter().flat_map(|r| &r.scope_spans).map(|s| s.spans.len());
    decoded.batch.spans.reserve_exact(spans.sum());
    let reader = SpanReader {
        attributes: AttributeReader {
            limits,
            strings: &no_strings,
        },
        limits,
    };
    for group in request.resource_spans {
        let attributes = reader.attributes.resource(group.resource, &mut decoded.rejects);
        let resource = Arc::new(Resource::new(attributes));
        for group in group.scope_spans {
            let scope = Arc::new(reader.attributes.scope(group.scope, &mut decoded.rejects));
            for span in group.spans {
                match reader.span(span, &resource, &scope, &mut decoded.rejects) {
                    Ok(span) => decoded.batch.spans.push(span),
                    Err((reason, example)) => decoded.rejects.add(Subject::Span, reason, || example),
                }
            }
        }
    }
    decoded
}

/// Writes spans as one request, in their order; neighbours that share a resource and a scope share a group.
pub fn encode<'a>(spans: impl IntoIterator<Item = &'a Span>) -> ExportTraceServiceRequest {
    let mut groups: Vec<wire::ResourceSpans> = Vec::new();
    let mut last: Option<&Span> = None;
    for span in spans {
        let same_resource = last.is_some_and(|l| same(&l.resource, &span.resource));
        let same_scope = same_resource && last.is_some_and(|l| same(&l.scope, &span.scope));
        if !same_resource {
            groups.push(wire::ResourceSpans {
                resource: Some(wire_resource(&span.resource)),
                ..wire::ResourceSpans::default()
            });
        }
        let scopes = &mut groups.last_mut().expect("a group was pushed for the first span").scope_spans;
        if !same_scope {
            scopes.push(wire::ScopeSpans {
                scope: wire_scope(&span.scope),
                ..wire::ScopeSpans::default()
            });
        }
        scopes
            .last_mut()
            .expect("a group was pushed for the first span")
            .spans
            .push(wire_span(span));
        last = Some(span);
    }
    ExportTraceServiceRequest { resource_spans: groups }
}

/// The text of an error, which names the field at every level it lies in, without the middle of a long way there.
fn wire_error(error: &prost::DecodeError) -> String {
    const KEPT_AT_EACH_END: usize = 3;
    let text = error.to_string();
    let parts: Vec<&str> = text.split(": ").collect();
    match parts.len() > 2 * KEPT_AT_EACH_END {
        false => text,
        true => {
            let (first, last) = (&parts[..KEPT_AT_EACH_END], &parts[parts.len() - KEPT_AT_EACH_END..]);
            let left_out = parts.len() - 2 * KEPT_AT_EACH_END;
            format!("{}: .. {left_out} levels ..: {}", first.join(": "), last.join(": "))
        }
    }
}

pub(super) fn same<T: PartialEq>(a: &Arc<T>, b: &Arc<T>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

fn check_size(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    match bytes.len() > limits.decoded_bytes_max {
        true => Err(Error::TooLarge {
            what: "request bytes",
            max: limits.decoded_bytes_max,
        }),
        false => Ok(()),
    }
}

/// Converts spans; why one cannot be used comes with the text of an example.
struct SpanReader<'a> {
    attributes: AttributeReader<'a>,
    limits: &'a Limits,
}

type Refused = (Reason, String);

impl SpanReader<'_> {
    fn span(&self, span: wire::Span, resource: &Arc<Resource>, scope: &Arc<Scope>, rejects: &mut Rejects) -> Result<Span, Refused> {
        let (trace_id, span_id) = self.ids(&span)?;
        let start = self.time(span.start_time_unix_nano, &span.name, "starts")?;
        let end = self.time(span.end_time_unix_nano, &span.name, "ends")?;
        let parent_span_id = self.parent(&span, rejects);
        let (attributes, attributes_excess) = self.attributes.read(span.attributes, rejects);
        let (events, events_excess) = self.events(span.events, rejects);
        let (links, links_excess) = self.links(span.links, rejects);
        let status = span.status.unwrap_or_default();
        Ok(Span {
            trace_id,
            span_id,
            parent_span_id,
            trace_state: self.name(span.trace_state, rejects),
            flags: span.flags,
            name: self.name(span.name, rejects),
            kind: SpanKind::from_number(span.kind),
            start,
            duration_ns: end.nanos_since(start),
            status: StatusCode::from_number(status.code),
            status_message: self.name(status.message, rejects),
            attributes,
            events,
            links,
            dropped: [
                span.dropped_attributes_count.saturating_add(attributes_excess),
                span.dropped_events_count.saturating_add(events_excess),
                span.dropped_links_count.saturating_add(links_excess),
            ],
            resource: Arc::clone(resource),
            scope: Arc::clone(scope),
        })
    }

    fn ids(&self, span: &wire::Span) -> Result<(TraceId, SpanId), Refused> {
        let trace_id = TraceId::from_slice(&span.trace_id).ok_or_else(|| {
            let text = format!(
                "span {:?} has trace id {}, expected 16 bytes, not zero",
                span.name,
                hex(&span.trace_id)
            );
            (Reason::InvalidTraceId, text)
        })?;
        let span_id = SpanId::from_slice(&span.span_id).ok_or_else(|| {
            let text = format!(
                "span {:?} has span id {}, expected 8 bytes, not zero",
                span.name,
                hex(&span.span_id)
            );
            (Reason::InvalidSpanId, text)
        })?;
        Ok((trace_id, span_id))
    }

    fn time(&self, nanos: u64, name: &str, verb: &str) -> Result<Timestamp, Refused> {
        accept_time(nanos, self.limits).ok_or_else(|| {
            let text = format!("span {name:?} {verb} at {nanos} ns, the limit is {}", self.limits.time_max);
            (Reason::TimeOutOfRange, text)
        })
    }

    fn parent(&self, span: &wire::Span, rejects: &mut Rejects) -> Option<SpanId> {
        let id = &span.parent_span_id;
        if !id.is_empty() && id.len() != SpanId::LEN {
            rejects.add(Subject::Link, Reason::InvalidParentSpanId, || {
                format!("span {:?} has parent span id {}, expected 8 bytes", span.name, hex(id))
            });
        }
        SpanId::from_slice(id)
    }

    fn name(&self, mut name: String, rejects: &mut Rejects) -> String {
        if cut(&mut name, self.limits.name_bytes_max) {
            rejects.add(Subject::Detail, Reason::NameTooLong, || {
                format!(
                    "a name, status or trace state of a span is longer than {} bytes",
                    self.limits.name_bytes_max
                )
            });
        }
        name
    }

    fn events(&self, events: Vec<wire::span::Event>, rejects: &mut Rejects) -> (Vec<SpanEvent>, u32) {
        let mut excess = self.excess(events.len(), "events", rejects);
        let mut kept = Vec::with_capacity(events.len().min(self.limits.events_max));
        for event in events.into_iter().take(self.limits.events_max) {
            let Some(time) = accept_time(event.time_unix_nano, self.limits) else {
                excess = excess.saturating_add(1);
                rejects.add(Subject::Detail, Reason::TimeOutOfRange, || {
                    format!("event {:?} is at {} ns", event.name, event.time_unix_nano)
                });
                continue;
            };
            let (attributes, dropped) = self.attributes.read(event.attributes, rejects);
            kept.push(SpanEvent {
                time,
                name: self.name(event.name, rejects),
                attributes,
                dropped: event.dropped_attributes_count.saturating_add(dropped),
            });
        }
        (kept, excess)
    }

    fn links(&self, links: Vec<wire::span::Link>, rejects: &mut Rejects) -> (Vec<SpanLink>, u32) {
        let mut excess = self.excess(links.len(), "links", rejects);
        let mut kept = Vec::with_capacity(links.len().min(self.limits.events_max));
        for link in links.into_iter().take(self.limits.events_max) {
            let (Some(trace_id), Some(span_id)) = (TraceId::from_slice(&link.trace_id), SpanId::from_slice(&link.span_id)) else {
                excess = excess.saturating_add(1);
                rejects.add(Subject::Link, invalid_id(&link.trace_id), || {
                    format!("a span links to trace {} span {}", hex(&link.trace_id), hex(&link.span_id))
                });
                continue;
            };
            let (attributes, dropped) = self.attributes.read(link.attributes, rejects);
            kept.push(SpanLink {
                trace_id,
                span_id,
                trace_state: link.trace_state,
                attributes,
                dropped: link.dropped_attributes_count.saturating_add(dropped),
                flags: link.flags,
            });
        }
        (kept, excess)
    }

    fn excess(&self, count: usize, what: &str, rejects: &mut Rejects) -> u32 {
        let excess = count.saturating_sub(self.limits.events_max);
        rejects.add_many(Subject::Detail, Reason::TooManyEvents, excess as u64, || {
            format!("a span has {count} {what}, the limit is {}", self.limits.events_max)
        });
        u32::try_from(excess).unwrap_or(u32::MAX)
    }
}

/// The time, unless it is later than accepted.
pub(super) fn accept_time(nanos: u64, limits: &Limits) -> Option<Timestamp> {
    Timestamp::from_unix_nanos(nanos).filter(|time| *time <= limits.time_max)
}

/// Which of the two ids of a pair is at fault.
pub(super) fn invalid_id(trace_id: &[u8]) -> Reason {
    match TraceId::from_slice(trace_id) {
        None => Reason::InvalidTraceId,
        Some(_) => Reason::InvalidSpanId,
    }
}

/// Bytes of an id for an error text, which may be far too many.
pub(super) fn hex(bytes: &[u8]) -> String {
    match bytes {
        [] => "of 0 bytes".to_owned(),
        bytes if bytes.len() > 32 => format!("of {} bytes", bytes.len()),
        bytes => hex::encode(bytes),
    }
}

fn wire_span(span: &Span) -> wire::Span {
    let id = |id: &SpanId| id.as_bytes().to_vec();
    wire::Span {
        trace_id: span.trace_id.as_bytes().to_vec(),
        span_id: id(&span.span_id),
        trace_state: span.trace_state.clone(),
        parent_span_id: span.parent_span_id.as_ref().map(id).unwrap_or_default(),
        flags: span.flags,
        name: span.name.clone(),
        kind: span.kind as i32,
        start_time_unix_nano: unix_nanos(span.start),
        end_time_unix_nano: unix_nanos(span.start.saturating_add(span.duration_ns)),
        attributes: key_values(&span.attributes),
        dropped_attributes_count: span.dropped[0],
        events: span.events.iter().map(wire_event).collect(),
        dropped_events_count: span.dropped[1],
        links: span.links.iter().map(wire_link).collect(),
        dropped_links_count: span.dropped[2],
        status: (span.status != StatusCode::Unset || !span.status_message.is_empty()).then(|| wire::Status {
            message: span.status_message.clone(),
            code: span.status as i32,
        }),
    }
}

fn wire_event(event: &SpanEvent) -> wire::span::Event {
    wire::span::Event {
        time_unix_nano: unix_nanos(event.time),
        name: event.name.clone(),
        attributes: key_values(&event.attributes),
        dropped_attributes_count: event.dropped,
    }
}

fn wire_link(link: &SpanLink) -> wire::span::Link {
    wire::span::Link {
        trace_id: link.trace_id.as_bytes().to_vec(),
        span_id: link.span_id.as_bytes().to_vec(),
        trace_state: link.trace_state.clone(),
        attributes: key_values(&link.attributes),
        dropped_attributes_count: link.dropped,
        flags: link.flags,
    }
}

/// A time as OTLP writes it.
pub(super) fn unix_nanos(time: Timestamp) -> u64 {
    time.unix_nanos() as u64
}
