//! The OpenAPI document says what the server does: the same paths, and the fields of real answers.

use std::collections::BTreeSet;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{START_NS, TestServer, config, hex, profiles, span, traces};

fn document() -> Value {
    serde_json::from_str(include_str!("../../../../docs/openapi.json")).expect("JSON")
}

#[test]
fn the_document_and_the_router_have_the_same_paths() {
    let document = document();
    let documented: BTreeSet<&str> = document["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
    let served: BTreeSet<&str> = spanflame_server::paths().into_iter().collect();
    assert_eq!(documented, served);
}

/// Checks `value` against a schema: no field that is not documented, none missing that is required.
fn check_schema(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.strip_prefix('#').expect("local");
        return check_schema(document, document.pointer(pointer).expect("defined"), value, at);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = types.contains(&actual) || (actual == "integer" && types.contains(&"number"));
    assert!(fits, "{at} is {actual}, documented as {types:?}");
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at} is {value}, documented as {words:?}");
    }
    match value {
        Value::Object(fields) => check_fields(document, schema, fields, at),
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                check_schema(document, &schema["items"], item, &format!("{at}[{n}]"));
            }
        }
        _ => {}
    }
}

fn check_fields(document: &Value, schema: &Value, fields: &serde_json::Map<String, Value>, at: &str) {
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(fields.contains_key(required), "{at} lacks {required}");
    }
    for (name, field) in fields {
        let at = format!("{at}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(true)) => {}
            (Value::Null, others @ Value::Object(_)) => check_schema(document, others, field, &at),
            (Value::Null, _) => panic!("{at} is not documented"),
            (documented, _) => check_schema(document, documented, field, &at),
        }
    }
}

async fn check_answer(server: &TestServer, documented_path: &str, path_and_query: &str) {
    let document = document();
    let reply = server.get(path_and_query).await;
    let schema = &document["paths"][documented_path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(reply.status, 200, "{path_and_query}: {}", reply.text());
    check_schema(&document, schema, &reply.json(), documented_path);
}

#[tokio::test(flavor = "multi_thread")]
async fn real_answers_have_the_documented_fields() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let spans = vec![span(1, 1, 0, "GET /", 0), span(1, 2, 1, "work", 10), span(1, 3, 8, "orphan", 20)];
    server.send("/v1/traces", &traces("cart", spans)).await;
    server.send("/v1development/profiles", &profiles("cart", 1, 2, 15, 5)).await;

    let trace = format!("/api/v1/traces/{}", hex(1, 16));
    let range = format!("start={START_NS}&end={}", START_NS + 1_000_000_000);
    check_answer(&server, "/api/v1/traces/{trace_id}", &trace).await;
    check_answer(&server, "/api/v1/traces/{trace_id}/profile", &format!("{trace}/profile")).await;
    for (id, scope) in [(2, "span"), (3, "span"), (1, "subtree"), (1, "window")] {
        let path = format!("{trace}/spans/{}/profile?scope={scope}", hex(id, 8));
        check_answer(&server, "/api/v1/traces/{trace_id}/spans/{span_id}/profile", &path).await;
    }
    for scope in ["span", "subtree", "window"] {
        let path = format!("{trace}/spans/{}/samples?scope={scope}", hex(2, 8));
        check_answer(&server, "/api/v1/traces/{trace_id}/spans/{span_id}/samples", &path).await;
    }
    check_answer(&server, "/api/v1/traces/{trace_id}/samples", &format!("{trace}/samples")).await;
    check_answer(&server, "/api/v1/spans", &format!("/api/v1/spans?{range}&limit=1")).await;
    for scope in ["span", "subtree"] {
        let path = format!("/api/v1/spans/profile?{range}&scope={scope}&range=start");
        check_answer(&server, "/api/v1/spans/profile", &path).await;
    }
    let path = format!("/api/v1/spans/histogram?{range}&buckets=5&rows=7");
    check_answer(&server, "/api/v1/spans/histogram", &path).await;
    for (documented, path) in [
        ("/api/v1/attributes", format!("/api/v1/attributes?{range}")),
        (
            "/api/v1/attributes/{scope}/{key}/values",
            format!("/api/v1/attributes/resource/service.name/values?{range}"),
        ),
        (
            "/api/v1/spans/attributes/compare",
            format!(
                "/api/v1/spans/attributes/compare?target_trace={}&base_{}",
                hex(1, 16),
                range.replace("&", "&base_")
            ),
        ),
    ] {
        check_answer(&server, documented, &path).await;
    }
    for more in ["", "&by=service.name&by=region&limit=1&buckets=7"] {
        let path = format!("/api/v1/profile/series?{range}{more}");
        check_answer(&server, "/api/v1/profile/series", &path).await;
    }
    let end = START_NS + 1_000_000_000;
    let side = |name: &str, more: &str| format!("{name}_start={START_NS}&{name}_end={end}{more}");
    for (base, target) in [
        (side("base", ""), format!("target_trace={}", hex(1, 16))),
        (side("base", "&base_labels={}"), side("target", "&target_labels={}")),
    ] {
        check_answer(&server, "/api/v1/compare", &format!("/api/v1/compare?{base}&{target}")).await;
    }
    check_answer(&server, "/api/v1/services", &format!("/api/v1/services?{range}&buckets=3")).await;
    for name in ["profile", "services", "profile-types", "labels"] {
        let path = format!("/api/v1/{name}");
        check_answer(&server, &path, &format!("{path}?{range}")).await;
    }
    let values = format!("/api/v1/labels/service.name/values?{range}");
    check_answer(&server, "/api/v1/labels/{name}/values", &values).await;
    check_answer(&server, "/api/v1/openapi.json", "/api/v1/openapi.json").await;

    let document = document();
    let taken = server
        .post(server.http(), "/api/v1/ingest?service=x&format=collapsed", &[], b"a;b 1\n".to_vec())
        .await;
    check_schema(&document, &document["components"]["schemas"]["Taken"], &taken.json(), "ingest");
    let types = async || server.get("/api/v1/profile-types").await.json()["profile_types"].clone();
    let before = types().await;
    let file = b"a;b 1\na 2\n".to_vec();
    let viewed = server.post(server.http(), "/api/v1/view?file=x.collapsed", &[], file).await;
    assert_eq!(viewed.json()["samples"], 3);
    check_schema(&document, &document["components"]["schemas"]["Viewed"], &viewed.json(), "view");
    assert_eq!(types().await, before, "nothing is stored");
    let error = server.get("/api/v1/spans?q=%7B").await.json();
    check_schema(&document, &document["components"]["schemas"]["Error"], &error, "error");
    server.stop().await;
}
