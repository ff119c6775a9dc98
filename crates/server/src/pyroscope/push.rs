//! `push.v1.PusherService/Push`: batches of pprof, over Connect and gRPC.

mod protocol;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Request};
use spanflame_formats::Limits;
use spanflame_formats::pyroscope::push::{decode_json, decode_protobuf};

use self::protocol::Protocol;
use super::answer_partly;
use crate::admission::write_tenant;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::Upload;
use crate::metrics::Signal;

pub(super) async fn push(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let protocol = Protocol::of(&parts.headers);
    let result = match &protocol {
        Ok(protocol) => take(&app, *protocol, &parts.headers, body).await,
        Err(failure) => Err(failure.clone()),
    };
    result.unwrap_or_else(|failure| {
        app.metrics.refused(Signal::Profiles, failure.kind.code());
        protocol.unwrap_or(Protocol::Json).refusal(&failure)
    })
}

async fn take(app: &App, protocol: Protocol, headers: &HeaderMap, body: Body) -> Result<Response, Failure> {
    let (tenant, store) = (write_tenant(headers)?, app.store()?);
    let received = protocol.read(app, headers, body).await?;
    let upload = Upload {
        tenant: tenant.clone(),
        signal: Signal::Profiles,
        body: received.message,
        encoding: received.encoding,
        load: received.load,
    };
    let decode = move |bytes: &[u8], limits: &Limits| match protocol {
        Protocol::Json => Ok(decode_json(bytes, limits)?),
        Protocol::Protobuf | Protocol::Grpc => Ok(decode_protobuf(bytes, limits)?),
    };
    let taken = app.ingest.take(store, upload, decode).await?;
    // `PushResponse` has no fields.
    let empty = match protocol {
        Protocol::Json => b"{}".to_vec(),
        Protocol::Protobuf | Protocol::Grpc => Vec::new(),
    };
    answer_partly(app, &tenant, headers, &taken, protocol.success(empty))
}
