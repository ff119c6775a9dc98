//! Processes that die: what they acknowledged is there exactly once.
//!
//! A child process appends under load, flushes and merges all the time, and writes the number of each
//! acknowledged batch to its output. It is killed after a given number of them, or dies by itself at a named
//! point (`SPANFLAME_CRASH_AT`). Then this process opens the directory and counts.

#[allow(dead_code, reason = "shared by test files that each use a part")]
mod workload;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spanflame_model::Tenant;
use spanflame_store::{Store, StoreOptions};
use workload::{batch, count_by_seed, expect_exactly};

const DIRECTORY: &str = "SPANFLAME_CRASH_DIRECTORY";
const FIRST_SEED: &str = "SPANFLAME_CRASH_FIRST_SEED";
const CRASH_AT: &str = "SPANFLAME_CRASH_AT";
/// Spans and samples of a batch.
const COUNT: u64 = 6;

fn options(data: &Path) -> StoreOptions {
    StoreOptions {
        data: data.display().to_string(),
        flush_interval: Duration::from_millis(30),
        grace: Duration::ZERO,
        ..StoreOptions::default()
    }
}

/// The child: does nothing unless a test below started it.
#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_dies() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let first: u64 = std::env::var(FIRST_SEED).expect("set").parse().expect("a number");
    let store = Store::open(options(Path::new(&directory))).await.expect("opened");
    let next = Arc::new(AtomicU64::new(first));
    let writers = (0..4).map(|_| {
        let (store, next) = (store.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let seed = next.fetch_add(1, Ordering::SeqCst);
                store.append(&Tenant::anonymous(), batch(seed, COUNT)).await.expect("appended");
                let mut line = std::io::stdout().lock();
                writeln!(line, "acknowledged {seed}").expect("the parent reads");
            }
        })
    });
    let _writers: Vec<_> = writers.collect();
    loop {
        store.flush().await.expect("flushed");
        store.maintain().await.expect("maintained");
    }
}

fn start(directory: &Path, first_seed: u64, crash_at: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command
        .args(["--exact", "the_process_that_dies", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(FIRST_SEED, first_seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(point) = crash_at {
        command.env(CRASH_AT, point);
    }
    command.spawn().expect("started")
}

/// Lets a process die and returns what it acknowledged.
fn die(directory: &Path, first_seed: u64, crash_at: Option<&str>, kill_after: usize) -> BTreeSet<u64> {
    let mut child = start(directory, first_seed, crash_at);
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let mut acknowledged = BTreeSet::new();
    for line in output.lines() {
        let line = line.expect("text");
        if let Some((_, seed)) = line.split_once("acknowledged ") {
            acknowledged.insert(seed.parse().expect("a number"));
        }
        if acknowledged.len() == kill_after {
            child.kill().expect("killed");
        }
    }
    let status = child.wait().expect("ended");
    assert!(!status.success(), "it was to die at {crash_at:?}");
    acknowledged
}

/// Lets processes die one after the other in one directory and checks after each.
async fn check(deaths: &[(Option<&str>, usize)]) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let mut acknowledged = BTreeSet::new();
    for (round, (crash_at, kill_after)) in deaths.iter().enumerate() {
        let first_seed = round as u64 * 100_000 + 1;
        let now = die(dir.path(), first_seed, *crash_at, *kill_after);
        acknowledged.extend(&now);
        let store = Store::open(options(dir.path())).await.expect("opened");
        for state in ["replayed", "flushed", "merged"] {
            match state {
                "flushed" => store.flush().await.expect("flushed"),
                "merged" => store.maintain().await.expect("maintained"),
                _ => {}
            }
            let counts = count_by_seed(&store, &tenant).await;
            for seed in &acknowledged {
                assert_eq!(
                    counts.get(seed),
                    Some(&(COUNT, COUNT)),
                    "batch {seed}, round {round}, {crash_at:?}, {state}"
                );
            }
            // What was on its way is there as a whole or not at all.
            let torn: Vec<_> = counts.iter().filter(|(_, count)| **count != (COUNT, COUNT)).collect();
            assert!(torn.is_empty(), "{torn:?}, round {round}, {crash_at:?}, {state}");
        }
        if let Some(last) = now.last() {
            expect_exactly(&store, &tenant, *last..*last + 1, COUNT).await;
            let again = store.append(&tenant, batch(*last, COUNT)).await.expect("appended");
            assert_eq!((again.spans, again.duplicate_spans), (0, COUNT), "recognised after the crash");
        }
        store.close().await.expect("closed");
    }
}

const NEVER: usize = usize::MAX;

#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load_at_any_moment() {
    check(&[(None, 1), (None, 37), (None, 120), (None, 8)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn died_between_log_and_tables() {
    check(&[
        (Some("after-wal:5"), NEVER),
        (Some("during-flush:6"), NEVER),
        (Some("between-file-and-commit:2"), NEVER),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn died_between_the_commits_of_one_flush_and_before_the_log_was_retired() {
    check(&[
        (Some("between-commits:6"), NEVER),
        (Some("between-commits:1"), NEVER),
        (Some("before-retirement:2"), NEVER),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn died_during_and_after_a_merge() {
    check(&[(Some("during-compaction:1"), NEVER), (Some("after-compaction:2"), NEVER)]).await;
}
