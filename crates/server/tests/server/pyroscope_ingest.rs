//! Pyroscope's write paths: what is kept, what is refused, and how it is said.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::harness::{Reply, START_NS, TestServer, config, frame, gzip};

const PUSH: &str = "/push.v1.PusherService/Push";

/// A field of bytes on the wire.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
    out
}

/// A pprof of one CPU sample of the function `name` with `value` nanoseconds.
fn pprof(name: &str, value: u8) -> Vec<u8> {
    let number = |number: u8, value: u8| vec![number << 3, value];
    let mut time = vec![9 << 3];
    let mut rest = START_NS;
    while rest >= 0x80 {
        time.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    time.push(rest as u8);
    let value_type = [number(1, 1), number(2, 2)].concat();
    let strings = ["", "cpu", "nanoseconds", name].map(|text| field(6, text.as_bytes())).concat();
    [
        field(1, &value_type),
        field(2, &[number(1, 1), number(2, value)].concat()),
        field(4, &[number(1, 1), field(4, &number(1, 1))].concat()),
        field(5, &[number(1, 1), number(2, 3)].concat()),
        strings,
        time,
        field(11, &value_type),
    ]
    .concat()
}

/// A push of one series with these labels and pprofs.
fn push(labels: &[(&str, &str)], pprofs: &[&[u8]]) -> Vec<u8> {
    let labels = labels
        .iter()
        .map(|(name, value)| field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat()));
    let samples = pprofs.iter().map(|pprof| field(2, &field(1, pprof)));
    field(1, &labels.chain(samples).flatten().collect::<Vec<u8>>())
}

const LABELS: [(&str, &str); 3] = [("__name__", "process_cpu"), ("service_name", "shop"), ("otel.scope.name", "x")];

async fn start() -> (TempDir, TestServer) {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    (directory, server)
}

async fn send(server: &TestServer, content_type: &str, body: Vec<u8>) -> Reply {
    server.post(server.http(), PUSH, &[("content-type", content_type)], body).await
}

