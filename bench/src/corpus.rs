//! The corpus: requests on disk and the right answers, written by `corpus.py` once per size and then reused.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::Failure;
use crate::options::Options;

/// What is measured apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Traces,
    /// Over OTLP.
    Profiles,
    /// The same samples as Pyroscope's clients push them.
    Push,
}

impl Signal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Profiles => "profiles",
            Signal::Push => "push",
        }
    }

    /// What one unit of it is called.
    pub(crate) fn item(self) -> &'static str {
        match self {
            Signal::Traces => "span",
            Signal::Profiles | Signal::Push => "observation",
        }
    }

    /// Where it is posted.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Signal::Traces => "/v1/traces",
            Signal::Profiles => "/v1development/profiles",
            Signal::Push => "/push.v1.PusherService/Push",
        }
    }

    /// As what it is posted.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Signal::Traces | Signal::Profiles => "application/x-protobuf",
            Signal::Push => "application/proto",
        }
    }

    fn file_prefix(self) -> &'static str {
        match self {
            Signal::Traces => "traces-",
            Signal::Profiles => "otlp-profiles-",
            Signal::Push => "push-",
        }
    }
}

/// A span whose answer is known.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Truth {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    pub(crate) service: String,
    pub(crate) operation: String,
    pub(crate) start_unix_nano: u64,
    pub(crate) end_unix_nano: u64,
    /// Observations per complete stack, root first, joined by `;`.
    pub(crate) by_stack: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Summary {
    spans: u64,
    observations: u64,
    period_ns: u64,
    begin_unix_nano: u64,
    end_unix_nano: u64,
    truth: Vec<Truth>,
}

/// A corpus on disk.
pub(crate) struct Corpus {
    folder: PathBuf,
    summary: Summary,
}

impl Corpus {
    /// The corpus of the size asked for; written first if it is not there.
    pub(crate) fn provide(options: &Options) -> Result<Corpus, Failure> {
        let folder = options.work_dir.join(format!("corpus-{}", options.spans));
        let truth = folder.join("truth.json");
        let wants_push = options.wants(Signal::Push);
        if !truth.is_file() || (wants_push && !folder.join("push-00000.pb").is_file()) {
            generate(&folder, options.spans, wants_push)?;
        }
        let summary = serde_json::from_slice(&std::fs::read(truth)?)?;
        Ok(Corpus { folder, summary })
    }

    /// A corpus that is not on disk: only what questions need to know of it.
    pub(crate) fn made(
        spans: u64,
        observations: u64,
        period_ns: u64,
        [begin_unix_nano, end_unix_nano]: [u64; 2],
        truth: Vec<Truth>,
    ) -> Corpus {
        Corpus {
            folder: PathBuf::new(),
            summary: Summary {
                spans,
                observations,
                period_ns,
                begin_unix_nano,
                end_unix_nano,
                truth,
            },
        }
    }

    /// The requests of a signal, in order.
    pub(crate) fn requests(&self, signal: Signal) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(signal.file_prefix()) {
                files.push(entry.path());
            }
        }
        files.sort();
        Ok(files)
    }

    /// How many spans or observations the requests of a signal hold.
    pub(crate) fn items(&self, signal: Signal) -> u64 {
        match signal {
            Signal::Traces => self.summary.spans,
            Signal::Profiles | Signal::Push => self.summary.observations,
        }
    }

    pub(crate) fn truth(&self) -> &[Truth] {
        &self.summary.truth
    }

    pub(crate) fn period_ns(&self) -> u64 {
        self.summary.period_ns
    }

    /// When it begins and ends, in nanoseconds since the epoch.
    pub(crate) fn times(&self) -> [u64; 2] {
        [self.summary.begin_unix_nano, self.summary.end_unix_nano]
    }

    /// `start` and `end` of a question about all of it; some spans end after the corpus does.
    pub(crate) fn window(&self) -> [(&'static str, String); 2] {
        const MARGIN_NS: u64 = 60_000_000_000;
        let (begin, end) = (self.summary.begin_unix_nano - MARGIN_NS, self.summary.end_unix_nano + MARGIN_NS);
        [("start", begin.to_string()), ("end", end.to_string())]
    }

    pub(crate) fn facts(&self) -> Value {
        json!({ "spans": self.summary.spans, "observations": self.summary.observations, "truths": self.summary.truth.len() })
    }
}

/// Writes beside the folder and renames, so that an interrupted run leaves no half corpus behind.
fn generate(folder: &Path, spans: u64, with_push: bool) -> Result<(), Failure> {
    eprintln!("writing a corpus of {spans} spans; kept in {}", folder.display());
    let partial = folder.with_extension("partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial)?;
    }
    let kinds = if with_push {
        "traces,otlp-profiles,push"
    } else {
        "traces,otlp-profiles"
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus.py");
    let status = Command::new("python3")
        .arg(script)
        .arg("--out")
        .arg(&partial)
        .args(["--spans", &spans.to_string(), "--kinds", kinds])
        .stdout(std::io::stderr())
        .status()?;
    if !status.success() {
        return Err(format!("corpus.py failed ({status})").into());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::rename(partial, folder)?;
    Ok(())
}
