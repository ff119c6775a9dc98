//! Jaeger's Thrift: `Batch` as a body, and `emitBatch` as a datagram.

mod reader;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::Event;

use self::reader::{Kind, ThriftError, ThriftReader};
use super::FORMAT;
use super::span::{Parts, Reference, event};
use crate::foreign::{SpanBatch, attribute, text};
use crate::{Decoded, Error, Limits};

/// Reads a batch in the binary protocol, the body of a request to a collector.
pub fn decode_batch(bytes: &[u8], limits: &Limits) -> Result<Decoded, Error> {
    decode(ThriftReader::binary(bytes), limits)
}

/// Reads the message `emitBatch` to an agent, compact or binary.
pub fn decode_emit(bytes: &[u8], limits: &Limits) -> Result<Decoded, Error> {
    let malformed = |error: ThriftError| Error::malformed(FORMAT, error);
    let mut reader = ThriftReader::message(bytes).map_err(malformed)?;
    let mut decoded = None;
    // The arguments of the call: the batch is the first of them.
    let read = reader.each_field(0, &mut |reader, id, kind| {
        if id == 1 && kind == Kind::Struct && decoded.is_none() {
            decoded = Some(decode(*reader, limits));
        }
        Ok(false)
    });
    read.map_err(malformed)?;
    decoded.unwrap_or_else(|| Err(Error::malformed(FORMAT, "the message carries no batch")))
}

fn decode(mut reader: ThriftReader<'_>, limits: &Limits) -> Result<Decoded, Error> {
    let malformed = |error: ThriftError| Error::malformed(FORMAT, error);
    let mut batch = SpanBatch::new(limits);
    // The process may come after its spans, so it is looked for first.
    let mut ahead = reader;
    let (mut service, mut tags) = (String::new(), Vec::new());
    ahead
        .each_field(0, &mut |reader, id, kind| match (id, kind) {
            (1, Kind::Struct) => {
                (service, tags) = process(reader, limits)?;
                Ok(true)
            }
            _ => Ok(false),
        })
        .map_err(malformed)?;
    let group = batch.group(&service, tags)?;
    let mut failed = None;
    let read = reader.each_field(0, &mut |reader, id, kind| {
        if (id, kind) != (2, Kind::List) {
            return Ok(false);
        }
        reader.each_item(Kind::Struct, &mut |reader| {
            let span = span(reader, limits)?;
            batch.push(group, span).map_err(|error| {
                failed = Some(error);
                ThriftError::Refused
            })
        })?;
        Ok(true)
    });
    match (failed, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(malformed(error)),
        (None, Ok(())) => Ok(batch.finish()),
    }
}

