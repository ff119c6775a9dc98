//! Unary calls as Connect, gRPC or gRPC-Web, in protobuf or JSON: one handler serves all.
//!
//! A Connect call is a plain `POST` whose body is the message; a failure is a JSON object of code and text with the
//! HTTP status of its code. Bodies may be gzip, answers are where the client takes it. Messages are read and written
//! as JSON by their descriptors, after the rules of protobuf: 64-bit numbers are strings, names are lowerCamelCase,
//! unknown fields are ignored.
//!
//! Follows the Connect protocol, version 1. Not here: streams, and `GET` for calls without side effects.

use std::future::Future;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor};
use serde_json::json;
use spanflame_formats::compression::{self, Encoding};

use crate::admission::Load;
use crate::app::App;
use crate::failure::{Failure, FailureKind};
use crate::{body, grpc};

/// Answers below this gain nothing from compression.
const COMPRESS_BYTES_MIN: usize = 1024;

/// The longest message of a call that asks a question, decompressed.
const QUESTION_BYTES_MAX: usize = 4 << 20;

/// The descriptors of all messages.
static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(spanflame_proto::DESCRIPTORS).expect("the build wrote them, and they name only each other"));

/// How a call is spoken, and so how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    protocol: Protocol,
    codec: Codec,
    /// The client takes gzip.
    gzip: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Connect,
    Grpc,
    GrpcWeb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Proto,
    Json,
}

/// A call whose message is still as it was sent.
pub(crate) struct Received {
    pub(crate) manner: Manner,
    pub(crate) headers: HeaderMap,
    pub(crate) message: Bytes,
    pub(crate) encoding: Encoding,
    /// Holds the bytes of the message.
    pub(crate) load: Load,
}

/// A question with how to answer it.
pub(crate) struct Call<Q> {
    pub(crate) question: Q,
    pub(crate) headers: HeaderMap,
    pub(crate) manner: Manner,
}

/// A method that asks a question. What `handler` answers is written by [`Manner::answer`].
pub(crate) fn question<Q, H, F>(handler: H) -> MethodRouter<Arc<App>>
where
    Q: Message + Name + Default,
    H: Fn(Arc<App>, Call<Q>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    raw(move |app, received| {
        let call = received.decode::<Q>(QUESTION_BYTES_MAX);
        let handler = handler.clone();
        async move { handler(app, call?).await }
    })
}

/// A method that reads its message itself.
pub(crate) fn raw<H, F>(handler: H) -> MethodRouter<Arc<App>>
where
    H: Fn(Arc<App>, Received) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    let serve = move |State(app): State<Arc<App>>, request: Request| async move {
        let (parts, body) = request.into_parts();
        let manner = match Manner::of(&parts.headers) {
            Ok(manner) => manner,
            Err(failure) => return Manner::JSON.refusal(&failure),
        };
        let answered = match Received::read(&app, manner, parts.headers, body).await {
            Ok(received) => handler(app, received).await,
            Err(failure) => Err(failure),
        };
        answered.unwrap_or_else(|failure| manner.refusal(&failure))
    };
    post(serve).fallback(method_not_allowed)
}

async fn method_not_allowed() -> Response {
    Manner::JSON.refusal(&Failure::new(FailureKind::MethodNotAllowed, "expected POST"))
}

/// Whether a path is a method of some service, so that it is to be refused as one.
pub(crate) fn is_method(path: &str) -> bool {
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(service), Some(method), None) => service.contains('.') && service.ends_with("Service") && !method.is_empty(),
        _ => false,
    }
}

/// The answer to a method that is not served.
pub(crate) fn unknown_method(path: &str) -> Response {
    let path: String = path.chars().take(200).collect();
    error(
        StatusCode::NOT_IMPLEMENTED,
        "unimplemented",
        &format!("{path} is no method of this server"),
    )
}

impl Received {
    async fn read(app: &App, manner: Manner, headers: HeaderMap, body: Body) -> Result<Received, Failure> {
        let (message, encoding, load) = match manner.protocol {
            Protocol::Connect => {
                let encoding = body::content_encoding(&headers)?;
                let mut load = app.ingest.load();
                let message = body::read(&headers, body, app.ingest.request_bytes_max(), &mut load).await?;
                (message, encoding, load)
            }
            Protocol::Grpc | Protocol::GrpcWeb => {
                let grpc::Received { message, encoding, load } = grpc::read(app, &headers, body).await?;
                (message, encoding, load)
            }
        };
        Ok(Received {
            manner,
            headers,
            message,
            encoding,
            load,
        })
    }

    fn decode<Q: Message + Name + Default>(mut self, bytes_max: usize) -> Result<Call<Q>, Failure> {
        let bytes = compression::decompress(self.encoding, &self.message, bytes_max)?;
        self.load.grow_by(bytes.len() as u64)?;
        Ok(Call {
            question: self.manner.decode(&bytes)?,
            headers: self.headers,
            manner: self.manner,
        })
    }
}

impl Manner {
    /// Connect in JSON, for failures before anything is known of the client.
    pub(crate) const JSON: Manner = Manner {
        protocol: Protocol::Connect,
        codec: Codec::Json,
        gzip: false,
    };

