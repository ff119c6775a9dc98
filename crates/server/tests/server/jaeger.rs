//! Jaeger's own fixtures: what each of its storages must find, and how a trace reads in its JSON.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Reply, TestServer, config, reply};

const OTLP_JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/jaeger").join(name)
}

fn read(name: &str) -> Value {
    let bytes = std::fs::read(testdata(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The trace id of every item of every list with this name.
fn ids(value: &Value, list: &str, field: &str) -> BTreeSet<String> {
    let inside = |value: &Value| ids(value, list, field);
    match value {
        Value::Object(fields) => {
            let items = fields.get(list).and_then(Value::as_array).into_iter().flatten();
            let own = items.filter_map(|item| item[field].as_str().map(str::to_owned));
            own.chain(fields.values().flat_map(inside)).collect()
        }
        Value::Array(items) => items.iter().flat_map(inside).collect(),
        _ => BTreeSet::new(),
    }
}

async fn load(server: &TestServer) {
    let files = std::fs::read_dir(testdata("integration/queries")).expect("fixtures");
    for file in files {
        let body = std::fs::read(file.expect("an entry").path()).expect("readable");
        let reply = server.post(server.http(), "/v1/traces", &OTLP_JSON, body).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
    }
}

async fn get(server: &TestServer, path: &str, query: &[(&str, String)]) -> Reply {
    let reply = reply(server.request_to("GET", path).query(query)).await;
    assert_eq!(reply.status, 200, "{path} {query:?}: {}", reply.text());
    reply
}

/// The parameters of a search, under the names of the legacy API or of v3.
fn parameters(query: &Value, names: [&'static str; 8]) -> Vec<(&'static str, String)> {
    let text = |field: &str| match &query[field] {
        Value::String(text) => text.clone(),
        Value::Number(number) if field.starts_with("Duration") && number.as_u64() > Some(0) => format!("{number}ns"),
        Value::Number(number) if !field.starts_with("Duration") => number.to_string(),
        // A tag is a text for Jaeger's clients.
        Value::Object(tags) => {
            let texts = tags.iter().map(|(key, value)| match value {
                Value::String(text) => (key.clone(), text.clone()),
                other => (key.clone(), other.to_string()),
            });
            serde_json::to_string(&texts.collect::<std::collections::BTreeMap<_, _>>()).expect("JSON")
        }
        _ => String::new(),
    };
    let fields = [
        "ServiceName",
        "OperationName",
        "Tags",
        "StartTimeMin",
        "StartTimeMax",
        "DurationMin",
        "DurationMax",
        "NumTraces",
    ];
    names.into_iter().zip(fields.map(text)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_search_finds_the_traces_that_jaeger_s_storages_must_find() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    load(&server).await;
    let legacy = [
        "service",
        "operation",
        "tags",
        "start",
        "end",
        "minDuration",
        "maxDuration",
        "limit",
    ];
    let v3 = [
        "query.serviceName",
        "query.operationName",
        "query.attributes",
        "query.startTimeMin",
        "query.startTimeMax",
        "query.durationMin",
        "query.durationMax",
        "query.searchDepth",
    ];
    let cases = read("integration/queries.json");
    for case in cases.as_array().expect("a list") {
        let fixtures = case["ExpectedFixtures"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str);
        let expected: BTreeSet<String> = fixtures
            .flat_map(|name| ids(&read(&format!("integration/queries/{name}.json")), "spans", "traceId"))
            .collect();
        let caption = &case["Caption"];
        let found = get(&server, "/jaeger/api/traces", &parameters(&case["Query"], legacy)).await;
        assert_eq!(ids(&found.json(), "data", "traceID"), expected, "{caption}");
        let found = get(&server, "/jaeger/api/v3/trace-summaries", &parameters(&case["Query"], v3)).await;
        assert_eq!(ids(&found.json(), "summaries", "traceId"), expected, "{caption}");
        let found = get(&server, "/jaeger/api/v3/traces", &parameters(&case["Query"], v3)).await;
        assert_eq!(ids(&found.json(), "spans", "traceId"), expected, "{caption}");
    }
    server.stop().await;
}

/// A search in TraceQL.
fn traceql(query: &Value) -> String {
    let quoted = |text: &Value| format!("\"{}\"", text.as_str().unwrap_or_default());
    let mut terms = vec![format!("resource.service.name = {}", quoted(&query["ServiceName"]))];
    if query["OperationName"] != "" {
        terms.push(format!("name = {}", quoted(&query["OperationName"])));
    }
    for (key, value) in query["Tags"].as_object().into_iter().flatten() {
        let value = if value.is_string() { quoted(value) } else { value.to_string() };
        let anywhere = ["", "instrumentation", "event", "link"].map(|scope| format!("{scope}.{key} = {value}"));
        terms.push(format!("({})", anywhere.join(" || ")));
    }
    for (field, operator) in [("DurationMin", ">="), ("DurationMax", "<=")] {
        if let Some(bound) = query[field].as_u64().filter(|bound| *bound > 0) {
            terms.push(format!("duration {operator} {bound}ns"));
        }
    }
    format!("{{ {} }}", terms.join(" && "))
}

#[tokio::test(flavor = "multi_thread")]
async fn tempo_s_search_finds_the_same_traces() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    load(&server).await;
    let cases = read("integration/queries.json");
    for case in cases.as_array().expect("a list") {
        let names = case["ExpectedFixtures"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str);
        let fixtures: Vec<Value> = names.map(|name| read(&format!("integration/queries/{name}.json"))).collect();
        let expected: BTreeSet<String> = fixtures.iter().flat_map(|fixture| ids(fixture, "spans", "traceId")).collect();
        let [start, end] = ["StartTimeMin", "StartTimeMax"].map(|field| case["Query"][field].as_str().expect("a time").to_owned());
        let parameters = [
            ("q", traceql(&case["Query"])),
            ("start", start),
            ("end", end),
            ("limit", "1000".to_owned()),
        ];
        let found = get(&server, "/tempo/api/search", &parameters).await;
        let found: BTreeSet<String> = ids(&found.json(), "traces", "traceID")
            .iter()
            .map(|id| format!("{id:0>32}"))
            .collect();
        assert_eq!(found, expected, "{}", case["Caption"]);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn otlp_becomes_jaeger_s_json() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let body = std::fs::read(testdata("otlp2jaeger-in.json")).expect("a fixture");
    let reply = server.post(server.http(), "/jaeger/api/transform", &OTLP_JSON, body).await;
    assert_eq!((reply.status, reply.json()), (200, read("otlp2jaeger-out.json")));
    let reply = server
        .post(server.http(), "/jaeger/api/transform", &OTLP_JSON, b"[]".to_vec())
        .await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["errors"][0]["code"], 400);
    server.stop().await;
}
