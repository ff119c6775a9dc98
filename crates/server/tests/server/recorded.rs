//! Requests that real clients sent, and what their programs know to be true (`testdata/recorded`).
//!
//! In every program `planted_hot_path` runs in slow requests only and `ordinary_work` in fast ones only.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Reply, TestServer, config};

const HOT: &str = "planted_hot_path";
const ORDINARY: &str = "ordinary_work";

/// A folder of recorded requests.
struct Recording(PathBuf);

/// A request that the program itself wrote down.
struct Truth {
    slow: bool,
    trace_id: String,
    root: String,
    child: String,
    /// 0 where the program did not write it down.
    start_ns: i64,
}

impl Recording {
    fn of(client: &str) -> Recording {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recorded");
        Recording(root.join(client))
    }

    fn read(&self, name: &str) -> Vec<u8> {
        let path = self.0.join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn truth(&self) -> Vec<Truth> {
        let text = String::from_utf8(self.read("truth.tsv")).expect("UTF-8");
        let truth = text.lines().skip(1).map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            Truth {
                slow: fields[0] == "slow",
                trace_id: fields[1].to_owned(),
                root: fields[2].to_owned(),
                child: fields[3].to_owned(),
                start_ns: fields[4].parse().unwrap_or(0),
            }
        });
        truth.collect()
    }

    /// Files of the folder that begin and end so, in order.
    fn files(&self, begin: &str, end: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
        let mut names: Vec<String> = names.filter(|name| name.starts_with(begin) && name.ends_with(end)).collect();
        names.sort();
        assert!(!names.is_empty(), "no {begin}*{end}");
        names
    }

    /// Sends every request of a kind as it was received, to the path it was sent to.
    async fn replay(&self, server: &TestServer, kind: &str) {
        for file in self.files(&format!("{kind}-"), ".body") {
            let about = String::from_utf8(self.read(&file.replace(".body", ".request.txt"))).expect("UTF-8");
            let path = about.split(' ').nth(1).expect("a request line").to_owned();
            let headers: Vec<(&str, &str)> = about
                .lines()
                .filter_map(|line| line.split_once(": "))
                .filter(|(name, _)| ["content-type", "content-encoding", "grpc-encoding"].contains(&name.to_lowercase().as_str()))
                .collect();
            if headers.iter().any(|(_, value)| *value == "application/grpc") {
                let reply = server.grpc(server.otlp_grpc(), &path, &headers[1..], self.read(&file)).await;
                assert_eq!(
                    (reply.status, reply.header("grpc-status")),
                    (200, ""),
                    "{file}: {}",
                    reply.header("grpc-message")
                );
            } else {
                let at = if path.starts_with("/v1") {
                    server.otlp_http()
                } else {
                    server.http()
                };
                let reply = server.post(at, &path, &headers, self.read(&file)).await;
                assert_eq!(reply.status, 200, "{file}: {}", reply.text());
            }
        }
    }
}

async fn start() -> (TempDir, TestServer) {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    (directory, server)
}

async fn span_profile(server: &TestServer, truth: &Truth, span: &str, query: &str) -> Reply {
    let reply = server
        .get(&format!("/api/v1/traces/{}/spans/{span}/profile?{query}", truth.trace_id))
        .await;
    assert_eq!(reply.status, 200, "{}: {}", truth.trace_id, reply.text());
    reply
}

fn reasons(profile: &Value) -> Vec<&str> {
    let reasons = profile["evidence"]["reasons"].as_array().expect("reasons");
    reasons.iter().filter_map(|reason| reason["code"].as_str()).collect()
}

