//! How much memory a trace request takes once generated code has decoded it.
//!
//! An empty message costs two bytes on the wire and up to some hundred in memory, and the generated decoder
//! knows no limit. So a request that could go past `expanded_bytes_max` is walked first: messages are counted
//! by kind, without allocating. Requests too small to do harm are not walked.
//!
//! Profiles do not need this: their decoder is ours and charges as it goes.

use std::mem::size_of;

use opentelemetry_proto::tonic::common::v1 as common;
use opentelemetry_proto::tonic::resource::v1 as resource;
use opentelemetry_proto::tonic::trace::v1 as trace;

use crate::wire::{Reader, Wire, WireError};
use crate::{Error, Limits};

/// A growing vector holds at most this many times the room its elements need.
const GROWTH: usize = 2;
/// The least that a message takes on the wire, inside another: key and length.
const MESSAGE_WIRE_BYTES: usize = 2;
/// Where the generated decoder stops, too.
const DEPTH_MAX: usize = 100;

/// Refuses a request in protobuf that would take too much. Bytes that are no protobuf pass: the decoder has
/// the better message.
pub(super) fn check_protobuf(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    let per_message = Message::ALL.map(Message::memory_bytes).into_iter().max().unwrap_or(0);
    let worst = (bytes.len() / MESSAGE_WIRE_BYTES).saturating_mul(per_message);
    let mut left = limits.expanded_bytes_max;
    if worst <= left {
        return Ok(());
    }
    match charge(Message::Request, bytes, DEPTH_MAX, &mut left) {
        Err(Stop::Spent) => Err(too_large(limits)),
        Ok(()) | Err(Stop::Malformed) => Ok(()),
    }
}

/// Refuses a request in JSON that would take too much: every object may be the largest message.
pub(super) fn check_json(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    let objects = bytes.iter().filter(|byte| **byte == b'{').count();
    match objects.saturating_mul(size_of::<trace::Span>()) > limits.expanded_bytes_max {
        true => Err(too_large(limits)),
        false => Ok(()),
    }
}

fn too_large(limits: &Limits) -> Error {
    Error::TooLarge {
        what: "bytes of the decoded request",
        max: limits.expanded_bytes_max,
    }
}

enum Stop {
    Spent,
    Malformed,
}

impl From<WireError> for Stop {
    fn from(_: WireError) -> Stop {
        Stop::Malformed
    }
}

/// What lies in a length-delimited field.
#[derive(Clone, Copy)]
enum Message {
    Request,
    ResourceSpans,
    Resource,
    EntityRef,
    ScopeSpans,
    Scope,
    Span,
    Event,
    Link,
    KeyValue,
    AnyValue,
    Array,
    Pairs,
    /// Text and bytes.
    Leaf,
}

impl Message {
    const ALL: [Message; 14] = [
        Message::Request,
        Message::ResourceSpans,
        Message::Resource,
        Message::EntityRef,
        Message::ScopeSpans,
        Message::Scope,
        Message::Span,
        Message::Event,
        Message::Link,
        Message::KeyValue,
        Message::AnyValue,
        Message::Array,
        Message::Pairs,
        Message::Leaf,
    ];

    /// What a message takes beside what it holds.
    const fn memory_bytes(self) -> usize {
        GROWTH
            * match self {
                Message::Request => 0,
                Message::ResourceSpans => size_of::<trace::ResourceSpans>(),
                Message::Resource => size_of::<resource::Resource>(),
                Message::EntityRef => size_of::<common::EntityRef>(),
                Message::ScopeSpans => size_of::<trace::ScopeSpans>(),
                Message::Scope => size_of::<common::InstrumentationScope>(),
                Message::Span => size_of::<trace::Span>(),
                Message::Event => size_of::<trace::span::Event>(),
                Message::Link => size_of::<trace::span::Link>(),
                Message::KeyValue => size_of::<common::KeyValue>(),
                Message::AnyValue => size_of::<common::AnyValue>(),
                Message::Array => size_of::<common::ArrayValue>(),
                Message::Pairs => size_of::<common::KeyValueList>(),
                Message::Leaf => size_of::<String>(),
            }
    }

    /// What lies in a field.
    fn field(self, number: u32) -> Message {
        match (self, number) {
            (Message::Request, 1) => Message::ResourceSpans,
            (Message::ResourceSpans, 1) => Message::Resource,
            (Message::ResourceSpans, 2) => Message::ScopeSpans,
            (Message::Resource, 3) => Message::EntityRef,
            (Message::ScopeSpans, 1) => Message::Scope,
            (Message::ScopeSpans, 2) => Message::Span,
            (Message::Span, 11) => Message::Event,
            (Message::Span, 13) => Message::Link,
            (Message::KeyValue, 2) | (Message::Array, 1) => Message::AnyValue,
            (Message::AnyValue, 5) => Message::Array,
            (Message::AnyValue, 6) => Message::Pairs,
            (Message::Resource, 1)
            | (Message::Scope, 3)
            | (Message::Span, 9)
            | (Message::Event, 3)
            | (Message::Link, 4)
            | (Message::Pairs, 1) => Message::KeyValue,
            _ => Message::Leaf,
        }
    }
}

/// Takes what `bytes` unfold into from `left`.
fn charge(message: Message, bytes: &[u8], depth_left: usize, left: &mut usize) -> Result<(), Stop> {
    let cost = match message {
        Message::Leaf => message.memory_bytes() + bytes.len(),
        _ => message.memory_bytes(),
    };
    *left = left.checked_sub(cost).ok_or(Stop::Spent)?;
    if matches!(message, Message::Leaf) {
        return Ok(());
    }
    let depth_left = depth_left.checked_sub(1).ok_or(Stop::Malformed)?;
    let mut fields = Reader::new(bytes);
    while let Some((number, wire)) = fields.next()? {
        if let Wire::Bytes(content) = wire {
            charge(message.field(number), content, depth_left, left)?;
        }
    }
    Ok(())
}
