//! Why a command could not do what was asked, in words that say what to do about it.

use std::path::PathBuf;

/// The text is for the person at the terminal; the exit code is 2 for all of them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line asks for something that cannot work.
    #[error("{0}")]
    Usage(String),
    /// No server answers.
    #[error(
        "no answer from {server}; start a server with `spanflame serve`, name another with --server URL, or read a directory that no server holds with --data DIR"
    )]
    Unreachable {
        /// Its address.
        server: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The server did not want the request.
    #[error("{server} answers {status}: {message}")]
    Refused {
        /// Its address, or the directory.
        server: String,
        /// HTTP status.
        status: u16,
        /// The server's own text.
        message: String,
    },
    /// The server said something that this program does not understand.
    #[error("the answer of {server} to {request} is not understood; is it a Spanflame server of about this version ({version})?", version = env!("CARGO_PKG_VERSION"))]
    Malformed {
        /// Its address, or the directory.
        server: String,
        /// What was asked.
        request: String,
        /// Where it went wrong.
        source: serde_json::Error,
    },
    /// An input could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An output could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Standard output could not be written.
    #[error("cannot write to standard output")]
    Output(#[source] std::io::Error),
    /// An input has no profile that could be read.
    #[error("{name} cannot be read as {format}")]
    Decode {
        /// The input.
        name: String,
        /// As what it was read.
        format: &'static str,
        /// Why.
        source: spanflame_formats::Error,
    },
    /// The settings have mistakes, one a line.
    #[error("the settings have mistakes; `spanflame config` lists every setting\n{0}")]
    Settings(spanflame_server::config::Mistakes),
    /// A server holds the data directory.
    #[error("cannot open the data in {data}; ask the server that holds it with --server URL, or stop that server first")]
    Held {
        /// The directory.
        data: String,
        /// Who holds it.
        source: spanflame_store::Error,
    },
    /// The server could not start, or not stop well.
    #[error(transparent)]
    Serve(#[from] spanflame_server::Error),
    /// A runtime or a client could not be made.
    #[error("cannot start")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether the reader of our output went away, which is no mistake: `spanflame spans '{}' | head`.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output(source) if source.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// The text with its causes.
    pub(crate) fn report(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let part = error.to_string();
            // Some libraries repeat their cause in their own text.
            if !text.contains(&part) {
                text.push_str("\n  because: ");
                text.push_str(&part);
            }
            cause = error.source();
        }
        text
    }
}
