//! Request bodies: read within limits, and turned into what the sender compressed.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Frame;
use spanflame_formats::compression::Encoding;
use tokio::time::timeout;

use crate::admission::Load;
use crate::failure::{Failure, FailureKind};

/// A buffer is reserved at once for at most this much of a declared length; more grows as it arrives, so that
/// a header alone cannot make the server allocate.
const RESERVE_BYTES_MAX: u64 = 1 << 20;

/// How long a client may pause within a body.
const STALL_MAX: Duration = Duration::from_secs(30);

/// Reads a whole body into one buffer, holding `load` for it. Fails before it reads where the declared length
/// is over the limit.
pub(crate) async fn read(headers: &HeaderMap, mut body: Body, bytes_max: u64, load: &mut Load) -> Result<Bytes, Failure> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<u64>().ok());
    if let Some(bytes) = declared.filter(|bytes| *bytes > bytes_max) {
        return Err(too_large(bytes, bytes_max));
    }
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    let mut total = 0u64;
    while let Some(frame) = next_frame(&mut body).await? {
        let frame = frame.map_err(|error| Failure::invalid("body", format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        total += data.len() as u64;
        if total > bytes_max {
            return Err(too_large(total, bytes_max));
        }
        load.grow_to(total)?;
        match first.take() {
            // A body of one frame, the usual one, is not copied.
            None if rest.is_empty() => first = Some(data),
            None => rest.extend_from_slice(&data),
            Some(earlier) => {
                rest.reserve(declared.unwrap_or(0).clamp(total, RESERVE_BYTES_MAX.max(total)) as usize);
                rest.extend_from_slice(&earlier);
                rest.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| rest.freeze()))
}

/// The next frame; fails if the client stalls, which would hold memory that others wait for.
async fn next_frame(body: &mut Body) -> Result<Option<Result<Frame<Bytes>, axum::Error>>, Failure> {
    let stalled = |_| Failure::invalid("body", format!("no byte of the body arrived for {} s", STALL_MAX.as_secs()));
    timeout(STALL_MAX, body.frame()).await.map_err(stalled)
}

fn too_large(bytes: u64, bytes_max: u64) -> Failure {
    Failure::too_large(format!(
        "the body has at least {bytes} bytes, expected at most {bytes_max} (request_bytes_max)"
    ))
}

/// How `Content-Encoding` says the body is compressed.
pub(crate) fn content_encoding(headers: &HeaderMap) -> Result<Encoding, Failure> {
    match headers.get(header::CONTENT_ENCODING) {
        None => Ok(Encoding::Identity),
        Some(value) => encoding(value.as_bytes()),
    }
}

/// The encoding of a name in use in HTTP and gRPC.
pub(crate) fn encoding(name: &[u8]) -> Result<Encoding, Failure> {
    Encoding::from_name(&String::from_utf8_lossy(name)).map_err(|error| Failure {
        field: Some("content-encoding".to_owned()),
        ..Failure::new(FailureKind::Unsupported, error.to_string())
    })
}
