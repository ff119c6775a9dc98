//! What can go wrong, and what the caller should do about it.

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that can never work.
    #[error("{message}")]
    Invalid {
        /// What was asked and what was expected.
        message: String,
    },
}

/// What a caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Correct the call.
    Invalid,
    /// The store is at a limit: try again after a moment.
    Busy,
    /// The medium does not answer or the store is closed: try again later.
    Unavailable,
    /// Data on the medium is damaged; the text names the file.
    Corrupt,
    /// A fault of ours.
    Internal,
}

impl Error {
    /// What the caller should do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Invalid { .. } => ErrorKind::Invalid,
        }
    }
}
