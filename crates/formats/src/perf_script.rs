//! The text that `perf script` prints: a header line a sample, then a line a frame, leaf first.
//!
//! ```text
//! java 25607/25608 [003] 4794564.109216:     250000 cycles:ppp:
//!         7f5113a7b8a4 __memmove_avx_unaligned+0x54 (/usr/lib64/libc-2.17.so)
//!         7f51130f2c3e jbd2_journal_start (/opt/java/libjvm.so)
//! ```
//!
//! Times are those of the machine's uptime, so they are kept only as distances from the first sample.
//! Equal stacks of a thread become one sample.

use crate::{Decoded, Error, Limits, Upload};

/// Reads the text of `perf script`, compressed or not.
pub fn decode(_bytes: &[u8], _upload: &Upload, _limits: &Limits) -> Result<Decoded, Error> {
    Err(Error::malformed("perf script", "not read yet"))
}

/// Whether the text looks like `perf script`'s.
pub(crate) fn looks_like(_text: &str) -> bool {
    false
}
