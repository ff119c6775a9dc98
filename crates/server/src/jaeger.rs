//! Jaeger's query API, legacy and v3, as Jaeger's UI and Grafana's data source ask it; `docs/jaeger.md` lists what is
//! served.
//!
//! Jaeger's UI asks v3 for searches and the legacy API for a trace, Grafana the legacy API for everything, so both are
//! whole. A search is one thing in both: conditions hold on one span, and the newest traces are answered.

pub(crate) mod collector;
mod json;
mod legacy;
mod params;
mod search;
mod v3;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use http::{HeaderValue, header};
use serde_json::json;

use crate::app::App;
use crate::failure::{Failure, FailureKind};

/// Every endpoint over HTTP: method, path, what serves it.
fn table() -> Vec<(&'static str, &'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("GET", "/api/services", get(legacy::services)),
        ("GET", "/api/services/{service}/operations", get(legacy::operations_of)),
        ("GET", "/api/operations", get(legacy::operations)),
        ("GET", "/api/traces", get(legacy::search)),
        ("GET", "/api/traces/{id}", get(legacy::trace)),
        ("GET", "/api/dependencies", get(legacy::dependencies)),
        ("POST", "/api/transform", post(legacy::transform)),
        ("POST", "/api/archive/{id}", post(archive)),
        ("GET", "/api/metrics/{name}", get(metrics)),
        ("GET", "/api/quality-metrics", get(analytics)),
        ("GET", "/api/deep-dependencies", get(analytics)),
        ("GET", "/api/v3/services", get(v3::services)),
        ("GET", "/api/v3/operations", get(v3::operations)),
        ("GET", "/api/v3/traces", get(v3::search)),
        ("GET", "/api/v3/traces/{id}", get(v3::trace)),
        ("GET", "/api/v3/trace-summaries", get(v3::summaries)),
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

/// Method and path of every endpoint.
pub(crate) fn endpoints() -> Vec<(&'static str, &'static str)> {
    table().into_iter().map(|(method, path, _)| (method, path)).collect()
}

async fn archive() -> Failure {
    let message = "there is no archive: traces are kept for retention_raw, and longer by a larger value of it";
    Failure::new(FailureKind::NotServed, message)
}

async fn metrics() -> Failure {
    let message = "service performance monitoring is not served here: ask /api/v1/services, or scrape /metrics/spans";
    Failure::new(FailureKind::NotServed, message)
}

async fn analytics() -> Failure {
    Failure::new(FailureKind::NotServed, "no job computes this: ask /api/dependencies")
}

async fn method_not_allowed(request: Request) -> Failure {
    let message = format!("{} is no method of this path", request.method());
    Failure::new(FailureKind::MethodNotAllowed, message)
}

async fn not_found(request: Request) -> Failure {
    let path: String = request.uri().path().chars().take(200).collect();
    Failure::new(
        FailureKind::NotFound,
        format!("{path} is no path of Jaeger's API that is served here"),
    )
}

/// Writes a handler's failure in the shape of the API that was asked.
async fn write_failure(request: Request, next: Next) -> Response {
    let is_v3 = request.uri().path().contains("/api/v3/");
    let mut response = next.run(request).await;
    if let Some(failure) = Failure::take(&mut response) {
        let code = failure.kind.http().as_u16();
        let body = match is_v3 {
            true => json!({ "error": { "httpCode": code, "message": failure.message } }),
            false => json!({
                "data": null, "total": 0, "limit": 0, "offset": 0,
                "errors": [{ "code": code, "msg": failure.message }],
            }),
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(body.to_string());
    }
    response
}
