//! The same questions while samples are kept, when they are rolled up as well, and when only the rollup is left.

use spanflame_model::{Batch, Claim, Link, StackId, Tenant, TimeRange};
use spanflame_query::{
    CatalogRequest, Engine, Evidence, LabelSelector, ProfileAnswer, ProfileRequest, Selection, SeriesAnswer, SeriesRequest, Service, Steps,
    TypeSelector,
};
use spanflame_store::{Snapshot, Store, StoreOptions};
use spanflame_testkit::{ProfileBuilder, SpanBuilder, Stacks, at, link, resource};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
/// The minute in which everything begins; what lies in it lies within 4 minutes.
const BASE: u64 = 1000 * MINUTE;
const PERIOD: i64 = 10_000_000;

async fn open(dir: &tempfile::TempDir, retention_raw_s: u64) -> Store {
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        flush_interval: std::time::Duration::from_secs(3600),
        retention_raw: std::time::Duration::from_secs(retention_raw_s),
        ..StoreOptions::default()
    };
    Store::open(options).await.expect("opens")
}

/// Samples with and without times, links and nanoseconds, of two versions of a service and of another; different
/// ones for each `number`.
fn batch(number: u64) -> Batch {
    let mut stacks = Stacks::default();
    let (work, wait) = (stacks.id("main;work"), stacks.id("main;work;wait"));
    let offset = number * 7 * SECOND;
    let times: Vec<u64> = (0..23).map(|step| BASE + offset + step * 9 * SECOND).collect();
    let minute = BASE + (number % 2 + 1) * MINUTE;
    let profiles = vec![
        ProfileBuilder::timed("cart", PERIOD)
            .resource(&resource("cart", &[("service.version", "1")]))
            .time(BASE, 4 * MINUTE)
            .observed(work, link(1, 1, Claim::Active), &times)
            .observed(wait, Link::None, &times[3..9])
            .build(),
        ProfileBuilder::timed("cart", 2 * PERIOD)
            .resource(&resource("cart", &[("service.version", "2")]))
            .time(BASE, 4 * MINUTE)
            .observed(work, Link::None, &times[1..2])
            .build(),
        ProfileBuilder::cpu("pricing", PERIOD)
            .time(minute + number, 30 * SECOND)
            .sample(work, link(1, 1, Claim::Label), &[3, 3 * PERIOD])
            .sample(wait, Link::None, &[4 + number as i64, 41_000_000])
            .build(),
        ProfileBuilder::of("pricing", &[("inuse_space", "bytes")], 0)
            .time(minute, 0)
            .sample(work, Link::None, &[100 + number as i64])
            .build(),
    ];
    Batch {
        spans: vec![SpanBuilder::new(1, 1, "cart").time(BASE, MINUTE).build()],
        profiles,
        stacks: stacks.set,
    }
}

async fn append(store: &Store, number: u64) {
    store.append(&Tenant::anonymous(), batch(number)).await.expect("is appended");
}

fn range(start_s: u64, end_s: u64) -> TimeRange {
    TimeRange::new(at(BASE + start_s * SECOND), at(BASE + end_s * SECOND)).expect("start < end")
}

const TYPES: [&str; 3] = ["cpu", "samples", "inuse_space"];
const SELECTORS: [&str; 4] = [
    "{}",
    r#"{service.name="cart"}"#,
    r#"{service.name="pricing"}"#,
    r#"{service.version="2"}"#,
];

async fn ask(snapshot: Snapshot, selector: &str, profile_type: &str, range: TimeRange) -> ProfileAnswer {
    let request = ProfileRequest {
        tenants: vec![Tenant::anonymous()],
        selection: Selection::Services {
            selector: LabelSelector::parse(selector).expect("valid"),
        },
        profile_type: profile_type.parse::<TypeSelector>().expect("valid"),
        range: Some(range),
        rows: false,
    };
    Engine::new(snapshot).profile(&request).await.expect("is answered")
}

type Totals = Vec<(StackId, i64, u64)>;

fn totals(answer: &ProfileAnswer) -> Totals {
    let totals = answer.totals.iter();
    totals.map(|total| (total.stack, total.value, total.samples)).collect()
}

/// Totals by stack and evidence for every selector.
async fn profiles(store: &Store, profile_type: &str, range: TimeRange) -> Vec<(Totals, Evidence)> {
    let mut found = Vec::new();
    for selector in SELECTORS {
        let answer = ask(store.snapshot(), selector, profile_type, range).await;
        found.push((totals(&answer), answer.evidence));
    }
    found
}

