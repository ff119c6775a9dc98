//! `jaeger.api_v2.PostSpansRequest`, read field by field.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::Event;

use super::FORMAT;
use super::span::{Parts, Reference, event};
use crate::foreign::{SpanBatch, attribute, text};
use crate::wire::{Reader, Wire, WireError};
use crate::{Decoded, Error, Limits};

/// A process: its service and its tags.
type Process = (String, Vec<KeyValue>);

/// Reads a request.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Decoded, Error> {
    let malformed = |error: WireError| Error::malformed(FORMAT, error);
    let mut batch = SpanBatch::new(limits);
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next().map_err(malformed)? {
        if field == 1 {
            read_batch(wire.bytes(field).map_err(malformed)?, limits, &mut batch)?;
        }
    }
    Ok(batch.finish())
}

fn read_batch(bytes: &[u8], limits: &Limits, batch: &mut SpanBatch<'_>) -> Result<(), Error> {
    let malformed = |error: WireError| Error::malformed(FORMAT, error);
    // The process comes after the spans that it is of.
    let mut shared = Process::default();
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next().map_err(malformed)? {
        if field == 2 {
            shared = wire.bytes(field).and_then(|bytes| process(bytes, limits)).map_err(malformed)?;
        }
    }
    let mut group = None;
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next().map_err(malformed)? {
        if field != 1 {
            continue;
        }
        let (span, own) = wire.bytes(field).and_then(|bytes| span(bytes, limits)).map_err(malformed)?;
        let group = match (own, group) {
            (Some((service, tags)), _) => batch.group(&service, tags)?,
            (None, Some(group)) => group,
            (None, None) => {
                let (service, tags) = std::mem::take(&mut shared);
                *group.insert(batch.group(&service, tags)?)
            }
        };
        batch.push(group, span)?;
    }
    Ok(())
}

fn process(bytes: &[u8], limits: &Limits) -> Result<Process, WireError> {
    let (mut service, mut tags) = Process::default();
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        match field {
            1 => service = string(wire.bytes(field)?),
            2 if tags.len() <= limits.attribute_count_max => tags.push(tag(wire.bytes(field)?)?),
            _ => {}
        }
    }
    Ok((service, tags))
}

fn span(bytes: &[u8], limits: &Limits) -> Result<(Span, Option<Process>), WireError> {
    let (mut span, mut parts, mut own) = (Span::default(), Parts::default(), None);
    let mut duration = 0;
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        match field {
            1 => span.trace_id = short_id(wire.bytes(field)?),
            2 => span.span_id = short_id(wire.bytes(field)?),
            3 => span.name = string(wire.bytes(field)?),
            4 if Parts::has_room(parts.references.len(), limits.events_max) => parts.references.push(reference(wire.bytes(field)?)?),
            6 => span.start_time_unix_nano = nanos(wire.bytes(field)?)?,
            7 => duration = nanos(wire.bytes(field)?)?,
            8 if Parts::has_room(parts.tags.len(), limits.attribute_count_max) => parts.tags.push(tag(wire.bytes(field)?)?),
            9 if Parts::has_room(parts.logs.len(), limits.events_max) => parts.logs.push(log(wire.bytes(field)?, limits)?),
            10 => own = Some(process(wire.bytes(field)?, limits)?).filter(|(service, _)| !service.is_empty()),
            _ => {}
        }
    }
    span.end_time_unix_nano = span.start_time_unix_nano.saturating_add(duration);
    parts.finish(&mut span, limits);
    Ok((span, own))
}

/// Ids of more bytes than any id has are cut, and then refused as they are.
fn short_id(bytes: &[u8]) -> Vec<u8> {
    const BYTES_MAX: usize = 32;
    bytes[..bytes.len().min(BYTES_MAX)].to_vec()
}

fn reference(bytes: &[u8]) -> Result<Reference, WireError> {
    let mut reference = Reference::default();
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        match field {
            1 => reference.trace_id = short_id(wire.bytes(field)?),
            2 => reference.span_id = short_id(wire.bytes(field)?),
            3 => reference.follows = wire.number(field)? == 1,
            _ => {}
        }
    }
    Ok(reference)
}

