//! Tempo's protobuf answers and its streaming service, on both addresses.

use opentelemetry_proto::tonic::trace::v1::{Span, TracesData};
use prost::Message;
use spanflame_proto::tempo as wire;
use tempfile::TempDir;

use crate::harness::{START_NS, TestServer, config, frame, hex, profiles, reply, span, traces};

const SECONDS: u32 = (START_NS / 1_000_000_000) as u32;

async fn started(directory: &TempDir) -> TestServer {
    let mut config = config(directory.path());
    config.tempo_http = Some(config.http);
    let server = TestServer::start(config).await;
    let spans = vec![span(1, 1, 0, "GET /", 0), span(1, 2, 1, "work", 10)];
    server.send("/v1/traces", &traces("front", spans)).await;
    server.send("/v1development/profiles", &profiles("front", 1, 2, 15, 5)).await;
    server
}

/// The messages of a streaming answer.
async fn stream<M: Message + Default>(server: &TestServer, method: &str, request: &impl Message) -> Vec<M> {
    let tempo = server.addresses().tempo_http.expect("on");
    let path = format!("/tempopb.StreamingQuerier/{method}");
    let mut answers = Vec::new();
    for at in [server.http(), tempo] {
        let reply = server.grpc(at, &path, &[], frame(false, &request.encode_to_vec())).await;
        assert_eq!(
            (reply.status, reply.header("grpc-status")),
            (200, ""),
            "{}",
            reply.header("grpc-message")
        );
        let (mut rest, mut messages) = (reply.body.as_slice(), Vec::new());
        while let Some((header, body)) = rest.split_first_chunk::<5>() {
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            messages.push(M::decode(&body[..length]).expect("a message"));
            rest = &body[length..];
        }
        assert!(rest.is_empty() && !messages.is_empty());
        answers.push(messages);
    }
    answers.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_tempo_has_not_is_told_as_tempo_tells_errors_on_both_addresses() {
    let directory = TempDir::new().expect("a directory");
    let server = started(&directory).await;
    let own = server.addresses().tempo_http.expect("on");
    for (at, path) in [(server.http(), "/tempo/api/overrides"), (own, "/api/overrides")] {
        let reply = reply(reqwest::Client::new().get(format!("http://{at}{path}"))).await;
        assert_eq!((reply.status, reply.header("content-type")), (404, "text/plain; charset=utf-8"));
        assert_eq!(reply.text(), "/api/overrides is no path of Tempo's API that is served here");
    }
    let reply = server.grpc(own, "/tempopb.StreamingQuerier/Nothing", &[], frame(false, &[])).await;
    assert_eq!(reply.header("grpc-status"), "12");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_streams_on_both_addresses() {
    let directory = TempDir::new().expect("a directory");
    let server = started(&directory).await;
    let request = wire::SearchRequest {
        query: "{ name = \"work\" }".to_owned(),
        limit: 20,
        start: SECONDS - 10,
        end: SECONDS + 10,
        spans_per_span_set: 3,
        ..wire::SearchRequest::default()
    };
    let parts: Vec<wire::SearchResponse> = stream(&server, "Search", &request).await;
    let traces: Vec<wire::TraceSearchMetadata> = parts.into_iter().flat_map(|part| part.traces).collect();
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].trace_id, hex(1, 16).trim_start_matches('0'));
    assert_eq!(
        (traces[0].root_service_name.as_str(), traces[0].root_trace_name.as_str()),
        ("front", "GET /")
    );
    assert_eq!(traces[0].span_sets[0].matched, 1);
    assert_eq!(traces[0].span_sets[0].spans[0].span_id, hex(2, 8));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_stream_too() {
    let directory = TempDir::new().expect("a directory");
    let server = started(&directory).await;
    let request = wire::SearchTagsRequest {
        scope: "resource".to_owned(),
        start: SECONDS - 10,
        end: SECONDS + 10,
        ..wire::SearchTagsRequest::default()
    };
    let v2: Vec<wire::SearchTagsV2Response> = stream(&server, "SearchTagsV2", &request).await;
    assert_eq!(v2[0].scopes[0].tags, ["service.name"]);
    let v1: Vec<wire::SearchTagsResponse> = stream(&server, "SearchTags", &request).await;
    assert_eq!(v1[0].tag_names, ["service.name"]);
    let request = wire::SearchTagValuesRequest {
        tag_name: "name".to_owned(),
        start: SECONDS - 10,
        end: SECONDS + 10,
        ..wire::SearchTagValuesRequest::default()
    };
    let v2: Vec<wire::SearchTagValuesV2Response> = stream(&server, "SearchTagValuesV2", &request).await;
    assert_eq!(v2[0].tag_values.len(), 2);
    let v1: Vec<wire::SearchTagValuesResponse> = stream(&server, "SearchTagValues", &request).await;
    assert_eq!(v1[0].tag_values, ["GET /", "work"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_stream_too() {
    let directory = TempDir::new().expect("a directory");
    let server = started(&directory).await;
    let request = wire::QueryRangeRequest {
        query: "{} | count_over_time() by(name)".to_owned(),
        start: START_NS,
        end: START_NS + 10_000_000_000,
        step: 10_000_000_000,
    };
    let parts: Vec<wire::QueryRangeResponse> = stream(&server, "MetricsQueryRange", &request).await;
    let series: Vec<&wire::TimeSeries> = parts.iter().flat_map(|part| &part.series).collect();
    assert_eq!((series.len(), series[0].samples[0].value), (2, 1.0));
    let request = wire::QueryInstantRequest {
        query: "{} | count_over_time()".to_owned(),
        start: START_NS,
        end: START_NS + 10_000_000_000,
    };
    let parts: Vec<wire::QueryInstantResponse> = stream(&server, "MetricsQueryInstant", &request).await;
    assert_eq!(parts[0].series[0].value, 2.0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_does_not_parse_is_an_invalid_argument() {
    let directory = TempDir::new().expect("a directory");
    let server = started(&directory).await;
    let request = wire::SearchRequest {
        query: "{ name = }".to_owned(),
        ..wire::SearchRequest::default()
    };
    let body = frame(false, &request.encode_to_vec());
    let reply = server.grpc(server.http(), "/tempopb.StreamingQuerier/Search", &[], body).await;
    assert_eq!(reply.header("grpc-status"), "3");
    assert!(reply.header("grpc-message").contains("column"), "{}", reply.header("grpc-message"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_has_every_part_even_if_it_is_empty() {
    let directory = TempDir::new().expect("a directory");
    let server = started(&directory).await;
    let accept = [("accept", "application/protobuf")];
    let path = format!("/tempo/api/v2/traces/{}", hex(1, 16));
    let reply = server.get_as(&path, &accept).await;
    assert_eq!(reply.header("content-type"), "application/protobuf");
    let answer = wire::TraceByIdResponse::decode(reply.body.as_slice()).expect("a message");
    assert!(answer.metrics.is_some());
    let trace = TracesData::decode(answer.trace.expect("a trace").as_slice()).expect("a message");
    let bare = server.get_as(&format!("/tempo/api/traces/{}", hex(1, 16)), &accept).await;
    assert_eq!(TracesData::decode(bare.body.as_slice()).expect("a message"), trace);
    let group = &trace.resource_spans[0];
    assert!(!group.resource.as_ref().expect("a resource").attributes.is_empty());
    assert!(group.scope_spans[0].scope.is_some());
    let spans: &[Span] = &group.scope_spans[0].spans;
    assert!(spans.len() == 2 && spans.iter().all(|span| span.status.is_some()));
    assert!(
        spans
            .iter()
            .all(|span| span.attributes.iter().any(|pair| pair.key == "pyroscope.profile.id"))
    );

    let missing = server.get_as(&format!("/tempo/api/v2/traces/{}", hex(7, 16)), &accept).await;
    let answer = wire::TraceByIdResponse::decode(missing.body.as_slice()).expect("a message");
    assert_eq!((missing.status, answer.trace), (200, Some(Vec::new())));
    server.stop().await;
}

/// Peers lose sight of a trace while it moves from memory to files, and answer any matches when there are more than
/// the limit.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_stays_visible_and_the_newest_are_the_newest() {
    let directory = TempDir::new().expect("a directory");
    let mut config = config(directory.path());
    // Almost every append is flushed by itself.
    config.flush_bytes = 1;
    config.flush_interval = std::time::Duration::from_millis(1);
    let server = TestServer::start(config).await;
    let range = format!("start={}&end={}", SECONDS - 10, SECONDS + 100);
    for trace in 1..=40 {
        let spans = vec![span(trace, 1, 0, "GET /", u64::from(trace) * 1_000)];
        server.send("/v1/traces", &traces("front", spans)).await;
        for earlier in [trace, trace / 2 + 1] {
            let reply = server.get(&format!("/tempo/api/traces/{}", hex(earlier, 16))).await;
            assert_eq!(reply.status, 200, "trace {earlier} after {trace} were acknowledged");
        }
        let found = server.get(&format!("/tempo/api/search?q=%7B%7D&limit=3&{range}")).await.json();
        let found: Vec<&str> = found["traces"]
            .as_array()
            .expect("traces")
            .iter()
            .filter_map(|t| t["traceID"].as_str())
            .collect();
        let newest: Vec<String> = (1..=trace)
            .rev()
            .take(3)
            .map(|n| hex(n, 16).trim_start_matches('0').to_owned())
            .collect();
        assert_eq!(found, newest);
    }
    server.stop().await;
}