fn process(reader: &mut ThriftReader<'_>, limits: &Limits) -> Result<(String, Vec<KeyValue>), ThriftError> {
    let (mut service, mut tags) = (String::new(), Vec::new());
    reader.each_field(1, &mut |reader, id, kind| {
        match (id, kind) {
            (1, Kind::Binary) => service = reader.text()?,
            (2, Kind::List) => tags = read_tags(reader, limits)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((service, tags))
}

fn read_tags(reader: &mut ThriftReader<'_>, limits: &Limits) -> Result<Vec<KeyValue>, ThriftError> {
    let mut tags = Vec::new();
    reader.each_item(Kind::Struct, &mut |reader| {
        let tag = tag(reader)?;
        if tags.len() <= limits.attribute_count_max {
            tags.push(tag);
        }
        Ok(())
    })?;
    Ok(tags)
}

fn tag(reader: &mut ThriftReader<'_>) -> Result<KeyValue, ThriftError> {
    let (mut key, mut kind_of_value) = (String::new(), 0);
    let (mut str_value, mut double, mut boolean, mut long, mut binary) = (String::new(), 0.0, false, 0, Vec::new());
    reader.each_field(3, &mut |reader, id, kind| {
        match (id, kind) {
            (1, Kind::Binary) => key = reader.text()?,
            (2, Kind::I32) => kind_of_value = reader.int(kind)?,
            (3, Kind::Binary) => str_value = reader.text()?,
            (4, Kind::Double) => double = reader.double()?,
            (5, Kind::Bool(_)) => boolean = reader.boolean(kind)?,
            (6, Kind::I64) => long = reader.int(kind)?,
            (7, Kind::Binary) => binary = reader.bytes()?.to_vec(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let value = match kind_of_value {
        1 => Value::DoubleValue(double),
        2 => Value::BoolValue(boolean),
        3 => Value::IntValue(long),
        4 => Value::BytesValue(binary),
        _ => text(&str_value),
    };
    Ok(attribute(&key, value))
}

fn span(reader: &mut ThriftReader<'_>, limits: &Limits) -> Result<Span, ThriftError> {
    let (mut span, mut parts) = (Span::default(), Parts::default());
    let (mut low, mut high, mut start, mut duration) = (0, 0, 0, 0);
    reader.each_field(2, &mut |reader, id, kind| {
        match (id, kind) {
            (1, Kind::I64) => low = reader.int(kind)?,
            (2, Kind::I64) => high = reader.int(kind)?,
            (3, Kind::I64) => span.span_id = reader.int(kind)?.to_be_bytes().to_vec(),
            (4, Kind::I64) => span.parent_span_id = reader.int(kind)?.to_be_bytes().to_vec(),
            (5, Kind::Binary) => span.name = reader.text()?,
            (6, Kind::List) => reader.each_item(Kind::Struct, &mut |reader| {
                let reference = reference(reader)?;
                if Parts::has_room(parts.references.len(), limits.events_max) {
                    parts.references.push(reference);
                }
                Ok(())
            })?,
            (8, Kind::I64) => start = reader.int(kind)?,
            (9, Kind::I64) => duration = reader.int(kind)?,
            (10, Kind::List) => parts.tags = read_tags(reader, limits)?,
            (11, Kind::List) => reader.each_item(Kind::Struct, &mut |reader| {
                let log = log(reader, limits)?;
                if Parts::has_room(parts.logs.len(), limits.events_max) {
                    parts.logs.push(log);
                }
                Ok(())
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    span.trace_id = trace_id(high, low);
    span.start_time_unix_nano = nanos(start);
    span.end_time_unix_nano = span
        .start_time_unix_nano
        .saturating_add(u64::try_from(duration).unwrap_or(0).saturating_mul(1000));
    parts.finish(&mut span, limits);
    Ok(span)
}

fn reference(reader: &mut ThriftReader<'_>) -> Result<Reference, ThriftError> {
    let (mut reference, mut low, mut high) = (Reference::default(), 0, 0);
    reader.each_field(3, &mut |reader, id, kind| {
        match (id, kind) {
            (1, Kind::I32) => reference.follows = reader.int(kind)? == 1,
            (2, Kind::I64) => low = reader.int(kind)?,
            (3, Kind::I64) => high = reader.int(kind)?,
            (4, Kind::I64) => reference.span_id = reader.int(kind)?.to_be_bytes().to_vec(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    reference.trace_id = trace_id(high, low);
    Ok(reference)
}

fn log(reader: &mut ThriftReader<'_>, limits: &Limits) -> Result<Event, ThriftError> {
    let (mut time, mut fields) = (0, Vec::new());
    reader.each_field(3, &mut |reader, id, kind| {
        match (id, kind) {
            (1, Kind::I64) => time = reader.int(kind)?,
            (2, Kind::List) => fields = read_tags(reader, limits)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(event(nanos(time), fields))
}

fn trace_id(high: i64, low: i64) -> Vec<u8> {
    [high.to_be_bytes(), low.to_be_bytes()].concat()
}

/// A time in microseconds; a negative one is the latest there is, which is then refused.
fn nanos(micros: i64) -> u64 {
    u64::try_from(micros).map_or(u64::MAX, |micros| micros.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanflame_model::{SpanKind, StatusCode};

    /// Fields of a struct in the binary protocol.
    fn field(kind: u8, id: u8, value: &[u8]) -> Vec<u8> {
        [&[kind, 0, id], value].concat()
    }

    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
    }

    fn list(items: &[Vec<u8>]) -> Vec<u8> {
        [&[12][..], &(items.len() as u32).to_be_bytes(), &items.concat()].concat()
    }

    fn batch() -> Vec<u8> {
        let long = |id: u8, value: i64| field(10, id, &value.to_be_bytes());
        let tag =
            |key: &str, kind: u8, value: Vec<u8>| [field(11, 1, &string(key)), field(8, 2, &[0, 0, 0, kind]), value, vec![0]].concat();
        let tags = [
            tag("span.kind", 0, field(11, 3, &string("client"))),
            tag("error", 2, field(2, 5, &[1])),
            tag("n", 3, long(6, 7)),
        ];
        let log = [
            long(1, 12),
            field(15, 2, &list(&[tag("event", 0, field(11, 3, &string("retry")))])),
            vec![0],
        ]
        .concat();
        let span = [
            long(1, 5),
            long(2, 0),
            long(3, -2),
            long(4, 3),
            field(11, 5, &string("get")),
            long(8, 11),
            long(9, 4),
            field(15, 10, &list(&tags)),
            field(15, 11, &list(&[log])),
            vec![0],
        ]
        .concat();
        let process = [field(11, 1, &string("shop")), vec![0]].concat();
        [field(15, 2, &list(&[span])), field(12, 1, &process), vec![0]].concat()
    }

    fn check(decoded: Decoded) {
        assert_eq!(decoded.rejects.message(), None);
        let span = &decoded.batch.spans[0];
        assert_eq!(
            (span.trace_id.to_string().as_str(), span.span_id.to_string().as_str()),
            ("00000000000000000000000000000005", "fffffffffffffffe")
        );
        assert_eq!((span.resource.service(), span.name.as_str()), ("shop", "get"));
        assert_eq!((span.kind, span.status), (SpanKind::Client, StatusCode::Error));
        assert_eq!((span.start.unix_nanos(), span.duration_ns), (11_000, 4_000));
        assert_eq!(span.attributes.get("n").and_then(spanflame_model::Value::to_int), Some(7));
        assert_eq!(span.events[0].name, "retry");
    }

    #[test]
    fn a_body_is_a_batch_in_the_binary_protocol() {
        let batch = batch();
        check(decode_batch(&batch, &Limits::default()).expect("usable"));
        for end in 0..batch.len() {
            assert!(decode_batch(&batch[..end], &Limits::default()).is_err(), "{end}");
        }
    }

    #[test]
    fn a_binary_datagram_is_a_call_with_a_batch() {
        let head = [&[0x80, 1, 0, 4][..], &string("emitBatch"), &[0, 0, 0, 1]].concat();
        let message = [head, field(12, 1, &batch()), vec![0]].concat();
        check(decode_emit(&message, &Limits::default()).expect("usable"));
    }

    #[test]
    fn a_compact_datagram_is_a_call_with_a_batch() {
        let string = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        // Each tag: key, type, and the value of its type; a boolean is in the header of its field.
        let kind = [&[0x18][..], &string("span.kind"), &[0x15, 0, 0x18], &string("client"), &[0]].concat();
        let error = [&[0x18][..], &string("error"), &[0x15, 4, 0x31, 0]].concat();
        let number = [&[0x18][..], &string("n"), &[0x15, 6, 0x46, 14, 0]].concat();
        let name = [&[0x18][..], &string("event"), &[0x15, 0, 0x18], &string("retry"), &[0]].concat();
        let log = [&[0x16, 24, 0x19, 0x1c][..], &name, &[0]].concat();
        let span = [
            &[0x16, 10, 0x16, 0, 0x16, 3, 0x16, 6, 0x18][..],
            &string("get"),
            &[0x36, 22, 0x16, 8, 0x19, 0x3c],
            &kind,
            &error,
            &number,
            &[0x19, 0x1c],
            &log,
            &[0],
        ]
        .concat();
        let process = [&[0x18][..], &string("shop"), &[0]].concat();
        let batch = [&[0x1c][..], &process, &[0x19, 0x1c], &span, &[0]].concat();
        let message = [&[0x82, 0x81, 1][..], &string("emitBatch"), &[0x1c], &batch, &[0]].concat();
        check(decode_emit(&message, &Limits::default()).expect("usable"));
        for end in 0..message.len() - 1 {
            assert!(decode_emit(&message[..end], &Limits::default()).is_err(), "{end}");
        }
    }

    #[test]
    fn structs_that_nest_for_ever_and_endless_lists_are_refused() {
        let nested = [&[0x82, 0x81, 1, 1, b'x'][..], &[0x1c; 1000]].concat();
        assert!(decode_emit(&nested, &Limits::default()).is_err());
        let endless = [vec![15, 0, 2, 12], vec![0x7f, 0xff, 0xff, 0xff]].concat();
        assert!(decode_batch(&endless, &Limits::default()).is_err());
        let of_nothing = [vec![15, 0, 9, 1], vec![0x7f, 0xff, 0xff, 0xff]].concat();
        assert!(decode_batch(&of_nothing, &Limits::default()).is_err());
    }
}
