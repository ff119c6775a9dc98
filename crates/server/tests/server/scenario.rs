//! Recorded questions of other products' clients: each file of `testdata/dialects/DIALECT/` is a server with some data
//! and what it has to answer.
//!
//! ```yaml
//! about: what the file is about and where its requests come from
//! given:                      # sent in this order before the first case
//!   - spans: [{trace: 1, id: 1, service: front, name: GET /, kind: server, at_ms: 0, duration_ms: 100}]
//!   - profile: {service: front, trace: 1, span: 1, at_ms: 10, count: 5}
//!   - {post: /v1/traces, headers: {content-type: application/json}, file: otlp.json}
//! cases:
//!   - name: a claim
//!     get: /tempo/api/search  # or post:, with body:
//!     query: {q: "{}"}        # percent-encoded by the runner
//!     headers: {accept: application/json}
//!     status: 200             # the default
//!     json: {..}              # the whole answer, or
//!     has: {..}               # some of it: fields of objects; lists have to be complete
//!     text: a part of the body
//!     header: {content-type: text/plain}
//! ```
//!
//! Times are relative to [`START_NS`]. A span's id is its number in hex; `trace: 1` is `00..01`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Reply, START_NS, TestServer, config, profiles_of, reply, traces_with};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    #[allow(dead_code, reason = "for the reader of the file")]
    about: String,
    #[serde(default)]
    given: Vec<Given>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
struct Given {
    #[serde(default)]
    spans: Vec<GivenSpan>,
    profile: Option<GivenProfile>,
    post: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenSpan {
    trace: u128,
    id: u64,
    #[serde(default)]
    parent: u64,
    service: Option<String>,
    #[serde(default)]
    resource: BTreeMap<String, Value>,
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    at_ms: u64,
    duration_ms: u64,
    #[serde(default)]
    status: String,
    #[serde(default)]
    attributes: BTreeMap<String, Value>,
}

/// `count` observations of `main;work`, 1 ms apart.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenProfile {
    service: String,
    trace: u128,
    span: u64,
    at_ms: u64,
    count: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    get: Option<String>,
    post: Option<String>,
    #[serde(default)]
    query: BTreeMap<String, String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    #[serde(default = "ok")]
    status: u16,
    json: Option<Value>,
    has: Option<Value>,
    text: Option<String>,
    #[serde(default)]
    header: BTreeMap<String, String>,
}

fn ok() -> u16 {
    200
}

