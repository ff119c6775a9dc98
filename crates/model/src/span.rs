//! A span as its SDK reported it.

use std::sync::Arc;

use crate::{Attributes, Fingerprint, Hasher, Resource, Scope, SpanId, Tenant, TimeRange, Timestamp, TraceId};

/// One operation of a trace (OTLP `Span`).
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace it belongs to.
    pub trace_id: TraceId,
    /// Its own id.
    pub span_id: SpanId,
    /// The span that caused it; `None` for the root of a trace.
    pub parent_span_id: Option<SpanId>,
    /// W3C trace state, empty where absent.
    pub trace_state: String,
    /// OTLP flags: W3C flags in the low 8 bits, [`Span::FLAG_HAS_IS_REMOTE`], [`Span::FLAG_IS_REMOTE`].
    pub flags: u32,
    /// Operation name.
    pub name: String,
    /// Role in the trace.
    pub kind: SpanKind,
    /// When it began.
    pub start: Timestamp,
    /// How long it ran, in nanoseconds. 0 where the sender's end is not after its start.
    pub duration_ns: u64,
    /// Outcome.
    pub status: StatusCode,
    /// Developer's text for an error, empty where absent.
    pub status_message: String,
    /// The span's own attributes.
    pub attributes: Attributes,
    /// Events in the sender's order.
    pub events: Vec<SpanEvent>,
    /// Links to other spans, in the sender's order.
    pub links: Vec<SpanLink>,
    /// Attributes, events and links the SDK dropped, in this order.
    pub dropped: [u32; 3],
    /// Who sent it.
    pub resource: Arc<Resource>,
    /// Which library made it.
    pub scope: Arc<Scope>,
}

impl Span {
    /// Bit of `flags`: the next bit is meaningful.
    pub const FLAG_HAS_IS_REMOTE: u32 = 0x100;
    /// Bit of `flags`: the parent ran in another process.
    pub const FLAG_IS_REMOTE: u32 = 0x200;

    /// When it ran. At least one nanosecond, so that a span without duration still overlaps the time it names.
    pub fn range(&self) -> TimeRange {
        TimeRange::lasting(self.start, self.duration_ns)
    }

    /// Whether the parent ran in another process: `None` where the SDK does not say.
    pub fn parent_is_remote(&self) -> Option<bool> {
        (self.flags & Span::FLAG_HAS_IS_REMOTE != 0).then_some(self.flags & Span::FLAG_IS_REMOTE != 0)
    }

    /// Identity: tenant, ids and content. Two spans with equal fingerprints are the same span sent twice.
    pub fn fingerprint(&self, tenant: &Tenant) -> Fingerprint {
        let mut h = Hasher::new();
        h.text(tenant.as_str());
        h.bytes(self.trace_id.as_bytes());
        h.bytes(self.span_id.as_bytes());
        h.bytes(self.parent_span_id.as_ref().map_or(&[][..], |id| id.as_bytes()));
        h.text(&self.trace_state);
        h.number(u64::from(self.flags));
        h.text(&self.name);
        h.number(self.kind as u64);
        h.number(self.start.unix_nanos() as u64);
        h.number(self.duration_ns);
        h.number(self.status as u64);
        h.text(&self.status_message);
        h.attributes(&self.attributes);
        h.number(self.events.len() as u64);
        for event in &self.events {
            h.number(event.time.unix_nanos() as u64);
            h.text(&event.name);
            h.attributes(&event.attributes);
        }
        h.number(self.links.len() as u64);
        for link in &self.links {
            h.bytes(link.trace_id.as_bytes());
            h.bytes(link.span_id.as_bytes());
            h.attributes(&link.attributes);
        }
        h.attributes(self.resource.attributes());
        h.text(&self.scope.name);
        h.text(&self.scope.version);
        h.finish()
    }
}

/// Something that happened at one instant of a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// When.
    pub time: Timestamp,
    /// What, e.g. `exception`.
    pub name: String,
    /// Details.
    pub attributes: Attributes,
    /// Attributes the SDK dropped.
    pub dropped: u32,
}

/// A reference to a span, in this trace or another.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanLink {
    /// The other trace.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// W3C trace state, empty where absent.
    pub trace_state: String,
    /// Details.
    pub attributes: Attributes,
    /// Attributes the SDK dropped.
    pub dropped: u32,
    /// OTLP flags.
    pub flags: u32,
}

/// Role of a span; the numbers are OTLP's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SpanKind {
    /// Not said.
    #[default]
    Unspecified = 0,
    /// Work inside the application.
    Internal = 1,
    /// Handles a request from elsewhere.
    Server = 2,
    /// Waits for a request to elsewhere.
    Client = 3,
    /// Puts a message on a queue.
    Producer = 4,
    /// Takes a message from a queue.
    Consumer = 5,
}

impl SpanKind {
    /// Every kind, by number.
    pub const ALL: [SpanKind; 6] = [
        SpanKind::Unspecified,
        SpanKind::Internal,
        SpanKind::Server,
        SpanKind::Client,
        SpanKind::Producer,
        SpanKind::Consumer,
    ];

    /// OTLP's number; an unknown one is [`SpanKind::Unspecified`], as protobuf's open enums ask.
    pub fn from_number(number: i32) -> SpanKind {
        usize::try_from(number)
            .ok()
            .and_then(|n| SpanKind::ALL.get(n).copied())
            .unwrap_or_default()
    }

    /// The name TraceQL and the API use.
    pub fn as_str(self) -> &'static str {
        match self {
            SpanKind::Unspecified => "unspecified",
            SpanKind::Internal => "internal",
            SpanKind::Server => "server",
            SpanKind::Client => "client",
            SpanKind::Producer => "producer",
            SpanKind::Consumer => "consumer",
        }
    }
}

/// Outcome of a span; the numbers are OTLP's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StatusCode {
    /// Not said.
    #[default]
    Unset = 0,
    /// The application says it went well.
    Ok = 1,
    /// It failed.
    Error = 2,
}

impl StatusCode {
    /// Every code, by number.
    pub const ALL: [StatusCode; 3] = [StatusCode::Unset, StatusCode::Ok, StatusCode::Error];

    /// OTLP's number; an unknown one is [`StatusCode::Unset`].
    pub fn from_number(number: i32) -> StatusCode {
        usize::try_from(number)
            .ok()
            .and_then(|n| StatusCode::ALL.get(n).copied())
            .unwrap_or_default()
    }

    /// The name TraceQL and the API use.
    pub fn as_str(self) -> &'static str {
        match self {
            StatusCode::Unset => "unset",
            StatusCode::Ok => "ok",
            StatusCode::Error => "error",
        }
    }
}
