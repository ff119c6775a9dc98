//! Why nothing of an input could be used.

use std::io;

/// Why nothing of an input could be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not what the declared compression makes.
    #[error("body is not valid {encoding}")]
    Compression {
        /// Name of the compression.
        encoding: &'static str,
        /// What the library said.
        source: io::Error,
    },
    /// The content coding has no decoder here.
    #[error("content encoding is {name:?}, expected identity, gzip or zstd")]
    UnknownEncoding {
        /// As sent.
        name: String,
    },
    /// A bound of [`Limits`](crate::Limits) is exceeded.
    #[error("{what} exceed the limit of {max}")]
    TooLarge {
        /// What there is too much of, in the plural.
        what: &'static str,
        /// The bound.
        max: usize,
    },
    /// The bytes are not in the format.
    #[error("not a valid {format}: {detail}")]
    Malformed {
        /// Name of the format.
        format: &'static str,
        /// Where it broke, with the value found and the one expected.
        detail: String,
    },
    /// A format that is recognised and deliberately not read.
    #[error("{found} cannot be read, expected {expected}")]
    Unsupported {
        /// What the bytes are.
        found: String,
        /// What to send instead.
        expected: &'static str,
    },
    /// No format fits.
    #[error("the format of {} is not recognised, expected one of {known}", named(file_name))]
    UnknownFormat {
        /// The file's name, or the format's name as given; empty where there is none.
        file_name: String,
        /// Every format's name.
        known: String,
    },
}

/// A request has no file name.
fn named(file_name: &str) -> String {
    match file_name {
        "" => "the body".to_owned(),
        name => format!("{name:?}"),
    }
}

/// What the caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The same bytes will never be accepted.
    Invalid,
    /// Fewer bytes may be accepted.
    TooLarge,
}

impl Error {
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::TooLarge { .. } => ErrorKind::TooLarge,
            _ => ErrorKind::Invalid,
        }
    }

    pub(crate) fn malformed(format: &'static str, detail: impl ToString) -> Error {
        let detail = detail.to_string();
        Error::Malformed { format, detail }
    }
}