/// Collapsed stacks, sorted.
async fn stacks(server: &TestServer, query: &str) -> String {
    let reply = server
        .get(&format!("/api/v1/profile?start=0&end=9000000000000000000&format=collapsed&{query}"))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let text = reply.text();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_json_and_grpc_carry_the_same_push() {
    let (_directory, server) = start().await;
    let bytes = push(&LABELS, &[&gzip(&pprof("a", 1)), &pprof("b", 2)]);
    let reply = send(&server, "application/proto", bytes.clone()).await;
    assert_eq!(
        (reply.status, reply.header("content-type"), reply.body.len()),
        (200, "application/proto", 0)
    );
    let json = format!(
        r#"{{"series":[{{"labels":[{{"name":"service_name","value":"shop"}},{{"name":"__name__","value":"process_cpu"}}],"samples":[{{"rawProfile":"{}","ID":"x"}}],"annotations":[]}}]}}"#,
        STANDARD.encode(pprof("c", 3))
    );
    let reply = send(&server, "application/json", json.into_bytes()).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
    let reply = server
        .grpc(
            server.http(),
            PUSH,
            &[("grpc-encoding", "gzip")],
            frame(true, &gzip(&push(&LABELS, &[&pprof("d", 4)]))),
        )
        .await;
    assert_eq!(
        (reply.status, reply.header("grpc-status")),
        (200, ""),
        "{}",
        reply.header("grpc-message")
    );
    assert_eq!(stacks(&server, "q={service.name=\"shop\"}").await, "a 1\nb 2\nc 3\nd 4");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_profile_costs_itself_only_and_a_retry_stores_nothing() {
    let (_directory, server) = start().await;
    let batch = push(&LABELS, &[&pprof("a", 1), b"no pprof at all", &pprof("b", 2)]);
    for _ in 0..2 {
        let reply = send(&server, "application/proto", batch.clone()).await;
        assert_eq!(reply.status, 200);
        let rejected = reply.header("x-spanflame-rejected");
        assert!(
            rejected.starts_with("1 profile: malformed; e.g. series 0 sample 1: not a valid pprof: "),
            "{rejected}"
        );
    }
    assert_eq!(stacks(&server, "").await, "a 1\nb 2");
    assert_eq!(server.metric("spanflame_ingest_stored_total{kind=\"profiles\"}").await, 2.0);
    assert_eq!(server.metric("spanflame_ingest_duplicates_total{kind=\"profiles\"}").await, 2.0);
    assert_eq!(
        server
            .metric("spanflame_ingest_dropped_total{kind=\"profile\",reason=\"malformed\"}")
            .await,
        2.0
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_of_which_nothing_is_kept_is_refused_in_the_manner_of_who_asked() {
    let (_directory, server) = start().await;
    let bad = push(&LABELS, &[b"\xff\xff"]);
    let reply = send(&server, "application/proto", bad.clone()).await;
    assert_eq!((reply.status, reply.header("content-type")), (400, "application/json"));
    assert_eq!(reply.json()["code"], "invalid_argument");
    assert!(
        reply.json()["message"].as_str().expect("text").contains("series 0 sample 0"),
        "{}",
        reply.text()
    );
    let reply = server.grpc(server.http(), PUSH, &[], frame(false, &bad)).await;
    assert_eq!((reply.status, reply.header("grpc-status")), (200, "3"));
    assert_eq!(send(&server, "text/plain", bad).await.status, 415);
    assert_eq!(
        send(&server, "application/proto", Vec::new()).await.status,
        200,
        "a push of nothing is no fault"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_push_may_unfold_into_is_counted_over_all_its_profiles() {
    let directory = TempDir::new().expect("a directory");
    let mut config = config(directory.path());
    config.request_bytes_max = 1 << 20;
    let server = TestServer::start(config).await;
    let bomb = gzip(&[pprof("a", 1), field(6, &vec![b'x'; 600 << 10])].concat());
    let reply = send(&server, "application/proto", push(&LABELS, &[&bomb, &bomb])).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(
        reply.header("x-spanflame-rejected").starts_with("1 profile: too_large"),
        "{}",
        reply.header("x-spanflame-rejected")
    );
    server.stop().await;
}

async fn ingest(server: &TestServer, query: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Reply {
    server
        .post(
            server.http(),
            &format!("/ingest?{query}"),
            &[("content-type", content_type)],
            body.into(),
        )
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_measured_by_the_suffix_of_its_application() {
    let (_directory, server) = start().await;
    let span = "b7ad6b7169203331";
    for (query, body) in [
        (
            "name=shop.cpu%7Bregion%3Deu%7D&from=1790000000&until=1790000010&sampleRate=50",
            "main;work 3\n",
        ),
        (
            "name=shop.alloc_space&from=1790000000&until=1790000010&format=folded",
            "main;alloc 7\n",
        ),
        ("name=shop&from=1790000000&until=1790000010&format=lines", "main;line\nmain;line\n"),
        (
            "name=tagged%7Bprofile_id%3Db7ad6b7169203331%7D&from=1790000000000&until=1790000010000",
            "main;tagged 1\n",
        ),
    ] {
        let reply = ingest(&server, query, "text/plain", body).await;
        assert_eq!((reply.status, reply.body.len()), (200, 0), "{query}: {}", reply.text());
    }
    assert_eq!(
        stacks(&server, "q={service.name=\"shop\"}").await,
        "main;line 20000000\nmain;work 60000000"
    );
    assert_eq!(stacks(&server, "type=memory:alloc_space:bytes::").await, "main;alloc 7");
    assert_eq!(stacks(&server, "q={region=\"eu\"}").await, "main;work 60000000");
    let by_span = server
        .get(&format!("/api/v1/traces/{span}/spans/{span}/profile?format=collapsed"))
        .await;
    assert_eq!(by_span.text(), "main;tagged 10000000\n");
    let labels = server.get("/api/v1/labels?start=0&end=9000000000000000000").await.text();
    assert!(!labels.contains("profile_id"), "{labels}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_and_raw_bodies_are_told_apart_and_faults_are_named() {
    let (_directory, server) = start().await;
    let form = |parts: &[(&str, &[u8])]| {
        let part = |(name, content): &(&str, &[u8])| {
            let head = format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\r\n");
            [head.as_bytes(), content, b"\r\n"].concat()
        };
        [parts.iter().flat_map(part).collect::<Vec<u8>>(), b"--B--\r\n".to_vec()].concat()
    };
    let multipart = "multipart/form-data; boundary=B";
    let profile = gzip(&pprof("a", 1));
    assert_eq!(
        ingest(&server, "name=a", multipart, form(&[("profile", &profile)])).await.status,
        200
    );
    assert_eq!(
        ingest(&server, "name=b&spyName=nodespy", "application/octet-stream", profile.clone())
            .await
            .status,
        200
    );
    assert_eq!(stacks(&server, "q={pyroscope_spy=\"nodespy\"}").await, "a 1");
    for (query, content_type, body, expected) in [
        ("", "text/plain", b"a 1".to_vec(), "name is missing"),
        ("name=a%7B", "text/plain", b"a 1".to_vec(), "expected a }"),
        ("name=a.x", "text/plain", b"a 1".to_vec(), "name ends in .x"),
        ("name=a&from=soon", "text/plain", b"a 1".to_vec(), "from is"),
        ("name=a", multipart, b"--B".to_vec(), "no multipart"),
        ("name=a", "multipart/form-data", form(&[("profile", &profile)]), "with a boundary"),
        ("name=a", multipart, form(&[("x", b"1"), ("y", b"2")]), "no part profile"),
        (
            "name=a",
            multipart,
            form(&[("profile", &profile), ("prev_profile", &profile)]),
            "cumulative",
        ),
        ("name=a&format=pprof", "text/plain", b"a 1".to_vec(), "not a valid pprof"),
    ] {
        let reply = ingest(&server, query, content_type, body).await;
        assert_eq!(reply.status, 400, "{query}");
        let message = reply.json()["message"].as_str().expect("text").to_owned();
        assert!(message.contains(expected), "{query}: {message}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_are_kept_apart() {
    let (_directory, server) = start().await;
    let headers = [("content-type", "application/proto"), ("x-scope-orgid", "team-a")];
    assert_eq!(
        server
            .post(server.http(), PUSH, &headers, push(&LABELS, &[&pprof("a", 1)]))
            .await
            .status,
        200
    );
    assert_eq!(stacks(&server, "").await, "");
    let reply = server
        .get_as("/api/v1/profile?start=0&end=9000000000000000000&format=collapsed", &headers[1..])
        .await;
    assert_eq!(reply.text(), "a 1\n");
    let bad = [("content-type", "application/proto"), ("x-scope-orgid", "a/b")];
    assert_eq!(
        server
            .post(server.http(), PUSH, &bad, push(&LABELS, &[&pprof("a", 1)]))
            .await
            .status,
        400
    );
    server.stop().await;
}
