//! Measures a release server as its users would meet it: another process, its public API, real bytes.
//!
//! ```text
//! corpus.py -> files -> N senders -> server (own process) -> last ack -> quiet -> questions -> stop -> sizes -> start again
//! ```
//!
//! Traces, profiles and Pyroscope's pushes are measured apart, each with a fresh data directory. Cost is the server's CPU time, user and system,
//! *all in*: until log, flush and compaction are quiet. Every answer whose truth the corpus knows is compared with it, and a
//! difference fails the run: a fast wrong answer is no result. Progress goes to standard error, the report (JSON) to standard
//! output. `faults` measures nothing: it lets servers die and counts what is left ([`faults`]). `study` asks one further question
//! of a server, such as what more senders or larger requests cost ([`study`]).

mod corpus;
mod faults;
mod load;
mod options;
mod quantiles;
mod questions;
mod server;
mod shape;
mod study;

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use corpus::{Corpus, Signal};
use load::{Body, Load};
use options::Options;
use server::Server;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let told = match arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some(("faults", rest)) => Some(faults::run(rest).await),
        Some(("study", rest)) => Some(study::run(rest).await),
        _ => None,
    };
    match told {
        Some(Ok(report)) => {
            println!("{report:#}");
            return ExitCode::SUCCESS;
        }
        Some(Err(failure)) => {
            eprintln!("error: {failure}");
            return ExitCode::FAILURE;
        }
        None => {}
    }
    match measure(&arguments).await {
        Ok((report, differences)) => {
            println!("{report:#}");
            if differences == 0 {
                return ExitCode::SUCCESS;
            }
            eprintln!("error: {differences} answers differ from the truth");
        }
        Err(failure) => eprintln!("error: {failure}"),
    }
    ExitCode::FAILURE
}

async fn measure(arguments: &[String]) -> Result<(Value, u64), Failure> {
    let options = Options::parse(arguments)?;
    let corpus = Corpus::provide(&options)?;
    let mut report = json!({ "machine": machine(&options.server)?, "corpus": corpus.facts(), "senders": options.senders });
    let mut differences = 0;
    for signal in [Signal::Traces, Signal::Profiles, Signal::Push] {
        if options.wants(signal) {
            let (figures, wrong) = measure_signal(&options, &corpus, signal).await?;
            report[signal.name()] = figures;
            differences += wrong;
        }
    }
    Ok((report, differences))
}

/// One fresh server, one signal, from the first byte to a restart.
async fn measure_signal(options: &Options, corpus: &Corpus, signal: Signal) -> Result<(Value, u64), Failure> {
    let data = options.work_dir.join(format!("data-{}", signal.name()));
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    let server = Server::start(&options.server, &data, &options.work_dir).await?;
    let idle_rss_bytes = server.rss_bytes()?;
    eprintln!("{}: sending", signal.name());
    let load = Load {
        signal,
        bodies: corpus.requests(signal)?.into_iter().map(Body::File).collect(),
        pace: None,
    };
    let sent = load::send(&server, load, options.senders).await?;
    let cpu_s_to_ack = server.cpu_s()?;
    let quiet_after_s = server.wait_until_quiet(options.quiet).await?;
    let cpu_s_all_in = server.cpu_s()?;
    eprintln!(
        "{}: quiet {quiet_after_s:.1} s after the last acknowledgement; asking",
        signal.name()
    );
    let asked = questions::ask(&server, corpus, signal).await?;
    let peak_rss_bytes = server.peak_rss_bytes()?;
    let ready_ms = server.ready_ms();
    let stopped = server.stop().await?;
    let at_rest = server::sizes(&options.server, &data)?;
    let again = Server::start(&options.server, &data, &options.work_dir).await?;
    let ready_again_ms = again.ready_ms();
    again.stop().await?;
    let items = corpus.items(signal) as f64;
    let figures = json!({
        "items": corpus.items(signal),
        "item": signal.item(),
        "items_per_cpu_s_all_in": (items / cpu_s_all_in).round(),
        "items_per_cpu_s_to_ack": (items / cpu_s_to_ack).round(),
        "cpu_s_all_in": cpu_s_all_in,
        "cpu_s_to_ack": cpu_s_to_ack,
        "quiet_after_s": quiet_after_s,
        "items_per_s": (items / sent.seconds).round(),
        "send": sent.figures(),
        "idle_rss_bytes": idle_rss_bytes,
        "peak_rss_bytes": peak_rss_bytes,
        "at_rest": at_rest.figures(items),
        "questions": asked.figures,
        "ready_ms": ready_ms,
        "ready_again_ms": ready_again_ms,
        "stop_ms": stopped,
    });
    std::fs::remove_dir_all(&data)?;
    Ok((figures, asked.differences))
}

/// What a figure depends on beside the code.
fn machine(server: &Path) -> Result<Value, Failure> {
    let field = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split(':').nth(1))
            .map(|value| value.trim().to_owned())
    };
    let version = std::process::Command::new(server).arg("--version").output()?;
    Ok(json!({
        "cpu": field("/proc/cpuinfo", "model name"),
        "cores": std::thread::available_parallelism()?.get(),
        "memory": field("/proc/meminfo", "MemTotal"),
        "kernel": std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim(),
        "server": String::from_utf8_lossy(&version.stdout).trim(),
        "binary_bytes": std::fs::metadata(server)?.len(),
    }))
}