fn log(bytes: &[u8], limits: &Limits) -> Result<Event, WireError> {
    let (mut time, mut tags) = (0, Vec::new());
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        match field {
            1 => time = nanos(wire.bytes(field)?)?,
            2 if tags.len() <= limits.attribute_count_max => tags.push(tag(wire.bytes(field)?)?),
            _ => {}
        }
    }
    Ok(event(time, tags))
}

fn tag(bytes: &[u8]) -> Result<KeyValue, WireError> {
    let (mut key, mut kind) = (String::new(), 0);
    let (mut str_value, mut bool_value, mut int_value, mut float_value, mut binary) = ("".into(), false, 0, 0.0, &[][..]);
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        match field {
            1 => key = string(wire.bytes(field)?),
            2 => kind = wire.number(field)?,
            3 => str_value = String::from_utf8_lossy(wire.bytes(field)?),
            4 => bool_value = wire.number(field)? != 0,
            5 => int_value = wire.number(field)? as i64,
            6 => match wire {
                Wire::Fixed64(bits) => float_value = f64::from_bits(bits),
                _ => return Err(WireError::Unexpected { field }),
            },
            7 => binary = wire.bytes(field)?,
            _ => {}
        }
    }
    let value = match kind {
        1 => Value::BoolValue(bool_value),
        2 => Value::IntValue(int_value),
        3 => Value::DoubleValue(float_value),
        4 => Value::BytesValue(binary.to_vec()),
        _ => text(&str_value),
    };
    Ok(attribute(&key, value))
}

/// A timestamp or duration; too large or negative ones are the latest there is, which is then refused.
fn nanos(bytes: &[u8]) -> Result<u64, WireError> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        match field {
            1 => seconds = wire.number(field)?,
            2 => nanos = wire.number(field)?,
            _ => {}
        }
    }
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanflame_model::{SpanKind, StatusCode};

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8 & 0x7f | 0x80, (bytes.len() >> 7) as u8], bytes].concat()
    }

    #[test]
    fn a_batch_is_a_process_and_its_spans() {
        let tag = |key: &str, value: &str| [field(1, key.as_bytes()), field(3, value.as_bytes())].concat();
        let reference = [field(1, &[7; 16]), field(2, &[9; 8])].concat();
        let span = [
            field(1, &[7; 16]),
            field(2, &[8; 8]),
            field(3, b"get"),
            field(4, &reference),
            field(6, &[8, 5, 16, 6]),
            field(7, &[16, 9]),
            field(8, &tag("span.kind", "server")),
            field(8, &[field(1, b"error"), vec![2 << 3, 1, 4 << 3, 1]].concat()),
            field(9, &[field(1, &[8, 5]), field(2, &tag("event", "retry"))].concat()),
        ]
        .concat();
        let process = [field(1, b"shop"), field(2, &tag("host", "h1"))].concat();
        let request = field(1, &[field(1, &span), field(2, &process)].concat());
        let decoded = decode(&request, &Limits::default()).expect("usable");
        assert_eq!(decoded.rejects.message(), None);
        let span = &decoded.batch.spans[0];
        assert_eq!(
            (span.resource.service(), span.resource.attributes().get_str("host")),
            ("shop", Some("h1"))
        );
        assert_eq!(
            (span.name.as_str(), span.kind, span.status),
            ("get", SpanKind::Server, StatusCode::Error)
        );
        assert_eq!((span.start.unix_nanos(), span.duration_ns), (5_000_000_006, 9));
        assert_eq!(span.parent_span_id.expect("a parent").as_bytes(), &[9; 8]);
        assert_eq!((span.events[0].name.as_str(), span.links.len()), ("retry", 0));
        for end in 0..request.len() {
            let _ = decode(&request[..end], &Limits::default());
        }
    }
}