/// Every slow root has the hot function below it and no fast one has; a child has no samples of its own, and
/// its reasons name the root.
async fn check_local_root(server: &TestServer, recording: &Recording, requests: (usize, usize)) {
    let truth = recording.truth();
    let slow = truth.iter().filter(|truth| truth.slow).count();
    assert_eq!((truth.len(), slow), requests);
    for request in &truth {
        let stacks = span_profile(server, request, &request.root, "scope=subtree&format=collapsed")
            .await
            .text();
        assert_eq!(stacks.contains(HOT), request.slow, "{}: {stacks}", request.trace_id);
        assert!(!(request.slow && stacks.contains(ORDINARY)), "{}: {stacks}", request.trace_id);
    }
    for request in truth.iter().filter(|truth| truth.slow).take(10) {
        let child = span_profile(server, request, &request.child, "scope=span").await.json();
        assert_eq!(child["samples"], 0);
        assert!(reasons(&child).contains(&"held_by_local_root"), "{child}");
        let hint = child["evidence"]["reasons"][0].to_string();
        assert!(hint.contains(&request.root), "{hint}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn go_labels_of_the_local_root_find_the_slow_requests() {
    let (_directory, server) = start().await;
    let recording = Recording::of("go-rootspan");
    recording.replay(&server, "traces").await;
    recording.replay(&server, "cpu").await;
    check_local_root(&server, &recording, (929, 186)).await;
    server.stop().await;
}

/// One call of Pyroscope's querier, as JSON.
async fn querier(server: &TestServer, method: &str, question: Value) -> Value {
    let path = format!("/querier.v1.QuerierService/{method}");
    let headers = [("content-type", "application/json")];
    let reply = server.post(server.http(), &path, &headers, question.to_string().into_bytes()).await;
    assert_eq!(reply.status, 200, "{method}: {}", reply.text());
    reply.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn grafana_finds_the_slow_requests_of_go_by_span_id_alone() {
    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let (_directory, server) = start().await;
    let recording = Recording::of("go-rootspan");
    for kind in ["traces", "cpu", "goroutine", "mem", "mutex", "block"] {
        recording.replay(&server, kind).await;
    }
    let truth = recording.truth();
    for request in truth
        .iter()
        .filter(|truth| truth.slow)
        .chain(truth.iter().filter(|truth| !truth.slow).take(100))
    {
        let start_ms = request.start_ns / 1_000_000;
        let question = json!({
            "profileTypeID": CPU, "labelSelector": "{service_name=\"zoo-go\"}", "spanSelector": [request.root],
            "start": (start_ms - 30_000).to_string(), "end": (start_ms + 30_000).to_string(),
        });
        let graph = &querier(&server, "SelectMergeSpanProfile", question).await["flamegraph"];
        let names = graph["names"].to_string();
        assert_eq!(names.contains(HOT), request.slow, "{}: {names}", request.root);
        assert!(!(request.slow && names.contains(ORDINARY)), "{}: {names}", request.root);
    }
    let around = (truth[0].start_ns / 1_000_000 - 60_000, truth[0].start_ns / 1_000_000 + 120_000);
    let range = |mut question: Value| {
        question["start"] = json!(around.0);
        question["end"] = json!(around.1);
        question
    };
    let types = querier(&server, "ProfileTypes", range(json!({}))).await;
    let types: Vec<&str> = types["profileTypes"]
        .as_array()
        .expect("types")
        .iter()
        .filter_map(|one| one["ID"].as_str())
        .collect();
    for expected in [
        CPU,
        "memory:inuse_space:bytes:space:bytes",
        "goroutine:goroutine:count:goroutine:count",
    ] {
        assert!(types.contains(&expected), "{types:?}");
    }
    // Equal types under two names: only the name tells them apart.
    for name in ["mutex", "block"] {
        let one = format!("{name}:delay:nanoseconds:contentions:count");
        assert!(types.contains(&one.as_str()), "{types:?}");
        let question = range(json!({ "name": "__name__", "matchers": [format!("{{__profile_type__=\"{one}\"}}")] }));
        assert_eq!(querier(&server, "LabelValues", question).await["names"], json!([name]));
    }
    let series = querier(&server, "Series", range(json!({ "labelNames": ["service_name", "region"] }))).await;
    let expected = json!([{ "labels": [{ "name": "region", "value": "eu-1" }, { "name": "service_name", "value": "zoo-go" }] }]);
    assert_eq!(series["labelsSet"], expected);
    let listed = querier(&server, "LabelNames", range(json!({}))).await.to_string();
    assert!(!listed.contains("span_id") && !listed.contains("session"), "{listed}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_labels_set_by_hand_find_the_slow_requests() {
    let (_directory, server) = start().await;
    let recording = Recording::of("rust-pyroscope");
    recording.replay(&server, "traces").await;
    recording.replay(&server, "push").await;
    check_local_root(&server, &recording, (788, 157)).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ebpf_profiler_names_spans_in_sample_attributes() {
    let (_directory, server) = start().await;
    let recording = Recording::of("ebpf-profiler");
    recording.replay(&server, "profiles").await;
    let mut found = [0, 0];
    for request in recording.truth() {
        let reply = server
            .get(&format!("/api/v1/traces/{}/profile?format=collapsed", request.trace_id))
            .await;
        // A request without a sample was never heard of: its spans were not sent.
        if reply.status == 404 {
            continue;
        }
        let stacks = reply.text();
        assert!(
            !stacks.contains(if request.slow { ORDINARY } else { HOT }),
            "{}: {stacks}",
            request.trace_id
        );
        found[usize::from(request.slow && stacks.contains(HOT))] += 1;
    }
    assert!(found[0] > 0 && found[1] > 0, "{found:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_without_labels_is_found_by_time_and_place_only() {
    let (_directory, server) = start().await;
    let recording = Recording::of("python-stackprofiler");
    recording.replay(&server, "traces").await;
    recording.replay(&server, "push").await;
    let truth = recording.truth();
    let request = truth.iter().find(|truth| truth.slow).expect("a slow request");
    let own = span_profile(&server, request, &request.root, "scope=span").await.json();
    assert_eq!(own["samples"], 0);
    assert!(reasons(&own).contains(&"samples_without_link"), "{own}");
    let around = span_profile(&server, request, &request.root, "scope=window").await.json();
    assert!(around["samples"].as_u64().expect("a count") > 0, "{around}");
    assert_eq!(around["evidence"]["window_match"], "service");
    assert!(around["frames"].to_string().contains(HOT));
    server.stop().await;
}

/// Every profile type that is stored.
async fn profile_types(server: &TestServer) -> Vec<String> {
    let types = server.get("/api/v1/profile-types?start=0&end=9000000000000000000").await.json();
    let types = types["profile_types"].as_array().unwrap_or_else(|| panic!("{types}"));
    types.iter().filter_map(|one| Some(one["type"].as_str()?.to_owned())).collect()
}

/// How many requests have the function of their kind in their trace's profile; none has the other's.
async fn check_kinds(server: &TestServer, recording: &Recording) -> (usize, usize) {
    let mut found = (0, 0);
    for request in recording.truth() {
        let path = format!("/api/v1/traces/{}/profile?format=collapsed", request.trace_id);
        let reply = server.get(&path).await;
        // A request of which neither a span nor a sample was recorded.
        if reply.status == 404 {
            continue;
        }
        let stacks = reply.text();
        let (own, other) = if request.slow { (HOT, ORDINARY) } else { (ORDINARY, HOT) };
        assert!(!stacks.contains(other), "{}: {stacks}", request.trace_id);
        if stacks.contains(own) {
            *if request.slow { &mut found.0 } else { &mut found.1 } += 1;
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn go_profiles_that_differ_in_display_name_only_are_kept_apart() {
    let (_directory, server) = start().await;
    let recording = Recording::of("go-rootspan");
    for kind in ["goroutine", "mem", "mutex", "block"] {
        recording.replay(&server, kind).await;
    }
    let types = profile_types(&server).await;
    for expected in [
        "block:contentions:count:contentions:count",
        "block:delay:nanoseconds:contentions:count",
        "goroutine:goroutine:count:goroutine:count",
        "memory:alloc_objects:count:space:bytes",
        "memory:alloc_space:bytes:space:bytes",
        "memory:inuse_objects:count:space:bytes",
        "memory:inuse_space:bytes:space:bytes",
        "mutex:contentions:count:contentions:count",
        "mutex:delay:nanoseconds:contentions:count",
    ] {
        assert!(types.contains(&expected.to_owned()), "{expected}: {types:?}");
    }
    // `until` of the request, where these profiles say that they took no time.
    let before = "/api/v1/profile?type=mutex:delay:nanoseconds:contentions:count&start=1796076320462179604&end=1796076320462179605";
    assert!(server.get(before).await.json()["samples"].as_u64().expect("a count") > 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_labels_on_the_root_find_the_slow_requests() {
    let (_directory, server) = start().await;
    let recording = Recording::of("node-pyroscope");
    recording.replay(&server, "traces").await;
    recording.replay(&server, "ingest").await;
    let (slow, fast) = check_kinds(&server, &recording).await;
    assert!(slow > 90 && fast > 90, "{slow} {fast}");
    // The profiles say their end; with it as their beginning the first one would begin after this.
    let early = server
        .get("/api/v1/profile?start=1796077097000000000&end=1796077102000000000")
        .await
        .json();
    assert!(early["samples"].as_u64().expect("a count") > 0, "{early}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn java_events_without_trace_ids_are_found_through_their_spans() {
    let (_directory, server) = start().await;
    let recording = Recording::of("java-agent-otel");
    recording.replay(&server, "ingest").await;
    recording.replay(&server, "traces").await;
    let mut slow_with_samples = 0;
    for request in recording.truth() {
        let path = format!(
            "/api/v1/traces/{}/spans/{}/profile?scope=subtree&format=collapsed",
            request.trace_id, request.root
        );
        let reply = server.get(&path).await;
        // Only a part of the traces was recorded.
        if reply.status == 404 {
            continue;
        }
        let stacks = reply.text();
        assert!(
            !stacks.contains(if request.slow { ORDINARY } else { HOT }),
            "{}: {stacks}",
            request.trace_id
        );
        slow_with_samples += usize::from(request.slow && stacks.contains(HOT));
    }
    assert!(slow_with_samples > 50, "{slow_with_samples}");
    let types = profile_types(&server).await;
    assert!(
        types.contains(&"memory:alloc_in_new_tlab_bytes:bytes:space:bytes".to_owned()),
        "{types:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_of_async_profiler_is_an_upload_as_any_other() {
    let (_directory, server) = start().await;
    let recording = Recording::of("async-profiler");
    let reply = server
        .post(server.http(), "/api/v1/ingest?service=zoo", &[], recording.read("cpu.jfr"))
        .await;
    assert_eq!(
        (reply.status, &reply.json()["accepted"]),
        (200, &Value::from(1)),
        "{}",
        reply.text()
    );
    let reply = server.get("/api/v1/profile?start=0&end=9000000000000000000&format=collapsed").await;
    assert!(reply.text().contains(HOT) && reply.text().contains(ORDINARY));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn datadog_labels_are_found_without_any_trace() {
    let (_directory, server) = start().await;
    let recording = Recording::of("node-datadog-pprof");
    recording.replay(&server, "ingest").await;
    let (slow, fast) = check_kinds(&server, &recording).await;
    assert!(slow > 10 && fast > 10, "{slow} {fast}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn asyncio_samples_are_counted_and_claimed_by_no_span() {
    let (_directory, server) = start().await;
    let recording = Recording::of("python-asyncio");
    recording.replay(&server, "traces").await;
    recording.replay(&server, "push").await;
    let (mut owned, mut ambiguous) = (0, 0);
    for request in recording.truth() {
        let path = format!("/api/v1/traces/{}/spans/{}/profile?scope=span", request.trace_id, request.root);
        let reply = server.get(&path).await;
        if reply.status == 404 {
            continue;
        }
        let profile = reply.json();
        owned += profile["samples"].as_u64().expect("a count");
        ambiguous += profile["evidence"]["ambiguous"].as_u64().expect("a count");
    }
    assert_eq!(owned, 0, "every sample with an id names several");
    assert!(ambiguous > 100, "{ambiguous}");
    assert_eq!(server.metric("spanflame_ingest_stored_total{kind=\"samples\"}").await, 217.0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_memory_belongs_to_no_span_and_its_cpu_series_to_its_spans() {
    let (_directory, server) = start().await;
    let recording = Recording::of("python-memory");
    recording.replay(&server, "traces").await;
    recording.replay(&server, "push").await;
    let (slow, fast) = check_kinds(&server, &recording).await;
    assert!(slow > 20 && fast > 20, "{slow} {fast}");
    let memory = "memory:alloc_space:bytes:space:bytes";
    assert!(profile_types(&server).await.contains(&memory.to_owned()));
    for request in recording.truth() {
        let path = format!("/api/v1/traces/{}/profile?type={memory}", request.trace_id);
        let reply = server.get(&path).await;
        assert!(reply.status == 404 || reply.json()["samples"] == 0, "{}", reply.text());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collector_in_between_stores_nothing_twice() {
    let (_directory, server) = start().await;
    let relayed = Recording::of("otelcol-relay");
    Recording::of("ebpf-profiler").replay(&server, "profiles").await;
    Recording::of("java-agent-otlp").replay(&server, "profiles").await;
    Recording::of("go-rootspan").replay(&server, "traces").await;
    let stored = async || {
        let spans = server.metric("spanflame_ingest_stored_total{kind=\"spans\"}").await;
        (spans, server.metric("spanflame_ingest_stored_total{kind=\"samples\"}").await)
    };
    let before = stored().await;
    relayed.replay(&server, "profiles").await;
    relayed.replay(&server, "traces").await;
    assert_eq!(stored().await, before);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn java_over_otlp_has_its_totals_and_no_service() {
    let (_directory, server) = start().await;
    let recording = Recording::of("java-agent-otlp");
    recording.replay(&server, "profiles").await;
    let services = server.get("/api/v1/services?start=0&end=9000000000000000000").await.json();
    assert_eq!(services["services"][0]["name"], "unknown_service", "{services}");
    let profile = server.get("/api/v1/profile?start=0&end=9000000000000000000").await.json();
    assert!(profile["total"].as_i64().expect("a total") > 0, "{}", profile["evidence"]);
    assert!(profile["frames"].to_string().contains(HOT));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_traces_in_json_are_whole() {
    let (_directory, server) = start().await;
    let recording = Recording::of("node-otlp-json-traces");
    recording.replay(&server, "traces").await;
    let truth = recording.truth();
    let mut complete = 0;
    for request in &truth {
        let reply = server.get(&format!("/api/v1/traces/{}", request.trace_id)).await;
        if reply.status == 404 {
            continue;
        }
        let trace = reply.json();
        let ids: Vec<&str> = trace["spans"]
            .as_array()
            .expect("spans")
            .iter()
            .filter_map(|span| span["span_id"].as_str())
            .collect();
        complete += usize::from(ids.contains(&request.root.as_str()) && ids.contains(&request.child.as_str()));
    }
    // One batch of the exporter was recorded; it holds both spans of this many requests.
    assert_eq!((truth.len(), complete), (482, 62));
    server.stop().await;
}
