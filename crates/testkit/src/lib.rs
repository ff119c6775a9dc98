//! Synthetic traces and profiles whose right answer is known (for tests and the bench driver only).
//!
//! Builders make single spans, stacks and profiles without ceremony. [`Workload`] simulates services whose
//! threads interleave many requests, and writes down, as it happens, what each span ran: a query is then judged
//! by the truth and not by its own last output. Everything follows from a seed.

mod build;
mod cost;
mod random;
mod workload;

pub use build::{ProfileBuilder, SpanBuilder, Stacks, at, link, resource, span_id, trace_id};
pub use cost::{Cost, Spent};
pub use random::Random;
pub use workload::{LinkStyle, Plan, ServicePlan, SpanTruth, Workload};
