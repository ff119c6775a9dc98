//! One profile of many spans, judged by loads whose truth is known.

use spanflame_model::{SpanId, SpanKind, StackId, Tenant, TimeRange};
use spanflame_query::traceql::Query;
use spanflame_query::{
    Engine, ErrorKind, HistogramRequest, RangeRule, Scope, SelectedProfile, SelectedRequest, SpanSelection, TypeSelector,
};
use spanflame_store::{Store, StoreOptions};
use spanflame_testkit::{Cost, LinkStyle, Plan, SpanTruth, Workload};

fn request(query: &str, scope: Scope) -> SelectedRequest {
    SelectedRequest {
        tenants: vec![Tenant::anonymous()],
        spans: SpanSelection {
            query: Query::parse(query).expect("parses"),
            range: TimeRange::ALL,
            rule: RangeRule::Overlap,
        },
        scope,
        profile_type: TypeSelector::Cpu,
        rows: false,
    }
}

fn rows(answer: &SelectedProfile) -> Vec<(StackId, i64, u64)> {
    let totals = answer.profile.totals.iter();
    totals.map(|total| (total.stack, total.value, total.samples)).collect()
}

/// Costs of many spans as one.
fn sum(costs: impl Iterator<Item = Cost>) -> Vec<(StackId, i64, u64)> {
    let mut sum = Cost::default();
    costs.for_each(|cost| sum.merge(&cost));
    sum.rows()
}

/// Asks for what `query` selects and compares with the truth about what `selects` selects.
async fn check_query(engine: &Engine, load: &Workload, query: &str, selects: impl Fn(&SpanTruth) -> bool) {
    let selected: Vec<(&SpanId, &SpanTruth)> = load.spans.iter().filter(|(_, truth)| truth.is_sent && selects(truth)).collect();
    assert!(!selected.is_empty(), "{query}");
    let own = engine.selected_profile(&request(query, Scope::Span)).await.expect("is answered");
    assert_eq!(rows(&own), sum(selected.iter().map(|(_, truth)| truth.linked.clone())), "{query}");
    let without = selected.iter().filter(|(_, truth)| truth.linked.rows().is_empty()).count();
    let wall_ns: u64 = selected.iter().map(|(_, truth)| truth.span.duration_ns).sum();
    assert_eq!(
        (own.spans.spans, own.spans.without_samples, own.spans.wall_ns),
        (selected.len() as u64, without as u64, wall_ns),
        "{query}"
    );
    let longest = selected.iter().map(|(_, truth)| truth.span.duration_ns).max();
    assert_eq!(own.spans.quantiles.map(|quantiles| quantiles.max_ns), longest);

    let subtree = engine.selected_profile(&request(query, Scope::Subtree)).await.expect("is answered");
    let parent = |id: SpanId| load.spans.get(&id).and_then(|truth| truth.span.parent_span_id);
    let is_below = |id: &SpanId| {
        let line = std::iter::successors(Some(*id), |id| parent(*id));
        line.into_iter().any(|id| selected.iter().any(|(selected, _)| **selected == id))
    };
    let covered = load.spans.iter().filter(|(id, _)| is_below(id));
    assert_eq!(rows(&subtree), sum(covered.map(|(_, truth)| truth.linked.clone())), "{query}");
    let empty = selected.iter().filter(|(id, _)| load.linked_in_subtree(**id).rows().is_empty());
    assert_eq!(subtree.spans.without_samples, empty.count() as u64, "{query}");
}

