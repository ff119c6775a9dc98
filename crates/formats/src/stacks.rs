//! Building frames and stacks of a request, within the limits.

use spanflame_model::{Frame, FrameId, StackId, StackSet};

use crate::budget::Budget;
use crate::{Limits, Reason, Rejects, Subject};

/// What stands for the root side of a stack that was too deep.
const TRUNCATED: &str = "[truncated]";

/// Collects the frames and stacks of one request.
pub(crate) struct StackBuilder<'a> {
    pub(crate) set: StackSet,
    pub(crate) budget: Budget,
    limits: &'a Limits,
}

impl<'a> StackBuilder<'a> {
    pub(crate) fn new(limits: &'a Limits) -> StackBuilder<'a> {
        StackBuilder {
            set: StackSet::new(),
            budget: Budget::new(limits),
            limits,
        }
    }

    /// Adds a frame. Fails if the request has unfolded into too much.
    pub(crate) fn add_frame(&mut self, frame: Frame) -> Result<FrameId, Reason> {
        self.budget.take(size_of::<Frame>())?;
        Ok(self.set.add_frame(frame))
    }

    /// A name to keep, cut to the limit and charged to the request.
    pub(crate) fn name(&self, text: &str, rejects: &mut Rejects) -> Result<String, Reason> {
        let max = self.limits.name_bytes_max;
        self.budget.take(text.len().min(max))?;
        if text.len() <= max {
            return Ok(text.to_owned());
        }
        rejects.add(Subject::Detail, Reason::NameTooLong, || format!("a name has more than {max} bytes"));
        Ok(text[..text.floor_char_boundary(max)].to_owned())
    }

    /// Adds a stack, leaf first, cutting its root side off where it exceeds the limit.
    pub(crate) fn add_stack(&mut self, frames: &mut Vec<FrameId>, rejects: &mut Rejects) -> Result<StackId, Reason> {
        if frames.len() > self.limits.stack_depth_max {
            frames.truncate(self.limits.stack_depth_max.saturating_sub(1));
            frames.push(self.add_frame(named(TRUNCATED))?);
            rejects.add(Subject::Detail, Reason::StackTooDeep, || {
                format!("a stack has more than {} frames", self.limits.stack_depth_max)
            });
        }
        let before = self.set.stacks().len();
        let id = self.set.add_stack(frames);
        if self.set.stacks().len() > before {
            self.budget.take(size_of_val(&frames[..]) + size_of::<StackId>())?;
        }
        Ok(id)
    }
}

/// A frame of which only the name is known.
pub(crate) fn named(function: impl Into<String>) -> Frame {
    Frame {
        function: function.into(),
        ..Frame::default()
    }
}

/// The address within the module, of an address in a running process: what was mapped at `start` begins at
/// `offset` in the file. Linkers place code so that this is the ELF virtual address of position-independent code.
pub(crate) fn module_address(address: u64, start: u64, limit: u64, offset: u64) -> u64 {
    match start != 0 && start <= address && (address < limit || limit == 0) {
        true => address.wrapping_sub(start).wrapping_add(offset),
        false => address,
    }
}
