//! Which paths are served where.
//!
//! Port 4040 serves everything, 4317 and 4318 what OTLP clients expect there. Dialects whose paths collide lie under a
//! prefix there and, where their own address is on, at its root as well. A path that nobody serves is
//! answered in the manner of who asked: a gRPC status, or a JSON error.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use crate::app::App;
use crate::{connect, grpc, jaeger, metrics, native, otlp, page, pyroscope, telemetry, tempo, zipkin};

/// Everything: the API, OTLP and the other dialects over HTTP and gRPC, probes and metrics.
pub(crate) fn http(app: &Arc<App>) -> Router {
    let router = native::routes()
        .merge(otlp::http_routes())
        .nest("/tempo", tempo::routes())
        .nest("/jaeger", jaeger::routes())
        .merge(pyroscope::routes())
        .merge(zipkin::routes())
        .merge(page::routes())
        .layer(cors(&app.config.cors_origins))
        .merge(otlp::grpc_routes())
        .merge(tempo::grpc_routes());
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

/// Tempo's API as on its own port.
pub(crate) fn tempo_http(app: &Arc<App>) -> Router {
    let router = tempo::routes().layer(cors(&app.config.cors_origins));
    watched(router.merge(tempo::grpc_routes()), app)
}

/// Jaeger's query API as on its own port.
pub(crate) fn jaeger_http(app: &Arc<App>) -> Router {
    watched(jaeger::routes().layer(cors(&app.config.cors_origins)), app)
}

/// Zipkin's collector.
pub(crate) fn zipkin_http(app: &Arc<App>) -> Router {
    finish(zipkin::routes().layer(cors(&app.config.cors_origins)), app)
}

/// Jaeger's collector over gRPC.
pub(crate) fn jaeger_grpc(app: &Arc<App>) -> Router {
    finish(jaeger::collector::grpc_routes(), app)
}

/// Jaeger's collector for Thrift over HTTP.
pub(crate) fn jaeger_thrift_http(app: &Arc<App>) -> Router {
    finish(jaeger::collector::thrift_routes(), app)
}

/// A datagram for Jaeger's agent.
pub(crate) async fn jaeger_thrift_udp(app: &Arc<App>, datagram: Bytes) {
    jaeger::collector::datagram(app, datagram).await;
}

/// A dialect and what is served of it.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// Its page is `docs/NAME.md`.
    pub name: &'static str,
    /// Before every path on port 4040; empty where its paths are at the root.
    pub prefix: &'static str,
    /// Method (`gRPC` for gRPC) and path, in no order.
    pub endpoints: Vec<(&'static str, &'static str)>,
}

/// The dialects of other products, for whoever describes them.
pub fn dialects() -> Vec<Dialect> {
    vec![
        Dialect {
            name: "tempo",
            prefix: "/tempo",
            endpoints: tempo::endpoints(),
        },
        Dialect {
            name: "jaeger",
            prefix: "/jaeger",
            endpoints: jaeger::endpoints(),
        },
        Dialect {
            name: "pyroscope",
            prefix: "",
            endpoints: pyroscope::endpoints(),
        },
        Dialect {
            name: "zipkin",
            prefix: "",
            endpoints: zipkin::endpoints(),
        },
    ]
}

/// Routes that do not say themselves what is answered where there is nothing.
fn finish(router: Router<Arc<App>>, app: &Arc<App>) -> Router {
    watched(router.fallback(nothing_here), app)
}

/// Probes are answered everywhere, and leave no trace.
fn watched(router: Router<Arc<App>>, app: &Arc<App>) -> Router {
    let watch = middleware::from_fn_with_state(app.clone(), telemetry::watch);
    router.layer(watch).merge(probes()).with_state(app.clone())
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
    if grpc::is_grpc(request.headers()) {
        return grpc::unknown_method(request.uri().path());
    }
    if connect::is_method(request.uri().path()) {
        return connect::unknown_method(request.uri().path());
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
