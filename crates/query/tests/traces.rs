//! Traces by TraceQL on a real store, from memory and from files.

use spanflame_model::{Batch, Span, SpanKind, StatusCode, Tenant, TimeRange, Value};
use spanflame_query::traceql::Query;
use spanflame_query::{Call, CatalogRequest, Engine, FoundTrace, Tags, TracesRequest};
use spanflame_store::{Store, StoreOptions};
use spanflame_testkit::{SpanBuilder, at};

async fn open(dir: &tempfile::TempDir, spans: Vec<Span>) -> Store {
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        flush_interval: std::time::Duration::from_secs(3600),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.expect("opens an empty directory");
    let batch = Batch { spans, ..Batch::default() };
    store.append(&Tenant::anonymous(), batch).await.expect("is appended");
    store
}

async fn find(store: &Store, query: &str, limit: usize) -> Vec<FoundTrace> {
    let request = TracesRequest {
        tenants: vec![Tenant::anonymous()],
        query: Query::parse(query).expect("parses"),
        tags: Tags::default(),
        range: TimeRange::new(at(0), at(1 << 60)).expect("start before end"),
        limit,
        spans_max: 2,
    };
    Engine::new(store.snapshot()).traces(&request).await.expect("answers")
}

fn ids(found: &[FoundTrace]) -> Vec<u8> {
    found.iter().map(|trace| trace.trace_id.as_bytes()[15]).collect()
}

/// 40 traces of a root and three children; every third has an error in its last child.
fn load() -> Vec<Span> {
    let mut spans = Vec::new();
    for trace in 1..=40 {
        let root = SpanBuilder::new(trace, 1, "front").time(trace * 1000, 500).name("GET /");
        spans.push(root.kind(SpanKind::Server).build());
        for child in 2..=4 {
            let status = match (trace % 3, child) {
                (0, 4) => StatusCode::Error,
                _ => StatusCode::Unset,
            };
            let span = SpanBuilder::new(trace, child, "back").parent(1).time(trace * 1000 + child, 100);
            spans.push(span.attribute("n", Value::Int(child as i64)).status(status).build());
        }
    }
    spans
}

async fn check(store: &Store) {
    let newest = find(store, "{}", 3).await;
    assert_eq!(ids(&newest), [40, 39, 38]);
    let failed = find(store, "{ status = error && .n > 1 }", 2).await;
    assert_eq!(ids(&failed), [39, 36]);
    assert_eq!(failed[0].matched, 1);
    let named = [("status".to_owned(), "error".into()), ("n".to_owned(), Value::Int(4))];
    assert_eq!(failed[0].spans[0].named, named);
    assert_eq!(failed[0].root_name.as_deref(), Some("GET /"));
    assert_eq!(failed[0].root_service.as_deref(), Some("front"));
    assert_eq!((failed[0].services["back"].spans, failed[0].services["back"].errors), (3, 1));
    assert_eq!((failed[0].services["front"].spans, failed[0].services["front"].errors), (1, 0));
    let children = find(store, "{ resource.service.name = \"back\" }", 1).await;
    assert_eq!((children[0].matched, children[0].spans.len()), (3, 2));
    assert_eq!(children[0].range, TimeRange::lasting(at(40_000), 500));
    // Both conditions hold in every third trace, on no single span.
    assert_eq!(find(store, "{ status = error && .n = 2 }", 10).await, []);
    let by_root = find(store, "{ rootName = \"GET /\" && traceDuration = 500ns && .n = 3 }", 100).await;
    assert_eq!(by_root.len(), 40);
    check_catalog(&Engine::new(store.snapshot())).await;
}

async fn check_catalog(engine: &Engine) {
    let request = CatalogRequest {
        tenants: vec![Tenant::anonymous()],
        range: TimeRange::ALL,
    };
    let services = engine.span_services(&request.tenants).await.expect("answers");
    assert_eq!(services.into_iter().collect::<Vec<_>>(), ["back", "front"]);
    let operations = engine.operations(&request, Some("front")).await.expect("answers");
    assert_eq!(
        (operations.len(), operations[0].name.as_str(), operations[0].spans),
        (1, "GET /", 40)
    );
    assert_eq!(engine.operations(&request, None).await.expect("answers").len(), 4);
    let call = Call {
        caller: "front".to_owned(),
        callee: "back".to_owned(),
        count: 120,
    };
    assert_eq!(engine.calls(&request).await.expect("answers"), [call]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_traces_are_found_in_memory_and_in_files() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let store = open(&dir, load()).await;
    check(&store).await;
    store.flush().await.expect("flushes");
    check(&store).await;
    store.close().await.expect("closes");
}
