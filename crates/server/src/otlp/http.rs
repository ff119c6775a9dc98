//! OTLP over HTTP: one path per signal, answered in the request's content type.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::post;
use http::{HeaderMap, HeaderValue, Request, header};

use super::answer::encode_status;
use super::{Wire, export};
use crate::admission::write_tenant;
use crate::app::App;
use crate::body;
use crate::failure::{Failure, FailureKind};
use crate::ingest::Upload;
use crate::metrics::Signal;

/// Every path with its signal. `/v1/profiles` is what the Collector's documentation says, the other what its
/// code and the specification do.
pub(super) const PATHS: [(&str, Signal); 5] = [
    ("/v1/traces", Signal::Traces),
    ("/v1development/profiles", Signal::Profiles),
    ("/v1/profiles", Signal::Profiles),
    ("/v1/metrics", Signal::Metrics),
    ("/v1/logs", Signal::Logs),
];

pub(super) fn routes() -> Router<Arc<App>> {
    let mut router = Router::new();
    for (path, signal) in PATHS {
        let handler = move |State(app): State<Arc<App>>, request: Request<Body>| async move {
            let result = receive(&app, signal, request).await;
            result.inspect_err(|failure| app.metrics.refused(signal, failure.kind.code()))
        };
        router = router.route(path, post(handler).fallback(method_not_allowed));
    }
    router.layer(middleware::from_fn(write_failure))
}

async fn receive(app: &App, signal: Signal, request: Request<Body>) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let wire = wire(&parts.headers)?;
    let tenant = write_tenant(&parts.headers)?;
    let encoding = body::content_encoding(&parts.headers)?;
    let mut load = app.ingest.load();
    let body = body::read(&parts.headers, body, app.ingest.request_bytes_max(), &mut load).await?;
    let upload = Upload {
        tenant,
        signal,
        body,
        encoding,
        load,
    };
    let answer = export(app, upload, wire).await?;
    Ok(response(answer.encode(wire), wire))
}

async fn method_not_allowed() -> Failure {
    Failure::new(FailureKind::MethodNotAllowed, "expected POST")
}

/// The wire format of a content type, whatever its parameters.
fn wire(headers: &HeaderMap) -> Result<Wire, Failure> {
    let value = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let media_type = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    match media_type.to_ascii_lowercase().as_slice() {
        b"application/x-protobuf" | b"application/protobuf" => Ok(Wire::Protobuf),
        b"application/json" => Ok(Wire::Json),
        other => {
            let name: String = String::from_utf8_lossy(other).chars().take(80).collect();
            let message = format!("content type is {name:?}, expected application/x-protobuf or application/json");
            Err(Failure {
                field: Some("content-type".to_owned()),
                ..Failure::new(FailureKind::Unsupported, message)
            })
        }
    }
}

fn response(body: Vec<u8>, wire: Wire) -> Response {
    let mut response = Response::new(Body::from(body));
    set_content_type(&mut response, wire);
    response
}

fn set_content_type(response: &mut Response, wire: Wire) {
    let content_type = match wire {
        Wire::Protobuf => "application/x-protobuf",
        Wire::Json => "application/json",
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
}

/// Writes a handler's failure as a `Status` in the request's content type; JSON where that is neither.
async fn write_failure(request: Request<Body>, next: Next) -> Response {
    let wire = wire(request.headers()).unwrap_or(Wire::Json);
    let mut response = next.run(request).await;
    if let Some(failure) = Failure::take(&mut response) {
        *response.body_mut() = Body::from(encode_status(&failure, wire));
        response.headers_mut().remove(header::CONTENT_LENGTH);
        set_content_type(&mut response, wire);
    }
    response
}
