//! What the three services have in common: telemetry, the listener, and a server span around each request.

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use spanflame_sdk::Sdk;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tracing::level_filters::LevelFilter;
use tracing::{Instrument, info_span};
use tracing_subscriber::prelude::*;

use crate::flags::Flags;
use crate::trace_context;

/// Worker threads of each service: fewer than requests in flight, so several requests share each.
const WORKER_THREADS: usize = 2;

/// Observations per CPU second: enough for a slow span to hold dozens.
const SAMPLE_RATE_HZ: u32 = 100;

/// Response header with the trace of the request, so that the load can say which trace was which.
pub const TRACE_ID_HEADER: &str = "x-trace-id";

/// Runs a service until it is asked to end.
///
/// Flags: `--otlp URL` where traces and profiles go, `--ready-file PATH` which is written with the bound address.
pub fn run(name: &'static str, routes: impl FnOnce(&Flags) -> Result<Router, String>) -> Result<(), Box<dyn Error>> {
    let flags = Flags::from_env();
    let routes = routes(&flags)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .thread_name(name)
        .enable_all()
        .build()?;
    runtime.block_on(serve(name, routes, &flags))
}

async fn serve(name: &'static str, routes: Router, flags: &Flags) -> Result<(), Box<dyn Error>> {
    let spanflame = Sdk::builder(name)
        .endpoint(flags.require("--otlp")?)
        .rate_hz(SAMPLE_RATE_HZ)
        .with_traces()
        .start()?;
    tracing_subscriber::registry()
        .with(LevelFilter::INFO)
        .with(spanflame.layer())
        .init();
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    announce(flags.require("--ready-file")?, listener.local_addr()?)?;
    axum::serve(listener, routes.layer(middleware::from_fn(in_server_span)))
        .with_graceful_shutdown(asked_to_end())
        .await?;
    Ok(())
}

/// Writes the address beside the file and renames it, so that a reader never sees half of it.
fn announce(path: &str, address: SocketAddr) -> std::io::Result<()> {
    let partial = format!("{path}.partial");
    std::fs::write(&partial, format!("http://{address}"))?;
    std::fs::rename(partial, path)
}

async fn in_server_span(request: Request, next: Next) -> Response {
    let route = format!("{} {}", request.method(), request.uri().path());
    let span = info_span!("request", otel.name = route, otel.kind = "server", http.request.method = %request.method(), url.path = request.uri().path());
    trace_context::adopt_parent(&span, request.headers());
    let trace_id = trace_context::trace_id_of(&span);
    let mut response = next.run(request).instrument(span).await;
    if let Ok(value) = trace_id.parse() {
        response.headers_mut().insert(TRACE_ID_HEADER, value);
    }
    response
}

async fn asked_to_end() {
    let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    match terminate {
        Ok(mut terminate) => tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
        Err(_) => std::future::pending().await,
    }
}
