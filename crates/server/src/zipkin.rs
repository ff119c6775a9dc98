//! Zipkin's collector, version 2 in JSON; `docs/zipkin.md` lists what is served.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use http::{HeaderValue, Request, StatusCode, header};
use spanflame_formats::zipkin;

use crate::admission::write_tenant;
use crate::app::App;
use crate::body;
use crate::failure::{Failure, FailureKind};
use crate::ingest::Upload;
use crate::metrics::Signal;
use crate::rejections;

/// Every endpoint: method, path, what serves it.
fn table() -> [(&'static str, &'static str, MethodRouter<Arc<App>>); 1] {
    [("POST", "/api/v2/spans", post(spans))]
}

/// The paths of this dialect.
pub(crate) fn routes() -> Router<Arc<App>> {
    let route = |router: Router<Arc<App>>, (_, path, methods)| router.route(path, methods);
    table().into_iter().fold(Router::new(), route)
}

/// Method and path of every endpoint.
pub(crate) fn endpoints() -> Vec<(&'static str, &'static str)> {
    table().into_iter().map(|(method, path, _)| (method, path)).collect()
}

async fn spans(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    take(&app, request).await.unwrap_or_else(|failure| {
        app.metrics.refused(Signal::Traces, failure.kind.code());
        refusal(&failure)
    })
}

async fn take(app: &App, request: Request<Body>) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let content_type = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if content_type.starts_with(b"application/x-protobuf") {
        let message = "content type is application/x-protobuf, expected application/json";
        return Err(Failure::new(FailureKind::Unsupported, message));
    }
    let (tenant, store) = (write_tenant(headers)?, app.store()?);
    let encoding = body::content_encoding(headers)?;
    let mut load = app.ingest.load();
    let body = body::read(headers, body, app.ingest.request_bytes_max(), &mut load).await?;
    let upload = Upload {
        tenant: tenant.clone(),
        signal: Signal::Traces,
        body,
        encoding,
        load,
    };
    let taken = app
        .ingest
        .take(store, upload, |bytes, limits| Ok(zipkin::decode(bytes, limits)?))
        .await?;
    rejections::answer(app, &tenant, headers, &taken, StatusCode::ACCEPTED.into_response())
}

/// A failure as plain text.
fn refusal(failure: &Failure) -> Response {
    let mut response = (failure.kind.http(), failure.message.clone() + "\n").into_response();
    if let Some(seconds) = failure.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
