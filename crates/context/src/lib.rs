//! The memory layout by which a running thread tells which span it is in: writer and reader.
//!
//! Two records, both specified by OpenTelemetry so that every tracer and every profiler can meet in them:
//!
//! - the *thread context* (OTEP 4947, [`thread`]): per thread, the ids of the span that runs now;
//! - the *process context* (OTEP 4719, [`process`]): per process, its resource and how to read the first.
//!
//! ```text
//!  TLS symbol otel_thread_ctx_v1          mapping "OTEL_CTX"
//!  +--------+     +------------------+    +-----------------------------+    +-------------------+
//!  | *slot -+---> | trace span valid |    | OTEL_CTX 2 size time payload+--> | resource + attrs  |
//!  +--------+     +------------------+    +-----------------------------+    +-------------------+
//! ```
//!
//! Writers run in the process that is described. Readers are pure functions over bytes ([`ThreadContext::parse`],
//! [`ProcessContext::parse`]) plus [`memory::read`], which copies bytes out of another process. Finding the
//! TLS slot of another thread needs its registers and is the agent's business, not this crate's.

pub mod memory;
pub mod process;
pub mod thread;

mod error;

pub use error::{Error, ErrorKind};
pub use process::ProcessContext;
pub use thread::ThreadContext;
