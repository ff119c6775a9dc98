//! Studies: each asks how cost and latency depend on one thing, with load made by [`Shape`].
//!
//! ```text
//! study NAME --server PATH [--spans N] [--minutes N] [--quiet-s N] [--work-dir DIR]
//! ```

mod growth;
mod half;
mod ingest;
mod medium;
mod soak;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::Failure;
use crate::corpus::{Corpus, Signal, Truth};
use crate::load::{Body, Load};
use crate::options::number;
use crate::server::Server;
use crate::shape::{MadeSpan, OBSERVATIONS_PER_SPAN, PERIOD_NS, SPANS_PER_TRACE, STEP_NS, Shape};

const NAMES: [&str; 6] = ["senders", "sizes", "half", "growth", "s3", "soak"];

/// Spans of a request, where nothing else is studied.
const SPANS_PER_REQUEST: u64 = 1_000;
const SENDERS: usize = 4;
/// Spans whose answers are compared with the truth.
const TRUTHS: u64 = 200;

/// What a study may be told.
struct Options {
    server: PathBuf,
    work_dir: PathBuf,
    /// Spans of each point of the study.
    spans: u64,
    /// How long a load at a pace lasts.
    duration: Duration,
    quiet: Duration,
}

/// Makes a study; answers what was measured.
pub(crate) async fn run(arguments: &[String]) -> Result<Value, Failure> {
    let Some((name, rest)) = arguments.split_first() else {
        return Err(format!("study is missing its name, expected one of {}", NAMES.join(", ")).into());
    };
    let options = Options::parse(name, rest)?;
    std::fs::create_dir_all(&options.work_dir)?;
    let figures = match name.as_str() {
        "senders" => ingest::by_senders(&options).await?,
        "sizes" => ingest::by_request_size(&options).await?,
        "half" => half::run(&options).await?,
        "growth" => growth::run(&options).await?,
        "s3" => medium::run(&options).await?,
        "soak" => soak::run(&options).await?,
        other => return Err(format!("the study is {other}, expected one of {}", NAMES.join(", ")).into()),
    };
    Ok(json!({ "study": name, "machine": crate::machine(&options.server)?, "figures": figures }))
}

impl Options {
    fn parse(study: &str, arguments: &[String]) -> Result<Options, Failure> {
        let mut options = Options {
            server: PathBuf::new(),
            work_dir: std::env::temp_dir().join("spanflame-bench"),
            spans: if ["growth", "half"].contains(&study) { 1_000_000 } else { 200_000 },
            duration: Duration::from_secs(if study == "soak" { 1_800 } else { 60 }),
            quiet: Duration::from_secs(15),
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{flag} is missing its value"));
            match flag.as_str() {
                "--server" => options.server = PathBuf::from(value()?),
                "--work-dir" => options.work_dir = PathBuf::from(value()?),
                "--spans" => options.spans = number(flag, value()?)?,
                "--minutes" => options.duration = Duration::from_secs(60 * number(flag, value()?)?),
                "--quiet-s" => options.quiet = Duration::from_secs(number(flag, value()?)?),
                other => return Err(format!("unexpected argument {other}, see bench/README.md").into()),
            }
        }
        if !options.server.is_file() {
            return Err(format!("--server is {:?}, expected the path of the binary spanflame", options.server).into());
        }
        if options.spans < SPANS_PER_REQUEST {
            return Err(format!("--spans is {}, expected at least {SPANS_PER_REQUEST}", options.spans).into());
        }
        Ok(options)
    }

    /// A server over a fresh directory.
    async fn fresh(&self) -> Result<(Server, PathBuf), Failure> {
        let data = self.work_dir.join("data-study");
        clear(&data)?;
        Ok((Server::start(&self.server, &data, &self.work_dir).await?, data))
    }
}

/// A stream that ends about now after so many spans.
fn shape_until_now(spans: u64) -> Result<Shape, Failure> {
    let length = spans / SPANS_PER_TRACE * STEP_NS;
    Ok(Shape::new(1, now_unix_nano()? - length))
}

fn now_unix_nano() -> Result<u64, Failure> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64)
}

/// Trace requests of the next spans.
fn trace_bodies(shape: &mut Shape, spans: u64, spans_per_request: u64) -> Vec<Body> {
    let requests = spans.div_ceil(spans_per_request);
    let body = |_| {
        let made = shape.spans(spans_per_request / SPANS_PER_TRACE);
        Body::Made(shape.trace_request(&made))
    };
    (0..requests).map(body).collect()
}

/// As many requests as there are, as fast as they are answered.
fn at_once(signal: Signal, bodies: Vec<Body>) -> Load {
    Load {
        signal,
        bodies,
        pace: None,
    }
}

/// A corpus of which the answers are known, for the questions.
fn corpus(begin: u64, end: u64, spans: u64, truth: Vec<Truth>) -> Corpus {
    Corpus::made(spans, spans * OBSERVATIONS_PER_SPAN, PERIOD_NS, [begin, end], truth)
}

/// The answers for some of these spans, evenly spread.
fn truths(shape: &Shape, spans: &[MadeSpan], count: u64) -> Vec<Truth> {
    let every = (spans.len() as u64 / count.max(1)).max(1) as usize;
    spans
        .iter()
        .step_by(every)
        .take(count as usize)
        .map(|span| shape.truth(span))
        .collect()
}

fn clear(folder: &Path) -> Result<(), Failure> {
    match folder.exists() {
        true => Ok(std::fs::remove_dir_all(folder)?),
        false => Ok(()),
    }
}

/// A figure with two digits behind the point.
fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