type Catalog = (Vec<Service>, Vec<(String, Vec<String>, u64)>, Vec<String>, Vec<String>);

async fn catalog(store: &Store, range: TimeRange) -> Catalog {
    let engine = Engine::new(store.snapshot());
    let request = CatalogRequest {
        tenants: vec![Tenant::anonymous()],
        range,
    };
    let types = engine.profile_types(&request).await.expect("is answered");
    let types = types.into_iter().map(|t| (t.profile_type.to_string(), t.services, t.samples));
    (
        engine.services(&request).await.expect("is answered"),
        types.collect(),
        engine.label_names(&request).await.expect("is answered"),
        engine.label_values(&request, "service.version").await.expect("is answered"),
    )
}

/// Both stores give the same totals and the same catalog for a range.
async fn check_equal(store: &Store, expected: &Store, range: TimeRange) {
    for profile_type in &TYPES[..2] {
        let (found, wanted) = (
            profiles(store, profile_type, range).await,
            profiles(expected, profile_type, range).await,
        );
        for (at, selector) in SELECTORS.iter().enumerate() {
            assert_eq!(found[at].0, wanted[at].0, "{profile_type} of {selector} in {range:?}");
        }
    }
    let (found, wanted) = (catalog(store, range).await, catalog(expected, range).await);
    let cpu = |services: &[Service]| -> Vec<_> { services.iter().map(|s| (s.name.clone(), s.samples, s.cpu_ns)).collect() };
    assert_eq!(cpu(&found.0), cpu(&wanted.0), "services in {range:?}");
    assert_eq!((found.1, found.2, found.3), (wanted.1, wanted.2, wanted.3), "catalog of {range:?}");
}

const ALIGNED: [(u64, u64); 4] = [(0, 300), (60, 120), (60, 180), (120, 240)];
const NOT_ALIGNED: [(u64, u64); 4] = [(0, 299), (17, 200), (61, 119), (75, 76)];

