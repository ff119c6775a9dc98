//! Stacks by content: equal stacks have equal ids everywhere.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::{Frame, FrameId};

/// Content hash of a stack. Kept on disk as a signed number with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u64);

impl fmt::Display for StackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Frames and stacks by id. Every frame that a stack names is expected to be here too; a reader that finds
/// one missing shows it as unknown.
#[derive(Clone, Debug, Default)]
pub struct StackSet {
    frames: HashMap<FrameId, Arc<Frame>>,
    stacks: HashMap<StackId, Arc<[FrameId]>>,
}

impl StackSet {
    /// An empty set.
    pub fn new() -> StackSet {
        StackSet::default()
    }

    /// Adds a frame and returns its id.
    pub fn add_frame(&mut self, frame: Frame) -> FrameId {
        let id = frame.id();
        self.frames.entry(id).or_insert_with(|| Arc::new(frame));
        id
    }

    /// Adds a stack, leaf first, and returns its id.
    pub fn add_stack(&mut self, frames: &[FrameId]) -> StackId {
        // The same bytes as fed one by one, in one go: a stack is hashed for nearly every sample.
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.0.to_le_bytes()).collect();
        let id = StackId(xxh3_64(&bytes));
        self.stacks.entry(id).or_insert_with(|| frames.into());
        id
    }

    /// Adds what another store already identified.
    pub fn insert_frame(&mut self, id: FrameId, frame: Arc<Frame>) {
        self.frames.entry(id).or_insert(frame);
    }

    /// Adds what another store already identified; `frames` is leaf first.
    pub fn insert_stack(&mut self, id: StackId, frames: Arc<[FrameId]>) {
        self.stacks.entry(id).or_insert(frames);
    }

    /// A frame, if it is here.
    pub fn frame(&self, id: FrameId) -> Option<&Arc<Frame>> {
        self.frames.get(&id)
    }

    /// A stack, leaf first, if it is here.
    pub fn stack(&self, id: StackId) -> Option<&Arc<[FrameId]>> {
        self.stacks.get(&id)
    }

    /// All frames, in no order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (FrameId, &Arc<Frame>)> {
        self.frames.iter().map(|(id, frame)| (*id, frame))
    }

    /// All stacks, leaf first each, in no order.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = (StackId, &Arc<[FrameId]>)> {
        self.stacks.iter().map(|(id, frames)| (*id, frames))
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: StackSet) {
        for (id, frame) in other.frames {
            self.frames.entry(id).or_insert(frame);
        }
        for (id, stack) in other.stacks {
            self.stacks.entry(id).or_insert(stack);
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.stacks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> Frame {
        Frame {
            function: function.to_owned(),
            ..Frame::default()
        }
    }

    #[test]
    fn equal_stacks_have_equal_ids_in_every_set() {
        let (mut a, mut b) = (StackSet::new(), StackSet::new());
        b.add_frame(frame("other"));
        let [fa, fb] = [&mut a, &mut b].map(|set| [set.add_frame(frame("leaf")), set.add_frame(frame("root"))]);
        assert_eq!(a.add_stack(&fa), b.add_stack(&fb));
        assert_ne!(a.add_stack(&[fa[1], fa[0]]), b.add_stack(&fb));
    }

    /// These values are in every data directory: a change here is a new disk format.
    #[test]
    fn ids_are_the_ones_on_disk() {
        let mut set = StackSet::new();
        let leaf = set.add_frame(frame("leaf"));
        let stack = set.add_stack(&[leaf]);
        assert_eq!(
            (leaf.to_string().as_str(), stack.to_string().as_str()),
            ("f4ce6f60b88e90c1", "02ac7440b8b2d5d0")
        );
    }
}
