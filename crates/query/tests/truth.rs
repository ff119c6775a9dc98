//! Questions to a real store, judged by loads whose truth is known: from memory, after a flush, and after
//! compaction.

use std::collections::BTreeSet;

use spanflame_model::{Batch, Claim, Link, SpanId, StackId, StatusCode, Tenant, TimeRange, TraceId, Value};
use spanflame_query::traceql::Query;
use spanflame_query::{
    CatalogRequest, Engine, ErrorKind, LabelSelector, Order, ProfileAnswer, ProfileRequest, RangeRule, Scope, SearchRequest, Selection,
    TraceRequest, TypeSelector, WindowMatch,
};
use spanflame_store::{Store, StoreOptions};
use spanflame_testkit::{LinkStyle, Plan, ProfileBuilder, SpanBuilder, Stacks, Workload, at, link, span_id, trace_id};

/// A store that flushes only when told to.
async fn open(dir: &tempfile::TempDir) -> Store {
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        flush_interval: std::time::Duration::from_secs(3600),
        ..StoreOptions::default()
    };
    Store::open(options).await.expect("opens an empty directory")
}

async fn load(store: &Store, load: &Workload) {
    for batch in &load.batches {
        store.append(&Tenant::anonymous(), batch.clone()).await.expect("is appended");
    }
}

fn profile_request(selection: Selection) -> ProfileRequest {
    ProfileRequest {
        tenants: vec![Tenant::anonymous()],
        selection,
        profile_type: TypeSelector::Cpu,
        range: None,
        rows: false,
    }
}

async fn ask(engine: &Engine, trace_id: TraceId, span_id: SpanId, scope: Scope) -> ProfileAnswer {
    let selection = Selection::Span { trace_id, span_id, scope };
    engine.profile(&profile_request(selection)).await.expect("is known")
}

fn rows(answer: &ProfileAnswer) -> Vec<(StackId, i64, u64)> {
    answer
        .totals
        .iter()
        .map(|total| (total.stack, total.value, total.samples))
        .collect()
}

fn codes(answer: &ProfileAnswer) -> Vec<&'static str> {
    answer.evidence.reasons.iter().map(|reason| reason.code.as_str()).collect()
}

fn check_tree(answer: &ProfileAnswer) {
    let tree = &answer.tree;
    assert_eq!(tree.total[0], answer.total);
    assert_eq!(tree.self_value.iter().sum::<i64>(), answer.total);
    assert_eq!(tree.samples[0], answer.samples);
    for total in &answer.totals {
        let text = Stacks::text(&answer.stacks, total.stack);
        assert!(text.starts_with("main;"), "the stack of every row is there: {text:?}");
    }
}

/// Every span, subtree, trace and service gets exactly what the truth says.
async fn check(engine: &Engine, load: &Workload) {
    let all_sent = load.spans.values().all(|truth| truth.is_sent);
    for (id, truth) in load.spans.iter().step_by(7) {
        let trace = truth.span.trace_id;
        if !truth.is_sent && truth.linked.rows().is_empty() {
            continue;
        }
        let own = ask(engine, trace, *id, Scope::Span).await;
        assert_eq!(rows(&own), truth.linked.rows(), "span {id}");
        assert_eq!(codes(&own).contains(&"span_not_received"), !truth.is_sent, "span {id}");
        check_tree(&own);
        if all_sent {
            let subtree = ask(engine, trace, *id, Scope::Subtree).await;
            assert_eq!(rows(&subtree), load.linked_in_subtree(*id).rows(), "subtree of {id}");
        }
    }
    for (trace_id, cost) in load.by_trace.iter().step_by(5) {
        let whole = profile_request(Selection::Trace { trace_id: *trace_id });
        assert_eq!(
            rows(&engine.profile(&whole).await.expect("is known")),
            cost.rows(),
            "trace {trace_id}"
        );
    }
    for (service, cost) in &load.by_service {
        let mut request = profile_request(Selection::Services {
            selector: LabelSelector::service(service),
        });
        request.range = Some(TimeRange::ALL);
        assert_eq!(
            rows(&engine.profile(&request).await.expect("is known")),
            cost.rows(),
            "service {service}"
        );
    }
}

async fn check_in_every_state(workload: &Workload) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    load(&store, workload).await;
    check(&Engine::new(store.snapshot()), workload).await;
    store.flush().await.expect("is flushed");
    check(&Engine::new(store.snapshot()), workload).await;
    store.maintain().await.expect("is compacted");
    check(&Engine::new(store.snapshot()), workload).await;
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn concurrent_spans_get_exactly_what_they_ran() {
    check_in_every_state(&Plan::exact(21).run()).await;
}