    fn of(headers: &HeaderMap) -> Result<Manner, Failure> {
        let value = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let media_type = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        let (protocol, codec) = match media_type.to_ascii_lowercase().as_slice() {
            b"application/proto" | b"application/x-protobuf" | b"application/protobuf" => (Protocol::Connect, Codec::Proto),
            b"application/json" => (Protocol::Connect, Codec::Json),
            b"application/grpc" | b"application/grpc+proto" => (Protocol::Grpc, Codec::Proto),
            b"application/grpc-web" | b"application/grpc-web+proto" => (Protocol::GrpcWeb, Codec::Proto),
            other => {
                let name: String = String::from_utf8_lossy(other).chars().take(80).collect();
                let message = format!("content type is {name:?}, expected application/proto, application/json or application/grpc");
                return Err(Failure::new(FailureKind::Unsupported, message));
            }
        };
        let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
        let gzip = accepted.filter_map(|value| value.to_str().ok()).any(takes_gzip);
        Ok(Manner { protocol, codec, gzip })
    }

    /// Reads a message.
    pub(crate) fn decode<Q: Message + Name + Default>(self, bytes: &[u8]) -> Result<Q, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::invalid("body", format!("the message is no {}: {error}", Q::NAME));
        match self.codec {
            Codec::Proto => Q::decode(bytes).map_err(|error| wrong(&error)),
            Codec::Json => {
                let mut json = serde_json::Deserializer::from_slice(bytes);
                let options = DeserializeOptions::new().deny_unknown_fields(false);
                let dynamic =
                    DynamicMessage::deserialize_with_options(descriptor::<Q>()?, &mut json, &options).map_err(|error| wrong(&error))?;
                json.end().map_err(|error| wrong(&error))?;
                dynamic.transcode_to().map_err(|error| wrong(&error))
            }
        }
    }

    /// Writes a message.
    pub(crate) fn answer<A: Message + Name>(self, answer: &A) -> Result<Response, Failure> {
        let bytes = match self.codec {
            Codec::Proto => answer.encode_to_vec(),
            Codec::Json => {
                let mut dynamic = DynamicMessage::new(descriptor::<A>()?);
                let failed = |error: &dyn std::fmt::Display| Failure::internal("the answer cannot be written", error);
                dynamic.transcode_from(answer).map_err(|error| failed(&error))?;
                serde_json::to_vec(&dynamic).map_err(|error| failed(&error))?
            }
        };
        Ok(self.success(bytes))
    }

    /// Whether messages are JSON.
    pub(crate) fn is_json(self) -> bool {
        self.codec == Codec::Json
    }

    /// Answers a message that is written already.
    pub(crate) fn success(self, message: Vec<u8>) -> Response {
        match self.protocol {
            Protocol::Connect => self.plain(message),
            Protocol::Grpc => grpc::success([message]),
            Protocol::GrpcWeb => web_frames(Some(&message), "grpc-status:0\r\n"),
        }
    }

    fn plain(self, mut bytes: Vec<u8>) -> Response {
        let compress = self.gzip && bytes.len() >= COMPRESS_BYTES_MIN;
        if compress {
            bytes = compression::gzip(&bytes);
        }
        let mut response = Response::new(Body::from(bytes));
        let headers = response.headers_mut();
        let content_type = match self.codec {
            Codec::Proto => "application/proto",
            Codec::Json => "application/json",
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if compress {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }

    /// Writes a failure.
    pub(crate) fn refusal(self, failure: &Failure) -> Response {
        match self.protocol {
            Protocol::Grpc => grpc::refusal(failure, Vec::new()),
            Protocol::GrpcWeb => {
                let message = url::form_urlencoded::byte_serialize(failure.message.as_bytes())
                    .collect::<String>()
                    .replace('+', "%20");
                web_frames(
                    None,
                    &format!("grpc-status:{}\r\ngrpc-message:{message}\r\n", failure.kind.grpc() as i32),
                )
            }
            Protocol::Connect => {
                let mut response = error(failure.kind.http(), code(failure.kind.grpc()), &failure.message);
                if let Some(seconds) = failure.retry_after_seconds() {
                    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
        }
    }
}

fn takes_gzip(value: &str) -> bool {
    value.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        name.eq_ignore_ascii_case("gzip") && !parts.any(|part| part == "q=0")
    })
}

fn descriptor<M: Name>() -> Result<MessageDescriptor, Failure> {
    let name = M::full_name();
    POOL.get_message_by_name(&name)
        .ok_or_else(|| Failure::internal("the message has no descriptor", &name))
}

/// gRPC-Web has its trailers in the body, as a last frame.
fn web_frames(message: Option<&[u8]>, trailers: &str) -> Response {
    const TRAILERS: u8 = 0x80;
    let mut body = BytesMut::new();
    for (flag, bytes) in message
        .map(|message| (0, message))
        .into_iter()
        .chain([(TRAILERS, trailers.as_bytes())])
    {
        body.put_u8(flag);
        body.put_u32(bytes.len() as u32);
        body.put_slice(bytes);
    }
    let mut response = Response::new(Body::from(body.freeze()));
    let content_type = HeaderValue::from_static("application/grpc-web+proto");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

fn error(status: StatusCode, code: &str, message: &str) -> Response {
    let mut response = Response::new(Body::from(json!({ "code": code, "message": message }).to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The word of a code.
fn code(code: tonic::Code) -> &'static str {
    match code {
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
