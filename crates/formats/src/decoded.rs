//! What a decoder answers.

use spanflame_model::Batch;

use crate::Rejects;

/// What could be used of a request, and a count of what could not.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    /// The usable part; empty if everything was rejected.
    pub batch: Batch,
    /// What was left out, by reason. Empty if nothing was.
    pub rejects: Rejects,
}
