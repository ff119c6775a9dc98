//! OTLP/JSON: the protocol's own mapping, which the generated one does not follow.
//!
//! Names in lowerCamelCase (snake_case is tolerated), trace and span ids in hex, other bytes in base64,
//! 64-bit numbers as string or number, enums as numbers, absent or null means the default, unknown
//! fields are passed over. Depth is bounded by the parser (128 levels).

mod encode;
mod fields;
mod profiles;
mod traces;

use serde::Deserialize;
use serde::de::Error;

/// Reads a request. The parser alone would take an array for an object without names.
fn request<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, serde_json::Error> {
    match bytes.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(bytes),
        _ => Err(serde_json::Error::custom("the request is not an object")),
    }
}

pub use encode::{JsonSpans, JsonStyle};
pub(super) use profiles::profiles_request;
pub(super) use traces::trace_request;
