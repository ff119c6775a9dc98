//! OTLP over gRPC: four unary methods on raw messages.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::post;
use http::Request;

use super::answer::encode_status;
use super::{Wire, export};
use crate::admission::write_tenant;
use crate::app::App;
use crate::failure::Failure;
use crate::grpc;
use crate::ingest::Upload;
use crate::metrics::Signal;

/// Every method with its signal.
const METHODS: [(&str, Signal); 4] = [
    ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", Signal::Traces),
    (
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        Signal::Profiles,
    ),
    ("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", Signal::Metrics),
    ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", Signal::Logs),
];

pub(super) fn routes() -> Router<Arc<App>> {
    let mut router = Router::new();
    for (path, signal) in METHODS {
        let handler = move |State(app): State<Arc<App>>, request: Request<Body>| async move {
            match receive(&app, signal, request).await {
                Ok(message) => grpc::success([message]),
                Err(failure) => {
                    app.metrics.refused(signal, failure.kind.code());
                    grpc::refusal(&failure, encode_status(&failure, Wire::Protobuf))
                }
            }
        };
        router = router.route(path, post(handler));
    }
    router
}

async fn receive(app: &App, signal: Signal, request: Request<Body>) -> Result<Vec<u8>, Failure> {
    let (parts, body) = request.into_parts();
    let tenant = write_tenant(&parts.headers)?;
    let received = grpc::read(app, &parts.headers, body).await?;
    let upload = Upload {
        tenant,
        signal,
        body: received.message,
        encoding: received.encoding,
        load: received.load,
    };
    let answer = export(app, upload, Wire::Protobuf).await?;
    Ok(answer.encode(Wire::Protobuf))
}
