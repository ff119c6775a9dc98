//! OTLP over both transports: what is taken, what is refused, and how that is said.

use std::net::SocketAddr;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message;
use tempfile::TempDir;
use tonic::codec::CompressionEncoding;

use crate::harness::{Reply, TestServer, config, frame, gzip, hex, profiles, span, traces};

const JSON: (&str, &str) = ("content-type", "application/json");
const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");
const TRACE_EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const PROFILES_EXPORT: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

type Encoder = fn(&[u8]) -> Vec<u8>;

async fn start() -> (TempDir, TestServer) {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    (directory, server)
}

async fn span_count(server: &TestServer, trace: u8) -> usize {
    let reply = server.get(&format!("/api/v1/traces/{}", hex(trace, 16))).await;
    match reply.status {
        404 => 0,
        _ => reply.json()["spans"].as_array().expect("spans").len(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_generated_client_exports_over_both_ports_with_every_compression() {
    let (_directory, server) = start().await;
    let ports: [SocketAddr; 2] = [server.otlp_grpc(), server.http()];
    let mut trace = 0;
    for at in ports {
        for compression in [None, Some(CompressionEncoding::Gzip), Some(CompressionEncoding::Zstd)] {
            trace += 1;
            let mut client = TraceServiceClient::connect(format!("http://{at}")).await.expect("connects");
            if let Some(compression) = compression {
                client = client.send_compressed(compression).accept_compressed(compression);
            }
            let answer = client
                .export(traces("cart", vec![span(trace, 1, 0, "GET /", 0)]))
                .await
                .expect("exports");
            assert_eq!(answer.into_inner().partial_success, None);
            assert_eq!(span_count(&server, trace).await, 1, "{at} {compression:?}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_takes_protobuf_and_json_in_every_encoding_on_both_ports() {
    let (_directory, server) = start().await;
    let json = |trace: u8| {
        let (trace_id, span_id) = (hex(trace, 16).to_uppercase(), hex(1, 8));
        format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"{trace_id}","spanId":"{span_id}","name":"x",
            "startTimeUnixNano":"1790000000000000000","endTimeUnixNano":1790000000000000005,"unheard":[1]}}]}}]}}]}}"#
        )
        .into_bytes()
    };
    let protobuf = |trace: u8| traces("cart", vec![span(trace, 1, 0, "x", 0)]).encode_to_vec();
    let encoders: [(&str, Encoder); 3] = [
        ("identity", |bytes| bytes.to_vec()),
        ("gzip", gzip),
        ("zstd", |bytes| zstd::encode_all(bytes, 1).expect("in memory")),
    ];
    let mut trace = 0;
    for at in [server.otlp_http(), server.http()] {
        for (encoding, encode) in encoders {
            for (content_type, body, empty) in [(JSON, json(trace + 1), &b"{}"[..]), (PROTOBUF, protobuf(trace + 2), &b""[..])] {
                let headers = [content_type, ("content-encoding", encoding)];
                let reply = server.post(at, "/v1/traces", &headers, encode(&body)).await;
                assert_eq!(
                    (reply.status, reply.header("content-type")),
                    (200, content_type.1),
                    "{}",
                    reply.text()
                );
                assert_eq!(reply.body, empty);
            }
            assert_eq!((span_count(&server, trace + 1).await, span_count(&server, trace + 2).await), (1, 1));
            trace += 2;
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_taken_on_both_paths_and_over_grpc() {
    let (_directory, server) = start().await;
    for (n, path) in ["/v1development/profiles", "/v1/profiles"].into_iter().enumerate() {
        server.send(path, &profiles("cart", 1, 1, 10 * n as u64, 3)).await;
    }
    let body = frame(true, &gzip(&profiles("cart", 1, 1, 50, 3).encode_to_vec()));
    let reply = server
        .grpc(server.otlp_grpc(), PROFILES_EXPORT, &[("grpc-encoding", "gzip")], body)
        .await;
    assert_eq!(
        (reply.status, reply.body.as_slice()),
        (200, &[0, 0, 0, 0, 0][..]),
        "{}",
        reply.header("grpc-message")
    );
    let profile = server.get(&format!("/api/v1/traces/{}/profile", hex(1, 16))).await.json();
    assert_eq!(profile["samples"], 9);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_span_costs_itself_and_is_counted() {
    let (_directory, server) = start().await;
    let mut bad = span(1, 2, 0, "bad", 0);
    bad.trace_id = vec![1; 5];
    let request = traces("cart", vec![span(1, 1, 0, "good", 0), bad]);
    let reply = server
        .post(server.otlp_http(), "/v1/traces", &[PROTOBUF], request.encode_to_vec())
        .await;
    let answer = opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse::decode(reply.body.as_slice());
    let partial = answer.expect("a response").partial_success.expect("partial");
    assert_eq!(partial.rejected_spans, 1);
    assert!(partial.error_message.contains("invalid_trace_id"), "{}", partial.error_message);
    assert_eq!(span_count(&server, 1).await, 1);
    let series = "spanflame_ingest_dropped_total{kind=\"span\",reason=\"invalid_trace_id\"}";
    assert_eq!(server.metric(series).await, 1.0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_and_logs_are_refused_with_a_sentence_and_counted() {
    let (_directory, server) = start().await;
    let logs = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![ScopeLogs {
                log_records: vec![LogRecord::default(); 3],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    let path = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    let reply = server
        .grpc(server.otlp_grpc(), path, &[], frame(false, &logs.encode_to_vec()))
        .await;
    assert!(reply.text().contains("OTEL_LOGS_EXPORTER=none"), "{}", reply.text());
    assert_eq!(server.metric("spanflame_ingest_unsupported_total{signal=\"logs\"}").await, 3.0);

    let metrics = br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{},{}]}}]}]}]}"#;
    let reply = server.post(server.otlp_http(), "/v1/metrics", &[JSON], metrics.to_vec()).await;
    let partial = &reply.json()["partialSuccess"];
    assert_eq!(partial["rejectedDataPoints"], "2");
    assert!(
        partial["errorMessage"]
            .as_str()
            .expect("text")
            .contains("OTEL_METRICS_EXPORTER=none")
    );
    server.stop().await;
}

