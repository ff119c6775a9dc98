//! How much memory a request may unfold into.
//!
//! Tables let a few bytes name a long string or a deep stack, again and again. Bounds on single items do
//! not stop that: a million samples may each carry the same 256 KiB label. So everything that is copied
//! out of a table is charged to one account per request.

use std::cell::Cell;

use crate::{Limits, Reason};

/// Bytes that a request may still unfold into.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<usize>,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Budget {
        Budget {
            left: Cell::new(limits.expanded_bytes_max),
        }
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.left.get()
    }

    /// Charges `bytes`; fails, charging nothing, if there are not as many left.
    #[inline]
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Reason> {
        let left = self.left.get().checked_sub(bytes).ok_or(Reason::ExpansionLimit)?;
        self.left.set(left);
        Ok(())
    }
}
