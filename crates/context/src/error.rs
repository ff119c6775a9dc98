//! What can go wrong when a context is published or read.

use std::io;

/// Why a context could not be published or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{call} failed")]
    System {
        /// Name of the call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// The header of a process context is not one.
    #[error("process context header has {what} {value:#x}, expected {expected}")]
    Header {
        /// The field.
        what: &'static str,
        /// What it holds.
        value: u64,
        /// What was expected.
        expected: &'static str,
    },
    /// The writer was in the middle of an update every time we looked.
    #[error("process context is being written, expected it to be stable within {tries} reads")]
    Busy {
        /// How often we looked.
        tries: u32,
    },
    /// The payload is not the message it should be.
    #[error("process context payload is no ProcessContext message")]
    Payload {
        /// Why it could not be decoded.
        source: prost::DecodeError,
    },
    /// The payload would be larger than readers accept.
    #[error("process context has {size_bytes} bytes, expected at most {size_bytes_max}")]
    TooLarge {
        /// Its size.
        size_bytes: usize,
        /// The limit.
        size_bytes_max: usize,
    },
}

/// What to do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Nothing can be read from these bytes.
    Corrupt,
    /// Trying again later may help.
    Busy,
    /// Give less.
    TooLarge,
    /// The system refuses.
    Unavailable,
}

impl Error {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::System { .. } => ErrorKind::Unavailable,
            Error::Header { .. } | Error::Payload { .. } => ErrorKind::Corrupt,
            Error::Busy { .. } => ErrorKind::Busy,
            Error::TooLarge { .. } => ErrorKind::TooLarge,
        }
    }

    pub(crate) fn last_os(call: &'static str) -> Error {
        Error::System {
            call,
            source: io::Error::last_os_error(),
        }
    }
}
