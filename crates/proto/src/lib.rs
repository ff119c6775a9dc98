//! Messages of the wire formats that no published crate carries.
//!
//! Everything here is generated from the files in `proto/` at build time; nothing is written by hand and
//! nothing interprets a message. A further dialect adds its file there and a module here.

/// Descriptors of all messages here, an encoded `google.protobuf.FileDescriptorSet`, for whoever writes them as JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// pprof's profile format, package `perftools.profiles`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod pprof {
    include!(concat!(env!("OUT_DIR"), "/perftools.profiles.rs"));
}

/// Where generated code looks for messages of that package.
mod perftools {
    pub(crate) use crate::pprof as profiles;
}

/// Grafana Tempo's query API, package `tempopb`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod tempo {
    include!(concat!(env!("OUT_DIR"), "/tempopb.rs"));
}

/// Grafana Pyroscope's query API, package `pyroscope`.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod pyroscope {
    include!(concat!(env!("OUT_DIR"), "/pyroscope.rs"));
}
