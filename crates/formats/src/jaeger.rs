//! Jaeger's batches of spans: protobuf of `api_v2`, and Thrift in its binary and compact protocols.
//!
//! A batch is a process and its spans. Tags say in Jaeger what OTLP has fields for (`span.kind`, `error`,
//! `otel.status_code`); references are the parent or links. Times are microseconds in Thrift, and timestamps in protobuf.

mod proto;
mod span;
mod thrift;

pub use proto::decode as decode_protobuf;
pub use thrift::{decode_batch as decode_thrift, decode_emit as decode_thrift_datagram};

const FORMAT: &str = "batch of Jaeger spans";
