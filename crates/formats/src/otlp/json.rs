//! OTLP/JSON: the protocol's own mapping, which the generated one does not follow.
//!
//! Names in lowerCamelCase (snake_case is tolerated), trace and span ids in hex, other bytes in base64,
//! 64-bit numbers as string or number, enums as numbers, absent or null means the default, unknown
//! fields are passed over. Depth is bounded by the parser (128 levels).

mod fields;
mod profiles;
mod traces;

pub(super) use profiles::profiles_request;
pub(super) use traces::trace_request;
