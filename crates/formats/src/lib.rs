//! Bytes to model and back: OTLP traces and profiles, Zipkin's and Jaeger's spans, pprof, JFR, collapsed stacks, perf script, speedscope.
//!
//! A decoder takes bytes and answers a [`Decoded`]: a batch in the model's one normal form, and
//! [`Rejects`], which counts what had to be left out and why. One bad sample never costs a request; only
//! bytes of which nothing can be used are an [`Error`]. An encoder takes the plain list of stacks of an
//! [`Export`].
//!
//! Invariants: no input panics; every table, string, stack and recursion has a bound in [`Limits`] that is
//! checked before memory is taken; ids in labels become links in one place, [`links`]; the quirks of a
//! format end in its module. No I/O, no clock.

mod budget;
pub mod collapsed;
pub mod compression;
mod decoded;
mod error;
mod export;
mod foreign;
mod format;
pub mod jaeger;
pub mod jfr;
mod limits;
pub mod links;
pub mod otlp;
pub mod perf_script;
pub mod pprof;
pub mod pyroscope;
mod rejects;
pub mod speedscope;
mod stacks;
mod upload;
mod wire;
pub mod zipkin;

pub use decoded::Decoded;
pub use error::{Error, ErrorKind};
pub use export::{Export, ExportRow};
pub use format::Format;
pub use limits::Limits;
pub use rejects::{Reason, Rejects, Subject};
pub use upload::Upload;
