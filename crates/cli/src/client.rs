//! The one client of the API, for a server or a data directory. What a command asks and shows is the same for
//! both.
//!
//! Every answer keeps its bytes, so that `--json` passes on what was said, also what this program does not
//! read.

pub(crate) mod answer;
mod directory;
mod tables;
mod transport;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::de::{DeserializeOwned, Error as _};
use serde_json::value::RawValue;

use crate::error::Error;
use answer::{Ingested, Profile, ProfileTypes, Refusal, Services, Spans, Trace};
pub(crate) use tables::TableSize;
pub(crate) use transport::{Request, SERVER_DEFAULT, Source, Transport};

/// Which samples a profile holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// The span itself.
    #[default]
    Span,
    /// The span and its descendants.
    Subtree,
    /// The whole trace, in all services.
    Trace,
    /// What ran meanwhile at the same place: for samples without ids.
    Window,
    /// Chosen by labels, not by a span.
    #[value(skip)]
    Labels,
}

impl Scope {
    /// The API's word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scope::Span => "span",
            Scope::Subtree => "subtree",
            Scope::Trace => "trace",
            Scope::Window => "window",
            Scope::Labels => "labels",
        }
    }

    /// Completes `no samples ...`.
    pub(crate) fn of_what(self) -> &'static str {
        match self {
            Scope::Span => "of the span itself",
            Scope::Subtree => "of the span and its descendants",
            Scope::Trace => "of the whole trace",
            Scope::Window => "of what ran meanwhile at the same place, linked or not",
            Scope::Labels => "of the profiles with these labels",
        }
    }
}

/// Parameters of a question.
pub(crate) type Query = Vec<(&'static str, String)>;

/// What a profile is about.
#[derive(Clone, Debug)]
pub(crate) enum ProfileOf {
    /// A span.
    Span { trace_id: String, span_id: String },
    /// A trace.
    Trace { trace_id: String },
    /// Whatever a label selector selects.
    Labels,
}

/// A parsed answer with its own text.
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    text: Box<RawValue>,
}

impl<T> Answer<T> {
    /// The answer as it came.
    pub(crate) fn text(&self) -> &str {
        self.text.get()
    }
}

/// Asks a server, or a data directory.
pub(crate) struct Client {
    transport: Transport,
}

impl Client {
    /// A client that asks through `transport`.
    pub(crate) fn new(transport: Transport) -> Client {
        Client { transport }
    }

    /// The address of a path of the page.
    pub(crate) fn page(&self, path: &str) -> String {
        self.transport.page(path)
    }

    /// A trace; `None` if neither a span nor a sample of it is stored.
    pub(crate) async fn trace(&self, trace_id: &str) -> Result<Option<Answer<Trace>>, Error> {
        self.ask(Request::get(format!("/api/v1/traces/{trace_id}"))).await
    }

    /// A profile as JSON; `None` if what it is about is not stored.
    pub(crate) async fn profile(&self, of: &ProfileOf, query: Query) -> Result<Option<Answer<Profile>>, Error> {
        let request = Request::get(of.path()).query(query);
        let described = request.describe();
        let answer: Option<Answer<Profile>> = self.ask(request).await?;
        if let Some(fault) = answer.as_ref().and_then(|answer| answer.value.fault()) {
            return Err(self.malformed(described, serde_json::Error::custom(fault)));
        }
        Ok(answer)
    }

    /// A profile in another format: its bytes and the reasons why it is empty.
    pub(crate) async fn profile_bytes(&self, of: &ProfileOf, query: Query) -> Result<Option<(Bytes, Option<String>)>, Error> {
        let reply = self.transport.send(Request::get(of.path()).query(query)).await?;
        if reply.status == StatusCode::NOT_FOUND && self.is_api_answer(&reply.body) {
            return Ok(None);
        }
        let body = self.accept(reply.status, reply.body)?;
        Ok(Some((body, reply.reasons)))
    }

    /// Spans that match.
    pub(crate) async fn spans(&self, query: Query) -> Result<Answer<Spans>, Error> {
        self.ask_known(Request::get("/api/v1/spans".to_owned()).query(query)).await
    }

