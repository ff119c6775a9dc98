//! OTLP: traces and profiles in, over gRPC and HTTP, protobuf and JSON.
//!
//! Both transports read raw bytes and hand them to the decoders of `formats`, which must see them: the layouts
//! of profiles share one package name and are told apart by their bytes. Metrics and logs, which SDKs and
//! Collectors send to the same ports, are refused in a partial success that says how to switch them off.
//!
//! Follows the OTLP specification 1.11: `partial_success` is unset on full success, size limits are not
//! retryable, overload is, with a time to wait.

mod answer;
mod grpc;
mod http;
mod unsupported;

use std::sync::Arc;

use axum::Router;
use spanflame_formats::otlp::{profiles, traces};
use spanflame_formats::{Decoded, Limits};

use crate::app::App;
use crate::failure::Failure;
use crate::ingest::Upload;
use crate::metrics::Signal;

use answer::Answer;

/// How an OTLP message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Protobuf,
    Json,
}

/// The HTTP paths of OTLP.
pub(crate) fn http_routes() -> Router<Arc<App>> {
    http::routes()
}

/// Every path of [`http_routes`].
pub(crate) fn http_paths() -> impl Iterator<Item = &'static str> {
    http::PATHS.into_iter().map(|(path, _)| path)
}

/// The gRPC methods of OTLP.
pub(crate) fn grpc_routes() -> Router<Arc<App>> {
    grpc::routes()
}

/// One export request, whatever brought it: decoded, stored, answered.
async fn export(app: &App, upload: Upload, wire: Wire) -> Result<Answer, Failure> {
    let signal = upload.signal;
    let decode: fn(&[u8], &Limits) -> Result<Decoded, Failure> = match (signal, wire) {
        (Signal::Traces, Wire::Protobuf) => |bytes, limits| Ok(traces::decode_protobuf(bytes, limits)?),
        (Signal::Traces, Wire::Json) => |bytes, limits| Ok(traces::decode_json(bytes, limits)?),
        (Signal::Profiles, Wire::Protobuf) => |bytes, limits| Ok(profiles::decode_protobuf(bytes, limits)?),
        (Signal::Profiles, Wire::Json) => |bytes, limits| Ok(profiles::decode_json(bytes, limits)?),
        (Signal::Metrics | Signal::Logs, _) => return unsupported::refuse(app, upload, wire).await,
    };
    let taken = app.ingest.take(app.store()?, upload, decode).await?;
    Ok(Answer::taken(signal, &taken))
}
