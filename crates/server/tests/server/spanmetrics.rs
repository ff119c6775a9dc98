//! Span metrics: names, exact counts however often something is sent, and bounds.

use opentelemetry_proto::tonic::trace::v1::Span;
use tempfile::TempDir;

use crate::harness::{TestServer, attribute, config, span, traces};

/// The value of a series, as a scrape writes it.
async fn value(server: &TestServer, series: &str) -> Option<f64> {
    let text = server.get("/metrics/spans").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

async fn check(server: &TestServer, series: &str, expected: f64) {
    assert_eq!(value(server, series).await, Some(expected), "{series}");
}

fn of_kind(span: Span, kind: i32) -> Span {
    Span { kind, ..span }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_counts_once_and_a_request_has_two_sides() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let front = traces("front", vec![span(1, 1, 0, "GET /", 0), of_kind(span(1, 2, 1, "call", 10), 3)]);
    let cart = traces("cart", vec![of_kind(span(1, 3, 2, "load", 20), 2)]);
    server.send("/v1/traces", &cart).await;
    check(
        &server,
        "traces_spanmetrics_calls_total{service=\"cart\",span_name=\"load\",span_kind=\"SPAN_KIND_SERVER\",status_code=\"STATUS_CODE_UNSET\"}",
        1.0,
    )
    .await;
    // A retry, and the caller's side after the callee's.
    server.send("/v1/traces", &cart).await;
    server.send("/v1/traces", &front).await;
    for (series, expected) in [
        (
            "traces_spanmetrics_latency_count{service=\"cart\",span_name=\"load\",span_kind=\"SPAN_KIND_SERVER\",status_code=\"STATUS_CODE_UNSET\"}",
            1.0,
        ),
        (
            "traces_spanmetrics_latency_bucket{service=\"front\",span_name=\"call\",span_kind=\"SPAN_KIND_CLIENT\",status_code=\"STATUS_CODE_UNSET\",le=\"0.128\"}",
            1.0,
        ),
        (
            "traces_spanmetrics_latency_bucket{service=\"front\",span_name=\"call\",span_kind=\"SPAN_KIND_CLIENT\",status_code=\"STATUS_CODE_UNSET\",le=\"0.064\"}",
            0.0,
        ),
        (
            "traces_service_graph_request_total{client=\"front\",server=\"cart\",connection_type=\"\"}",
            1.0,
        ),
        (
            "traces_service_graph_request_failed_total{client=\"front\",server=\"cart\",connection_type=\"\"}",
            0.0,
        ),
        (
            "traces_service_graph_request_server_seconds_sum{client=\"front\",server=\"cart\",connection_type=\"\"}",
            0.1,
        ),
        (
            "traces_service_graph_request_total{client=\"user\",server=\"front\",connection_type=\"virtual_node\"}",
            1.0,
        ),
        ("traces_spanmetrics_folded_total", 0.0),
        ("traces_service_graph_unpaired_spans_total", 0.0),
    ] {
        check(&server, series, expected).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_without_end_fold_into_one_series_that_is_counted() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let numbered = |n: u16| Span {
        span_id: (u64::from(n) + 1).to_be_bytes().to_vec(),
        ..span(1, 1, 0, &format!("GET /users/{n}"), 0)
    };
    server.send("/v1/traces", &traces("front", (0..600).map(numbered).collect())).await;
    let series = "traces_spanmetrics_calls_total{service=\"front\",span_name=\"<other>\",span_kind=\"SPAN_KIND_SERVER\",status_code=\"STATUS_CODE_UNSET\"}";
    check(&server, series, 100.0).await;
    check(&server, "traces_spanmetrics_folded_total", 100.0).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_scraped_apart() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    let database = Span {
        attributes: vec![attribute("db.system", "redis")],
        ..of_kind(span(1, 1, 0, "GET", 0), 3)
    };
    server.send("/v1/traces", &traces("front", vec![database])).await;
    let other = server.get_as("/metrics/spans", &[("x-scope-orgid", "other")]).await;
    assert!(!other.text().contains("service=\"front\""), "{}", other.text());
    let both = server.get_as("/metrics/spans", &[("x-scope-orgid", "anonymous|other")]).await;
    assert_eq!(both.status, 400);
    assert!(server.get("/metrics/spans").await.text().contains("service=\"front\""));
    server.stop().await;
}
