//! Senders: each posts one request after the other and waits for the acknowledgement, as fast as it can or at a given pace.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::Failure;
use crate::corpus::Signal;
use crate::quantiles::Latencies;
use crate::server::Server;

/// A request that is to be sent.
pub(crate) enum Body {
    /// Read when its turn has come.
    File(PathBuf),
    /// Made before.
    Made(Bytes),
}

/// Requests of one signal, in order.
pub(crate) struct Load {
    pub(crate) signal: Signal,
    pub(crate) bodies: Vec<Body>,
    /// The time from one request to the next; `None` is as fast as they are answered.
    pub(crate) pace: Option<Duration>,
}

/// How the sending went.
pub(crate) struct Sent {
    pub(crate) seconds: f64,
    latencies: Latencies,
    bytes: u64,
    busy: u64,
}

impl Sent {
    /// Requests answered in a second.
    pub(crate) fn per_s(&self) -> f64 {
        self.latencies.count() as f64 / self.seconds
    }

    pub(crate) fn figures(&self) -> Value {
        json!({ "seconds": self.seconds, "ack": self.latencies.figures(), "bytes": self.bytes, "answered_busy": self.busy })
    }
}

/// What the senders share.
struct Queue {
    load: Load,
    start: Instant,
    next: AtomicUsize,
    bytes: AtomicU64,
    busy: AtomicU64,
}

/// Waits this long when the server is busy and does not say how long.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// A request that is still refused after so many tries fails the run.
const TRIES_MAX: usize = 1_000;

/// Sends all requests; fails if one is refused for another reason than load.
pub(crate) async fn send(server: &Server, load: Load, senders: usize) -> Result<Sent, Failure> {
    let url = server.url(load.signal.path());
    let start = Instant::now();
    let queue = Arc::new(Queue {
        load,
        start,
        next: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
        busy: AtomicU64::new(0),
    });
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
    loop {
        let number = queue.next.fetch_add(1, Ordering::Relaxed);
        let Some(body) = queue.load.bodies.get(number) else {
            return Ok(latencies);
        };
        // At a pace the wait for a free sender counts: who is late has waited since the request was due.
        let due = match queue.load.pace {
            Some(pace) => queue.start + pace * number as u32,
            None => Instant::now(),
        };
        tokio::time::sleep_until(due.into()).await;
        let body = body.bytes().await.map_err(|error| format!("request {number}: {error}"))?;
        queue.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        post(&queue, &client, &url, body)
            .await
            .map_err(|error| format!("request {number}: {error}"))?;
        latencies.push(due.elapsed());
    }
}

impl Body {
    async fn bytes(&self) -> Result<Bytes, std::io::Error> {
        match self {
            Body::File(path) => Ok(Bytes::from(tokio::fs::read(path).await?)),
            Body::Made(bytes) => Ok(bytes.clone()),
        }
    }
}

/// Posts until the request is acknowledged.
async fn post(queue: &Queue, client: &reqwest::Client, url: &str, body: Bytes) -> Result<(), String> {
    for _ in 0..TRIES_MAX {
        let request = client
            .post(url)
            .header("content-type", queue.load.signal.content_type())
            .body(body.clone());
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
        return Ok(());
    }
    Err(format!("still busy after {TRIES_MAX} tries"))
}

fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get("retry-after")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
