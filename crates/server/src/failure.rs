//! Why a request was not served, and the one table that says so in HTTP and gRPC.
//!
//! Handlers return a [`Failure`]; it travels in the extensions of an empty response to the layer of its
//! dialect, which writes the body (JSON `error` objects, OTLP `Status` messages, gRPC trailers).

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use spanflame_formats as formats;
use spanflame_query as query;
use spanflame_store as store;

/// What the client should do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FailureKind {
    /// Correct the request.
    Invalid,
    /// The tenant is reserved.
    Forbidden,
    /// It is not stored.
    NotFound,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// The path exists in the dialect, and what it does is not served here.
    NotServed,
    /// Send less at once.
    TooLarge,
    /// Send another content type or encoding.
    Unsupported,
    /// Try again after [`Failure::retry_after`].
    Busy,
    /// Try again later: starting, stopping, or the medium does not answer.
    Unavailable,
    /// A fault of ours.
    Internal,
}

impl FailureKind {
    /// HTTP status, gRPC code, and the code of the native API.
    fn row(self) -> (StatusCode, tonic::Code, &'static str) {
        match self {
            FailureKind::Invalid => (StatusCode::BAD_REQUEST, tonic::Code::InvalidArgument, "invalid_argument"),
            FailureKind::Forbidden => (StatusCode::FORBIDDEN, tonic::Code::PermissionDenied, "forbidden"),
            FailureKind::NotFound => (StatusCode::NOT_FOUND, tonic::Code::NotFound, "not_found"),
            FailureKind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, tonic::Code::Unimplemented, "method_not_allowed"),
            FailureKind::NotServed => (StatusCode::NOT_IMPLEMENTED, tonic::Code::Unimplemented, "not_served"),
            FailureKind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, tonic::Code::ResourceExhausted, "too_large"),
            FailureKind::Unsupported => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                tonic::Code::Unimplemented,
                "unsupported_media_type",
            ),
            FailureKind::Busy => (StatusCode::TOO_MANY_REQUESTS, tonic::Code::ResourceExhausted, "busy"),
            FailureKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, tonic::Code::Unavailable, "unavailable"),
            FailureKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, tonic::Code::Internal, "internal"),
        }
    }

    pub(crate) fn http(self) -> StatusCode {
        self.row().0
    }

    pub(crate) fn grpc(self) -> tonic::Code {
        self.row().1
    }

    /// Stable word, also the label of metrics.
    pub(crate) fn code(self) -> &'static str {
        self.row().2
    }
}

/// A request that was not served.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// Lower case; names the value and what was expected.
    pub(crate) message: String,
    /// The part of the request at fault.
    pub(crate) field: Option<String>,
    /// When to try again; set exactly for [`FailureKind::Busy`].
    pub(crate) retry_after: Option<Duration>,
    /// Where in a query text, and what was expected there.
    pub(crate) position: Option<Position>,
}

/// A place in a query text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Position {
    /// 1-based.
    pub(crate) line: u64,
    /// 1-based, in characters.
    pub(crate) column: u64,
    /// What would have been right there.
    pub(crate) expected: Vec<String>,
}

/// How long a client waits that was refused because something is full, where nothing better is known: about
/// the time a flush takes.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure {
            kind,
            message: message.into(),
            field: None,
            retry_after: (kind == FailureKind::Busy).then_some(RETRY_AFTER),
            position: None,
        }
    }

    /// Input that can never work: `field` is what the client calls the part at fault.
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Failure {
        Failure {
            field: Some(field.to_owned()),
            ..Failure::new(FailureKind::Invalid, message)
        }
    }

    /// The same, where the client knows the field by a longer name.
    pub(crate) fn of_field_beginning_with(mut self, prefix: &str) -> Failure {
        self.field = self.field.map(|field| format!("{prefix}{field}"));
        self
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::TooLarge, message)
    }

    pub(crate) fn busy(message: impl Into<String>, retry_after: Duration) -> Failure {
        Failure {
            retry_after: Some(retry_after),
            ..Failure::new(FailureKind::Busy, message)
        }
    }

    /// A fault of ours: logged here with its details, told to the client without them.
    pub(crate) fn internal(what: &'static str, error: &dyn std::fmt::Display) -> Failure {
        tracing::error!(what, error = %error, "request failed");
        Failure::new(FailureKind::Internal, format!("{what}; the server's log says why"))
    }

    /// Whole seconds for `Retry-After`, at least 1.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|wait| wait.as_millis().div_ceil(1000).max(1) as u64)
    }

    /// Takes the failure out of a response that a handler made of it.
    pub(crate) fn take(response: &mut Response) -> Option<Failure> {
        response.extensions_mut().remove::<Failure>()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.kind.http().into_response();
        if let Some(seconds) = self.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Failure {
        match error.kind() {
            store::ErrorKind::Invalid => Failure::new(FailureKind::Invalid, error.to_string()),
            store::ErrorKind::Busy => Failure::new(FailureKind::Busy, error.to_string()),
            store::ErrorKind::Unavailable => {
                tracing::warn!(error = %chain(&error), "the store does not answer");
                Failure::new(FailureKind::Unavailable, error.to_string())
            }
            store::ErrorKind::Corrupt => Failure::internal("stored data is damaged", &chain(&error)),
            store::ErrorKind::Internal => Failure::internal("the store failed", &chain(&error)),
        }
    }
}

impl From<formats::Error> for Failure {
    fn from(error: formats::Error) -> Failure {
        match error.kind() {
            formats::ErrorKind::TooLarge => Failure::too_large(chain(&error)),
            formats::ErrorKind::Invalid => Failure::invalid("body", chain(&error)),
        }
    }
}

impl From<query::Error> for Failure {
    fn from(error: query::Error) -> Failure {
        match error {
            query::Error::Invalid { field, message } => Failure::invalid(field, message),
            query::Error::TraceQl(error) => Failure {
                position: Some(Position {
                    line: u64::from(error.at.line),
                    column: u64::from(error.at.column),
                    expected: error.expected.clone(),
                }),
                ..Failure::invalid("q", error.to_string())
            },
            query::Error::NotFound { what } => Failure::new(FailureKind::NotFound, what),
            query::Error::TooLarge { message } => Failure::too_large(message),
            query::Error::Store(error) => Failure::from(error),
            other => Failure::internal("the question failed", &chain(&other)),
        }
    }
}

/// An error with its sources, joined by colons.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_busy_asks_to_retry() {
        let busy = Failure::new(FailureKind::Busy, "full").into_response();
        assert_eq!(busy.headers()[header::RETRY_AFTER], "1");
        let large = Failure::too_large("large").into_response();
        assert_eq!(large.headers().get(header::RETRY_AFTER), None);
    }

    #[test]
    fn waits_are_rounded_up_to_seconds() {
        let failure = Failure::busy("rate", Duration::from_millis(1001));
        assert_eq!(failure.retry_after_seconds(), Some(2));
    }
}
