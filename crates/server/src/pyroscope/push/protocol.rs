//! Unary calls as Connect sends them, in protobuf or JSON, and as gRPC, on one path.
//!
//! A Connect call is a plain `POST`: the content type names the codec, `Content-Encoding` the compression, the body is
//! the message. Its errors are JSON whatever the codec is. What begins with `application/grpc` is gRPC. Each caller is
//! answered in the manner in which it asked. Streams are not served here.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use spanflame_formats::compression::Encoding;

use crate::admission::Load;
use crate::app::App;
use crate::failure::{Failure, FailureKind};
use crate::{body, grpc};

/// How a call arrived, and how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pyroscope) enum Protocol {
    /// Connect with messages in protobuf.
    Protobuf,
    /// Connect with messages in JSON.
    Json,
    /// gRPC with messages in protobuf.
    Grpc,
}

/// A call as it arrived.
pub(in crate::pyroscope) struct Received {
    pub(in crate::pyroscope) message: Bytes,
    pub(in crate::pyroscope) encoding: Encoding,
    /// Holds the bytes of the message.
    pub(in crate::pyroscope) load: Load,
}

impl Protocol {
    /// The protocol of a content type.
    pub(in crate::pyroscope) fn of(headers: &HeaderMap) -> Result<Protocol, Failure> {
        if grpc::is_grpc(headers) {
            return Ok(Protocol::Grpc);
        }
        let value = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let media_type = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        match media_type.to_ascii_lowercase().as_slice() {
            b"application/proto" | b"application/x-protobuf" | b"application/protobuf" => Ok(Protocol::Protobuf),
            b"application/json" => Ok(Protocol::Json),
            other => {
                let name: String = String::from_utf8_lossy(other).chars().take(80).collect();
                let message = format!("content type is {name:?}, expected application/proto, application/json or application/grpc");
                Err(Failure {
                    field: Some("content-type".to_owned()),
                    ..Failure::new(FailureKind::Unsupported, message)
                })
            }
        }
    }

    /// Reads the one message of a call.
    pub(in crate::pyroscope) async fn read(self, app: &App, headers: &HeaderMap, body: Body) -> Result<Received, Failure> {
        if self == Protocol::Grpc {
            let grpc::Received { message, encoding, load } = grpc::read(app, headers, body).await?;
            return Ok(Received { message, encoding, load });
        }
        let encoding = body::content_encoding(headers)?;
        let mut load = app.ingest.load();
        let message = body::read(headers, body, app.ingest.request_bytes_max(), &mut load).await?;
        Ok(Received { message, encoding, load })
    }

    /// A successful answer: a message in this protocol's codec.
    pub(in crate::pyroscope) fn success(self, message: Vec<u8>) -> Response {
        let content_type = match self {
            Protocol::Grpc => return grpc::success([message]),
            Protocol::Protobuf => "application/proto",
            Protocol::Json => "application/json",
        };
        answer(StatusCode::OK, content_type, message)
    }

    /// A failure as a status of gRPC or an error of Connect.
    pub(in crate::pyroscope) fn refusal(self, failure: &Failure) -> Response {
        if self == Protocol::Grpc {
            return grpc::refusal(failure, Vec::new());
        }
        let body = json!({ "code": code(failure.kind), "message": failure.message }).to_string();
        let mut response = answer(failure.kind.http(), "application/json", body.into_bytes());
        if let Some(seconds) = failure.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

fn answer(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Connect's word for gRPC's code of a failure.
fn code(kind: FailureKind) -> &'static str {
    match kind.grpc() {
        tonic::Code::InvalidArgument => "invalid_argument",
        tonic::Code::NotFound => "not_found",
        tonic::Code::PermissionDenied => "permission_denied",
        tonic::Code::ResourceExhausted => "resource_exhausted",
        tonic::Code::Unimplemented => "unimplemented",
        tonic::Code::Unavailable => "unavailable",
        tonic::Code::Internal => "internal",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content_type: &'static str, expected: Result<Protocol, FailureKind>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        assert_eq!(Protocol::of(&headers).map_err(|failure| failure.kind), expected, "{content_type}");
    }

    #[test]
    fn the_content_type_names_the_protocol() {
        check("application/proto", Ok(Protocol::Protobuf));
        check("application/JSON; charset=utf-8", Ok(Protocol::Json));
        check("application/grpc+proto", Ok(Protocol::Grpc));
        check("text/plain", Err(FailureKind::Unsupported));
    }

    #[test]
    fn a_failure_is_json_with_the_word_of_its_code() {
        let response = Protocol::Protobuf.refusal(&Failure::new(FailureKind::Busy, "full"));
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }
}
