//! What can go wrong, and what the caller should do about it.

use std::sync::Arc;

/// Why the store could not do what was asked.
///
/// Cheap to clone: one failed sync or commit answers every append that waited for it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that can never work.
    #[error("{message}")]
    Invalid {
        /// What was asked and what was expected.
        message: String,
    },
    /// Memory for rows that are not flushed yet is used up.
    #[error("{used_bytes} bytes wait to be flushed, the limit is {max_bytes}")]
    Busy {
        /// Bytes held by the head and by flushes that run.
        used_bytes: u64,
        /// `StoreOptions::head_bytes_max`.
        max_bytes: u64,
    },
    /// Another process holds the data directory.
    #[error("{directory} is in use by process {holder}; expected one process per data directory")]
    Locked {
        /// The directory.
        directory: String,
        /// Process id of the holder as it wrote it down, or `unknown`.
        holder: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A local file could not be read or written.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried: `read`, `sync`, ...
        action: &'static str,
        /// The file.
        path: String,
        /// Why.
        source: Arc<std::io::Error>,
    },
    /// The object store that holds the tables failed.
    #[error("cannot {action} {path} in the table storage")]
    Storage {
        /// What was tried: `read`, `write`, ...
        action: &'static str,
        /// The object.
        path: String,
        /// Why.
        source: Arc<object_store::Error>,
    },
    /// The log of a table could not be read or written.
    #[error("cannot {action} the log of table {table}")]
    Log {
        /// What was tried: `read`, `commit to`, ...
        action: &'static str,
        /// The table.
        table: &'static str,
        /// Why.
        source: Arc<deltalake_core::DeltaTableError>,
    },
    /// Data on the medium is damaged.
    #[error("{file} is damaged at byte {offset}: {message}")]
    Corrupt {
        /// The file or object.
        file: String,
        /// Where in it; 0 where that is unknown.
        offset: u64,
        /// What was found and what was expected.
        message: String,
    },
    /// Rows could not be encoded or decoded: a fault of ours.
    #[error("cannot {action}")]
    Arrow {
        /// What was tried.
        action: &'static str,
        /// Why.
        source: Arc<arrow::error::ArrowError>,
    },
    /// A table file could not be encoded or decoded.
    #[error("cannot {action} {file}")]
    Parquet {
        /// What was tried.
        action: &'static str,
        /// The file.
        file: String,
        /// Why.
        source: Arc<parquet::errors::ParquetError>,
    },
    /// A task of the store ended unexpectedly: a fault of ours.
    #[error("{message}")]
    Internal {
        /// What happened.
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
            Error::Busy { .. } => ErrorKind::Busy,
            Error::Locked { .. } | Error::Closed | Error::Io { .. } | Error::Storage { .. } | Error::Log { .. } => ErrorKind::Unavailable,
            Error::Corrupt { .. } => ErrorKind::Corrupt,
            Error::Parquet { source, .. } => match source.as_ref() {
                parquet::errors::ParquetError::External(_) => ErrorKind::Unavailable,
                _ => ErrorKind::Corrupt,
            },
            Error::Arrow { .. } | Error::Internal { .. } => ErrorKind::Internal,
        }
    }

    /// For `map_err` on file operations.
    pub(crate) fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.display().to_string();
        move |source| Error::Io {
            action,
            path,
            source: Arc::new(source),
        }
    }

    /// For `map_err` on object store operations.
    pub(crate) fn storage(action: &'static str, path: &object_store::path::Path) -> impl FnOnce(object_store::Error) -> Error {
        let path = path.to_string();
        move |source| Error::Storage {
            action,
            path,
            source: Arc::new(source),
        }
    }

    /// For `map_err` on Arrow operations.
    pub(crate) fn arrow(action: &'static str) -> impl FnOnce(arrow::error::ArrowError) -> Error {
        move |source| Error::Arrow {
            action,
            source: Arc::new(source),
        }
    }

    /// For `map_err` on Parquet operations.
    pub(crate) fn parquet(action: &'static str, file: &str) -> impl FnOnce(parquet::errors::ParquetError) -> Error {
        let file = file.to_owned();
        move |source| Error::Parquet {
            action,
            file,
            source: Arc::new(source),
        }
    }
}
