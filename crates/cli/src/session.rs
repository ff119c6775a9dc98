//! What a command is given: where to write, what that place can show, a runtime to wait on.

use std::future::Future;
use std::io::Write;
use std::mem::ManuallyDrop;

use crate::error::Error;
use crate::render::terminal::{ColorChoice, Terminal};

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There was something.
    Found,
    /// All went well, and there is nothing.
    Nothing,
}

impl Outcome {
    /// [`Outcome::Found`] if `something`.
    pub(crate) fn found(something: bool) -> Outcome {
        if something { Outcome::Found } else { Outcome::Nothing }
    }
}

/// Standard output and error, and a runtime.
pub(crate) struct Session {
    pub(crate) terminal: Terminal,
    /// Never dropped: what a data directory still writes when its reader has its answer must end with the process,
    /// as kill -9 would end it, and not find its runtime gone.
    runtime: ManuallyDrop<tokio::runtime::Runtime>,
}

impl Session {
    pub(crate) fn new(color: ColorChoice) -> Result<Session, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::Start(Box::new(error)))?;
        Ok(Session {
            terminal: Terminal::of_stdout(color),
            runtime: ManuallyDrop::new(runtime),
        })
    }

    /// Waits for `future` on the runtime.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Writes lines to standard output.
    pub(crate) fn print(&mut self, lines: &[String]) -> Result<(), Error> {
        let mut text = lines.join("\n");
        text.push('\n');
        self.write(text.as_bytes())
    }

    /// Writes bytes to standard output as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Tells the person at the terminal something that is no part of the answer.
    pub(crate) fn note(&self, text: &str) {
        // Nobody can be told that standard error is closed.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Tells the person at the terminal what went wrong.
pub(crate) fn complain(error: &Error) {
    let _ = writeln!(std::io::stderr(), "error: {}", error.report());
}
