//! Linked into a Rust application: samples it from inside, and says for every sample which span ran.
//!
//! ```no_run
//! use tracing_subscriber::prelude::*;
//! # fn main() -> Result<(), spanflame_sdk::Error> {
//! let spanflame = spanflame_sdk::Sdk::builder("cart").endpoint("http://127.0.0.1:4317").with_traces().start()?;
//! tracing_subscriber::registry().with(spanflame.layer()).init();
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!  span entered or left --> thread context record          (`active`, crate `spanflame-context`)
//!                                 |
//!  timer on CPU time --> signal --+--> ring of the thread  (`sampler`)
//!                                        |
//!                       window: stack x span x thread      (`window`)
//!                                        |
//!                names --> OTLP, or a function             (`resolve`, `profile`, `export`)
//! ```
//!
//! Invariants: nothing is allocated and no lock is taken while a thread is interrupted; every buffer has a bound
//! and what it cannot take is counted in [`Stats`]; when the [`Sdk`] is gone, so are its threads and timers.
//! It measures time on the CPU only. `unsafe` is confined to `sampler`.

mod active;
mod error;
mod export;
mod profile;
mod resolve;
mod resource;
mod sampler;
mod sdk;
mod stats;
mod window;

pub use error::{Error, ErrorKind};
pub use sdk::{Builder, Sdk};
pub use stats::Stats;