fn check_status(reply: &Reply, http: u16, grpc: i64, message: &str) {
    assert_eq!(reply.status, http, "{}", reply.text());
    assert_eq!(reply.json()["code"], grpc);
    assert!(reply.text().contains(message), "{}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_work_names_value_and_expectation() {
    let (_directory, server) = start().await;
    let at = server.otlp_http();
    let reply = server
        .post(at, "/v1/traces", &[("content-type", "text/plain")], b"x".to_vec())
        .await;
    check_status(
        &reply,
        415,
        12,
        "content type is \\\"text/plain\\\", expected application/x-protobuf or application/json",
    );
    let reply = server
        .post(at, "/v1/traces", &[JSON, ("content-encoding", "br")], b"x".to_vec())
        .await;
    check_status(&reply, 415, 12, "expected identity, gzip or zstd");
    let reply = server.post(at, "/v1/traces", &[JSON], b"{".to_vec()).await;
    check_status(&reply, 400, 3, "");
    let reply = server
        .post(at, "/v1/traces", &[JSON, ("x-scope-orgid", "a|b")], b"{}".to_vec())
        .await;
    check_status(&reply, 400, 3, "tenant is \\\"a|b\\\"");
    let reply = server
        .post(at, "/v1/traces", &[JSON, ("x-scope-orgid", "spanflame")], b"{}".to_vec())
        .await;
    check_status(&reply, 403, 7, "reserved");
    let reply = server.post(at, "/v1/nothing", &[JSON], b"{}".to_vec()).await;
    assert_eq!(reply.status, 404);
    let reply = server.grpc(server.otlp_grpc(), "/a.b.C/D", &[], frame(false, b"")).await;
    assert_eq!((reply.status, reply.header("grpc-status")), (200, "12"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_large_is_not_retryable_before_and_after_decompression() {
    let directory = TempDir::new().expect("a directory");
    let mut config = config(directory.path());
    config.request_bytes_max = 10_000;
    let server = TestServer::start(config).await;
    let bomb = gzip(&vec![0; 10_000_000]);
    assert!(bomb.len() < 10_000 + 100, "{}", bomb.len());
    for (headers, body) in [
        (vec![JSON], vec![b' '; 10_001]),
        (vec![JSON, ("content-encoding", "gzip")], bomb.clone()),
    ] {
        let reply = server.post(server.otlp_http(), "/v1/traces", &headers, body).await;
        check_status(&reply, 413, 8, "");
        assert_eq!(reply.header("retry-after"), "");
    }
    for (headers, body) in [
        (vec![], frame(false, &[0; 10_001])),
        (vec![("grpc-encoding", "gzip")], frame(true, &bomb)),
    ] {
        let reply = server.grpc(server.otlp_grpc(), TRACE_EXPORT, &headers, body).await;
        assert_eq!(reply.header("grpc-status"), "8", "{}", reply.header("grpc-message"));
        assert!(!String::from_utf8_lossy(&base64(reply.header("grpc-status-details-bin"))).contains("RetryInfo"));
    }
    server.stop().await;
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD_NO_PAD
        .decode(text.trim_end_matches('='))
        .expect("base64")
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_says_when_to_come_back_and_stores_nothing() {
    let directory = TempDir::new().expect("a directory");
    let mut config = config(directory.path());
    config.rate_bytes_per_second = Some(1);
    let server = TestServer::start(config).await;
    server.send("/v1/traces", &traces("cart", vec![span(1, 1, 0, "first", 0)])).await;
    let second = traces("cart", vec![span(2, 1, 0, "second", 0)]).encode_to_vec();
    let reply = server.post(server.otlp_http(), "/v1/traces", &[PROTOBUF], second.clone()).await;
    assert_eq!(reply.status, 429);
    assert!(reply.header("retry-after").parse::<u64>().expect("seconds") > 0);
    let reply = server.grpc(server.otlp_grpc(), TRACE_EXPORT, &[], frame(false, &second)).await;
    assert_eq!(reply.header("grpc-status"), "8");
    assert!(String::from_utf8_lossy(&base64(reply.header("grpc-status-details-bin"))).contains("google.rpc.RetryInfo"));
    assert_eq!(span_count(&server, 2).await, 0);
    let other = [PROTOBUF, ("x-scope-orgid", "other")];
    assert_eq!(server.post(server.otlp_http(), "/v1/traces", &other, second).await.status, 200);
    assert_eq!(
        server
            .metric("spanflame_ingest_requests_total{signal=\"traces\",outcome=\"busy\"}")
            .await,
        2.0
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_limits_refuse_and_count() {
    let directory = TempDir::new().expect("a directory");
    let mut config = config(directory.path());
    config.past_max = Some(std::time::Duration::from_secs(60));
    let server = TestServer::start(config).await;
    let mut fresh = span(1, 1, 0, "fresh", 0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    (fresh.start_time_unix_nano, fresh.end_time_unix_nano) = (now.as_nanos() as u64, now.as_nanos() as u64 + 5);
    let mut old = span(1, 2, 0, "old", 0);
    (old.start_time_unix_nano, old.end_time_unix_nano) = (5, 6);
    let request = traces("cart", vec![fresh, old]).encode_to_vec();
    server.post(server.otlp_http(), "/v1/traces", &[PROTOBUF], request).await;
    assert_eq!(span_count(&server, 1).await, 1);
    let series = "spanflame_ingest_dropped_total{kind=\"span\",reason=\"time_out_of_range\"}";
    assert_eq!(server.metric(series).await, 1.0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_origins_may_send_from_a_page() {
    let directory = TempDir::new().expect("a directory");
    let mut config = config(directory.path());
    config.cors_origins = vec!["https://app.example".to_owned()];
    let server = TestServer::start(config).await;
    for (origin, allowed) in [("https://app.example", "https://app.example"), ("https://evil.example", "")] {
        let reply = server
            .post(server.otlp_http(), "/v1/traces", &[JSON, ("origin", origin)], b"{}".to_vec())
            .await;
        assert_eq!(reply.header("access-control-allow-origin"), allowed);
    }
    server.stop().await;
}
