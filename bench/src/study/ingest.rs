//! What ingest of traces costs, by number of senders and by size of requests.

use serde_json::{Value, json};

use super::{Options, SENDERS, SPANS_PER_REQUEST, at_once, rounded, shape_until_now, trace_bodies};
use crate::Failure;
use crate::corpus::Signal;
use crate::load;

/// A request of ten spans is a hundredth of the usual one: more of them would only take longer.
const REQUESTS_MAX: u64 = 10_000;

/// 1, 4 and 32 senders.
pub(super) async fn by_senders(options: &Options) -> Result<Value, Failure> {
    let mut points = Vec::new();
    for senders in [1, 4, 32] {
        points.push(point(options, senders, SPANS_PER_REQUEST, options.spans).await?);
    }
    Ok(points.into())
}

/// 10 to 10,000 spans a request.
pub(super) async fn by_request_size(options: &Options) -> Result<Value, Failure> {
    let mut points = Vec::new();
    for size in [10, 100, 1_000, 10_000] {
        let spans = options.spans.min(REQUESTS_MAX * size);
        points.push(point(options, SENDERS, size, spans).await?);
    }
    Ok(points.into())
}

/// One fresh server, from the first request until it is quiet.
async fn point(options: &Options, senders: usize, spans_per_request: u64, spans: u64) -> Result<Value, Failure> {
    eprintln!("{senders} senders, {spans_per_request} spans a request, {spans} spans");
    let bodies = trace_bodies(&mut shape_until_now(spans)?, spans, spans_per_request);
    let (server, data) = options.fresh().await?;
    let sent = load::send(&server, at_once(Signal::Traces, bodies), senders).await?;
    let cpu_s_to_ack = server.cpu_s()?;
    server.wait_until_quiet(options.quiet).await?;
    let cpu_s_all_in = server.cpu_s()?;
    let peak_rss_bytes = server.peak_rss_bytes()?;
    server.stop().await?;
    std::fs::remove_dir_all(&data)?;
    Ok(json!({
        "senders": senders,
        "spans_per_request": spans_per_request,
        "spans": spans,
        "spans_per_s": (spans as f64 / sent.seconds).round(),
        "spans_per_cpu_s_to_ack": (spans as f64 / cpu_s_to_ack).round(),
        "spans_per_cpu_s_all_in": (spans as f64 / cpu_s_all_in).round(),
        "cpu_us_a_request_to_ack": rounded(cpu_s_to_ack * 1e6 / (spans as f64 / spans_per_request as f64)),
        "peak_rss_bytes": peak_rss_bytes,
        "send": sent.figures(),
    }))
}
