//! Which paths are served where.
//!
//! Port 4040 serves everything, 4317 and 4318 what OTLP clients expect there. A path that nobody serves is
//! answered in the manner of who asked: a gRPC status, or a JSON error.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use crate::app::App;
use crate::{metrics, native, otlp, telemetry};

/// Everything: the API, OTLP over HTTP and gRPC, probes and metrics.
pub(crate) fn http(app: &Arc<App>) -> Router {
    let router = native::routes()
        .merge(otlp::http_routes())
        .layer(cors(&app.config.cors_origins))
        .merge(otlp::grpc_routes());
    finish(router, app)
}

/// OTLP over gRPC.
pub(crate) fn otlp_grpc(app: &Arc<App>) -> Router {
    finish(otlp::grpc_routes(), app)
}

/// OTLP over HTTP.
pub(crate) fn otlp_http(app: &Arc<App>) -> Router {
    let router = otlp::http_routes().layer(cors(&app.config.cors_origins));
    finish(router, app)
}

/// Probes are answered everywhere, and leave no trace.
fn finish(router: Router<Arc<App>>, app: &Arc<App>) -> Router {
    let watch = middleware::from_fn_with_state(app.clone(), telemetry::watch);
    router.layer(watch).merge(probes()).fallback(nothing_here).with_state(app.clone())
}

/// Every path that port 4040 serves over HTTP, in no order, for whoever describes them.
pub fn paths() -> Vec<&'static str> {
    let probes = probe_table().into_iter().map(|(path, _)| path);
    native::paths().chain(otlp::http_paths()).chain(probes).collect()
}

fn probe_table() -> [(&'static str, MethodRouter<Arc<App>>); 3] {
    [
        ("/healthz", get(async || "ok\n")),
        ("/readyz", get(ready)),
        ("/metrics", get(scrape)),
    ]
}

fn probes() -> Router<Arc<App>> {
    let route = |router: Router<Arc<App>>, (path, methods)| router.route(path, methods);
    probe_table().into_iter().fold(Router::new(), route)
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    match app.ready() {
        Ok(()) => "ok\n".into_response(),
        Err(failure) => (failure.kind.http(), failure.message + "\n").into_response(),
    }
}

async fn scrape(State(app): State<Arc<App>>) -> Response {
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], app.metrics.encode()).into_response()
}

async fn nothing_here(request: Request) -> Response {
    if otlp::is_grpc(request.headers()) {
        return otlp::unknown_method(request.uri().path());
    }
    native::not_found(request).await
}

/// Nothing is allowed to other origins unless they are listed.
fn cors(origins: &[String]) -> CorsLayer {
    let layer = CorsLayer::new().allow_methods(Any).allow_headers(Any).expose_headers(Any);
    if origins.iter().any(|origin| origin == "*") {
        return layer.allow_origin(Any);
    }
    let listed = origins.iter().filter_map(|origin| origin.parse().ok());
    layer.allow_origin(AllowOrigin::list(listed))
}
