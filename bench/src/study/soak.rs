//! Half an hour and more of steady load: memory and the number of files must not grow with time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Options, SENDERS, SPANS_PER_REQUEST, now_unix_nano};
use crate::Failure;
use crate::corpus::Signal;
use crate::load::{self, Body, Load};
use crate::shape::{SPANS_PER_TRACE, STEP_NS, Shape};

/// Traces begin as often as in the corpus: so many requests of traces a second.
const CHUNK: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The corpus at its own pace, made as it goes, with a look at the server from time to time.
pub(super) async fn run(options: &Options) -> Result<Value, Failure> {
    let (server, data) = options.fresh().await?;
    let done = AtomicBool::new(false);
    let start = Instant::now();
    let sending = async {
        let mut shape = Shape::new(1, now_unix_nano()? - CHUNK.as_nanos() as u64);
        let mut spans_sent = 0;
        while start.elapsed() < options.duration {
            let traces = CHUNK.as_nanos() as u64 / STEP_NS;
            let spans = shape.spans(traces);
            let bodies: Vec<Body> = spans
                .chunks(SPANS_PER_REQUEST as usize)
                .map(|spans| Body::Made(shape.trace_request(spans)))
                .collect();
            let profiles: Vec<Body> = shape.profile_requests(&spans).into_iter().map(Body::Made).collect();
            let pace = |bodies: &[Body]| Some(CHUNK / bodies.len() as u32);
            let (traces_pace, profiles_pace) = (pace(&bodies), pace(&profiles));
            let traces_load = Load {
                signal: Signal::Traces,
                bodies,
                pace: traces_pace,
            };
            let profiles_load = Load {
                signal: Signal::Profiles,
                bodies: profiles,
                pace: profiles_pace,
            };
            tokio::try_join!(load::send(&server, traces_load, SENDERS), load::send(&server, profiles_load, 1))?;
            spans_sent += traces * SPANS_PER_TRACE;
        }
        done.store(true, Ordering::Relaxed);
        Ok::<_, Failure>(spans_sent)
    };
    let looking = async {
        let mut looks = Vec::new();
        while !done.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK_EVERY).await;
            looks.push(json!({
                "at_s": start.elapsed().as_secs(),
                "rss_bytes": server.rss_bytes()?,
                "open_files": server.open_files()?,
                "files": files(&data)?,
                "cpu_s": server.cpu_s()?,
            }));
        }
        Ok::<_, Failure>(looks)
    };
    let (spans, looks) = tokio::try_join!(sending, looking)?;
    let peak_rss_bytes = server.peak_rss_bytes()?;
    let stop_ms = server.stop().await?;
    std::fs::remove_dir_all(&data)?;
    Ok(
        json!({ "spans": spans, "seconds": start.elapsed().as_secs(), "peak_rss_bytes": peak_rss_bytes, "stop_ms": stop_ms, "looks": looks }),
    )
}

/// Files below a folder; what goes away while they are counted is not there.
fn files(folder: &Path) -> Result<u64, Failure> {
    let mut count = 0;
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(0) };
    for entry in entries {
        let path = entry?.path();
        count += if path.is_dir() { files(&path)? } else { 1 };
    }
    Ok(count)
}
