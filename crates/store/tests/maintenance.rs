//! Merging, dropping and deleting, with readers beside.

#[allow(dead_code, reason = "shared by test files that each use a part")]
mod workload;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use spanflame_model::{Tenant, TimeRange};
use spanflame_store::{RollupRow, RollupScan, Store, StoreOptions};
use workload::{batch, count_by_seed, expect_exactly};

fn options(data: &Path) -> StoreOptions {
    StoreOptions {
        data: data.display().to_string(),
        flush_interval: Duration::from_secs(24 * 3600),
        ..StoreOptions::default()
    }
}

/// A store with one file of spans, samples, stacks and frames for each of `seeds` batches of 5.
async fn filled(options: StoreOptions, seeds: u64) -> Store {
    let store = Store::open(options).await.expect("opened");
    for seed in 1..=seeds {
        store.append(&Tenant::anonymous(), batch(seed, 5)).await.expect("appended");
        store.flush().await.expect("flushed");
    }
    store
}

fn parquet_files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory)
        .expect("listed")
        .map(|entry| entry.expect("listed").path());
    entries
        .map(|path| match path.is_dir() {
            true if path.ends_with("_delta_log") => 0,
            true => parquet_files(&path),
            false => usize::from(path.extension().is_some_and(|e| e == "parquet")),
        })
        .sum()
}

fn files(store: &Store, table: &str, tier: &str) -> u64 {
    let stats = store.stats();
    let table = stats.tables.iter().find(|t| t.table == table && t.tier == tier);
    table.expect("every table and tier is listed").files
}

#[tokio::test(flavor = "multi_thread")]
async fn files_merge_and_every_row_is_there_once_before_and_after_a_restart() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = filled(options(dir.path()), 5).await;
    assert_eq!(files(&store, "spans", "flush"), 5);
    let before = store.snapshot();
    store.maintain().await.expect("maintained");
    assert_eq!((files(&store, "spans", "flush"), files(&store, "spans", "minutes")), (0, 1));
    let trace = workload::trace(3, 2);
    let old = before
        .trace_spans(std::slice::from_ref(&tenant), trace)
        .await
        .expect("its files are still there");
    assert_eq!(old.len(), 1);
    expect_exactly(&store, &tenant, 1..6, 5).await;
    store.close().await.expect("closed");
    let store = Store::open(options(dir.path())).await.expect("opened again");
    expect_exactly(&store, &tenant, 1..6, 5).await;
    assert_eq!(count_by_seed(&store, &tenant).await.values().sum_pairs(), (25, 25));
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_files_are_deleted_after_the_grace_period_even_if_a_restart_comes_between() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let store = filled(options(dir.path()), 3).await;
    store.maintain().await.expect("maintained");
    let live: u64 = store.stats().tables.iter().map(|t| t.files).sum();
    store.close().await.expect("closed");
    assert!(parquet_files(dir.path()) as u64 > live, "the grace period is not over");
    let no_grace = StoreOptions {
        grace: Duration::ZERO,
        ..options(dir.path())
    };
    let store = Store::open(no_grace).await.expect("opened again");
    store.maintain().await.expect("maintained");
    assert_eq!(parquet_files(dir.path()) as u64, live);
    expect_exactly(&store, &Tenant::anonymous(), 1..4, 5).await;
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_old_is_dropped_and_what_is_too_much_goes_oldest_first() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = filled(options(dir.path()), 2).await;
    store.close().await.expect("closed");
    let too_much = StoreOptions {
        size_bytes_max: Some(1),
        ..options(dir.path())
    };
    let store = Store::open(too_much).await.expect("opened");
    store.maintain().await.expect("maintained");
    let stats = store.stats();
    assert!(stats.oversize_files > 0, "{stats:?}");
    assert!(count_by_seed(&store, &tenant).await.is_empty());
    store.close().await.expect("closed");

    let too_old = StoreOptions {
        retention_raw: Duration::ZERO,
        ..options(dir.path())
    };
    let store = filled(too_old, 0).await;
    store.append(&tenant, batch(9, 5)).await.expect("appended");
    store.flush().await.expect("flushed");
    store.maintain().await.expect("maintained");
    assert!(count_by_seed(&store, &tenant).await.is_empty());
    assert_eq!(store.stats().expired_files, 2, "its spans and its samples");
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rollup_holds_every_sample_before_its_end_once_with_the_name_of_its_span() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = filled(options(dir.path()), 2).await;
    assert_eq!(store.snapshot().rollup_until(), None);
    store.maintain().await.expect("maintained");
    // 5 samples with the values 1 to 5 and 5 span names, two times, in the minute of the first second.
    let minute = "1789999980000000000";
    let twice = [1, 2, 3, 4, 5].map(|value| format!("{minute} GET /{} {} 2", value - 1, 2 * value));
    assert_eq!(rollup(&store, &tenant).await, twice);
    let until = store.snapshot().rollup_until().expect("rolled up");
    assert!(until > store.snapshot().last_received().expect("there is data"));
    store.maintain().await.expect("maintained");
    store.close().await.expect("closed");
    let store = Store::open(options(dir.path())).await.expect("opened again");
    store.maintain().await.expect("maintained");
    assert_eq!(store.snapshot().rollup_until(), Some(until));
    assert_eq!(rollup(&store, &tenant).await, twice);
    let mut late = batch(3, 1);
    late.spans.clear();
    store.append(&tenant, late).await.expect("appended");
    store.flush().await.expect("flushed");
    store.maintain().await.expect("maintained");
    let mut more = twice.to_vec();
    more.insert(0, format!("{minute} ? 1 1"));
    assert_eq!(rollup(&store, &tenant).await, more, "a sample whose span never came");
    store.close().await.expect("closed");
}

/// The rows of the rollup as `minute span sum count`, sorted by span; `?` is an unknown span.
async fn rollup(store: &Store, tenant: &Tenant) -> Vec<String> {
    let scan = RollupScan {
        tenants: vec![tenant.clone()],
        range: TimeRange::ALL,
        services: None,
    };
    let mut rows = Vec::new();
    let visit = |found: Vec<RollupRow>| {
        rows.extend(found.iter().map(|row| {
            let name = row.span_name.as_deref().unwrap_or("?");
            format!("{} {name} {} {}", row.minute, row.sum, row.count)
        }));
        ControlFlow::Continue(())
    };
    store.snapshot().scan_rollup(&scan, visit).await.expect("scanned");
    rows.sort();
    rows
}

/// Adds pairs up.
trait SumPairs {
    fn sum_pairs(self) -> (u64, u64);
}

impl<'a, I: Iterator<Item = &'a (u64, u64)>> SumPairs for I {
    fn sum_pairs(self) -> (u64, u64) {
        self.fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1))
    }
}
