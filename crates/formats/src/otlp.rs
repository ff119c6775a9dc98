//! OpenTelemetry's protocol: traces and profiles, each in protobuf and JSON.
//!
//! Protobuf traces are read by generated code. Profiles are read field by field, since their layout changed
//! without a mark; JSON is read by an own mapping, since the generated one does not follow the protocol.

mod attributes;
mod expansion;
mod json;
pub mod profiles;
pub mod traces;
