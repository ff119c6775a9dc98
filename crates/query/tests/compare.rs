//! Comparisons of loads with planted differences.

use std::collections::BTreeMap;

use spanflame_model::{Batch, Claim, Tenant, TimeRange};
use spanflame_query::traceql::Query;
use spanflame_query::{
    CompareRequest, CompareSet, Comparison, Engine, ErrorKind, LabelSelector, RangeRule, Scope, SpanSelection, SpanSet, TypeSelector,
    Verdict,
};
use spanflame_store::{Store, StoreOptions};
use spanflame_testkit::{ProfileBuilder, Random, SpanBuilder, Stacks, link, resource, trace_id};

const PERIOD: i64 = 10_000_000;
const SECOND: u64 = 1_000_000_000;
const SPANS: u64 = 120;

/// How many samples in 100 spans a function has, in spans named `fast` and in those named `slow`.
const PLANTED: [(&str, u64, u64); 6] = [
    ("serve;render", 300, 300),
    ("serve;query;scan", 150, 600),
    ("serve;retry", 0, 200),
    ("serve;cache", 250, 0),
    ("serve;log", 90, 90),
    ("serve;rare", 0, 1),
];

/// Even spans are fast, odd ones slow; what each of them ran hangs on chance.
fn load() -> Batch {
    let (mut random, mut stacks) = (Random::new(7), Stacks::default());
    let version = |name: &str| resource("shop", &[("service.version", name)]);
    let (old, new) = (version("1"), version("2"));
    let mut spans = Vec::new();
    let mut profiles = Vec::new();
    for number in 1..=2 * SPANS {
        let is_slow = number % 2 == 1;
        let resource = if is_slow { &new } else { &old };
        let name = if is_slow { "slow" } else { "fast" };
        let start = number * SECOND;
        spans.push(
            SpanBuilder::new(number, number, "shop")
                .resource(resource)
                .name(name)
                .time(start, SECOND / 2)
                .build(),
        );
        let mut profile = ProfileBuilder::cpu("shop", PERIOD).resource(resource).time(start, SECOND / 2);
        for (stack, fast, slow) in PLANTED {
            let mean = if is_slow { slow } else { fast };
            // The sum of many small chances.
            let count = (0..20).filter(|_| random.below(2000) < mean).count() as i64;
            if count > 0 {
                let stack = stacks.id(&format!("main;{stack}"));
                profile = profile.sample(stack, link(number, number, Claim::Active), &[count, count * PERIOD]);
            }
        }
        profiles.push(profile.build());
    }
    Batch {
        spans,
        profiles,
        stacks: stacks.set,
    }
}

async fn store(dir: &tempfile::TempDir, batch: Batch) -> Store {
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.expect("opens an empty directory");
    store.append(&Tenant::anonymous(), batch).await.expect("is appended");
    store
}

fn spans(query: &str) -> CompareSet {
    CompareSet::Spans(SpanSet::Matching(SpanSelection {
        query: Query::parse(query).expect("parses"),
        range: TimeRange::ALL,
        rule: RangeRule::Overlap,
    }))
}

fn profiles(selector: &str) -> CompareSet {
    CompareSet::Profiles {
        selector: LabelSelector::parse(selector).expect("parses"),
        range: TimeRange::lasting(spanflame_testkit::at(0), 300 * SECOND),
    }
}

fn request(base: CompareSet, target: CompareSet) -> CompareRequest {
    CompareRequest {
        tenants: vec![Tenant::anonymous()],
        base,
        target,
        profile_type: TypeSelector::Cpu,
        scope: Scope::Span,
    }
}

async fn ask(engine: &Engine, base: CompareSet, target: CompareSet) -> Comparison {
    engine.compare(&request(base, target)).await.expect("is answered")
}

fn verdicts(found: &Comparison) -> BTreeMap<&str, &'static str> {
    let name = |frame: u32| found.base_tree.frames[frame as usize].function.as_str();
    found.functions.iter().map(|f| (name(f.frame), f.verdict.as_str())).collect()
}

/// What was planted, by spans and by versions.
const EXPECTED: [(&str, &str); 9] = [
    ("cache", "only_in_base"),
    ("log", "not_significant"),
    ("main", "more"),
    ("query", "more"),
    ("rare", "too_few_samples"),
    ("render", "not_significant"),
    ("retry", "only_in_target"),
    ("scan", "more"),
    ("serve", "more"),
];

