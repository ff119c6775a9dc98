//! The server watches itself: its traces and profiles, in the tenant `spanflame` of its own store.
//!
//! The SDK hands batches to a function that appends them; nothing goes through the network, so nothing of it is
//! a request that would be traced again. Appends of that function run on the SDK's thread without a context,
//! which ends the circle there. Profiles are always complete; traces are limited to [`TRACES_PER_SECOND`],
//! because a server that takes in thousands of requests a second must not keep a trace of each.
//!
//! Spans are made by OpenTelemetry's own interface and not by `tracing`'s: they need no subscriber of the process
//! that embeds the server, and a disabled server pays nothing for them.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue, global};
use opentelemetry_sdk::trace::SdkTracer;
use parking_lot::Mutex;
use spanflame_model::{Batch, Tenant};
use spanflame_sdk::Sdk;
use spanflame_store::Store;
use tokio::runtime::Handle;

use crate::app::App;
use crate::metrics::Metrics;

/// Name of the service, and of the instrumentation.
const SERVICE: &str = "spanflame";

/// Requests of which a trace is kept, at most, in a second and as a burst.
const TRACES_PER_SECOND: f64 = 20.0;

/// What watches one server; nothing until it is started.
#[derive(Default)]
pub(crate) struct Telemetry(OnceLock<Own>);

struct Own {
    sdk: Mutex<Option<Sdk>>,
    tracer: SdkTracer,
    budget: Mutex<Budget>,
}

/// Traces that may still begin.
struct Budget {
    traces: f64,
    filled: Instant,
}

impl Telemetry {
    /// Begins to watch and to keep what is seen in `store`. A process can do that once; a second server in it
    /// goes without.
    pub(crate) fn start(&self, store: Store, metrics: Arc<Metrics>) {
        let (runtime, tenant) = (Handle::current(), Tenant::own());
        let keep = move |batch: Batch| {
            let counts = (batch.spans.len() as u64, batch.profiles.len() as u64);
            if let Err(error) = runtime.block_on(store.append(&tenant, batch)) {
                metrics.own_dropped(counts);
                tracing::debug!(%error, "own telemetry was dropped");
            }
        };
        let started = Sdk::builder(SERVICE).exporter(Box::new(keep)).with_traces().start();
        match started {
            Ok(sdk) => {
                let own = Own {
                    tracer: sdk.tracer_provider().tracer(SERVICE),
                    sdk: Mutex::new(Some(sdk)),
                    budget: Mutex::new(Budget {
                        traces: TRACES_PER_SECOND,
                        filled: Instant::now(),
                    }),
                };
                let _ = self.0.set(own);
            }
            Err(error) => tracing::warn!(%error, "the server does not watch itself"),
        }
    }

    /// Keeps what is left and ends. Must come before the store is closed.
    pub(crate) async fn stop(&self) {
        let Some(sdk) = self.0.get().and_then(|own| own.sdk.lock().take()) else {
            return;
        };
        // It waits for its threads, and those for the runtime.
        let _ = tokio::task::spawn_blocking(move || sdk.shutdown()).await;
    }

    /// A new trace for a request, if it is watched.
    fn trace(&self, method: &str, route: &str) -> Option<Context> {
        let own = self.0.get()?;
        if !own.budget.lock().take(Instant::now()) {
            return None;
        }
        let span = own
            .tracer
            .span_builder(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("http.request.method", method.to_owned()),
                KeyValue::new("http.route", route.to_owned()),
            ])
            .start_with_context(&own.tracer, &Context::new());
        Some(Context::new().with_span(span))
    }
}

impl Budget {
    fn take(&mut self, now: Instant) -> bool {
        let earned = now.duration_since(self.filled).as_secs_f64() * TRACES_PER_SECOND;
        self.traces = (self.traces + earned).min(TRACES_PER_SECOND);
        self.filled = now;
        let granted = self.traces >= 1.0;
        if granted {
            self.traces -= 1.0;
        }
        granted
    }
}

/// The context of a stage of the request that runs now: a child span if the request is watched. Ends when the
/// last copy is dropped.
pub(crate) fn stage(name: &'static str) -> Context {
    stage_of(&Context::current(), name)
}

/// The context of a stage of `request`.
pub(crate) fn stage_of(request: &Context, name: &'static str) -> Context {
    if !request.span().span_context().is_valid() {
        return request.clone();
    }
    let span = global::tracer(SERVICE).start_with_context(Cow::Borrowed(name), request);
    request.with_span(span)
}

/// Ends the stage that runs now, if there is one.
pub(crate) fn end_stage() {
    Context::current().span().end();
}

/// Runs a request inside a trace of its own. The client's trace context is not continued: that trace belongs to
/// its tenant.
pub(crate) async fn watch(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let Some(context) = route.and_then(|route| app.telemetry.trace(request.method().as_str(), route)) else {
        return next.run(request).await;
    };
    let response = next.run(request).with_context(context.clone()).await;
    let span = context.span();
    span.set_attribute(KeyValue::new("http.response.status_code", i64::from(response.status().as_u16())));
    if response.status().is_server_error() {
        span.set_status(Status::error(response.status().to_string()));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_budget_is_a_burst_and_then_a_rate() {
        let start = Instant::now();
        let mut budget = Budget {
            traces: TRACES_PER_SECOND,
            filled: start,
        };
        let burst = (0..100).filter(|_| budget.take(start)).count();
        let later = (0..100).filter(|_| budget.take(start + Duration::from_millis(500))).count();
        assert_eq!((burst, later), (20, 10));
    }

    #[test]
    fn without_a_watched_request_a_stage_is_nothing() {
        assert!(!stage("decode").span().span_context().is_valid());
    }
}