/// Runs every file of a dialect, each against a server of its own.
pub(crate) async fn check(dialect: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dialects").join(dialect);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(!files.is_empty(), "{} has scenarios", folder.display());
    let mut wrong = Vec::new();
    for file in files {
        wrong.extend(run(&file).await);
    }
    assert!(wrong.is_empty(), "{} wrong answers:\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs one file; answers what was wrong.
async fn run(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let scenario: Scenario = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    for given in &scenario.given {
        send(&server, file, given).await;
    }
    let mut wrong = Vec::new();
    for case in &scenario.cases {
        let reply = ask(&server, case).await;
        if let Err(difference) = compare(case, &reply) {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            wrong.push(format!(
                "{name}: {}: {difference}\n  in {} {}",
                case.name,
                reply.status,
                reply.text()
            ));
        }
    }
    server.stop().await;
    wrong
}

async fn send(server: &TestServer, file: &Path, given: &Given) {
    for span in &given.spans {
        let mut resource = given_attributes(&span.resource);
        resource.extend(
            span.service
                .iter()
                .map(|name| key_value("service.name", &Value::from(name.as_str()))),
        );
        server.send("/v1/traces", &traces_with(resource, vec![otlp_span(span)])).await;
    }
    if let Some(profile) = &given.profile {
        let (trace, span) = (profile.trace.to_be_bytes(), profile.span.to_be_bytes());
        let profile = profiles_of(&profile.service, &trace, &span, profile.at_ms, profile.count);
        server.send("/v1development/profiles", &profile).await;
    }
    if let (Some(path), Some(name)) = (&given.post, &given.file) {
        let body = std::fs::read(file.with_file_name(name)).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        let headers: Vec<(&str, &str)> = given.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let reply = server.post(server.http(), path, &headers, body).await;
        assert_eq!(reply.status, 200, "{}: {}", name.display(), reply.text());
    }
}

async fn ask(server: &TestServer, case: &Case) -> Reply {
    let (method, path) = match (&case.get, &case.post) {
        (Some(path), None) => ("GET", path),
        (None, Some(path)) => ("POST", path),
        _ => panic!("{}: expected one of get and post", case.name),
    };
    let mut request = server.request_to(method, path).query(&case.query.iter().collect::<Vec<_>>());
    for (name, value) in &case.headers {
        request = request.header(name, value);
    }
    reply(request.body(case.body.clone())).await
}

fn compare(case: &Case, reply: &Reply) -> Result<(), String> {
    if reply.status != case.status {
        return Err(format!("status is {}, expected {}", reply.status, case.status));
    }
    for (name, value) in &case.header {
        if !reply.header(name).starts_with(value.as_str()) {
            return Err(format!("header {name} is {:?}, expected {value:?}", reply.header(name)));
        }
    }
    if let Some(part) = case.text.as_ref().filter(|part| !reply.text().contains(part.as_str())) {
        return Err(format!("the body lacks {part:?}"));
    }
    for (expected, whole) in [(&case.json, true), (&case.has, false)] {
        if let Some(expected) = expected {
            let answer = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
            same(expected, &answer, whole, "$")?;
        }
    }
    Ok(())
}

/// Whether an answer is as expected; `whole` forbids further fields.
fn same(expected: &Value, answer: &Value, whole: bool, at: &str) -> Result<(), String> {
    match (expected, answer) {
        (Value::Object(expected), Value::Object(answer)) => {
            for (name, value) in expected {
                let found = answer.get(name).ok_or_else(|| format!("{at}.{name} is missing"))?;
                same(value, found, whole, &format!("{at}.{name}"))?;
            }
            let further = answer.keys().find(|name| !expected.contains_key(*name)).filter(|_| whole);
            further.map_or(Ok(()), |name| Err(format!("{at}.{name} is not expected")))
        }
        (Value::Array(expected), Value::Array(answer)) => {
            if expected.len() != answer.len() {
                return Err(format!("{at} has {} items, expected {}", answer.len(), expected.len()));
            }
            let pairs = expected.iter().zip(answer).enumerate();
            pairs
                .into_iter()
                .try_for_each(|(n, (expected, answer))| same(expected, answer, whole, &format!("{at}[{n}]")))
        }
        (expected, answer) if expected.is_number() && expected.as_f64() == answer.as_f64() => Ok(()),
        (expected, answer) if expected == answer => Ok(()),
        (expected, answer) => Err(format!("{at} is {answer}, expected {expected}")),
    }
}

fn otlp_span(span: &GivenSpan) -> Span {
    let position = |words: &[&str], word: &str| words.iter().position(|known| *known == word).unwrap_or(0) as i32;
    let start = START_NS + span.at_ms * 1_000_000;
    Span {
        trace_id: span.trace.to_be_bytes().to_vec(),
        span_id: span.id.to_be_bytes().to_vec(),
        parent_span_id: match span.parent {
            0 => Vec::new(),
            parent => parent.to_be_bytes().to_vec(),
        },
        name: span.name.clone(),
        kind: position(&["", "internal", "server", "client", "producer", "consumer"], &span.kind),
        start_time_unix_nano: start,
        end_time_unix_nano: start + span.duration_ms * 1_000_000,
        attributes: given_attributes(&span.attributes),
        status: Some(Status {
            code: position(&["", "ok", "error"], &span.status),
            ..Status::default()
        }),
        ..Span::default()
    }
}

fn given_attributes(attributes: &BTreeMap<String, Value>) -> Vec<KeyValue> {
    attributes.iter().map(|(key, value)| key_value(key, value)).collect()
}

fn key_value(key: &str, value: &Value) -> KeyValue {
    let value = match value {
        Value::Bool(value) => any_value::Value::BoolValue(*value),
        Value::Number(number) if number.is_i64() => any_value::Value::IntValue(number.as_i64().expect("an integer")),
        Value::Number(number) => any_value::Value::DoubleValue(number.as_f64().expect("a number")),
        Value::String(text) => any_value::Value::StringValue(text.clone()),
        other => panic!("{other} is no value of an attribute here"),
    };
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
