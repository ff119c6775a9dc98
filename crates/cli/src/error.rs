//! Why a command could not do what was asked, in words that say what to do about it.

use std::path::PathBuf;

use crate::render::quantity::counted;
use crate::render::terminal::visible;

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
        /// Line and column in the query at fault, both from 1.
        place: Option<(usize, usize)>,
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
    /// A data directory could not be read at all.
    #[error("cannot read the data in {data}")]
    Storage {
        /// The directory.
        data: String,
        /// Why.
        source: spanflame_store::Error,
    },
    /// A data directory is not as it was written.
    #[error("{damaged} of what {data} holds is damaged; `spanflame repair --data {data}` says what it would do about it", damaged = counted(*damaged, "part"))]
    Damaged {
        /// The directory.
        data: String,
        /// How many findings.
        damaged: u64,
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

    /// This error with the line of `query` that it is about, and a mark under the place.
    pub(crate) fn with_query(mut self, query: &str) -> Error {
        if let Error::Refused {
            message,
            place: Some((line, column)),
            ..
        } = &mut self
            && let Some(text) = query.lines().nth(line.saturating_sub(1))
        {
            message.push_str(&format!("\n  {}\n  {}^", visible(text), " ".repeat(column.saturating_sub(1))));
        }
        self
    }

    /// The text with its causes and, where there is one, a way out.
    pub(crate) fn report(&self) -> String {
        let mut causes: Vec<String> = Vec::new();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        let mut text = self.to_string();
        // Between us and a connection lie layers that add nothing to what the last one says.
        let first = if matches!(self, Error::Unreachable { .. }) {
            causes.len().saturating_sub(1)
        } else {
            0
        };
        for cause in &causes[first..] {
            // Some libraries repeat their cause in their own text.
            if !text.contains(cause.as_str()) {
                text.push_str("\n  because: ");
                text.push_str(cause);
            }
        }
        if let Error::Serve(spanflame_server::Error::Bind { key, .. }) = self {
            let flag = key.replace('_', "-");
            text.push_str(&format!("\n  choose another with --{flag} IP:PORT; port 0 takes a free one"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_query_is_pointed_at() {
        let error = Error::Refused {
            server: "s".to_owned(),
            status: 400,
            message: "no".to_owned(),
            place: Some((2, 3)),
        };
        assert_eq!(error.with_query("{ a\n&& }").report(), "s answers 400: no\n  && }\n    ^");
    }
}