#[tokio::test]
async fn planted_differences_are_found_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = store(&dir, load()).await;
    let engine = Engine::new(store.snapshot());
    for (base, target) in [
        (spans("{ name = \"fast\" }"), spans("{ name = \"slow\" }")),
        (profiles("{service.version=\"1\"}"), profiles("{service.version=\"2\"}")),
    ] {
        let found = ask(&engine, base.clone(), target.clone()).await;
        assert_eq!(verdicts(&found), BTreeMap::from(EXPECTED));
        for function in &found.functions {
            let (difference, interval) = (function.difference.expect("both have units"), function.difference_interval);
            let interval = interval.expect("both have samples");
            assert!(interval.low <= difference && difference <= interval.high, "{function:?}");
        }
        let back = ask(&engine, target, base).await;
        let swapped = verdicts(&back);
        assert_eq!(
            (swapped["scan"], swapped["cache"], swapped["retry"]),
            ("less", "only_in_target", "only_in_base")
        );
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn a_selection_does_not_differ_from_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = store(&dir, load()).await;
    let engine = Engine::new(store.snapshot());
    let one_trace = || {
        CompareSet::Spans(SpanSet::OfTrace {
            trace_id: trace_id(3),
            span_id: None,
        })
    };
    for set in [spans("{}"), spans("{ name = \"slow\" }"), one_trace(), profiles("{}")] {
        let found = ask(&engine, set.clone(), set).await;
        assert!(!found.functions.is_empty());
        for function in &found.functions {
            assert!(!function.verdict.is_significant(), "{function:?}");
            assert_eq!((function.base, function.difference), (function.target, Some(0.0)));
        }
        assert_eq!(found.base_tree, found.target_tree);
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn halves_of_one_load_do_not_differ_however_many_functions_there_are() {
    let (mut random, mut stacks) = (Random::new(11), Stacks::default());
    let mut batch = Batch::default();
    for number in 1..=400_u64 {
        let start = number * SECOND;
        let name = if number % 2 == 0 { "even" } else { "odd" };
        batch
            .spans
            .push(SpanBuilder::new(number, number, "shop").name(name).time(start, SECOND / 2).build());
        let mut profile = ProfileBuilder::cpu("shop", PERIOD).time(start, SECOND / 2);
        for _ in 0..20 {
            let stack = stacks.id(&format!("main;work {}", random.below(200)));
            profile = profile.sample(stack, link(number, number, Claim::Active), &[1, PERIOD]);
        }
        batch.profiles.push(profile.build());
    }
    batch.stacks = stacks.set;
    let dir = tempfile::tempdir().expect("a directory");
    let store = store(&dir, batch).await;
    let found = ask(
        &Engine::new(store.snapshot()),
        spans("{ name = \"even\" }"),
        spans("{ name = \"odd\" }"),
    )
    .await;
    assert!(found.functions.len() > 150);
    let significant = found.functions.iter().filter(|function| function.verdict.is_significant());
    assert_eq!(significant.count(), 0);
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn spans_are_not_compared_with_profiles_and_a_side_without_samples_says_so() {
    let mut batch = load();
    batch
        .spans
        .push(SpanBuilder::new(900, 900, "shop").name("idle").time(1000 * SECOND, SECOND).build());
    let dir = tempfile::tempdir().expect("a directory");
    let store = store(&dir, batch).await;
    let engine = Engine::new(store.snapshot());
    let mixed = engine.compare(&request(spans("{}"), profiles("{}"))).await;
    assert_eq!(mixed.expect_err("is refused").kind(), ErrorKind::Invalid);
    let found = ask(&engine, spans("{ name = \"idle\" }"), spans("{ name = \"slow\" }")).await;
    assert!(found.functions.iter().all(|function| function.verdict == Verdict::TooFewSamples));
    assert!(!found.base.profile.evidence.reasons.is_empty());
    let nowhere = CompareSet::Spans(SpanSet::OfTrace {
        trace_id: trace_id(12_345),
        span_id: None,
    });
    let unknown = engine.compare(&request(nowhere, spans("{}"))).await;
    assert_eq!(unknown.expect_err("is not stored").kind(), ErrorKind::NotFound);
    store.close().await.expect("is closed");
}
