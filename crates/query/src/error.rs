//! What can go wrong when a question is answered, and what the caller should do about it.

use spanflame_store as store;

use crate::traceql;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The question can never work.
    #[error("{message}")]
    Invalid {
        /// The part of the request at fault, by its name in the API (`limit`, `page`, ...).
        field: &'static str,
        /// The value and what was expected.
        message: String,
    },
    /// The TraceQL text does not parse or asks for something that is not supported.
    #[error(transparent)]
    TraceQl(#[from] traceql::Error),
    /// Nothing that the question names is stored.
    #[error("{what}")]
    NotFound {
        /// What was asked for, and that it is not stored.
        what: String,
    },
    /// The answer would not fit a limit.
    #[error("{message}")]
    TooLarge {
        /// The limit and how to stay below it.
        message: String,
    },
    /// The store could not read.
    #[error("store could not answer")]
    Store(#[from] store::Error),
}

/// What a caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Correct the question.
    Invalid,
    /// Nothing: it is not stored.
    NotFound,
    /// Ask for less.
    TooLarge,
    /// Try again after a moment.
    Busy,
    /// Try again later.
    Unavailable,
    /// Data on the medium is damaged.
    Corrupt,
    /// A fault of ours.
    Internal,
}

impl Error {
    /// What the caller should do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Invalid { .. } | Error::TraceQl(_) => ErrorKind::Invalid,
            Error::NotFound { .. } => ErrorKind::NotFound,
            Error::TooLarge { .. } => ErrorKind::TooLarge,
            Error::Store(error) => match error.kind() {
                store::ErrorKind::Invalid => ErrorKind::Invalid,
                store::ErrorKind::Busy => ErrorKind::Busy,
                store::ErrorKind::Unavailable => ErrorKind::Unavailable,
                store::ErrorKind::Corrupt => ErrorKind::Corrupt,
                store::ErrorKind::Internal => ErrorKind::Internal,
            },
        }
    }
}
