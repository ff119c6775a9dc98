//! Why a server cannot start or cannot stop well.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use spanflame_store as store;

/// Why a server cannot start or cannot stop well. What goes wrong with a single request is told to its client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be bound.
    #[error("cannot listen on {address}, the value of {key}")]
    Bind {
        /// The key that names the address.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The data cannot be opened or closed.
    #[error("cannot {action} the data in {data}")]
    Store {
        /// `open` or `close`.
        action: &'static str,
        /// The value of `data`.
        data: String,
        /// Why.
        source: store::Error,
    },
    /// The ready file cannot be written.
    #[error("cannot write the ready file {}", path.display())]
    ReadyFile {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The store was not closed within `shutdown_timeout`. Everything acknowledged is in its log.
    #[error("the store was not closed within {}", humantime(*timeout))]
    ShutdownTimeout {
        /// The value of `shutdown_timeout`.
        timeout: Duration,
    },
}

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Correct the settings.
    Invalid,
    /// Something the server needs is not there: another process holds it, or the medium does not answer.
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
            Error::Bind { .. } | Error::ShutdownTimeout { .. } => ErrorKind::Unavailable,
            Error::ReadyFile { .. } => ErrorKind::Invalid,
            Error::Store { source, .. } => match source.kind() {
                store::ErrorKind::Invalid => ErrorKind::Invalid,
                store::ErrorKind::Busy | store::ErrorKind::Unavailable => ErrorKind::Unavailable,
                store::ErrorKind::Corrupt => ErrorKind::Corrupt,
                store::ErrorKind::Internal => ErrorKind::Internal,
            },
        }
    }
}

fn humantime(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
