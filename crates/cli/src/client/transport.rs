//! Whom to ask, and how a request reaches the routes.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::{Method, StatusCode};
use spanflame_model::Tenant;
use url::Url;

use super::directory::Directory;
use super::{Client, Query};
use crate::error::Error;

/// Names the tenant of a request.
const TENANT_HEADER: &str = "x-scope-orgid";
/// Says why a body in a text format is empty.
const REASON_HEADER: &str = "x-spanflame-reason";
/// Asked where neither flag nor variable names a server.
pub(crate) const SERVER_DEFAULT: &str = "http://127.0.0.1:4040";
/// The variable that names a server.
const SERVER_VARIABLE: &str = "SPANFLAME_SERVER";
/// The variable that names a tenant.
const TENANT_VARIABLE: &str = "SPANFLAME_TENANT";
/// A server that is there accepts a connection within this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Long enough for the largest search; a hung server ends the command.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// Whom to ask.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Whom to ask")]
pub(crate) struct Source {
    /// Address of a running server [default: http://127.0.0.1:4040] [env: SPANFLAME_SERVER]
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub(crate) server: Option<String>,
    /// Read a data directory or URL that no server holds, without a server
    #[arg(long, value_name = "DIR_OR_URL")]
    pub(crate) data: Option<String>,
    /// Whose data; several as a|b [default: anonymous] [env: SPANFLAME_TENANT]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

impl Source {
    /// A client of the server or directory that is named.
    pub(crate) async fn client(&self) -> Result<Client, Error> {
        let tenant = self.tenant.clone().or_else(|| variable(TENANT_VARIABLE));
        if let Some(names) = &tenant {
            check_tenants(names)?;
        }
        let directory = match &self.data {
            Some(data) => Some(Directory::open(data).await?),
            None => None,
        };
        let named = || self.server.clone().or_else(|| variable(SERVER_VARIABLE));
        let server = directory.as_ref().map(Directory::server).or_else(named);
        let (http, server) = connect(server.as_deref().unwrap_or(SERVER_DEFAULT))?;
        Ok(Client::new(Transport {
            http,
            server,
            directory,
            tenant,
        }))
    }
}

/// One request to the API.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: Method,
    path: String,
    query: Query,
    body: Bytes,
}

impl Request {
    pub(crate) fn new(method: Method, path: String) -> Request {
        Request {
            method,
            path,
            query: Vec::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn get(path: String) -> Request {
        Request::new(Method::GET, path)
    }

    pub(crate) fn query(self, query: Query) -> Request {
        Request { query, ..self }
    }

    pub(crate) fn body(self, body: Bytes) -> Request {
        Request { body, ..self }
    }

    /// `GET /api/v1/spans`
    pub(crate) fn describe(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Path and query, percent-encoded.
    fn target(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&self.query)
            .finish();
        format!("{}?{query}", self.path)
    }
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Why a body in a text format is empty.
    pub(crate) reasons: Option<String>,
    pub(crate) body: Bytes,
}

/// The way to a server's routes, for a tenant. A data directory has a server of its own while it is read.
pub(crate) struct Transport {
    http: reqwest::Client,
    server: String,
    /// What stands behind `server`, if it is not one.
    directory: Option<Directory>,
    tenant: Option<String>,
}

impl Transport {
    /// What errors call it: the server's address or the directory.
    pub(crate) fn name(&self) -> &str {
        self.directory.as_ref().map_or(&self.server, Directory::name)
    }

    /// Where the page shows `path`.
    pub(crate) fn page(&self, path: &str) -> String {
        match &self.directory {
            None => format!("{}{path}", self.server),
            Some(directory) => format!("{SERVER_DEFAULT}{path} (while `spanflame serve --data {}` runs)", directory.name()),
        }
    }

    pub(crate) async fn send(&self, request: Request) -> Result<Reply, Error> {
        let unreachable = |source: reqwest::Error| Error::Unreachable {
            server: self.server.clone(),
            source: source.without_url(),
        };
        let mut builder = self
            .http
            .request(request.method.clone(), format!("{}{}", self.server, request.target()));
        if let Some(tenant) = &self.tenant {
            builder = builder.header(TENANT_HEADER, tenant);
        }
        let response = builder.body(request.body).send().await.map_err(unreachable)?;
        let status = response.status();
        let reasons = response.headers().get(REASON_HEADER).and_then(|value| value.to_str().ok());
        let reasons = reasons.map(str::to_owned);
        let body = response.bytes().await.map_err(unreachable)?;
        Ok(Reply { status, reasons, body })
    }
}

/// An HTTP client for a server, and its address without a slash at the end.
fn connect(server: &str) -> Result<(reqwest::Client, String), Error> {
    let with_scheme = if server.contains("://") {
        server.to_owned()
    } else {
        format!("http://{server}")
    };
    let expected = || Error::Usage(format!("--server is {server:?}, expected an address such as {SERVER_DEFAULT}"));
    let url = Url::parse(&with_scheme).map_err(|_| expected())?;
    if !matches!(url.scheme(), "http" | "https") || url.query().is_some() {
        return Err(expected());
    }
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(ANSWER_TIMEOUT)
        .user_agent(concat!("spanflame/", env!("CARGO_PKG_VERSION")));
    let is_loopback = match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => return Err(expected()),
    };
    // A proxy of the environment cannot reach this machine's loopback.
    if is_loopback {
        builder = builder.no_proxy();
    }
    let client = builder.build().map_err(|error| Error::Start(Box::new(error)))?;
    let server = url.as_str().trim_end_matches('/').to_owned();
    Ok((client, server))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn check_tenants(names: &str) -> Result<(), Error> {
    for name in names.split('|') {
        name.parse::<Tenant>().map_err(|error| Error::Usage(error.to_string()))?;
    }
    Ok(())
}
