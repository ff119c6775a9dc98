//! Media that lose or change what was written: it is found, named, and what is left is there once.

#[allow(dead_code, reason = "shared by test files that each use a part")]
mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use spanflame_model::Tenant;
use spanflame_store::{FindingKind, Store, StoreOptions, Verification, repair, verify};
use workload::{batch, count_by_seed, expect_exactly};

/// Spans and samples of a batch.
const COUNT: u64 = 20;

fn options(data: &Path) -> StoreOptions {
    StoreOptions {
        data: data.display().to_string(),
        flush_interval: Duration::from_secs(24 * 3600),
        ..StoreOptions::default()
    }
}

/// A directory with one file a table for each seed, in the order of the commits.
async fn filled(seeds: u64, count: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("temporary directory");
    let store = Store::open(options(dir.path())).await.expect("opened");
    for seed in 1..=seeds {
        store.append(&Tenant::anonymous(), batch(seed, count)).await.expect("appended");
        store.flush().await.expect("flushed");
    }
    store.close().await.expect("closed");
    dir
}

/// The files below a folder whose names end so, oldest first.
fn files(dir: &Path, folder: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("listed") {
            let path = entry.expect("listed").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.to_string_lossy().ends_with(end) => found.push(path),
                false => {}
            }
        }
    }
    found.sort_by_key(|path| (path.metadata().and_then(|m| m.modified()).expect("known"), path.clone()));
    found
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("read");
    bytes[at] ^= 0x04;
    std::fs::write(path, bytes).expect("written");
}

fn truncate(path: &Path) {
    let len = path.metadata().expect("there").len();
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("opened");
    file.set_len(len / 2).expect("truncated");
}

fn kinds(found: &Verification) -> Vec<FindingKind> {
    found.findings.iter().map(|finding| finding.kind).collect()
}

/// Harms the second of three batches, and checks that this is found, that repair mends it, and that the
/// others are there exactly once. `left` says how many spans and samples of the second are.
async fn check(harm: impl FnOnce(&Path) -> PathBuf, expected: FindingKind, left: Option<(u64, u64)>) {
    let dir = filled(3, COUNT).await;
    let whole = verify(&options(dir.path())).await.expect("verified");
    assert_eq!((whole.findings.as_slice(), whole.rows > 0), (&[][..], true));
    let harmed = harm(dir.path());
    let found = verify(&options(dir.path())).await.expect("verified");
    assert!(kinds(&found).contains(&expected), "{found:?}");
    let name = harmed.file_name().expect("a file").to_string_lossy().into_owned();
    assert!(found.findings.iter().any(|finding| finding.file.ends_with(&name)), "{found:?}");

    let repaired = repair(&options(dir.path())).await.expect("repaired");
    assert_eq!(kinds(&repaired.found), kinds(&found));
    let again = verify(&options(dir.path())).await.expect("verified");
    assert_eq!(again.findings, []);
    let store = Store::open(options(dir.path())).await.expect("opened");
    let mut counts = count_by_seed(&store, &Tenant::anonymous()).await;
    assert_eq!(counts.remove(&2), left, "{expected:?} of {name}");
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(1, (COUNT, COUNT)), (3, (COUNT, COUNT))]);
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_changed_or_missing_table_file_costs_its_own_rows_only() {
    let lost = |table| match table {
        "spans" => Some((0, COUNT)),
        _ => Some((COUNT, 0)),
    };
    for table in ["spans", "samples"] {
        let second = |dir: &Path| files(dir, table, ".parquet").swap_remove(1);
        let truncated = |dir: &Path| {
            let path = second(dir);
            truncate(&path);
            path
        };
        check(truncated, FindingKind::DamagedFile, lost(table)).await;
        let flipped = |dir: &Path| {
            let path = second(dir);
            flip(&path, 200);
            path
        };
        check(flipped, FindingKind::DamagedFile, lost(table)).await;
        let removed = |dir: &Path| {
            let path = second(dir);
            std::fs::remove_file(&path).expect("removed");
            path
        };
        check(removed, FindingKind::MissingFile, lost(table)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_stacks_and_frames_leave_spans_and_samples_alone() {
    for table in ["stacks", "frames"] {
        let harm = |dir: &Path| {
            let path = files(dir, table, ".parquet").swap_remove(0);
            truncate(&path);
            path
        };
        check(harm, FindingKind::DamagedFile, Some((COUNT, COUNT))).await;
    }
}

/// The commit of the last batch, of a table.
fn last_commit(dir: &Path, table: &str) -> PathBuf {
    files(dir, &format!("{table}/_delta_log"), ".json").pop().expect("a commit")
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_lost_or_damaged_last_commit_are_committed_again() {
    let all = Some((COUNT, COUNT));
    for table in ["spans", "samples"] {
        let cut = |dir: &Path| {
            let path = last_commit(dir, table);
            truncate(&path);
            path
        };
        check(cut, FindingKind::DamagedLog, all).await;
        let lost = |dir: &Path| {
            std::fs::remove_file(last_commit(dir, table)).expect("removed");
            // Found by its rows: the file of the third batch is named nowhere.
            files(dir, table, ".parquet").pop().expect("a file")
        };
        check(lost, FindingKind::UncommittedRows, all).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_in_the_middle_of_a_log_costs_no_rows() {
    let harm = |dir: &Path| {
        let path = files(dir, "spans/_delta_log", ".json").swap_remove(2);
        flip(&path, 0);
        path
    };
    check(harm, FindingKind::DamagedLog, Some((COUNT, COUNT))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_on_a_damaged_directory_names_the_file_and_reads_the_rest() {
    let dir = filled(2, COUNT).await;
    let harmed = files(dir.path(), "spans", ".parquet").swap_remove(0);
    truncate(&harmed);
    let store = Store::open(options(dir.path())).await.expect("opened");
    expect_exactly(&store, &Tenant::anonymous(), 2..3, COUNT).await;
    store.append(&Tenant::anonymous(), batch(3, COUNT)).await.expect("ingest goes on");
    let damaged = store.snapshot().damaged_files();
    let name = harmed.file_name().expect("a file").to_string_lossy().into_owned();
    assert!(damaged.iter().any(|(file, _)| file.ends_with(&name)), "{damaged:?}");
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_in_a_large_file_costs_the_rows_of_its_pages_only() {
    const MANY: u64 = 60_000;
    let dir = filled(1, MANY).await;
    let path = files(dir.path(), "spans", ".parquet").swap_remove(0);
    let len = path.metadata().expect("there").len() as usize;
    assert!(len > 3 * (256 << 10), "{len} bytes are too few for this test");
    flip(&path, len / 2);
    let found = verify(&options(dir.path())).await.expect("verified");
    let [finding] = found.findings.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((finding.kind, finding.rows), (FindingKind::DamagedFile, Some(MANY)));
    let repaired = repair(&options(dir.path())).await.expect("repaired");
    assert_eq!(repaired.rows_kept, finding.rows_readable);
    assert_eq!(repaired.rows_kept + repaired.rows_lost, MANY);
    assert!(repaired.rows_kept > MANY / 4 && repaired.rows_lost > 0, "{repaired:?}");
    let store = Store::open(options(dir.path())).await.expect("opened");
    let counts = count_by_seed(&store, &Tenant::anonymous()).await;
    assert_eq!(counts.get(&1), Some(&(repaired.rows_kept, MANY)));
    store.close().await.expect("closed");
}
