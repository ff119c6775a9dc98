//! Append, flush, reopen: what is acknowledged is there exactly once.

#[allow(dead_code, reason = "shared by test files that each use a part")]
mod workload;

use std::path::Path;
use std::time::Duration;

use spanflame_model::Tenant;
use spanflame_store::{Ack, Appended, ErrorKind, Store, StoreOptions};
use workload::{batch, expect_exactly, trace};

const NEVER: Duration = Duration::from_secs(24 * 3600);

fn options(data: &Path) -> StoreOptions {
    StoreOptions {
        data: data.display().to_string(),
        flush_interval: NEVER,
        ..StoreOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_appended_is_there_before_and_after_a_flush_and_a_restart() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = Store::open(options(dir.path())).await.expect("opened");
    let appended = store.append(&tenant, batch(1, 20)).await.expect("appended");
    assert_eq!(
        appended,
        Appended {
            spans: 20,
            profiles: 1,
            samples: 20,
            ..Appended::default()
        }
    );
    expect_exactly(&store, &tenant, 1..2, 20).await;
    store.flush().await.expect("flushed");
    expect_exactly(&store, &tenant, 1..2, 20).await;
    store.append(&tenant, batch(2, 20)).await.expect("appended");
    expect_exactly(&store, &tenant, 1..3, 20).await;
    store.close().await.expect("closed");
    let store = Store::open(options(dir.path())).await.expect("opened again");
    expect_exactly(&store, &tenant, 1..3, 20).await;
    assert!(
        store
            .snapshot()
            .trace_spans(&[Tenant::own()], trace(1, 0))
            .await
            .expect("read")
            .is_empty()
    );
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_sent_again_is_counted_and_kept_once_across_flush_and_restart() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = Store::open(options(dir.path())).await.expect("opened");
    store.append(&tenant, batch(1, 10)).await.expect("appended");
    let again = Appended {
        duplicate_spans: 10,
        duplicate_profiles: 1,
        ..Appended::default()
    };
    assert_eq!(store.append(&tenant, batch(1, 10)).await.expect("appended"), again);
    store.flush().await.expect("flushed");
    assert_eq!(store.append(&tenant, batch(1, 10)).await.expect("appended"), again);
    store.close().await.expect("closed");
    let store = Store::open(options(dir.path())).await.expect("opened again");
    assert_eq!(store.append(&tenant, batch(1, 10)).await.expect("appended"), again);
    expect_exactly(&store, &tenant, 1..2, 10).await;
    assert_eq!(store.stats().duplicate_spans, 10);
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_appends_of_the_same_batch_store_it_once() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = Store::open(options(dir.path())).await.expect("opened");
    let appends = (0..16).map(|_| {
        let (store, tenant) = (store.clone(), tenant.clone());
        tokio::spawn(async move { store.append(&tenant, batch(1, 10)).await.expect("appended").spans })
    });
    let stored = futures::future::join_all(appends)
        .await
        .into_iter()
        .map(|spans| spans.expect("no panic"));
    assert_eq!(stored.sum::<u64>(), 10);
    expect_exactly(&store, &tenant, 1..2, 10).await;
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_in_use_is_refused_and_named() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let store = Store::open(options(dir.path())).await.expect("opened");
    let Err(error) = Store::open(options(dir.path())).await else {
        panic!("a second store opened the same directory");
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("is in use by process"), "{error}");
    store.close().await.expect("closed");
    Store::open(options(dir.path()))
        .await
        .expect("free again")
        .close()
        .await
        .expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_are_refused_as_busy_when_nothing_can_be_flushed() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let options = StoreOptions {
        head_bytes_max: 1,
        ..options(dir.path())
    };
    let store = Store::open(options).await.expect("opened");
    store.append(&tenant, batch(1, 1)).await.expect("the head is empty");
    let error = store.append(&tenant, batch(2, 1)).await.expect_err("the head is full");
    assert_eq!(error.kind(), ErrorKind::Busy);
    store.flush().await.expect("flushed");
    store.append(&tenant, batch(2, 1)).await.expect("the head is empty again");
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_ack_flush_an_append_returns_when_it_is_in_the_tables() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let options = StoreOptions {
        ack: Ack::Flush,
        flush_interval: Duration::from_millis(20),
        ..options(dir.path())
    };
    let store = Store::open(options).await.expect("opened");
    store.append(&tenant, batch(1, 3)).await.expect("appended");
    assert_eq!(store.stats().head_bytes, 0);
    assert_eq!(store.stats().flushes, 1);
    store.append(&tenant, batch(1, 3)).await.expect("a duplicate");
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_are_written_once_a_day() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = Store::open(options(dir.path())).await.expect("opened");
    for seed in 1..4 {
        store.append(&tenant, batch(seed, 5)).await.expect("appended");
        store.flush().await.expect("flushed");
    }
    let stats = store.stats();
    let files = |name| stats.tables.iter().filter(|t| t.table == name).map(|t| t.files).sum::<u64>();
    assert_eq!((files("spans"), files("samples"), files("stacks"), files("frames")), (3, 3, 1, 1));
    expect_exactly(&store, &tenant, 1..4, 5).await;
    store.close().await.expect("closed");
}
