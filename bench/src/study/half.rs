//! Latencies while the server takes in half of what it can: of acknowledgements, of questions, and until what was
//! acknowledged is visible.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Options, SENDERS, SPANS_PER_REQUEST, TRUTHS, at_once, corpus, now_unix_nano, shape_until_now, trace_bodies, truths};
use crate::Failure;
use crate::corpus::Signal;
use crate::load::{self, Body, Load};
use crate::quantiles::Latencies;
use crate::questions::{self, Asked};
use crate::server::Server;
use crate::shape::SPANS_PER_TRACE;

/// From an answer to the next question: one person who clicks, not one who waits for nothing.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// From one probe of visibility to the next.
const PROBE_EVERY: Duration = Duration::from_millis(200);
const PROBE_PATIENCE: Duration = Duration::from_secs(60);
/// Spans with profiles, about which is asked.
const KNOWN: u64 = 100_000;

/// Full speed first, then half of it with questions.
pub(super) async fn run(options: &Options) -> Result<Value, Failure> {
    let mut shape = shape_until_now(options.spans + KNOWN)?;
    let begin = shape.now_unix_nano();
    let (server, data) = options.fresh().await?;
    let known = shape.spans(KNOWN / SPANS_PER_TRACE);
    let mut bodies: Vec<Body> = known
        .chunks(SPANS_PER_REQUEST as usize)
        .map(|spans| Body::Made(shape.trace_request(spans)))
        .collect();
    let profiles: Vec<Body> = shape.profile_requests(&known).into_iter().map(Body::Made).collect();
    let truth = truths(&shape, &known, TRUTHS);
    drop(known);
    bodies.extend(trace_bodies(&mut shape, options.spans, SPANS_PER_REQUEST));
    let corpus = corpus(begin, now_unix_nano()?, options.spans, truth);
    let full = load::send(&server, at_once(Signal::Traces, bodies), SENDERS).await?;
    let full_profiles = load::send(&server, at_once(Signal::Profiles, profiles), SENDERS).await?;
    server.wait_until_quiet(options.quiet).await?;
    eprintln!("idle: asking");
    let idle = ask(&server, &corpus).await?;
    let probe = probe(&server, Arc::new(AtomicBool::new(false)), 25).await?;
    let idle = json!({ "questions": idle, "visible": probe });

    let half_rate = full.per_s() / 2.0;
    eprintln!("half: {half_rate:.0} requests a second for {} s", options.duration.as_secs());
    let requests = (half_rate * options.duration.as_secs_f64()) as u64;
    let traces = Load {
        signal: Signal::Traces,
        bodies: trace_bodies(&mut shape, requests * SPANS_PER_REQUEST, SPANS_PER_REQUEST),
        pace: Some(Duration::from_secs_f64(1.0 / half_rate)),
    };
    let cpu_before = server.cpu_s()?;
    let (done, start) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let sending = async {
        let sent = load::send(&server, traces, SENDERS).await;
        done.store(true, Ordering::Relaxed);
        sent
    };
    let asking = async {
        let mut rounds = Vec::new();
        while !done.load(Ordering::Relaxed) {
            rounds.push(ask(&server, &corpus).await?);
        }
        Ok::<_, Failure>(rounds)
    };
    let (sent, rounds, visible) = tokio::try_join!(sending, asking, self::probe(&server, Arc::clone(&done), usize::MAX))?;
    let loaded = json!({
        "cores_busy": (server.cpu_s()? - cpu_before) / start.elapsed().as_secs_f64(),
        "ack": sent.figures(),
        // Rounds of the same questions; the first began with the load.
        "questions": rounds,
        "visible": visible,
    });
    let peak_rss_bytes = server.peak_rss_bytes()?;
    server.stop().await?;
    std::fs::remove_dir_all(&data)?;
    Ok(json!({
        "full": { "traces": full.figures(), "profiles": full_profiles.figures() },
        "half_requests_per_s": half_rate,
        "idle": idle,
        "half": loaded,
        "peak_rss_bytes": peak_rss_bytes,
    }))
}

/// All questions about traces and profiles once; a wrong answer fails the study.
async fn ask(server: &Server, corpus: &crate::corpus::Corpus) -> Result<Value, Failure> {
    let mut figures = json!({});
    for signal in [Signal::Traces, Signal::Profiles] {
        let Asked {
            figures: these,
            differences,
        } = questions::ask_at(server, corpus, signal, ASK_EVERY).await?;
        if differences > 0 {
            return Err(format!("{differences} answers about {} differ from the truth", signal.name()).into());
        }
        for (name, value) in these.as_object().into_iter().flatten() {
            figures[name] = value.clone();
        }
    }
    Ok(figures)
}

/// Sends a span from time to time; how long after the acknowledgement it was found, by its trace and by a search.
async fn probe(server: &Server, done: Arc<AtomicBool>, count_max: usize) -> Result<Value, Failure> {
    let (mut by_id, mut by_search) = (Latencies::default(), Latencies::default());
    for number in 0..count_max {
        if done.load(Ordering::Relaxed) {
            break;
        }
        let now = now_unix_nano()?;
        let (trace_id, mark) = (format!("{now:032x}"), format!("probe-{now}-{number}"));
        let span = json!({
            "traceId": trace_id, "spanId": format!("{now:016x}"), "name": "probe", "kind": 1,
            "startTimeUnixNano": now.to_string(), "endTimeUnixNano": (now + 1_000_000).to_string(),
            "attributes": [{ "key": "probe", "value": { "stringValue": mark } }],
        });
        let body = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": [span] }] }] });
        let response = server.client().post(server.url("/v1/traces")).json(&body).send().await?;
        response.error_for_status()?;
        let acknowledged = Instant::now();
        let trace = server.url(&format!("/api/v1/traces/{trace_id}"));
        let search = format!(
            "{}?start={}&end={}&limit=1",
            server.url("/api/v1/spans"),
            now - 1_000_000_000,
            now + 1_000_000_000
        );
        let query = [("q", format!("{{ span.probe = \"{mark}\" }}"))];
        let found_by_id = until(acknowledged, async || {
            Ok(server.client().get(&trace).send().await?.status().is_success())
        });
        let found_by_search = until(acknowledged, async || {
            let answer: Value = server
                .client()
                .get(&search)
                .query(&query)
                .send()
                .await?
                .error_for_status()?
                .json()
                .await?;
            Ok(answer["matched"] == 1)
        });
        let (id, search) = tokio::try_join!(found_by_id, found_by_search)?;
        by_id.push(id);
        by_search.push(search);
        tokio::time::sleep(PROBE_EVERY).await;
    }
    Ok(json!({ "by_id": by_id.figures(), "by_search": by_search.figures() }))
}

/// Asks again and again until the answer is yes; the time since `start`.
async fn until(start: Instant, asks: impl AsyncFn() -> Result<bool, Failure>) -> Result<Duration, Failure> {
    while start.elapsed() < PROBE_PATIENCE {
        if asks().await? {
            return Ok(start.elapsed());
        }
    }
    Err(format!("what was acknowledged is not visible after {} s", PROBE_PATIENCE.as_secs()).into())
}