/// From memory, after a flush, and after compaction; few traces are looked up, many are scanned.
async fn check(plan: Plan) {
    let load = plan.run();
    let dir = tempfile::tempdir().expect("a directory");
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        flush_interval: std::time::Duration::from_secs(3600),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.expect("opens an empty directory");
    for batch in &load.batches {
        store.append(&Tenant::anonymous(), batch.clone()).await.expect("is appended");
    }
    for state in ["in memory", "flushed", "merged"] {
        match state {
            "flushed" => store.flush().await.expect("is flushed"),
            "merged" => store.maintain().await.expect("is merged"),
            _ => {}
        }
        let engine = Engine::new(store.snapshot());
        check_query(&engine, &load, "{}", |_| true).await;
        check_query(&engine, &load, "{ resource.service.name = \"cart\" }", |truth| {
            truth.span.resource.service() == "cart"
        })
        .await;
        let parent = |truth: &SpanTruth| truth.span.parent_span_id.and_then(|parent| load.spans.get(&parent));
        if state == "flushed" {
            check_query(&engine, &load, "{ resource.service.name = \"cart\" } > {}", |truth| {
                parent(truth).is_some_and(|parent| parent.is_sent && parent.span.resource.service() == "cart")
            })
            .await;
        }
        check_query(&engine, &load, "{ duration > 150ms }", |truth| truth.span.duration_ns > 150_000_000).await;
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn every_sample_of_the_selected_spans_counts_once_however_they_nest() {
    check(Plan::exact(51)).await;
    check(Plan {
        requests: 450,
        ..Plan::exact(52)
    })
    .await;
}

#[tokio::test]
async fn claims_on_local_roots_and_without_a_trace_count_as_for_one_span() {
    for style in [LinkStyle::LocalRoot, LinkStyle::Label, LinkStyle::SpanIdOnly] {
        check(Plan::exact(53).with_style(style)).await;
    }
    check(Plan {
        requests: 430,
        ..Plan::exact(54).with_style(LinkStyle::SpanIdOnly)
    })
    .await;
}

#[tokio::test]
async fn ambiguous_samples_are_counted_apart_and_an_empty_selection_is_an_answer() {
    let load = Plan::exact(55).with_style(LinkStyle::Ambiguous).run();
    let dir = tempfile::tempdir().expect("a directory");
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.expect("opens an empty directory");
    for batch in &load.batches {
        store.append(&Tenant::anonymous(), batch.clone()).await.expect("is appended");
    }
    let engine = Engine::new(store.snapshot());
    let all = engine.selected_profile(&request("{}", Scope::Span)).await.expect("is answered");
    assert_eq!(rows(&all), sum(load.spans.values().map(|truth| truth.linked.clone())));
    assert!(all.profile.evidence.ambiguous > 0);
    let none = engine
        .selected_profile(&request("{ name = \"no such\" }", Scope::Span))
        .await
        .expect("is answered");
    assert_eq!((none.spans.spans, none.profile.samples, none.spans.quantiles), (0, 0, None));
    let trace = engine.selected_profile(&request("{}", Scope::Trace)).await.expect_err("is refused");
    assert_eq!(trace.kind(), ErrorKind::Invalid);
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn a_range_can_mean_the_spans_that_began_in_it() {
    let load = Plan::exact(56).run();
    let dir = tempfile::tempdir().expect("a directory");
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.expect("opens an empty directory");
    for batch in &load.batches {
        store.append(&Tenant::anonymous(), batch.clone()).await.expect("is appended");
    }
    let engine = Engine::new(store.snapshot());
    let middle = TimeRange::lasting(load.range.start(), load.range.duration_ns() / 2);
    for (rule, selects) in [
        (
            RangeRule::Start,
            (|range, truth| range.contains(truth.span.start)) as fn(TimeRange, &SpanTruth) -> bool,
        ),
        (RangeRule::Overlap, |range, truth| range.overlap(truth.span.range()).is_some()),
    ] {
        let mut asked = request("{}", Scope::Span);
        (asked.spans.range, asked.spans.rule) = (middle, rule);
        let answer = engine.selected_profile(&asked).await.expect("is answered");
        let expected = load.spans.values().filter(|truth| selects(middle, truth)).count();
        assert!(expected < load.spans.len());
        assert_eq!(answer.spans.spans, expected as u64, "{rule:?}");
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn a_region_of_the_heatmap_written_as_a_query_selects_the_spans_it_counts() {
    let load = Plan::exact(57).run();
    let dir = tempfile::tempdir().expect("a directory");
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.expect("opens an empty directory");
    for batch in &load.batches {
        store.append(&Tenant::anonymous(), batch.clone()).await.expect("is appended");
    }
    let engine = Engine::new(store.snapshot());
    let heatmap = HistogramRequest {
        tenants: vec![Tenant::anonymous()],
        spans: SpanSelection {
            query: Query::parse("{ kind = server }").expect("parses"),
            range: load.range,
            rule: RangeRule::Start,
        },
        buckets: 12,
        rows: 9,
    };
    let histogram = engine.histogram(&heatmap).await.expect("is answered");
    let servers = load.spans.values().filter(|truth| truth.span.kind == SpanKind::Server).count();
    assert_eq!(histogram.matched, servers as u64);
    assert_eq!(histogram.cells.iter().map(|cell| cell.count).sum::<u64>(), histogram.matched);
    assert!(histogram.cells.len() > 5, "{histogram:?}");
    for cell in &histogram.cells {
        let bound = |row: u32| histogram.bounds_ns[row as usize];
        let query = format!(
            "{{ kind = server && duration >= {}ns && duration < {}ns }}",
            bound(cell.row),
            bound(cell.row + 1)
        );
        let step = histogram.steps.step_ns;
        let mut asked = request(&query, Scope::Span);
        let begin = histogram.steps.range.start().saturating_add(u64::from(cell.bucket) * step);
        asked.spans.range = TimeRange::lasting(begin, step);
        asked.spans.rule = RangeRule::Start;
        let answer = engine.selected_profile(&asked).await.expect("is answered");
        assert_eq!(answer.spans.spans, cell.count, "{query}");
    }
    store.close().await.expect("is closed");
}
