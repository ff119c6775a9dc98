//! Grafana Tempo's query API, as Tempo's data source of Grafana asks it; `docs/tempo.md` lists what is served.
//!
//! Answers are JSON or protobuf in Tempo's shapes, errors are plain text. Clients decode strictly: a JSON field that
//! Tempo does not have makes their query fail, so nothing is ever added to an answer.

mod answer;
mod metrics;
mod params;
mod search;
mod status;
mod streaming;
mod tags;
mod tags_query;
mod trace;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::{HeaderValue, header};

use crate::app::App;
use crate::failure::{Failure, FailureKind};
use crate::grpc;

/// Every endpoint over HTTP: method, path, what serves it.
fn table() -> Vec<(&'static str, &'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("GET", "/api/echo", get(status::echo)),
        ("GET", "/ready", get(status::ready)),
        ("GET", "/api/status/buildinfo", get(status::build_info)),
        ("GET", "/status", get(status::status)),
        ("GET", "/status/version", get(status::version)),
        ("GET", "/status/services", get(status::services)),
        ("GET", "/status/endpoints", get(status::endpoints)),
        ("GET", "/status/config", get(status::config)),
        ("GET", "/api/traces/{id}", get(trace::v1)),
        ("GET", "/api/v2/traces/{id}", get(trace::v2)),
        ("GET", "/api/search", get(search::search)),
        ("GET", "/api/search/tags", get(tags::tags_v1)),
        ("GET", "/api/v2/search/tags", get(tags::tags_v2)),
        ("GET", "/api/search/tag/{tag}/values", get(tags::tag_values_v1)),
        ("GET", "/api/v2/search/tag/{tag}/values", get(tags::tag_values_v2)),
        ("GET", "/api/metrics/query_range", get(metrics::query_range)),
        ("GET", "/api/metrics/query", get(metrics::query)),
    ]
}

/// The HTTP paths of this dialect.
pub(crate) fn routes() -> Router<Arc<App>> {
    let route = |router: Router<Arc<App>>, (_, path, methods): (_, _, MethodRouter<Arc<App>>)| {
        router.route(path, methods.fallback(method_not_allowed))
    };
    let router = table().into_iter().fold(Router::new(), route);
    router.fallback(not_found).layer(middleware::from_fn(write_failure))
}

/// The gRPC methods of this dialect.
pub(crate) fn grpc_routes() -> Router<Arc<App>> {
    streaming::routes()
}

/// Method and path of every endpoint.
pub(crate) fn endpoints() -> Vec<(&'static str, &'static str)> {
    let over_http = table().into_iter().map(|(method, path, _)| (method, path));
    let over_grpc = streaming::table().into_iter().map(|(path, _)| ("gRPC", path));
    over_http.chain(over_grpc).collect()
}

async fn method_not_allowed(request: Request) -> Failure {
    let message = format!("{} is no method of this path", request.method());
    Failure::new(FailureKind::MethodNotAllowed, message)
}

async fn not_found(request: Request) -> Response {
    if grpc::is_grpc(request.headers()) {
        return grpc::unknown_method(request.uri().path());
    }
    let path: String = request.uri().path().chars().take(200).collect();
    let message = format!("{path} is no path of Tempo's API that is served here");
    Failure::new(FailureKind::NotFound, message).into_response()
}

/// Writes a handler's failure as plain text, as Tempo does.
async fn write_failure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Some(failure) = Failure::take(&mut response) {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, text);
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(failure.message);
    }
    response
}