    /// Sends a profile.
    pub(crate) async fn ingest(&self, query: Query, body: Bytes) -> Result<Answer<Ingested>, Error> {
        let request = Request::new(Method::POST, "/api/v1/ingest".to_owned()).query(query).body(body);
        self.ask_known(request).await
    }

    /// Which services there are, with what is stored of them.
    pub(crate) async fn services(&self, window: Query) -> Result<Answer<Services>, Error> {
        self.ask_known(Request::get("/api/v1/services".to_owned()).query(window)).await
    }

    /// Which profile types there are.
    pub(crate) async fn profile_types(&self, window: Query) -> Result<Answer<ProfileTypes>, Error> {
        self.ask_known(Request::get("/api/v1/profile-types".to_owned()).query(window)).await
    }

    /// What the tables hold, all tenants together.
    pub(crate) async fn tables(&self) -> Result<Vec<TableSize>, Error> {
        let reply = self.transport.send(Request::get("/metrics".to_owned())).await?;
        let body = self.accept(reply.status, reply.body)?;
        Ok(tables::read(&String::from_utf8_lossy(&body)))
    }

    async fn ask_known<T: DeserializeOwned>(&self, request: Request) -> Result<Answer<T>, Error> {
        let reply = self.transport.send(request.clone()).await?;
        let body = self.accept(reply.status, reply.body)?;
        self.parse(&request, &body)
    }

    async fn ask<T: DeserializeOwned>(&self, request: Request) -> Result<Option<Answer<T>>, Error> {
        let reply = self.transport.send(request.clone()).await?;
        // Something else that answers 404 with a page of its own is no server of ours: that is an error.
        if reply.status == StatusCode::NOT_FOUND && self.is_api_answer(&reply.body) {
            return Ok(None);
        }
        let body = self.accept(reply.status, reply.body)?;
        self.parse(&request, &body).map(Some)
    }

    fn is_api_answer(&self, body: &[u8]) -> bool {
        serde_json::from_slice::<Refusal>(body).is_ok()
    }

    fn accept(&self, status: StatusCode, body: Bytes) -> Result<Bytes, Error> {
        if status.is_success() {
            return Ok(body);
        }
        let (message, place) = refusal(status, &body);
        Err(Error::Refused {
            server: self.transport.name().to_owned(),
            status: status.as_u16(),
            message,
            place,
        })
    }

    fn parse<T: DeserializeOwned>(&self, request: &Request, body: &[u8]) -> Result<Answer<T>, Error> {
        let parse = || {
            let value = serde_json::from_slice(body)?;
            let text = serde_json::from_slice(body)?;
            Ok(Answer { value, text })
        };
        parse().map_err(|source| self.malformed(request.describe(), source))
    }

    fn malformed(&self, request: String, source: serde_json::Error) -> Error {
        Error::Malformed {
            server: self.transport.name().to_owned(),
            request,
            source,
        }
    }
}

impl ProfileOf {
    fn path(&self) -> String {
        match self {
            ProfileOf::Span { trace_id, span_id } => format!("/api/v1/traces/{trace_id}/spans/{span_id}/profile"),
            ProfileOf::Trace { trace_id } => format!("/api/v1/traces/{trace_id}/profile"),
            ProfileOf::Labels => "/api/v1/profile".to_owned(),
        }
    }
}

/// What a refusal says, and the line and column it is about. The id under which the server logged it helps only
/// where the fault is the server's.
fn refusal(status: StatusCode, body: &[u8]) -> (String, Option<(usize, usize)>) {
    const TEXT_CHARS_MAX: usize = 400;
    let Ok(Refusal { error }) = serde_json::from_slice(body) else {
        let text = String::from_utf8_lossy(body).trim().chars().take(TEXT_CHARS_MAX).collect();
        return (text, None);
    };
    let text = match error.request_id {
        Some(id) if status.is_server_error() => format!("{} [request {id}]", error.message),
        _ => error.message,
    };
    (text, error.line.zip(error.column))
}
