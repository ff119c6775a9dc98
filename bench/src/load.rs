//! Senders: each posts one request after the other and waits for the acknowledgement.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::Failure;
use crate::corpus::{Corpus, Signal};
use crate::quantiles::Latencies;
use crate::server::Server;

/// How the sending went.
pub(crate) struct Sent {
    pub(crate) seconds: f64,
    latencies: Latencies,
    bytes: u64,
    busy: u64,
}

impl Sent {
    pub(crate) fn figures(&self) -> Value {
        json!({ "seconds": self.seconds, "ack": self.latencies.figures(), "bytes": self.bytes, "answered_busy": self.busy })
    }
}

/// What the senders share.
struct Queue {
    files: Vec<PathBuf>,
    next: AtomicUsize,
    content_type: &'static str,
    bytes: AtomicU64,
    busy: AtomicU64,
}

/// Waits this long when the server is busy and does not say how long.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// A request that is still refused after so many tries fails the run.
const TRIES_MAX: usize = 1_000;

/// Sends all requests of a signal; fails if one is refused for another reason than load.
pub(crate) async fn send(server: &Server, corpus: &Corpus, signal: Signal, senders: usize) -> Result<Sent, Failure> {
    let queue = Arc::new(Queue {
        files: corpus.requests(signal)?,
        next: AtomicUsize::new(0),
        content_type: signal.content_type(),
        bytes: AtomicU64::new(0),
        busy: AtomicU64::new(0),
    });
    let url = server.url(signal.path());
    let start = Instant::now();
    let tasks: Vec<_> = (0..senders)
        .map(|_| tokio::spawn(sender(Arc::clone(&queue), server.client(), url.clone())))
        .collect();
    let mut latencies = Latencies::default();
    for task in tasks {
        latencies.extend(task.await??);
    }
    Ok(Sent {
        seconds: start.elapsed().as_secs_f64(),
        latencies,
        bytes: queue.bytes.load(Ordering::Relaxed),
        busy: queue.busy.load(Ordering::Relaxed),
    })
}

async fn sender(queue: Arc<Queue>, client: reqwest::Client, url: String) -> Result<Latencies, String> {
    let mut latencies = Latencies::default();
    while let Some(file) = queue.files.get(queue.next.fetch_add(1, Ordering::Relaxed)) {
        let body = Bytes::from(
            tokio::fs::read(file)
                .await
                .map_err(|error| format!("{}: {error}", file.display()))?,
        );
        queue.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        let latency = post(&queue, &client, &url, body)
            .await
            .map_err(|error| format!("{}: {error}", file.display()))?;
        latencies.push(latency);
    }
    Ok(latencies)
}

/// Time from the first try to the acknowledgement.
async fn post(queue: &Queue, client: &reqwest::Client, url: &str, body: Bytes) -> Result<Duration, String> {
    let start = Instant::now();
    for _ in 0..TRIES_MAX {
        let request = client.post(url).header("content-type", queue.content_type).body(body.clone());
        let response = request.send().await.map_err(|error| error.to_string())?;
        let status = response.status();
        if status.as_u16() == 429 {
            queue.busy.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(retry_after(&response).unwrap_or(BUSY_PAUSE)).await;
            continue;
        }
        let answer = response.bytes().await.map_err(|error| error.to_string())?;
        // A complete success is an empty message; anything in it is a partial one.
        if !status.is_success() || !answer.is_empty() {
            return Err(format!("answered {status}: {}", String::from_utf8_lossy(&answer)));
        }
        return Ok(start.elapsed());
    }
    Err(format!("still busy after {TRIES_MAX} tries"))
}

fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get("retry-after")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
