//! The real binary, started as its users start it.
//!
//! One binary of tests: `serve` is started on free ports over a directory of its own, real recordings are sent,
//! and every command is asked what it prints and with which code it ends.

mod ask;
mod convert;
mod offline;
mod program;
mod recording;
mod repair;
mod serve;
