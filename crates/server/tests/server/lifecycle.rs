//! Starting, stopping, and what survives it.

use prost::Message;
use spanflame_server::{ErrorKind, Server};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{TestServer, config, hex, profiles, span, traces};

#[tokio::test(flavor = "multi_thread")]
async fn the_ready_file_names_the_bound_addresses_and_goes_with_the_server() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("ready.json");
    let mut config = config(directory.path());
    config.ready_file = Some(path.clone());
    let server = TestServer::start(config).await;
    let ready: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).expect("written")).expect("JSON");
    assert_eq!(ready["http"], server.http().to_string());
    assert_eq!(ready["otlp_grpc"], server.otlp_grpc().to_string());
    assert_eq!(ready["otlp_http"], server.otlp_http().to_string());
    assert_eq!(server.get("/readyz").await.status, 200);
    server.stop().await;
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn dialects_have_their_own_addresses_where_they_are_on() {
    let directory = TempDir::new().expect("a directory");
    let mut config = config(directory.path());
    let anywhere = Some(config.http);
    config.tempo_http = anywhere;
    config.jaeger_http = anywhere;
    config.zipkin_http = anywhere;
    config.jaeger_grpc = anywhere;
    config.jaeger_thrift_http = anywhere;
    config.jaeger_thrift_udp = anywhere;
    let server = TestServer::start(config).await;
    let named = server.addresses().named();
    let keys: Vec<&str> = named.iter().map(|(key, _)| *key).collect();
    let further = [
        "tempo_http",
        "jaeger_http",
        "zipkin_http",
        "jaeger_grpc",
        "jaeger_thrift_http",
        "jaeger_thrift_udp",
    ];
    assert_eq!(keys[3..], further);
    let ready: serde_json::Value = serde_json::from_str(&server.addresses().to_json()).expect("JSON");
    for (key, address) in named.into_iter().filter(|(key, _)| *key != "jaeger_thrift_udp") {
        assert_eq!(ready[key], address.to_string());
        let answer = reqwest::get(format!("http://{address}/healthz")).await.expect("answers");
        assert_eq!(answer.status(), 200, "{key}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_everything_and_recognises_what_it_had() {
    let directory = TempDir::new().expect("a directory");
    let (spans, samples) = (traces("cart", vec![span(1, 2, 0, "GET /", 0)]), profiles("cart", 1, 2, 10, 7));
    let server = TestServer::start(config(directory.path())).await;
    server.send("/v1/traces", &spans).await;
    server.send("/v1development/profiles", &samples).await;
    server.stop().await;

    let server = TestServer::start(config(directory.path())).await;
    server.send("/v1/traces", &spans).await;
    server.send("/v1development/profiles", &samples).await;
    assert_eq!(server.metric("spanflame_ingest_duplicates_total{kind=\"spans\"}").await, 1.0);
    assert_eq!(server.metric("spanflame_ingest_duplicates_total{kind=\"profiles\"}").await, 1.0);
    let trace = server.get(&format!("/api/v1/traces/{}", hex(1, 16))).await.json();
    assert_eq!(trace["spans"].as_array().map(Vec::len), Some(1));
    let profile = &trace["spans"][0]["profiles"]["process_cpu:cpu:nanoseconds:cpu:nanoseconds"];
    assert_eq!(profile["samples"], 7);
    assert_eq!(profile["value"], 70_000_000);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_data_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let error = Server::start(config(directory.path())).await.expect_err("in use");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_named() {
    let directory = TempDir::new().expect("a directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut config = config(directory.path());
    config.otlp_grpc = taken.local_addr().expect("bound");
    let error = Server::start(config).await.expect_err("in use").to_string();
    assert_eq!(
        error,
        format!("cannot listen on {}, the value of otlp_grpc", taken.local_addr().expect("bound"))
    );
}

/// The only server of this process that watches itself: the SDK is one per process.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_keeps_its_own_traces_and_profiles_apart() {
    let directory = TempDir::new().expect("a directory");
    let mut watched = config(directory.path());
    watched.own_telemetry = true;
    let server = TestServer::start(watched).await;
    let samples = profiles("cart", 1, 2, 10, 7);
    for trace in 1..5 {
        server
            .send("/v1/traces", &traces("cart", vec![span(trace, 2, 0, "GET /", 0)]))
            .await;
        server.send("/v1development/profiles", &samples).await;
    }
    server.stop().await;

    let server = TestServer::start(config(directory.path())).await;
    let own = [("x-scope-orgid", "spanflame")];
    let found = server.get_as("/api/v1/spans?start=0&limit=100", &own).await.json();
    let names: Vec<&str> = found["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .filter_map(|span| span["name"].as_str())
        .collect();
    for name in ["POST /v1/traces", "POST /v1development/profiles", "decode", "append"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let everyone = server.get("/api/v1/spans?start=0&limit=100").await.json();
    assert_eq!(everyone["matched"], 4);
    let services = server.get("/api/v1/services?start=0").await.json();
    assert_eq!(services["services"].as_array().map(Vec::len), Some(1), "{services}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_waits_for_the_request_that_is_in_flight() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let body = traces("cart", vec![span(1, 2, 0, "GET /", 0)]).encode_to_vec();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(server.otlp_http()).await.expect("connects");
    stream.write_all(head.as_bytes()).await.expect("sent");
    // The server reads the body from here on: the request is in flight.
    let mut expected = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut expected).await.expect("asked to go on");
    let http = server.http();
    let stopping = tokio::spawn(server.stop());
    // Nothing new is accepted once the shutdown began.
    while TcpStream::connect(http).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write_all(&body).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    stopping.await.expect("stopped");

    let server = TestServer::start(config(directory.path())).await;
    assert_eq!(server.get(&format!("/api/v1/traces/{}", hex(1, 16))).await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_ingest_questions_and_the_store() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    server.send("/v1/traces", &traces("cart", vec![span(1, 2, 0, "GET /", 0)])).await;
    server.get(&format!("/api/v1/traces/{}", hex(9, 16))).await;
    for (series, value) in [
        ("spanflame_ingest_requests_total{signal=\"traces\",outcome=\"accepted\"}", 1.0),
        ("spanflame_ingest_stored_total{kind=\"spans\"}", 1.0),
        ("spanflame_ingest_duration_seconds_count{signal=\"traces\"}", 1.0),
        ("spanflame_query_failures_total{question=\"trace\",code=\"not_found\"}", 1.0),
        ("spanflame_query_duration_seconds_count{question=\"trace\"}", 1.0),
        ("spanflame_wal_syncs_total", 1.0),
        ("spanflame_appends_total", 1.0),
        ("spanflame_flushes_total", 0.0),
    ] {
        assert_eq!(server.metric(series).await, value, "{series}");
    }
    let text = server.get("/metrics").await.text();
    for name in [
        "spanflame_head_bytes ",
        "spanflame_flush_seconds_total ",
        "spanflame_compactions_total ",
        "spanflame_table_rows{",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(text.ends_with("# EOF\n"));
    server.stop().await;
}
