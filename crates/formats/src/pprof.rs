//! pprof: gzip or plain `perftools.profiles.Profile`, to a profile and back.
//!
//! One pprof is one profile with all its types. Locations become frames, inlined lines included
//! ([`Frame::inlined`](spanflame_model::Frame::inlined) joins them again on the way back); labels that
//! name a span become the link. Comments and other settings are kept as attributes of the profile, under
//! the names OpenTelemetry gives them.
//!
//! Not kept: the address of a location that has a name, and the memory ranges of mappings. Addresses of
//! others are turned from the process's space into the module's, so a written pprof maps every module at 0.

mod decode;
mod encode;

pub use decode::decode;
pub(crate) use decode::{decode_within, is_legacy, looks_like};
pub use encode::{encode, to_message};

/// Attributes of a profile that keep what only pprof has.
mod keys {
    pub(super) const COMMENT: &str = "pprof.profile.comment";
    pub(super) const DOC_URL: &str = "pprof.profile.doc_url";
    pub(super) const DROP_FRAMES: &str = "pprof.profile.drop_frames";
    pub(super) const KEEP_FRAMES: &str = "pprof.profile.keep_frames";
    pub(super) const DEFAULT_SAMPLE_TYPE: &str = "pprof.scope.default_sample_type";
}
