//! Pyroscope's querier as Grafana's backend speaks it: protobuf over Connect, gRPC and gRPC-Web, with gzip.

use std::io::Read;

use flate2::read::GzDecoder;
use prost::Message;
use spanflame_proto::pprof::Profile;
use spanflame_proto::pyroscope as wire;
use tempfile::TempDir;

use crate::harness::{Reply, TestServer, config, frame, gzip, profiles, span, traces};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const START_MS: i64 = 1_790_000_000_000;
const SPAN_PROFILE: &str = "/querier.v1.QuerierService/SelectMergeSpanProfile";
const MERGE_PROFILE: &str = "/querier.v1.QuerierService/SelectMergeProfile";

/// A server with 5 observations of span 2 of trace 1.
async fn start() -> (TempDir, TestServer) {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    server.send("/v1/traces", &traces("cart", vec![span(1, 2, 0, "GET /", 0)])).await;
    server.send("/v1development/profiles", &profiles("cart", 1, 2, 10, 5)).await;
    (directory, server)
}

fn of_span(id: &str) -> Vec<u8> {
    let request = wire::SelectMergeSpanProfileRequest {
        profile_type_id: CPU.to_owned(),
        label_selector: "{}".to_owned(),
        span_selector: vec![id.to_owned()],
        start: START_MS - 30_000,
        end: START_MS + 30_000,
        ..wire::SelectMergeSpanProfileRequest::default()
    };
    request.encode_to_vec()
}

fn total(message: &[u8]) -> i64 {
    let answer = wire::SelectMergeSpanProfileResponse::decode(message).expect("the answer");
    answer.flamegraph.expect("a flame graph").total
}

async fn connect(server: &TestServer, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
    let headers = [&[("content-type", "application/proto")], headers].concat();
    server.post(server.http(), path, &headers, body).await
}

const ID: &str = "0202020202020202";

#[tokio::test(flavor = "multi_thread")]
async fn one_method_is_spoken_in_every_protocol() {
    let (_directory, server) = start().await;
    let reply = connect(&server, SPAN_PROFILE, &[], of_span(ID)).await;
    assert_eq!(
        (reply.status, reply.header("content-type"), total(&reply.body)),
        (200, "application/proto", 50_000_000)
    );
    let reply = connect(&server, SPAN_PROFILE, &[("content-encoding", "gzip")], gzip(&of_span(ID))).await;
    assert_eq!((reply.status, total(&reply.body)), (200, 50_000_000));

    let reply = server.grpc(server.http(), SPAN_PROFILE, &[], frame(false, &of_span(ID))).await;
    assert_eq!((reply.status, total(&reply.body[5..])), (200, 50_000_000));
    let reply = server.grpc(server.http(), SPAN_PROFILE, &[], frame(false, &of_span("02"))).await;
    assert_eq!((reply.status, reply.header("grpc-status")), (200, "3"));

    let web = [("content-type", "application/grpc-web+proto")];
    let reply = server.post(server.http(), SPAN_PROFILE, &web, frame(false, &of_span(ID))).await;
    let length = u32::from_be_bytes(reply.body[1..5].try_into().expect("four bytes")) as usize;
    assert_eq!(total(&reply.body[5..5 + length]), 50_000_000);
    assert_eq!(reply.body[5 + length], 0x80);
    assert!(reply.body.ends_with(b"grpc-status:0\r\n"));
    let reply = server.post(server.http(), SPAN_PROFILE, &web, frame(false, &of_span("02"))).await;
    assert!(
        reply.text().contains("grpc-status:3\r\ngrpc-message:span_selector%20has"),
        "{}",
        reply.text()
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_answers_are_gzip_for_clients_that_take_it() {
    let (_directory, server) = start().await;
    for stack in 0..200 {
        let text = format!("main;function_number_{stack} 1\n");
        let path = format!(
            "/api/v1/ingest?service=wide&format=collapsed&type=cpu/nanoseconds&time={}",
            START_MS as u64 * 1_000_000
        );
        let reply = server.post(server.http(), &path, &[], text.into_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let request = wire::SelectMergeProfileRequest {
        profile_type_id: CPU.to_owned(),
        label_selector: r#"{service_name="wide"}"#.to_owned(),
        start: START_MS - 60_000,
        end: START_MS + 60_000,
        ..wire::SelectMergeProfileRequest::default()
    };
    let body = request.encode_to_vec();
    let plain = connect(&server, MERGE_PROFILE, &[], body.clone()).await;
    assert_eq!(plain.header("content-encoding"), "");
    let packed = connect(&server, MERGE_PROFILE, &[("accept-encoding", "br, gzip")], body).await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    let mut unpacked = Vec::new();
    GzDecoder::new(packed.body.as_slice()).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, plain.body);
    assert_eq!(Profile::decode(plain.body.as_slice()).expect("pprof").sample.len(), 200);
    server.stop().await;
}

/// Peers lose one of two such profiles when they compact, and count a profile twice that is sent again.
#[tokio::test(flavor = "multi_thread")]
async fn profiles_with_equal_labels_and_time_are_two_and_a_retry_counts_once() {
    let (_directory, server) = start().await;
    server.send("/v1development/profiles", &profiles("cart", 1, 2, 10, 5)).await;
    let once = connect(&server, SPAN_PROFILE, &[], of_span(ID)).await;
    assert_eq!(total(&once.body), 50_000_000);
    server.send("/v1development/profiles", &profiles("cart", 1, 2, 20, 3)).await;
    let both = connect(&server, SPAN_PROFILE, &[], of_span(ID)).await;
    assert_eq!(total(&both.body), 80_000_000);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_found_again_by_the_id_of_an_exemplar() {
    let (_directory, server) = start().await;
    server.send("/v1development/profiles", &profiles("cart", 1, 2, 20, 3)).await;
    let request = wire::SelectSeriesRequest {
        profile_type_id: CPU.to_owned(),
        label_selector: "{}".to_owned(),
        start: START_MS,
        end: START_MS + 15_000,
        step: 15.0,
        exemplar_type: wire::ExemplarType::Individual as i32,
        ..wire::SelectSeriesRequest::default()
    };
    let reply = connect(&server, "/querier.v1.QuerierService/SelectSeries", &[], request.encode_to_vec()).await;
    let series = wire::SelectSeriesResponse::decode(reply.body.as_slice()).expect("series").series;
    let exemplar = &series[0].points[0].exemplars[0];
    assert_eq!((series[0].points[0].value, exemplar.value), (80_000_000.0, 50_000_000));
    let request = wire::SelectMergeStacktracesRequest {
        profile_type_id: CPU.to_owned(),
        label_selector: "{}".to_owned(),
        start: START_MS,
        end: START_MS + 15_000,
        profile_id_selector: vec![exemplar.profile_id.clone()],
        ..wire::SelectMergeStacktracesRequest::default()
    };
    let reply = connect(
        &server,
        "/querier.v1.QuerierService/SelectMergeStacktraces",
        &[],
        request.encode_to_vec(),
    )
    .await;
    let answer = wire::SelectMergeStacktracesResponse::decode(reply.body.as_slice()).expect("the answer");
    assert_eq!(answer.flamegraph.expect("a flame graph").total, 50_000_000);
    server.stop().await;
}
