//! Messages of the wire formats that no published crate carries.
//!
//! Everything here is generated from the files in `proto/` at build time; nothing is written by hand and
//! nothing interprets a message. A further dialect adds its file there and a module here.

/// pprof's profile format, package `perftools.profiles`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod pprof {
    include!(concat!(env!("OUT_DIR"), "/perftools.profiles.rs"));
}

/// Grafana Tempo's query API, package `tempopb`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod tempo {
    include!(concat!(env!("OUT_DIR"), "/tempopb.rs"));
}
