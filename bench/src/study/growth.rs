//! How memory and the cost of questions grow with what is stored: stages of ten times as many observations.

use serde_json::{Value, json};

use super::{Options, SENDERS, TRUTHS, at_once, corpus, rounded, shape_until_now, truths};
use crate::Failure;
use crate::corpus::{Signal, Truth};
use crate::load::{self, Body};
use crate::questions;
use crate::server::{self, Server};
use crate::shape::{OBSERVATIONS_PER_SPAN, SPANS_PER_TRACE};

/// Spans of the first stage: 1 M observations.
const FIRST: u64 = 100_000;
/// Spans whose requests are in memory at a time: 10 M observations, ten minutes of the corpus.
const CHUNK: u64 = 1_000_000;

/// Sends until 1 M, 10 M, ... observations are stored, as far as `--spans` goes, and asks after each.
pub(super) async fn run(options: &Options) -> Result<Value, Failure> {
    let mut shape = shape_until_now(options.spans)?;
    let begin = shape.now_unix_nano();
    let (mut server, data) = options.fresh().await?;
    let (mut stored, mut target) = (0, FIRST.min(options.spans));
    let (mut cpu_s_all_in, mut known, mut stages): (f64, Vec<Truth>, _) = (0.0, Vec::new(), Vec::new());
    loop {
        while stored < target {
            let chunk = CHUNK.min(target - stored);
            let spans = shape.spans(chunk / SPANS_PER_TRACE);
            let per_chunk = (TRUTHS * chunk / target).max(1);
            known.extend(truths(&shape, &spans, per_chunk));
            let bodies = shape.profile_requests(&spans).into_iter().map(Body::Made).collect();
            drop(spans);
            let before = server.cpu_s()?;
            load::send(&server, at_once(Signal::Profiles, bodies), SENDERS).await?;
            cpu_s_all_in += server.cpu_s()? - before;
            stored += chunk;
            eprintln!("{} M observations", stored * OBSERVATIONS_PER_SPAN / 1_000_000);
        }
        let before = server.cpu_s()?;
        server.wait_until_quiet(options.quiet).await?;
        cpu_s_all_in += server.cpu_s()? - before;
        let corpus = corpus(begin, shape.now_unix_nano(), stored, spread(&known));
        let asked = questions::ask(&server, &corpus, Signal::Profiles).await?;
        if asked.differences > 0 {
            return Err(format!("{} answers differ from the truth", asked.differences).into());
        }
        let (rss_bytes, peak_rss_bytes) = (server.rss_bytes()?, server.peak_rss_bytes()?);
        let stop_ms = server.stop().await?;
        let observations = (stored * OBSERVATIONS_PER_SPAN) as f64;
        let at_rest = server::sizes(&options.server, &data)?.figures(observations);
        server = Server::start(&options.server, &data, &options.work_dir).await?;
        stages.push(json!({
            "observations": observations,
            "observations_per_cpu_s_all_in": (observations / cpu_s_all_in).round(),
            "cpu_s_all_in": rounded(cpu_s_all_in),
            "questions": asked.figures,
            "rss_bytes": rss_bytes,
            "peak_rss_bytes": peak_rss_bytes,
            "at_rest": at_rest,
            "stop_ms": stop_ms,
            "ready_again_ms": server.ready_ms(),
        }));
        eprintln!("{:#}", stages[stages.len() - 1]);
        if stored >= options.spans {
            break;
        }
        target = (target * 10).min(options.spans);
    }
    server.stop().await?;
    std::fs::remove_dir_all(&data)?;
    Ok(stages.into())
}

/// As many as are asked about, from all of what is stored.
fn spread(known: &[Truth]) -> Vec<Truth> {
    let every = known.len().div_ceil(TRUTHS as usize).max(1);
    known.iter().step_by(every).cloned().collect()
}