#[tokio::test]
async fn samples_that_name_only_a_span_find_their_trace() {
    check_in_every_state(&Plan::exact(22).with_style(LinkStyle::SpanIdOnly).run()).await;
}

#[tokio::test]
async fn labels_of_local_roots_stay_at_the_root() {
    let workload = Plan::exact(23).with_style(LinkStyle::LocalRoot).run();
    check_in_every_state(&workload).await;
}

#[tokio::test]
async fn missing_and_late_spans_lose_nothing() {
    let mut plan = Plan::exact(24);
    (plan.missing_percent, plan.late_percent) = (30, 40);
    check_in_every_state(&plan.run()).await;
}

#[tokio::test]
async fn samples_without_links_are_found_by_time_and_service_and_nowhere_else() {
    let workload = Plan::exact(25).with_style(LinkStyle::Unlinked).run();
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    load(&store, &workload).await;
    let engine = Engine::new(store.snapshot());
    let own = ask(&engine, trace_id(9), span_id(900), Scope::Span).await;
    assert_eq!((own.total, codes(&own)), (0, vec!["samples_without_link"]));
    let window = ask(&engine, trace_id(9), span_id(900), Scope::Window).await;
    assert_eq!(window.evidence.window_match, Some(WindowMatch::Service));
    assert_eq!(window.evidence.precision.window, window.samples);
    assert!(window.samples > 10, "three threads ran for 24 ticks");
    check_tree(&window);
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn empty_profiles_say_why() {
    let mut plan = Plan::exact(26);
    plan.requests = 3;
    let mut workload = plan.run();
    let silent = SpanBuilder::new(700, 1, "silent").time(plan.start, 50_000_000).build();
    let short = SpanBuilder::new(701, 1, "cart").time(plan.start + 60_000_000, 1_000_000).build();
    workload.batches[0].spans.extend([silent, short]);
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    load(&store, &workload).await;
    let engine = Engine::new(store.snapshot());
    let why = async |trace, span| codes(&ask(&engine, trace_id(trace), span_id(span), Scope::Span).await).join(" ");
    assert_eq!(why(700, 1).await, "service_not_profiled");
    assert_eq!(why(701, 1).await, "shorter_than_period");
    let selection = Selection::Trace { trace_id: trace_id(4242) };
    let error = engine.profile(&profile_request(selection)).await.expect_err("is unknown");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    store.close().await.expect("is closed");
}

fn search(query: &str, limit: usize) -> SearchRequest {
    SearchRequest {
        tenants: vec![Tenant::anonymous()],
        query: Query::parse(query).expect("parses"),
        range: TimeRange::ALL,
        rule: RangeRule::Overlap,
        order: Order::Duration,
        limit,
        page: None,
    }
}

#[tokio::test]
async fn a_search_finds_every_match_once_with_its_cpu() {
    let workload = Plan::exact(27).run();
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    load(&store, &workload).await;
    store.flush().await.expect("is flushed");
    let mut request = search(r#"{ resource.service.name = "cart" && kind = server && duration > 100ms }"#, 7);
    let mut found = Vec::new();
    loop {
        // What arrives while the walk is under way is not part of it.
        let later = Plan {
            seed: 99 + found.len() as u64,
            requests: 1,
            ..Plan::exact(0)
        };
        load(&store, &later.run()).await;
        let answer = Engine::new(store.snapshot()).search(&request).await.expect("is found");
        assert_eq!(answer.matched, 40);
        found.extend(answer.spans);
        request.page = answer.next_page;
        if request.page.is_none() {
            break;
        }
    }
    let ids: BTreeSet<SpanId> = found.iter().map(|span| span.stored.span.span_id).collect();
    assert_eq!((found.len(), ids.len()), (40, 40));
    for span in found.iter().filter(|span| span.stored.span.trace_id != trace_id(1)) {
        let truth = &workload.spans[&span.stored.span.span_id];
        assert_eq!(
            (span.cpu_ns.unwrap_or(0), span.samples),
            (truth.linked.total().value, truth.linked.total().samples)
        );
        assert_eq!(span.root_name.as_deref(), Some("serve"));
        assert_eq!(span.status(), StatusCode::Unset);
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn attributes_match_by_element_and_across_kinds_of_numbers() {
    let tags = Value::Array(vec!["red".into(), "blue".into()]);
    let span = |id| SpanBuilder::new(1, id, "cart");
    let spans = vec![
        span(1).attribute("tags", tags).attribute("code", 5_i64).build(),
        span(2).attribute("tags", "red").attribute("code", 5.0).build(),
        span(3).attribute("tags", "green").attribute("code", "5").build(),
    ];
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    let batch = Batch { spans, ..Batch::default() };
    store.append(&Tenant::anonymous(), batch).await.expect("is appended");
    for _ in 0..2 {
        let engine = Engine::new(store.snapshot());
        let matched = async |query: &str| engine.search(&search(query, 1)).await.expect("is answered").matched;
        assert_eq!(matched(r#"{ .tags = "red" }"#).await, 2);
        assert_eq!(matched(r#"{ span.tags != "red" }"#).await, 1);
        assert_eq!(matched("{ .code = 5 }").await, 2);
        assert_eq!(matched(r#"{ .code = "5" && resource.service.name = "cart" }"#).await, 1);
        store.flush().await.expect("is flushed");
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn queries_about_the_trace_are_answered() {
    // Few traces are looked up, many are read in one scan.
    for requests in [40, 450] {
        let plan = Plan {
            requests,
            ..Plan::exact(28)
        };
        let dir = tempfile::tempdir().expect("a directory");
        let store = open(&dir).await;
        load(&store, &plan.run()).await;
        let engine = Engine::new(store.snapshot());
        let matched = async |query: &str| engine.search(&search(query, 1)).await.expect("is answered").matched;
        assert_eq!(matched(r#"{ rootServiceName = "frontend" && kind = server }"#).await, 3 * requests);
        assert_eq!(matched(r#"{ rootServiceName = "cart" }"#).await, 0);
        assert_eq!(matched("{ traceDuration >= 240ms && name = \"inner\" }").await, 3 * requests);
        assert_eq!(matched("{ traceDuration > 240ms || duration > 239ms }").await, requests);
        store.close().await.expect("is closed");
    }
}

#[tokio::test]
async fn catalogs_list_what_was_sent() {
    let workload = Plan::exact(29).run();
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    load(&store, &workload).await;
    let engine = Engine::new(store.snapshot());
    let request = CatalogRequest {
        tenants: vec![Tenant::anonymous()],
        range: TimeRange::ALL,
    };
    let services = engine.services(&request).await.expect("is listed");
    let names: Vec<&str> = services.iter().map(|service| service.name.as_str()).collect();
    assert_eq!(names, ["cart", "frontend", "pricing"]);
    for service in &services {
        let expected = workload.by_service[&service.name].total();
        assert_eq!(
            (service.cpu_ns, service.samples, service.linked_samples),
            (expected.value, expected.samples, expected.samples)
        );
        assert_eq!((service.spans, service.requests, service.errors), (80, 40, 0));
    }
    let types = engine.profile_types(&request).await.expect("is listed");
    let types: Vec<String> = types.iter().map(|info| info.profile_type.to_string()).collect();
    assert_eq!(
        types,
        [
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "process_cpu:samples:count:cpu:nanoseconds"
        ]
    );
    assert_eq!(engine.label_names(&request).await.expect("is listed"), ["service.name"]);
    assert_eq!(
        engine.label_values(&request, "service_name").await.expect("is listed"),
        ["cart", "frontend", "pricing"]
    );
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn a_trace_shows_what_was_profiled_in_each_span() {
    let workload = Plan::exact(30).run();
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    load(&store, &workload).await;
    let request = TraceRequest {
        tenants: vec![Tenant::anonymous()],
        trace_id: trace_id(12),
    };
    let trace = Engine::new(store.snapshot()).trace(&request).await.expect("is known");
    assert_eq!((trace.spans.len(), trace.complete), (6, true));
    assert_eq!(trace.services, ["cart", "frontend", "pricing"]);
    for span in &trace.spans {
        let truth = &workload.spans[&span.stored.span.span_id];
        let cpu = span.profiles.get(&spanflame_model::ProfileType::cpu()).copied().unwrap_or_default();
        assert_eq!((cpu.value, cpu.samples), (truth.linked.total().value, truth.linked.total().samples));
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn a_range_counts_what_lies_in_it_and_parts_of_coarse_profiles_in_proportion() {
    let mut stacks = Stacks::default();
    let stack = stacks.id("main;work");
    let batch = Batch {
        spans: Vec::new(),
        profiles: vec![
            ProfileBuilder::timed("timed", 10)
                .observed(stack, Link::None, &[100, 200, 300])
                .build(),
            ProfileBuilder::cpu("coarse", 10)
                .time(0, 1000)
                .sample(stack, Link::None, &[100, 1000])
                .build(),
        ],
        stacks: stacks.set,
    };
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    store.append(&Tenant::anonymous(), batch).await.expect("is appended");
    for _ in 0..2 {
        let engine = Engine::new(store.snapshot());
        let ask = async |service: &str, start, end| {
            let selector = LabelSelector::service(service);
            let mut request = profile_request(Selection::Services { selector });
            request.range = TimeRange::new(at(start), at(end));
            let answer = engine.profile(&request).await.expect("is answered");
            (answer.total, answer.samples, answer.evidence.prorated)
        };
        assert_eq!(ask("timed", 100, 300).await, (20, 2, 0));
        assert_eq!(ask("coarse", 900, 5000).await, (100, 100, 100));
        assert_eq!(ask("coarse", 0, 1000).await, (1000, 100, 0));
        assert_eq!(ask("coarse", 1000, 5000).await, (0, 0, 0));
        store.flush().await.expect("is flushed");
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn values_beyond_63_bits_say_so() {
    let mut stacks = Stacks::default();
    let (stack, other) = (stacks.id("main;work"), stacks.id("main;rest"));
    let profile = |start: u64, value: i64| {
        ProfileBuilder::cpu("a", 10)
            .time(start, 100)
            .sample(stack, Link::None, &[1, value])
            .sample(other, Link::None, &[1, 1])
            .build()
    };
    let batch = Batch {
        spans: Vec::new(),
        profiles: vec![profile(0, i64::MAX - 1), profile(100, 1)],
        stacks: stacks.set,
    };
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    store.append(&Tenant::anonymous(), batch).await.expect("is appended");
    let engine = Engine::new(store.snapshot());
    for (end, total, expected) in [(100, i64::MAX, vec![]), (200, i64::MAX, vec!["value_overflow"])] {
        let selector = LabelSelector::service("a");
        let mut request = profile_request(Selection::Services { selector });
        request.range = TimeRange::new(at(0), at(end));
        let answer = engine.profile(&request).await.expect("is answered");
        assert_eq!((answer.total, codes(&answer)), (total, expected));
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn a_tenant_sees_only_its_own() {
    let workload = Plan::exact(31).run();
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    load(&store, &workload).await;
    let other: Tenant = "other".parse().expect("valid");
    let ask = async |tenants: Vec<Tenant>| {
        let mut request = profile_request(Selection::Trace { trace_id: trace_id(5) });
        request.tenants = tenants;
        Engine::new(store.snapshot()).profile(&request).await
    };
    let error = ask(vec![other.clone()]).await.expect_err("is not theirs");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let both = ask(vec![other, Tenant::anonymous()]).await.expect("one of them has it");
    assert_eq!(rows(&both), workload.by_trace[&trace_id(5)].rows());
    assert_eq!(ask(Vec::new()).await.expect_err("nobody").kind(), ErrorKind::Invalid);
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn a_span_that_only_samples_name_is_answered_by_its_id_alone() {
    let mut stacks = Stacks::default();
    let stack = stacks.id("main;work");
    let batch = Batch {
        spans: Vec::new(),
        profiles: vec![
            ProfileBuilder::cpu("a", 10)
                .sample(stack, link(0, 77, Claim::Label), &[3, 30])
                .build(),
        ],
        stacks: stacks.set,
    };
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    store.append(&Tenant::anonymous(), batch).await.expect("is appended");
    let answer = ask(&Engine::new(store.snapshot()), trace_id(1), span_id(77), Scope::Span).await;
    assert_eq!((answer.total, codes(&answer)), (30, vec!["span_not_received"]));
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn a_span_that_was_not_received_counts_once_beside_its_children() {
    let mut stacks = Stacks::default();
    let stack = stacks.id("main;work");
    let batch = Batch {
        spans: vec![SpanBuilder::new(1, 2, "a").parent(1).build()],
        profiles: vec![
            ProfileBuilder::cpu("a", 10)
                .sample(stack, link(0, 1, Claim::Label), &[3, 30])
                .sample(stack, link(0, 2, Claim::Label), &[4, 40])
                .build(),
        ],
        stacks: stacks.set,
    };
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir).await;
    store.append(&Tenant::anonymous(), batch).await.expect("is appended");
    let engine = Engine::new(store.snapshot());
    for (scope, total) in [(Scope::Span, 30), (Scope::Subtree, 70), (Scope::Trace, 70)] {
        let answer = ask(&engine, trace_id(1), span_id(1), scope).await;
        assert_eq!((answer.total, codes(&answer)), (total, vec!["span_not_received"]), "{scope:?}");
    }
    store.close().await.expect("is closed");
}
