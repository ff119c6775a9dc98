//! Directories that earlier versions wrote open, with all that was acknowledged in them.
//!
//! `testdata/store/v1` is such a directory. Its batches follow from [`workload::batch`], so whoever changes
//! that function, the identity of a span or profile, or the format on disk meets this test.

#[allow(dead_code, reason = "shared by test files that each use a part")]
mod workload;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spanflame_model::{Tenant, TimeRange};
use spanflame_store::{Appended, RollupScan, Store, StoreOptions};
use workload::{batch, count_by_seed, expect_exactly};

/// Set to 1, the directory is written anew. Only right while this version still writes format 1.
const WRITE: &str = "SPANFLAME_WRITE_FIXTURES";
/// Spans and samples of a batch.
const COUNT: u64 = 5;
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Nothing in the directory is too old, and nothing happens to it by itself.
fn options(data: &Path) -> StoreOptions {
    StoreOptions {
        data: data.display().to_string(),
        flush_interval: CENTURY,
        recognition: CENTURY,
        retention_raw: CENTURY,
        retention_rollup: CENTURY,
        ..StoreOptions::default()
    }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/store/v1")
}

/// All files below `directory`, relative to it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("listed") {
            let path = entry.expect("listed").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(directory).expect("below it").to_owned()),
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(&file);
        std::fs::create_dir_all(target.parent().expect("below a folder")).expect("created");
        std::fs::copy(from.join(&file), target).expect("copied");
    }
}

/// Batches 1 and 2 merged and rolled up, 3 flushed, 4 in the log only.
async fn write(target: &Path) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = Store::open(options(dir.path())).await.expect("opened");
    for seed in 1..=4 {
        store.append(&tenant, batch(seed, COUNT)).await.expect("appended");
        match seed {
            1 | 3 => store.flush().await.expect("flushed"),
            2 => {
                store.flush().await.expect("flushed");
                store.maintain().await.expect("maintained");
            }
            _ => {}
        }
    }
    for file in files(target).iter().filter(|file| !file.ends_with("ORIGIN.txt")) {
        std::fs::remove_file(target.join(file)).expect("removed");
    }
    copy(dir.path(), target);
    std::fs::remove_file(target.join("wal/lock")).expect("removed");
    // Delta Lake notes in a table's history, and only there, where the table was made.
    let place = dir.path().display().to_string();
    for file in files(target).iter().filter(|file| file.extension().is_some_and(|e| e == "json")) {
        let log = std::fs::read_to_string(target.join(file)).expect("text");
        std::fs::write(target.join(file), log.replace(&place, "/data")).expect("written");
    }
    for file in files(target) {
        let bytes = std::fs::read(target.join(&file)).expect("read");
        let names_place = bytes.windows(place.len()).any(|window| window == place.as_bytes());
        assert!(!names_place, "{} names the directory where it was made", file.display());
    }
    store.close().await.expect("closed");
}

async fn rolled_up(store: &Store, tenant: &Tenant) -> u64 {
    let scan = RollupScan {
        tenants: vec![tenant.clone()],
        range: TimeRange::ALL,
        services: None,
    };
    let mut count = 0;
    let visit = |rows: Vec<spanflame_store::RollupRow>| {
        count += rows.iter().map(|row| row.count).sum::<u64>();
        ControlFlow::Continue(())
    };
    store.snapshot().scan_rollup(&scan, visit).await.expect("scanned");
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_version_1_opens() {
    if std::env::var(WRITE).is_ok_and(|value| value == "1") {
        write(&fixture()).await;
    }
    let dir = tempfile::tempdir().expect("temporary directory");
    copy(&fixture(), dir.path());
    let tenant = Tenant::anonymous();
    let store = Store::open(options(dir.path())).await.expect("opened");
    let once: BTreeMap<u64, (u64, u64)> = (1..=4).map(|seed| (seed, (COUNT, COUNT))).collect();
    for state in ["replayed", "flushed", "merged"] {
        match state {
            "flushed" => store.flush().await.expect("flushed"),
            "merged" => store.maintain().await.expect("maintained"),
            _ => assert_eq!(rolled_up(&store, &tenant).await, 2 * COUNT),
        }
        assert_eq!(count_by_seed(&store, &tenant).await, once, "{state}");
        expect_exactly(&store, &tenant, 1..5, COUNT).await;
        for seed in 1..=4 {
            let again = store.append(&tenant, batch(seed, COUNT)).await.expect("appended");
            let known = Appended {
                duplicate_spans: COUNT,
                duplicate_profiles: 1,
                ..Appended::default()
            };
            assert_eq!(again, known, "batch {seed}, {state}");
        }
    }
    assert_eq!(rolled_up(&store, &tenant).await, 4 * COUNT);
    assert_eq!(store.stats().wal_damaged_records, 0);
    store.close().await.expect("closed");
}
