//! gRPC's framing, for the dialects that speak it.
//!
//! The framing is read here and not by tonic's generated services for three reasons: some decoders need the bytes;
//! decompression of 64 MiB belongs on a worker, not on the reactor; and a message over the limit must be
//! `RESOURCE_EXHAUSTED`, which tonic calls `OUT_OF_RANGE`. Statuses and trailers are tonic's.
//!
//! A request is one frame: a flag byte (compressed or not), a length of 32 bits, the message. An answer is one frame
//! or several, then the status in the trailers.

use axum::body::Body;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt, Full};
use spanflame_formats::compression::Encoding;

use crate::admission::Load;
use crate::app::App;
use crate::body;
use crate::failure::{Failure, FailureKind};

/// Bytes before the message in a frame.
const FRAME_HEADER_BYTES: usize = 5;

/// What clients may compress with.
const ENCODINGS: HeaderValue = HeaderValue::from_static("identity,gzip,zstd");

/// A message as it arrived.
pub(crate) struct Received {
    pub(crate) message: Bytes,
    pub(crate) encoding: Encoding,
    /// Holds the bytes of the message.
    pub(crate) load: Load,
}

/// Whether a request is gRPC, by its content type.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    value.starts_with(b"application/grpc")
}

/// The answer to a gRPC method that is not served.
pub(crate) fn unknown_method(path: &str) -> Response {
    tonic::Status::unimplemented(format!("{path} is no method of this server")).into_http()
}

/// Reads the one message of a request; `headers` are the request's.
pub(crate) async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<Received, Failure> {
    if !is_grpc(headers) {
        return Err(Failure::new(FailureKind::Unsupported, "expected content type application/grpc"));
    }
    let mut load = app.ingest.load();
    let bytes_max = app.ingest.request_bytes_max() + FRAME_HEADER_BYTES as u64;
    let body = body::read(headers, body, bytes_max, &mut load).await?;
    let (compressed, message) = unframe(body)?;
    let encoding = match (compressed, headers.get("grpc-encoding")) {
        (false, _) => Encoding::Identity,
        (true, Some(name)) => body::encoding(name.as_bytes())?,
        (true, None) => {
            return Err(Failure::invalid(
                "grpc-encoding",
                "the message is compressed, expected a grpc-encoding",
            ));
        }
    };
    Ok(Received { message, encoding, load })
}

/// Whether the message is compressed, and the message.
fn unframe(mut body: Bytes) -> Result<(bool, Bytes), Failure> {
    let header: Option<[u8; FRAME_HEADER_BYTES]> = body.get(..FRAME_HEADER_BYTES).and_then(|bytes| bytes.try_into().ok());
    let Some([flag, length @ ..]) = header else {
        let message = format!(
            "the body has {} bytes, expected a frame of at least {FRAME_HEADER_BYTES}",
            body.len()
        );
        return Err(Failure::invalid("body", message));
    };
    let message = body.split_off(FRAME_HEADER_BYTES);
    let length = u32::from_be_bytes(length) as usize;
    if message.len() != length {
        let text = format!(
            "{} bytes follow a frame header that names {length}, expected one whole message",
            message.len()
        );
        return Err(Failure::invalid("body", text));
    }
    match flag {
        0 | 1 => Ok((flag == 1, message)),
        other => Err(Failure::invalid("body", format!("the frame's flag is {other}, expected 0 or 1"))),
    }
}

/// A successful answer: a frame for each message, none or several where the method streams.
pub(crate) fn success(messages: impl IntoIterator<Item = Vec<u8>>) -> Response {
    let mut frames = BytesMut::new();
    for message in messages {
        frames.reserve(FRAME_HEADER_BYTES + message.len());
        frames.put_u8(0);
        frames.put_u32(message.len() as u32);
        frames.put_slice(&message);
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let body = Full::new(frames.freeze()).with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-accept-encoding", ENCODINGS);
    response
}

/// A failure as a status; `details` are an encoded `google.rpc.Status`, or nothing.
pub(crate) fn refusal(failure: &Failure, details: Vec<u8>) -> Response {
    let status = tonic::Status::with_details(failure.kind.grpc(), failure.message.clone(), Bytes::from(details));
    let mut response = status.into_http::<Body>();
    response.headers_mut().insert("grpc-accept-encoding", ENCODINGS);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &'static [u8], expected: Result<(bool, &'static [u8]), &str>) {
        let unframed = unframe(Bytes::from_static(body)).map_err(|failure| failure.message);
        let expected = expected
            .map(|(flag, message)| (flag, Bytes::from_static(message)))
            .map_err(str::to_owned);
        assert_eq!(unframed, expected);
    }

    #[test]
    fn a_frame_is_a_flag_a_length_and_a_message() {
        check(b"\0\0\0\0\x02ab", Ok((false, b"ab")));
        check(b"\x01\0\0\0\0", Ok((true, b"")));
    }

    #[test]
    fn broken_frames_name_what_was_expected() {
        check(b"\0\0", Err("the body has 2 bytes, expected a frame of at least 5"));
        check(
            b"\0\0\0\0\x03ab",
            Err("2 bytes follow a frame header that names 3, expected one whole message"),
        );
        check(b"\x02\0\0\0\0", Err("the frame's flag is 2, expected 0 or 1"));
    }
}
