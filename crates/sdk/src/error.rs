//! What can go wrong when the SDK starts.

use std::io;

/// Why the SDK could not start. Once it runs it never fails: it counts what it drops.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A process has one sampler.
    #[error("spanflame already runs in this process, expected one at a time")]
    AlreadyRunning,
    /// A setting has no meaning.
    #[error("{setting} is {value:?}, expected {expected}")]
    Setting {
        /// Its name in the builder.
        setting: &'static str,
        /// What it was set to.
        value: String,
        /// What is possible.
        expected: &'static str,
    },
    /// Somebody else samples with the same signal.
    #[error("SIGPROF has a handler already, expected no other profiler in this process")]
    SignalTaken,
    /// A system call failed.
    #[error("{call} failed")]
    System {
        /// Name of the call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}

/// What to do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Change the setting.
    Invalid,
    /// Stop the other one first.
    Busy,
    /// The system refuses.
    Unavailable,
}

impl Error {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::AlreadyRunning | Error::SignalTaken => ErrorKind::Busy,
            Error::Setting { .. } => ErrorKind::Invalid,
            Error::System { .. } => ErrorKind::Unavailable,
        }
    }

    pub(crate) fn last_os(call: &'static str) -> Error {
        Error::System {
            call,
            source: io::Error::last_os_error(),
        }
    }
}
