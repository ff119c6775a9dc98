//! The nouns of Spanflame: ids, time, attributes, frames, stacks, spans and profiles.
//!
//! Decoders build these values and the store keeps them; everything between meets one normal form:
//!
//! - time is nanoseconds since the Unix epoch ([`Timestamp`]), ranges are half-open ([`TimeRange`]);
//! - trace ids have 16 bytes, span ids 8, and neither is ever all zero: absence is `None`;
//! - stacks are leaf first, and equal stacks have equal ids in every file and on every node ([`StackId`]);
//! - attributes are sorted by key, each key once ([`Attributes`]);
//! - a sample says what its client claimed about the span that ran it, never a judgement ([`Link`]).
//!
//! Nothing here does I/O, reads a clock, or knows a wire or disk format.

mod batch;
mod fingerprint;
mod frame;
mod ids;
mod link;
mod profile;
mod profile_type;
mod resource;
mod span;
mod stack;
mod tenant;
mod time;
mod value;

pub use batch::Batch;
pub use fingerprint::{Fingerprint, Hasher};
pub use frame::{Frame, FrameId};
pub use ids::{SpanId, TraceId};
pub use link::{Claim, Link};
pub use profile::{Label, Profile, ProfileInfo, Sample};
pub use profile_type::{CpuRule, ProfileType, ValueType, cpu_rule, default_name};
pub use resource::{Resource, Scope};
pub use span::{Span, SpanEvent, SpanKind, SpanLink, StatusCode};
pub use stack::{StackId, StackSet};
pub use tenant::Tenant;
pub use time::{TimeRange, Timestamp};
pub use value::{Attributes, Value};
