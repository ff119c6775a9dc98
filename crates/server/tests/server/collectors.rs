//! Spans as Zipkin's and Jaeger's clients send them, on the addresses where they look for a collector.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::net::UdpSocket;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::harness::{TestServer, config, frame, gzip};

const TRACE: &str = "/api/v1/traces/00000000000000000000000000000005";

async fn start() -> (TempDir, TestServer) {
    let directory = TempDir::new().expect("a directory");
    let anywhere = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut config = config(directory.path());
    config.zipkin_http = anywhere;
    config.jaeger_grpc = anywhere;
    config.jaeger_thrift_http = anywhere;
    config.jaeger_thrift_udp = anywhere;
    (directory, TestServer::start(config).await)
}

/// Service and name of every span of the trace 5.
async fn spans(server: &TestServer) -> Vec<(String, String)> {
    let reply = server.get(TRACE).await;
    if reply.status == 404 {
        return Vec::new();
    }
    let text = |span: &Value, key: &str| span[key].as_str().expect("text").to_owned();
    let trace = reply.json();
    let spans = trace["spans"].as_array().expect("spans");
    spans.iter().map(|span| (text(span, "service"), text(span, "name"))).collect()
}

fn pair(service: &str, name: &str) -> (String, String) {
    (service.to_owned(), name.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn zipkin_spans_are_taken_on_both_addresses_and_a_bad_one_costs_itself() {
    let (_directory, server) = start().await;
    let own = server.addresses().zipkin_http.expect("on");
    let json = [("content-type", "application/json")];
    let client = br#"[{"traceId":"5","id":"2","kind":"CLIENT","name":"get","timestamp":1790000000000000,"duration":9,"localEndpoint":{"serviceName":"a"}}]"#;
    let server_half = br#"[{"traceId":"5","id":"2","kind":"SERVER","name":"get","timestamp":1790000000000002,"duration":5,"shared":true,"localEndpoint":{"serviceName":"b"}},{"traceId":"x","id":"1","timestamp":1}]"#;
    let reply = server.post(own, "/api/v2/spans", &json, client.to_vec()).await;
    assert_eq!((reply.status, reply.body.len(), reply.header("x-spanflame-rejected")), (202, 0, ""));
    let compressed = [json[0], ("content-encoding", "gzip")];
    let reply = server.post(server.http(), "/api/v2/spans", &compressed, gzip(server_half)).await;
    assert_eq!(reply.status, 202);
    assert!(
        reply.header("x-spanflame-rejected").starts_with("1 span: invalid_trace_id"),
        "{}",
        reply.header("x-spanflame-rejected")
    );
    assert_eq!(spans(&server).await, [pair("a", "get"), pair("b", "get")]);
    let reply = server
        .post(own, "/api/v2/spans", &json, br#"[{"traceId":"x","id":"1","timestamp":1}]"#.to_vec())
        .await;
    assert_eq!(
        (reply.status, reply.text().starts_with("nothing could be kept")),
        (400, true),
        "{}",
        reply.text()
    );
    assert_eq!(server.post(own, "/api/v2/spans", &json, b"{".to_vec()).await.status, 400);
    let protobuf = [("content-type", "application/x-protobuf")];
    assert_eq!(server.post(own, "/api/v2/spans", &protobuf, vec![]).await.status, 415);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_halves_of_a_shared_zipkin_span_are_caller_and_callee() {
    let (_directory, server) = start().await;
    let span = |id: &str, parent: &str, kind: &str, service: &str, rest: &str| {
        format!(
            r#"{{"traceId":"5","id":"{id}"{parent},"kind":"{kind}","name":"get","timestamp":1790000000000000,"duration":9,"localEndpoint":{{"serviceName":"{service}"}}{rest}}}"#
        )
    };
    let below = r#","parentId":"2""#;
    let body = [
        span("2", "", "SERVER", "b", r#","shared":true"#),
        span("2", "", "CLIENT", "a", ""),
        span("3", below, "CLIENT", "b", ""),
        span("3", below, "SERVER", "c", r#","shared":true"#),
    ];
    let json = [("content-type", "application/json")];
    let body = format!("[{}]", body.join(","));
    let reply = server.post(server.http(), "/api/v2/spans", &json, body.into_bytes()).await;
    assert_eq!(reply.status, 202);
    // Who called whom, each once.
    let times = "start=1789999999000000&end=1790000001000000&endTs=1790000001000&lookback=2000";
    let reply = server.get(&format!("/jaeger/api/dependencies?{times}")).await.json();
    let calls: Vec<(&str, &str, u64)> = reply["data"]
        .as_array()
        .expect("calls")
        .iter()
        .map(|call| {
            let text = |key: &str| call[key].as_str().expect("text");
            (text("parent"), text("child"), call["callCount"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(calls, [("a", "b", 1), ("b", "c", 1)]);
    // Viewers get ids that name one span each, on one line from the client to the last server.
    let reply = server.get("/jaeger/api/traces/5").await.json();
    let spans = reply["data"][0]["spans"].as_array().expect("spans");
    let parent = |span: &Value| span["references"][0]["spanID"].as_str().map(str::to_owned);
    let mut line = Vec::new();
    let mut next = spans.iter().find(|span| parent(span).is_none());
    while let Some(span) = next {
        line.push(span["processID"].as_str().expect("a process"));
        let id = span["spanID"].as_str().expect("an id");
        next = spans.iter().find(|other| parent(other).as_deref() == Some(id));
    }
    let service = |process: &&str| reply["data"][0]["processes"][process]["serviceName"].as_str().expect("a service");
    assert_eq!(line.iter().map(service).collect::<Vec<_>>(), ["a", "b", "b", "c"]);
    server.stop().await;
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8 & 0x7f | 0x80, (bytes.len() >> 7) as u8], bytes].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn jaeger_posts_spans_over_grpc() {
    const METHOD: &str = "/jaeger.api_v2.CollectorService/PostSpans";
    let (_directory, server) = start().await;
    let at = server.addresses().jaeger_grpc.expect("on");
    let trace_id = [&[0; 15][..], &[5]].concat();
    // 1,790,000,000 s as a varint.
    let time = [8, 0x80, 0x87, 0xc5, 0xd5, 6];
    let span = |id: u8| {
        [
            field(1, &trace_id),
            field(2, &[0, 0, 0, 0, 0, 0, 0, id]),
            field(3, b"get"),
            field(6, &time),
            field(7, &[16, 9]),
        ]
        .concat()
    };
    let request = field(1, &[field(1, &span(1)), field(1, &span(0)), field(2, &field(1, b"shop"))].concat());
    let reply = server
        .grpc(at, METHOD, &[("grpc-encoding", "gzip")], frame(true, &gzip(&request)))
        .await;
    assert_eq!(
        (reply.status, reply.header("grpc-status"), reply.body.as_slice()),
        (200, "", &[0; 5][..]),
        "{}",
        reply.header("grpc-message")
    );
    assert!(reply.header("x-spanflame-rejected").starts_with("1 span: invalid_span_id"));
    assert_eq!(spans(&server).await, [pair("shop", "get")]);
    let reply = server.grpc(at, METHOD, &[], frame(false, b"\xff")).await;
    assert_eq!((reply.status, reply.header("grpc-status")), (200, "3"));
    server.stop().await;
}

/// A batch of one span in Thrift's binary protocol.
fn thrift(service: &str) -> Vec<u8> {
    let value = |kind: u8, id: u8, value: &[u8]| [&[kind, 0, id], value].concat();
    let text = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    let long = |id: u8, number: i64| value(10, id, &number.to_be_bytes());
    let span = [
        long(1, 5),
        long(2, 0),
        long(3, 7),
        value(11, 5, &text("get")),
        long(8, 1_790_000_000_000_000),
        long(9, 4),
        vec![0],
    ]
    .concat();
    let spans = [&[12, 0, 0, 0, 1], &span[..]].concat();
    let process = [value(11, 1, &text(service)), vec![0]].concat();
    [value(12, 1, &process), value(15, 2, &spans), vec![0]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn jaeger_sends_thrift_over_http() {
    let (_directory, server) = start().await;
    let at = server.addresses().jaeger_thrift_http.expect("on");
    let headers = [("content-type", "application/x-thrift")];
    let reply = server.post(at, "/api/traces?format=jaeger.thrift", &headers, thrift("shop")).await;
    assert_eq!((reply.status, reply.body.len()), (202, 0), "{}", reply.text());
    assert_eq!(spans(&server).await, [pair("shop", "get")]);
    assert_eq!(server.post(at, "/api/traces", &headers, b"\x0c".to_vec()).await.status, 400);
    assert_eq!(
        server
            .post(at, "/api/traces", &[("content-type", "application/json")], b"{}".to_vec())
            .await
            .status,
        415
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jaeger_sends_thrift_over_udp() {
    let (_directory, server) = start().await;
    let socket = UdpSocket::bind(("127.0.0.1", 0)).await.expect("a port");
    let at = server.addresses().jaeger_thrift_udp.expect("on");
    let string = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    // i64 fields of a span: trace id 5 and 0, span id 7, then name, start and duration; numbers are zigzag varints.
    let mut start = Vec::new();
    let mut rest = 1_790_000_000_000_000u64 * 2;
    while rest >= 0x80 {
        start.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    start.push(rest as u8);
    let span = [
        &[0x16, 10, 0x16, 0, 0x16, 14, 0x28][..],
        &string("get"),
        &[0x36],
        &start,
        &[0x16, 8, 0],
    ]
    .concat();
    let process = [&[0x18][..], &string("shop"), &[0]].concat();
    let batch = [&[0x1c][..], &process, &[0x19, 0x1c], &span, &[0]].concat();
    let message = [&[0x82, 0x81, 1][..], &string("emitBatch"), &[0x1c], &batch, &[0]].concat();
    socket.send_to(b"no thrift", at).await.expect("sent");
    socket.send_to(&message, at).await.expect("sent");
    let arrived = async {
        while spans(&server).await.is_empty() {
            yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), arrived).await.expect("the datagram is stored");
    assert_eq!(spans(&server).await, [pair("shop", "get")]);
    let refused = server
        .metric("spanflame_ingest_requests_total{signal=\"traces\",outcome=\"invalid_argument\"}")
        .await;
    assert_eq!(refused, 1.0);
    server.stop().await;
}
