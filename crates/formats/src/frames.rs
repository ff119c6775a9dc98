//! Building stacks from the frames of a request, within the limits.

use spanflame_model::{Frame, FrameId, StackId, StackSet};

use crate::{Limits, Reason, Rejects, Subject};

/// What stands for the root side of a stack that was too deep.
const TRUNCATED: &str = "[truncated]";

/// Adds a stack, leaf first, cutting its root side off where it exceeds the limit.
pub(crate) fn add_stack(stacks: &mut StackSet, frames: &mut Vec<FrameId>, limits: &Limits, rejects: &mut Rejects) -> StackId {
    if frames.len() > limits.stack_depth_max {
        frames.truncate(limits.stack_depth_max.saturating_sub(1));
        frames.push(stacks.add_frame(named(TRUNCATED)));
        rejects.add(Subject::Detail, Reason::StackTooDeep, || {
            format!("a stack has more than {} frames", limits.stack_depth_max)
        });
    }
    stacks.add_stack(frames)
}

/// A frame of which only the name is known.
pub(crate) fn named(function: impl Into<String>) -> Frame {
    Frame {
        function: function.into(),
        ..Frame::default()
    }
}

/// A name within the limit.
pub(crate) fn name(text: &str, limits: &Limits, rejects: &mut Rejects) -> String {
    if text.len() <= limits.name_bytes_max {
        return text.to_owned();
    }
    rejects.add(Subject::Detail, Reason::NameTooLong, || {
        format!("a name has {} bytes, of which {} are kept", text.len(), limits.name_bytes_max)
    });
    text[..text.floor_char_boundary(limits.name_bytes_max)].to_owned()
}

/// The address within the module, of an address in a running process: what was mapped at `start` begins at
/// `offset` in the file. Linkers place code so that this is the ELF virtual address of position-independent code.
pub(crate) fn module_address(address: u64, start: u64, limit: u64, offset: u64) -> u64 {
    match start != 0 && start <= address && (address < limit || limit == 0) {
        true => address.wrapping_sub(start).wrapping_add(offset),
        false => address,
    }
}