#[tokio::test]
async fn what_is_kept_is_answered_as_if_there_were_no_rollup() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir, 1 << 30).await;
    append(&store, 1).await;
    append(&store, 2).await;
    let ranges: Vec<TimeRange> = ALIGNED.iter().chain(&NOT_ALIGNED).map(|(start, end)| range(*start, *end)).collect();
    let mut before = Vec::new();
    for range in &ranges {
        for profile_type in TYPES {
            before.push(profiles(&store, profile_type, *range).await);
        }
    }
    let catalog_before = catalog(&store, range(17, 200)).await;
    assert!(
        before[0].iter().all(|(totals, _)| !totals.is_empty()),
        "there is something to compare"
    );
    store.flush().await.expect("is flushed");
    store.maintain().await.expect("is maintained");
    assert!(store.snapshot().rollup_until().is_some(), "is rolled up");
    let mut after = Vec::new();
    for range in &ranges {
        for profile_type in TYPES {
            after.push(profiles(&store, profile_type, *range).await);
        }
    }
    assert_eq!(before, after);
    assert_eq!(catalog(&store, range(17, 200)).await, catalog_before);
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn what_is_gone_is_answered_from_the_rollup_and_late_arrivals_count_once() {
    let (dir, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let (store, truth) = (open(&dir, 0).await, open(&other, 1 << 30).await);
    for number in [1, 2] {
        append(&store, number).await;
        append(&truth, number).await;
    }
    store.flush().await.expect("is flushed");
    store.maintain().await.expect("is maintained");
    assert_eq!(store.snapshot().last_received(), None, "neither spans nor samples are left");
    for (start, end) in ALIGNED {
        check_cpu_and_reason(&store, &truth, range(start, end), range(start, end)).await;
    }
    for (start, end) in NOT_ALIGNED {
        let whole = range(start / 60 * 60, end.div_ceil(60) * 60);
        check_cpu_and_reason(&store, &truth, range(start, end), whole).await;
    }
    let gauge = ask(store.snapshot(), "{}", "inuse_space", range(0, 300)).await;
    assert_eq!(gauge.samples, 0, "averages are not in the rollup");

    append(&store, 3).await;
    append(&truth, 3).await;
    check_all(&store, &truth).await;
    store.flush().await.expect("is flushed");
    check_all(&store, &truth).await;
    store.close().await.expect("is closed");
    let store = open(&dir, 1 << 30).await;
    let until = store.snapshot().rollup_until();
    store.maintain().await.expect("is maintained");
    assert!(store.snapshot().rollup_until() > until, "late arrivals are rolled up and kept");
    check_all(&store, &truth).await;
    store.close().await.expect("is closed");
    truth.close().await.expect("is closed");
}

async fn check_all(store: &Store, truth: &Store) {
    for (start, end) in ALIGNED {
        check_equal(store, truth, range(start, end)).await;
    }
}

async fn series(store: &Store, range: TimeRange, step_s: u64, by: &[&str]) -> SeriesAnswer {
    let request = SeriesRequest {
        tenants: vec![Tenant::anonymous()],
        selector: LabelSelector::default(),
        profile_type: TypeSelector::Cpu,
        steps: Steps {
            range,
            step_ns: step_s * SECOND,
        },
        by: by.iter().map(|name| (*name).to_owned()).collect(),
    };
    Engine::new(store.snapshot()).profile_steps(&request).await.expect("is answered")
}

#[tokio::test]
async fn over_time_minutes_that_are_gone_are_where_they_were_and_add_up() {
    let (dir, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let (store, truth) = (open(&dir, 0).await, open(&other, 1 << 30).await);
    for number in [1, 2] {
        append(&store, number).await;
        append(&truth, number).await;
    }
    store.flush().await.expect("is flushed");
    store.maintain().await.expect("is maintained");
    append(&store, 3).await;
    append(&truth, 3).await;
    let whole = range(0, 300);
    for by in [&[][..], &["service.name"], &["service.name", "service.version"]] {
        let (found, wanted) = (series(&store, whole, 60, by).await, series(&truth, whole, 60, by).await);
        assert!(!wanted.series.is_empty());
        let rows = |answer: &SeriesAnswer| -> Vec<_> {
            let rows = answer.series.iter();
            rows.map(|series| (series.labels.clone(), series.values.clone(), series.samples.clone()))
                .collect()
        };
        assert_eq!(rows(&found), rows(&wanted), "by {by:?}");
        let codes: Vec<&str> = found.evidence.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!(codes, ["whole_minutes"]);
        assert_eq!(found.evidence.period_ns, wanted.evidence.period_ns);
    }
    for range in [whole, range(17, 200), range(75, 76)] {
        let summed = ask(store.snapshot(), "{}", "cpu", range).await;
        let fine = series(&store, range, 7, &[]).await;
        let total = fine.series.first().map_or(0, |series| series.total);
        let off = (total - summed.total).unsigned_abs();
        assert!(
            off <= fine.series.first().map_or(0, |series| series.values.len() as u64),
            "{total} is not {}",
            summed.total
        );
        assert_eq!(fine.evidence.precision, summed.evidence.precision);
    }
    store.close().await.expect("is closed");
    truth.close().await.expect("is closed");
}

/// What `store` says of `asked` is what `truth` says of `whole` minutes, and it says so.
async fn check_cpu_and_reason(store: &Store, truth: &Store, asked: TimeRange, whole: TimeRange) {
    for selector in SELECTORS {
        let (found, wanted) = (
            ask(store.snapshot(), selector, "cpu", asked).await,
            ask(truth.snapshot(), selector, "cpu", whole).await,
        );
        assert_eq!(totals(&found), totals(&wanted), "{selector} in {asked:?}");
        let says = found.evidence.reasons.iter().any(|reason| reason.code.as_str() == "whole_minutes");
        assert_eq!(says, wanted.samples > 0, "{selector} in {asked:?}");
        assert_eq!(found.evidence.period_ns, wanted.evidence.period_ns, "{selector} in {asked:?}");
    }
}

#[tokio::test]
async fn a_range_within_the_retention_does_not_look_at_the_rollup() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(&dir, 0).await;
    append(&store, 1).await;
    store.flush().await.expect("is flushed");
    store.maintain().await.expect("is maintained");
    let request = CatalogRequest {
        tenants: vec![Tenant::anonymous()],
        range: range(0, 300),
    };
    let samples = async |retention_ns: u64| {
        let engine = Engine::new(store.snapshot())
            .at(at(BASE + 10 * MINUTE))
            .with_retention_ns(retention_ns);
        let services = engine.services(&request).await.expect("is answered");
        services.iter().map(|service| service.samples).sum::<u64>()
    };
    assert_eq!(samples(11 * MINUTE).await, 0);
    assert!(samples(MINUTE).await > 0, "older than the retention");
    store.close().await.expect("is closed");
}
