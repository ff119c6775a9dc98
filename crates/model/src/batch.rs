//! What one request becomes.

use crate::{Profile, Span, StackSet};

/// Decoded spans and profiles with the stacks that the profiles name. This is what decoders return and the
/// store appends; one batch belongs to one tenant and is made durable as a whole.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Spans in the sender's order.
    pub spans: Vec<Span>,
    /// Profiles in the sender's order.
    pub profiles: Vec<Profile>,
    /// Every stack and frame that `profiles` name.
    pub stacks: StackSet,
}

impl Batch {
    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.profiles.is_empty()
    }
}
