//! The driver's flags; `bench/README.md` explains them.

use std::path::PathBuf;
use std::time::Duration;

use crate::Failure;
use crate::corpus::Signal;

/// What to measure and how much of it.
pub(crate) struct Options {
    /// The binary to measure.
    pub(crate) server: PathBuf,
    /// Where corpora and data directories go.
    pub(crate) work_dir: PathBuf,
    pub(crate) spans: u64,
    pub(crate) senders: usize,
    /// The server is quiet when it did next to nothing for so long.
    pub(crate) quiet: Duration,
    only: Option<String>,
}

const SPANS: u64 = 1_000_000;
const SPANS_QUICK: u64 = 100_000;
const SENDERS: usize = 4;

/// Longer than small files wait for their first merge, so that the merge is paid for.
const QUIET: Duration = Duration::from_secs(150);
const QUIET_QUICK: Duration = Duration::from_secs(15);

impl Options {
    /// Reads the flags; a mistake names the flag and what was expected.
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, Failure> {
        let mut options = Options {
            server: PathBuf::new(),
            work_dir: std::env::temp_dir().join("spanflame-bench"),
            spans: SPANS,
            senders: SENDERS,
            quiet: QUIET,
            only: None,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{flag} is missing its value"));
            match flag.as_str() {
                "--server" => options.server = PathBuf::from(value()?),
                "--work-dir" => options.work_dir = PathBuf::from(value()?),
                "--quick" => (options.spans, options.quiet) = (SPANS_QUICK, QUIET_QUICK),
                "--spans" => options.spans = number(flag, value()?)?,
                "--senders" => options.senders = number(flag, value()?)? as usize,
                "--quiet-s" => options.quiet = Duration::from_secs(number(flag, value()?)?),
                "--only" => options.only = Some(value()?.clone()),
                other => return Err(format!("unexpected argument {other}, see bench/README.md").into()),
            }
        }
        options.validated()
    }

    fn validated(self) -> Result<Options, Failure> {
        if !self.server.is_file() {
            return Err(format!("--server is {:?}, expected the path of the binary spanflame", self.server).into());
        }
        if self.spans == 0 || !self.spans.is_multiple_of(1_000) {
            return Err(format!("--spans is {}, expected a positive multiple of 1000", self.spans).into());
        }
        if self.senders == 0 {
            return Err("--senders is 0, expected at least 1".into());
        }
        if let Some(only) = self.only.as_deref().filter(|only| !["traces", "profiles", "push"].contains(only)) {
            return Err(format!("--only is {only}, expected traces, profiles or push").into());
        }
        std::fs::create_dir_all(&self.work_dir)?;
        Ok(self)
    }

    /// Whether a signal is to be measured.
    pub(crate) fn wants(&self, signal: Signal) -> bool {
        self.only.as_deref().is_none_or(|only| only == signal.name())
    }
}

pub(crate) fn number(flag: &str, text: &str) -> Result<u64, Failure> {
    text.replace('_', "")
        .parse()
        .map_err(|_| format!("{flag} is {text}, expected a whole number").into())
}
