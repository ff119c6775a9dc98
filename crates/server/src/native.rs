//! The native API: JSON over HTTP, as `docs/api.md` and `docs/openapi.json` describe it.
//!
//! Handlers read parameters, ask [`spanflame_query::Engine`] one question and write its answer through private
//! wire structs. Ids are hex, 64-bit times strings of nanoseconds, and what is not known is absent.

mod attributes;
mod catalog;
mod compare;
mod histogram;
mod params;
mod profile;
mod series;
mod spans;
mod timeline;
mod trace;
mod upload;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use http::{HeaderValue, header};
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, FailureKind};
use crate::question::{self, json};
use crate::{spanmetrics, text};

/// The OpenAPI document.
const OPENAPI: &str = include_str!("../../../docs/openapi.json");

/// Every path with what serves it.
fn table() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("/api/v1/traces/{trace_id}", get(trace::trace)),
        ("/api/v1/traces/{trace_id}/profile", get(profile::of_trace)),
        ("/api/v1/traces/{trace_id}/spans/{span_id}/profile", get(profile::of_span)),
        ("/api/v1/traces/{trace_id}/samples", get(timeline::of_trace)),
        ("/api/v1/traces/{trace_id}/spans/{span_id}/samples", get(timeline::of_span)),
        ("/api/v1/spans", get(spans::search)),
        ("/api/v1/spans/profile", get(profile::of_selection)),
        ("/api/v1/spans/histogram", get(histogram::histogram)),
        ("/api/v1/profile", get(profile::of_services)),
        ("/api/v1/spans/attributes/compare", get(attributes::compare)),
        ("/api/v1/attributes", get(attributes::names)),
        ("/api/v1/attributes/{scope}/{key}/values", get(attributes::values)),
        ("/api/v1/compare", get(compare::compare)),
        ("/api/v1/profile/series", get(series::series)),
        ("/api/v1/services", get(catalog::services)),
        ("/api/v1/profile-types", get(catalog::profile_types)),
        ("/api/v1/labels", get(catalog::labels)),
        ("/api/v1/labels/{name}/values", get(catalog::label_values)),
        ("/api/v1/ingest", post(upload::ingest)),
        ("/api/v1/view", post(view::view)),
        ("/api/v1/openapi.json", get(openapi)),
        ("/metrics/spans", get(spanmetrics::scrape)),
    ]
}

/// Every path of this dialect.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    table().into_iter().map(|(path, _)| path)
}

pub(crate) fn routes() -> Router<Arc<App>> {
    let mut router = Router::new();
    for (path, methods) in table() {
        router = router.route(path, methods.fallback(method_not_allowed));
    }
    router.layer(middleware::from_fn(write_failure))
}

async fn method_not_allowed(request: Request) -> Failure {
    let message = format!("{} is no method of this path", request.method());
    Failure::new(FailureKind::MethodNotAllowed, message)
}

async fn openapi() -> Response {
    let mut response = Response::new(Body::from(OPENAPI));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The answer to a path that nobody serves.
pub(crate) async fn not_found(request: Request) -> Response {
    let path: String = request.uri().path().chars().take(200).collect();
    let missing = async move |_| Failure::new(FailureKind::NotFound, format!("{path} is no path of this server")).into_response();
    finish(request, missing).await
}

/// Writes a handler's failure as an error object and gives every answer its request id.
async fn write_failure(request: Request, next: Next) -> Response {
    finish(request, async |request| next.run(request).await).await
}

async fn finish(request: Request, handler: impl AsyncFnOnce(Request) -> Response) -> Response {
    let id = request_id(&request);
    let mut response = handler(request).await;
    if let Some(failure) = Failure::take(&mut response) {
        let retry_after = response.headers_mut().remove(header::RETRY_AFTER);
        response = render(failure, &id);
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// The client's `X-Request-Id` where it sends a plain one, else one of our own.
fn request_id(request: &Request) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let given = request.headers().get("x-request-id").and_then(|value| value.to_str().ok());
    let plain = |id: &&str| (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    match given.filter(plain) {
        Some(id) => id.to_owned(),
        None => {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            format!("{:08x}-{number:x}", std::process::id())
        }
    }
}

fn render(failure: Failure, request_id: &str) -> Response {
    let position = failure.position.as_ref();
    let body = ErrorBody {
        error: ErrorObject {
            code: failure.kind.code(),
            message: &failure.message,
            field: failure.field.as_deref(),
            request_id,
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            expected: position.map(|position| position.expected.as_slice()),
        },
    };
    let mut response = json(&body);
    *response.status_mut() = failure.kind.http();
    response
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a [String]>,
}
