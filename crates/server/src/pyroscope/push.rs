//! `push.v1.PusherService/Push`: batches of pprof, as Connect or gRPC.

use std::sync::Arc;

use axum::response::Response;
use spanflame_formats::Limits;
use spanflame_formats::pyroscope::push::{decode_json, decode_protobuf};

use crate::admission::write_tenant;
use crate::app::App;
use crate::connect::Received;
use crate::failure::Failure;
use crate::ingest::Upload;
use crate::metrics::Signal;
use crate::rejections;

pub(super) async fn push(app: Arc<App>, received: Received) -> Result<Response, Failure> {
    let taken = take(&app, received).await;
    taken.inspect_err(|failure| app.metrics.refused(Signal::Profiles, failure.kind.code()))
}

async fn take(app: &App, received: Received) -> Result<Response, Failure> {
    let Received {
        manner,
        headers,
        message,
        encoding,
        load,
    } = received;
    let (tenant, store) = (write_tenant(&headers)?, app.store()?);
    let upload = Upload {
        tenant: tenant.clone(),
        signal: Signal::Profiles,
        body: message,
        encoding,
        load,
    };
    let decode = move |bytes: &[u8], limits: &Limits| match manner.is_json() {
        true => Ok(decode_json(bytes, limits)?),
        false => Ok(decode_protobuf(bytes, limits)?),
    };
    let taken = app.ingest.take(store, upload, decode).await?;
    // `PushResponse` has no fields.
    let empty = if manner.is_json() { b"{}".to_vec() } else { Vec::new() };
    rejections::answer(app, &tenant, &headers, &taken, manner.success(empty))
}
