//! The native API: what it answers, and how it says no.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{START_NS, TestServer, attribute, config, hex, profiles, span, traces};

/// A trace of a root, a child that ran 5 observations, and a span without samples.
async fn start() -> (TempDir, TestServer) {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let spans = vec![span(1, 1, 0, "GET /", 0), span(1, 2, 1, "work", 10), span(1, 3, 1, "wait", 20)];
    server.send("/v1/traces", &traces("cart", spans)).await;
    server.send("/v1development/profiles", &profiles("cart", 1, 2, 15, 5)).await;
    (directory, server)
}

fn path(span: u8, query: &str) -> String {
    format!("/api/v1/traces/{}/spans/{}/profile?{query}", hex(1, 16), hex(span, 8))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_shows_its_spans_and_what_was_profiled_in_them() {
    let (_directory, server) = start().await;
    let trace = server.get(&format!("/api/v1/traces/{}", hex(1, 16))).await.json();
    assert_eq!(trace["trace_id"], hex(1, 16));
    assert_eq!(trace["start_unix_nano"], START_NS.to_string());
    assert_eq!(trace["end_unix_nano"], (START_NS + 120_000_000).to_string());
    assert_eq!(trace["services"], json!(["cart"]));
    assert_eq!(trace["complete"], true);
    let names: Vec<&Value> = trace["spans"].as_array().expect("spans").iter().map(|span| &span["name"]).collect();
    assert_eq!(names, ["GET /", "work", "wait"]);
    let work = &trace["spans"][1];
    assert_eq!(work["parent_span_id"], hex(1, 8));
    assert_eq!(work["local_root_span_id"], hex(1, 8));
    assert_eq!(work["duration_ns"], 100_000_000);
    assert_eq!(work["resource"], json!({ "service.name": "cart" }));
    assert_eq!(
        work["profiles"],
        json!({
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds": { "samples": 5, "value": 50_000_000 },
            "process_cpu:samples:count:cpu:nanoseconds": { "samples": 5, "value": 5 },
        })
    );
    assert_eq!(trace["spans"][2]["profiles"], json!({}));
    assert!(trace["took_ms"].is_number());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pprof_of_everything_lasts_as_long_as_its_profiles() {
    let (_directory, server) = start().await;
    let pprof = server
        .ask("/api/v1/profile", &[("q", "{}"), ("start", "0"), ("format", "pprof")])
        .await;
    let decoded = spanflame_formats::pprof::decode(&pprof.body, &Default::default(), &Default::default()).expect("a pprof");
    let info = &decoded.batch.profiles[0].info;
    assert_eq!((info.start.unix_nanos() as u64, info.duration_ns), (START_NS, 1_000_000_000));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_that_nobody_sent_has_no_unit() {
    let (_directory, server) = start().await;
    let profile = server.get(&path(2, "type=nope")).await.json();
    assert_eq!((&profile["type"], &profile["total"]), (&json!("nope"), &json!(0)));
    assert!(profile.get("unit").is_none(), "{profile}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_profile_is_a_tree_with_its_evidence() {
    let (_directory, server) = start().await;
    let profile = server.get(&path(2, "scope=span&type=cpu")).await.json();
    assert_eq!(profile["type"], "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
    assert_eq!((&profile["unit"], &profile["scope"]), (&json!("nanoseconds"), &json!("span")));
    assert_eq!((&profile["total"], &profile["samples"]), (&json!(50_000_000), &json!(5)));
    let tree = &profile["tree"];
    assert_eq!(tree["parent"], json!([0, 0, 1]));
    assert_eq!(tree["self"], json!([0, 0, 50_000_000]));
    assert_eq!(tree["samples"], json!([5, 5, 5]));
    let leaf = tree["frame"][2].as_u64().expect("an index") as usize;
    assert_eq!(profile["frames"][leaf]["function"], "work");
    assert_eq!(profile["frames"][leaf]["line"], 20);
    assert_eq!(profile["evidence"]["period_ns"], 10_000_000);
    assert_eq!(profile["evidence"]["precision"]["span"], 5);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_comes_in_every_format() {
    let (_directory, server) = start().await;
    let collapsed = server.get(&path(2, "format=collapsed")).await;
    assert_eq!(collapsed.text(), "main;work 50000000\n");
    let speedscope = server.get(&path(2, "format=speedscope")).await.json();
    assert_eq!(speedscope["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let pprof = server.get(&path(2, "format=pprof")).await;
    assert_eq!((pprof.status, &pprof.body[..2]), (200, &[0x1f, 0x8b][..]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_profile_says_why_in_every_format() {
    let (_directory, server) = start().await;
    let profile = server.get(&path(3, "")).await;
    assert_eq!(profile.status, 200);
    let code = profile.json()["evidence"]["reasons"][0]["code"]
        .as_str()
        .expect("a reason")
        .to_owned();
    assert_eq!(profile.json()["total"], 0);
    for format in ["collapsed", "speedscope"] {
        let text = server.get(&path(3, &format!("format={format}"))).await;
        assert_eq!((text.status, text.text().as_str()), (200, ""));
        assert!(text.header("x-spanflame-reason").split(", ").any(|other| other == code));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_that_only_samples_name_is_answered() {
    let (_directory, server) = start().await;
    server.send("/v1development/profiles", &profiles("cart", 1, 9, 30, 2)).await;
    let profile = server.get(&path(9, "")).await.json();
    assert_eq!(profile["samples"], 2);
    assert_eq!(profile["evidence"]["reasons"][0]["code"], "span_not_received");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_are_found_paged_and_ordered() {
    let (_directory, server) = start().await;
    let (start, end) = (START_NS.to_string(), (START_NS + 1_000_000_000).to_string());
    let mut query = vec![
        ("q", "{ resource.service.name = \"cart\" }"),
        ("start", &start),
        ("end", &end),
        ("order", "start"),
        ("limit", "2"),
    ];
    let first = server.ask("/api/v1/spans", &query).await.json();
    assert_eq!(first["matched"], 3);
    let page = first["next_page"].as_str().expect("another page").to_owned();
    query.push(("page", &page));
    let second = server.ask("/api/v1/spans", &query).await.json();
    let names: Vec<&Value> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["spans"].as_array().expect("spans"))
        .map(|span| &span["name"])
        .collect();
    assert_eq!(names, ["wait", "work", "GET /"]);
    assert_eq!(second.get("next_page"), None);
    assert_eq!(
        (&first["spans"][1]["cpu_ns"], &first["spans"][1]["samples"]),
        (&json!(50_000_000), &json!(5))
    );
    assert_eq!(first["spans"][0].get("cpu_ns"), None);
    assert_eq!(first["spans"][0]["root_name"], "GET /");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_over_time_have_a_profile_and_a_catalog() {
    let (_directory, server) = start().await;
    let (start, end) = (START_NS.to_string(), (START_NS + 1_000_000_000).to_string());
    let range = [("start", start.as_str()), ("end", end.as_str())];
    let mut query = range.to_vec();
    query.push(("q", "{ service.name=\"cart\" }"));
    assert_eq!(server.ask("/api/v1/profile", &query).await.json()["total"], 50_000_000);
    let services = server.ask("/api/v1/services", &range).await.json();
    assert_eq!(
        (&services["services"][0]["name"], &services["services"][0]["spans"]),
        (&json!("cart"), &json!(3))
    );
    let types = server.ask("/api/v1/profile-types", &range).await.json();
    assert_eq!(types["profile_types"][0]["services"], json!(["cart"]));
    let labels = server.ask("/api/v1/labels", &range).await.json();
    assert!(
        labels["labels"].as_array().expect("labels").contains(&json!("service.name")),
        "{labels}"
    );
    let values = server.ask("/api/v1/labels/service.name/values", &range).await.json();
    assert_eq!(values["values"], json!(["cart"]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_do_not_see_each_other_unless_both_are_named() {
    let (_directory, server) = start().await;
    let path = format!("/api/v1/traces/{}", hex(1, 16));
    assert_eq!(server.get_as(&path, &[("x-scope-orgid", "other")]).await.status, 404);
    let both = server.get_as(&path, &[("x-scope-orgid", "other|anonymous")]).await;
    assert_eq!((both.status, &both.json()["spans"][0]["tenant"]), (200, &json!("anonymous")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_listed_and_compared() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let sized = |id: u8| {
        let mut span = span(1 + id % 3, id, 0, "pay", u64::from(id));
        span.attributes = vec![attribute("cart/size", if id <= 10 { "large" } else { "small" })];
        span
    };
    server.send("/v1/traces", &traces("cart", (1..=60).map(sized).collect())).await;
    let range = [("start", "0")];
    let names = server.ask("/api/v1/attributes", &range).await.json();
    let expected = json!([
        { "scope": "span", "key": "cart/size", "value_types": ["string"], "spans": 60 },
        { "scope": "resource", "key": "service.name", "value_types": ["string"], "spans": 60 },
    ]);
    assert_eq!(names["attributes"], expected);
    let path = "/api/v1/attributes/span/cart%2Fsize/values";
    let values = server
        .ask(path, &[("start", "0"), ("q", "{ span:duration > 0 }"), ("limit", "1")])
        .await
        .json();
    assert_eq!(values["values"], json!([{ "value": "small", "value_type": "string", "spans": 50 }]));
    assert_eq!(values["truncated"], true);

    // The ten that began first are exactly the large ones.
    let until = (START_NS + 11_000_000).to_string();
    let sides = [
        ("base_start", "0"),
        ("target_start", "0"),
        ("target_end", &until),
        ("target_range", "start"),
    ];
    let compared = server.ask("/api/v1/spans/attributes/compare", &sides).await.json();
    assert_eq!((&compared["target"]["spans"], &compared["base"]["spans"]), (&json!(10), &json!(50)));
    let first = &compared["attributes"][0];
    assert_eq!(
        (&first["key"], &first["value"], &first["difference"]),
        (&json!("cart/size"), &json!("large"), &json!(1.0))
    );
    assert_eq!(compared["attributes"].as_array().map(Vec::len), Some(1));
    let one = [("base_start", "0"), ("target_trace", &hex(1, 16)), ("target_span", &hex(3, 8))];
    let one = server.ask("/api/v1/spans/attributes/compare", &one).await.json();
    assert_eq!((&one["target"]["spans"], &one["base"]["spans"]), (&json!(1), &json!(59)));
    check_error(
        &server,
        "/api/v1/spans/attributes/compare?base_q=%7B",
        400,
        "invalid_argument",
        Some("base_q"),
    )
    .await;
    check_error(&server, "/api/v1/attributes/spn/a/values", 400, "invalid_argument", Some("scope")).await;
    server.stop().await;
}

async fn check_error(server: &TestServer, path: &str, status: u16, code: &str, field: Option<&str>) -> Value {
    let reply = server.get(path).await;
    let error = reply.json()["error"].clone();
    assert_eq!(reply.status, status, "{path}: {error}");
    assert_eq!(
        (error["code"].as_str(), error.get("field").and_then(Value::as_str)),
        (Some(code), field),
        "{path}"
    );
    if path.starts_with("/api/") {
        assert_eq!(error["request_id"].as_str(), Some(reply.header("x-request-id")));
    }
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_the_field_and_what_was_expected() {
    let (_directory, server) = start().await;
    let invalid = "invalid_argument";
    check_error(&server, "/api/v1/traces/xyz", 400, invalid, Some("trace_id")).await;
    check_error(&server, "/api/v1/traces/00", 400, invalid, Some("trace_id")).await;
    check_error(&server, &path(2, "scope=all"), 400, invalid, Some("scope")).await;
    check_error(&server, &path(2, "format=svg"), 400, invalid, Some("format")).await;
    check_error(&server, &path(2, "typ=cpu"), 400, invalid, Some("typ")).await;
    check_error(&server, &path(2, "type=a:b"), 400, invalid, Some("type")).await;
    check_error(&server, "/api/v1/spans?limit=10001", 400, invalid, Some("limit")).await;
    check_error(&server, "/api/v1/spans?page=zzz", 400, invalid, Some("page")).await;
    check_error(&server, "/api/v1/spans?start=5&end=5", 400, invalid, Some("start")).await;
    check_error(&server, "/api/v1/profile?q=%7Ba", 400, invalid, Some("q")).await;
    check_error(&server, &format!("/api/v1/traces/{}", hex(7, 16)), 404, "not_found", None).await;
    check_error(&server, &path(8, ""), 404, "not_found", None).await;
    check_error(&server, "/api/v1/nothing", 404, "not_found", None).await;
    check_error(&server, "/api/v1/ingest", 405, "method_not_allowed", None).await;
    let error = check_error(&server, "/api/v1/spans?q=%7B%0A%20duration%20%3E%20%7D", 400, invalid, Some("q")).await;
    assert_eq!(error["line"], 2, "{error}");
    assert!(error["column"].is_number() && error["expected"].is_array(), "{error}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_taken_once_and_come_back() {
    let (_directory, server) = start().await;
    let ingest = format!("/api/v1/ingest?service=batch&format=collapsed&type=cpu/nanoseconds&time={START_NS}");
    let body = b"main;a 10\nmain;b 20\n".to_vec();
    let first = server.post(server.http(), &ingest, &[], body.clone()).await.json();
    assert_eq!((&first["accepted"], &first["duplicates"]), (&json!(1), &json!(0)));
    let again = server.post(server.http(), &ingest, &[], body).await.json();
    assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(1)));
    let (start, end) = (START_NS.to_string(), (START_NS + 1_000_000_000).to_string());
    let query = [
        ("q", "{service.name=\"batch\"}"),
        ("start", &start),
        ("end", &end),
        ("format", "collapsed"),
    ];
    let text = server.ask("/api/v1/profile", &query).await.text();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["main;a 10", "main;b 20"]);
    let unknown = server.post(server.http(), "/api/v1/ingest?format=xml", &[], Vec::new()).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["field"]), (400, &json!("format")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_files_come_in_one_request_and_a_bad_one_costs_itself() {
    let (_directory, server) = start().await;
    let part = |name: &str, text: &str| format!("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n{text}\r\n");
    let parts = [
        part("a.collapsed", "main;a 1\n"),
        part("b.pprof", "\0\0\0"),
        part("c.collapsed", "main;c 1\n"),
    ];
    let body = parts.concat() + "--b--\r\n";
    let headers = [("content-type", "multipart/form-data; boundary=b")];
    let reply = server
        .post(server.http(), "/api/v1/ingest?service=batch", &headers, body.into_bytes())
        .await;
    let taken = reply.json();
    assert_eq!((reply.status, &taken["accepted"]), (200, &json!(2)), "{taken}");
    let rejected = &taken["rejected"][0];
    assert_eq!(
        (&rejected["index"], &rejected["subject"], &rejected["reason"]),
        (&json!(1), &json!("file"), &json!("invalid_argument"))
    );
    let broken = server.post(server.http(), "/api/v1/ingest", &headers, b"--b\r\n".to_vec()).await;
    assert_eq!((broken.status, &broken.json()["error"]["field"]), (400, &json!("body")));
    server.stop().await;
}
