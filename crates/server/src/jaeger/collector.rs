//! Jaeger's collectors, each on an address of its own: gRPC, Thrift over HTTP, and the agent's Thrift over UDP.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use spanflame_formats::compression::Encoding;
use spanflame_formats::{Decoded, Limits, jaeger};
use spanflame_model::Tenant;

use crate::admission::write_tenant;
use crate::app::App;
use crate::failure::{Failure, FailureKind};
use crate::ingest::Upload;
use crate::metrics::Signal;
use crate::{body, grpc, rejections};

/// The method of the collector.
const POST_SPANS: &str = "/jaeger.api_v2.CollectorService/PostSpans";

/// Content types of Thrift in use; none is fine too.
const THRIFT: [&[u8]; 3] = [b"", b"application/x-thrift", b"application/vnd.apache.thrift.binary"];

/// The collector over gRPC.
pub(crate) fn grpc_routes() -> Router<Arc<App>> {
    Router::new().route(POST_SPANS, post(post_spans))
}

/// The collector for Thrift over HTTP.
pub(crate) fn thrift_routes() -> Router<Arc<App>> {
    Router::new().route("/api/traces", post(traces))
}

async fn post_spans(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let take = async {
        let tenant = write_tenant(&parts.headers)?;
        let grpc::Received { message, encoding, load } = grpc::read(&app, &parts.headers, body).await?;
        let upload = Upload {
            tenant,
            signal: Signal::Traces,
            body: message,
            encoding,
            load,
        };
        // `PostSpansResponse` has no fields.
        store(&app, &parts.headers, upload, jaeger::decode_protobuf, grpc::success([Vec::new()])).await
    };
    take.await.unwrap_or_else(|failure| {
        app.metrics.refused(Signal::Traces, failure.kind.code());
        grpc::refusal(&failure, Vec::new())
    })
}

async fn traces(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    take_thrift(&app, &parts.headers, body).await.unwrap_or_else(|failure| {
        app.metrics.refused(Signal::Traces, failure.kind.code());
        let mut response = (failure.kind.http(), failure.message.clone() + "\n").into_response();
        if let Some(seconds) = failure.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    })
}

async fn take_thrift(app: &App, headers: &HeaderMap, body: Body) -> Result<Response, Failure> {
    let value = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let media_type = value
        .split(|b| *b == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii()
        .to_ascii_lowercase();
    if !THRIFT.contains(&media_type.as_slice()) {
        let name: String = String::from_utf8_lossy(&media_type).chars().take(80).collect();
        let message = format!("content type is {name:?}, expected application/x-thrift");
        return Err(Failure::new(FailureKind::Unsupported, message));
    }
    let tenant = write_tenant(headers)?;
    let encoding = body::content_encoding(headers)?;
    let mut load = app.ingest.load();
    let body = body::read(headers, body, app.ingest.request_bytes_max(), &mut load).await?;
    let upload = Upload {
        tenant,
        signal: Signal::Traces,
        body,
        encoding,
        load,
    };
    store(app, headers, upload, jaeger::decode_thrift, StatusCode::ACCEPTED.into_response()).await
}

/// Takes a datagram. Nobody can be answered, so what is refused is only counted and logged.
pub(crate) async fn datagram(app: &App, datagram: Bytes) {
    let take = async {
        let mut load = app.ingest.load();
        load.grow_to(datagram.len() as u64)?;
        let upload = Upload {
            tenant: Tenant::anonymous(),
            signal: Signal::Traces,
            body: datagram,
            encoding: Encoding::Identity,
            load,
        };
        store(
            app,
            &HeaderMap::new(),
            upload,
            jaeger::decode_thrift_datagram,
            StatusCode::OK.into_response(),
        )
        .await
    };
    if let Err(failure) = take.await {
        app.metrics.refused(Signal::Traces, failure.kind.code());
        tracing::debug!(message = failure.message, "a datagram of the Jaeger agent's port is refused");
    }
}

type Decode = fn(&[u8], &Limits) -> Result<Decoded, spanflame_formats::Error>;

async fn store(app: &App, headers: &HeaderMap, upload: Upload, decode: Decode, answer: Response) -> Result<Response, Failure> {
    let tenant = upload.tenant.clone();
    let taken = app
        .ingest
        .take(app.store()?, upload, move |bytes, limits| Ok(decode(bytes, limits)?))
        .await?;
    rejections::answer(app, &tenant, headers, &taken, answer)
}
