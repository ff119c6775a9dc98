//! How a question is asked: on a thread of its own, counted, and timed.
//!
//! A question may decode files and build a tree for long, so it runs on a blocking thread and the reactor goes
//! on; how many run at a time is bounded, the others wait in line.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde::Serialize;
use spanflame_query::Engine;
use spanflame_store::Snapshot;
use tokio::runtime::Handle;

use crate::app::App;
use crate::failure::Failure;
use crate::ingest;
use crate::telemetry::stage;

/// Names damaged files that an answer is without.
const DAMAGED_HEADER: &str = "x-spanflame-damaged-files";
/// So many of them are named.
const DAMAGED_NAMED_MAX: usize = 10;

/// Asks the engine and writes what it answers. `name` is the question's in the metrics.
pub(crate) async fn ask<A, F, T, W>(app: &Arc<App>, name: &'static str, asked: A, write: W) -> Result<Response, Failure>
where
    A: FnOnce(Engine) -> F + Send + 'static,
    F: Future<Output = Result<T, spanflame_query::Error>>,
    W: FnOnce(&T, Stopwatch) -> Result<Response, Failure> + Send + 'static,
{
    let watch = Stopwatch::start();
    let result = on_thread(app, move |runtime, engine| {
        let value = runtime.block_on(asked(engine))?;
        write(&value, watch)
    })
    .await;
    app.metrics
        .asked(name, watch.0.elapsed(), result.as_ref().err().map(|failure| failure.kind.code()));
    result
}

/// Since when the client waits.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// The JSON of `body` with the time taken so far.
    pub(crate) fn json(&self, body: impl Serialize) -> Response {
        json(&Timed {
            body,
            took_ms: self.0.elapsed().as_micros() as f64 / 1e3,
        })
    }
}

#[derive(Serialize)]
struct Timed<T> {
    #[serde(flatten)]
    body: T,
    took_ms: f64,
}

async fn on_thread<W>(app: &Arc<App>, work: W) -> Result<Response, Failure>
where
    W: FnOnce(&Handle, Engine) -> Result<Response, Failure> + Send + 'static,
{
    let retention_ns = u64::try_from(app.config.retention_raw.as_nanos()).unwrap_or(u64::MAX);
    let snapshot = app.store()?.snapshot();
    let engine = Engine::new(snapshot.clone()).at(ingest::now()).with_retention_ns(retention_ns);
    let permit = app.questions.clone().acquire_owned().await;
    let (runtime, answering) = (Handle::current(), stage("answer"));
    let thread = tokio::task::spawn_blocking(move || {
        let _attached = answering.attach();
        let response = work(&runtime, engine);
        drop(permit);
        response.map(|response| with_damage(response, &snapshot))
    });
    thread.await.map_err(|error| Failure::internal("the question failed", &error))?
}

/// `value` as a JSON answer.
pub(crate) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        // Wire structs have string keys and no floats that JSON lacks, so this is a fault of ours.
        Err(error) => Failure::internal("the answer cannot be written", &error).into_response(),
    }
}

/// Names the files whose rows an answer lacks because the medium damaged them.
fn with_damage(mut response: Response, snapshot: &Snapshot) -> Response {
    let damaged: Vec<String> = snapshot.damaged_files().into_iter().map(|(file, _)| file).collect();
    if !damaged.is_empty() {
        let named = damaged[..damaged.len().min(DAMAGED_NAMED_MAX)].join(", ");
        // File names are tenants, days and numbers: always a valid value.
        if let Ok(value) = HeaderValue::from_str(&named) {
            response.headers_mut().insert(DAMAGED_HEADER, value);
        }
    }
    response
}
