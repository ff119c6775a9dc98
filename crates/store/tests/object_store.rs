//! Tables on an object store: S3 on loopback, and one that fails, is away for a while or for good, or does not answer.

#[allow(dead_code, reason = "shared by test files that each use a part")]
mod workload;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::aws::AmazonS3Builder;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use spanflame_model::Tenant;
use spanflame_store::{ErrorKind, Store, StoreOptions};
use workload::{batch, count_by_seed, expect_exactly, trace};

const COUNT: u64 = 5;

fn options(url: &str, wal: &Path) -> StoreOptions {
    StoreOptions {
        data: url.to_owned(),
        wal: Some(wal.to_owned()),
        flush_interval: Duration::from_secs(24 * 3600),
        grace: Duration::ZERO,
        ..StoreOptions::default()
    }
}

/// Append, flush, merge and reopen in an object store.
async fn check(url: &str, storage: Arc<dyn ObjectStore>) {
    let wal = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let open = || Store::open_in(options(url, wal.path()), Arc::clone(&storage));
    let store = open().await.expect("opened");
    for seed in 1..=3 {
        store.append(&tenant, batch(seed, COUNT)).await.expect("appended");
        store.flush().await.expect("flushed");
    }
    store.maintain().await.expect("maintained");
    store.append(&tenant, batch(4, COUNT)).await.expect("appended");
    expect_exactly(&store, &tenant, 1..5, COUNT).await;
    store.close().await.expect("closed");
    let store = open().await.expect("opened again");
    expect_exactly(&store, &tenant, 1..5, COUNT).await;
    let counts = count_by_seed(&store, &tenant).await;
    assert!(
        counts.len() == 4 && counts.values().all(|count| *count == (COUNT, COUNT)),
        "{counts:?}"
    );
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_lie_in_s3() {
    let root = tempfile::tempdir().expect("temporary directory");
    std::fs::create_dir(root.path().join("bucket")).expect("created");
    let mut service = s3s::service::S3ServiceBuilder::new(s3s_fs::FileSystem::new(root.path()).expect("a file system"));
    service.set_auth(s3s::auth::SimpleAuth::from_single("key", "secret"));
    let service = service.build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.expect("accepted");
            let service = service.clone();
            tokio::spawn(async move {
                let builder = hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
                // A client that goes away is no failure.
                let _ = builder.serve_connection(hyper_util::rt::TokioIo::new(socket), service).await;
            });
        }
    });
    let s3 = AmazonS3Builder::new()
        .with_endpoint(format!("http://{address}"))
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_bucket_name("bucket")
        .with_access_key_id("key")
        .with_secret_access_key("secret")
        .build()
        .expect("configured");
    check("s3://bucket/some/prefix", Arc::new(s3)).await;
    assert!(
        root.path()
            .join("bucket/some/prefix/spans/_delta_log/00000000000000000000.json")
            .exists()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_fails_is_repeated_and_loses_and_doubles_nothing() {
    // Each of these requests fails once: files, commits, and commits that happened although they failed.
    for (lie, first) in [(false, 0), (false, 2), (false, 4), (false, 5), (true, 4), (true, 5)] {
        let storage = Arc::new(Failing::default());
        let wal = tempfile::tempdir().expect("temporary directory");
        let tenant = Tenant::anonymous();
        let store = Store::open_in(options("memory:///data", wal.path()), storage.clone())
            .await
            .expect("opened");
        store.append(&tenant, batch(1, COUNT)).await.expect("appended");
        storage.fail_once(first, lie);
        let outcome = store.flush().await;
        if let Err(error) = &outcome {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
        assert!(storage.has_failed(), "request {first} was made");
        expect_exactly(&store, &tenant, 1..2, COUNT).await;
        store.append(&tenant, batch(2, COUNT)).await.expect("appended");
        // The repeated attempt comes first, so when this flush is done both batches are in the tables.
        while store.flush().await.is_err() {}
        let counts = count_by_seed(&store, &tenant).await;
        assert!(
            counts.len() == 2 && counts.values().all(|count| *count == (COUNT, COUNT)),
            "{first}: {counts:?}"
        );
        store.close().await.expect("closed");
        let store = Store::open_in(options("memory:///data", wal.path()), storage)
            .await
            .expect("opened again");
        let counts = count_by_seed(&store, &tenant).await;
        assert!(
            counts.len() == 2 && counts.values().all(|count| *count == (COUNT, COUNT)),
            "{first}: {counts:?}"
        );
        store.close().await.expect("closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_object_store_is_away_appends_are_kept_until_memory_is_full_and_nothing_is_lost() {
    let storage = Arc::new(Failing::default());
    let wal = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let options = StoreOptions {
        head_bytes_max: 64 << 10,
        ..options("memory:///data", wal.path())
    };
    let store = Store::open_in(options, storage.clone()).await.expect("opened");
    store.append(&tenant, batch(1, COUNT)).await.expect("appended");
    store.flush().await.expect("flushed");
    storage.set_away(true);
    let mut next = 2;
    let refused = loop {
        assert!(next < 1000, "memory has a limit");
        match store.append(&tenant, batch(next, COUNT)).await {
            Ok(_) => next += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    assert!(next > 3, "what fits in memory is kept");
    for _ in 0..3 {
        let error = store.flush().await.expect_err("the store is away");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(
            error.to_string().contains("tenant=anonymous/day="),
            "it names what could not be written: {error}"
        );
    }
    assert!(store.stats().flush_failures > 0);
    // Whether files hold more of a trace nobody knows now: that is said, and neither an empty answer nor damage.
    let snapshot = store.snapshot();
    for seed in [1, 2] {
        let error = snapshot.trace_spans(std::slice::from_ref(&tenant), trace(seed, 0)).await;
        let error = error.expect_err("the store is away");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    assert_eq!(snapshot.damaged_files().len(), 0);
    storage.set_away(false);
    while store.flush().await.is_err() {}
    store.append(&tenant, batch(next, COUNT)).await.expect("there is room again");
    let counts = count_by_seed(&store, &tenant).await;
    assert_eq!(counts, (1..=next).map(|seed| (seed, (COUNT, COUNT))).collect());
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_object_store_never_took_is_in_the_log_for_the_next_start() {
    let storage = Arc::new(Failing::default());
    let wal = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let open = || Store::open_in(options("memory:///data", wal.path()), storage.clone());
    let store = open().await.expect("opened");
    storage.set_away(true);
    store.append(&tenant, batch(1, COUNT)).await.expect("appended");
    let error = store.close().await.expect_err("the tables lack it");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let error = open().await.err().expect("the store is still away");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    storage.set_away(false);
    let store = open().await.expect("opened again");
    assert_eq!(count_by_seed(&store, &tenant).await, [(1, (COUNT, COUNT))].into());
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_store_that_does_not_answer_holds_up_neither_appends_nor_questions() {
    let storage = Arc::new(Failing::default());
    let wal = tempfile::tempdir().expect("temporary directory");
    let tenant = Tenant::anonymous();
    let store = Arc::new(
        Store::open_in(options("memory:///data", wal.path()), storage.clone())
            .await
            .expect("opened"),
    );
    store.append(&tenant, batch(1, COUNT)).await.expect("appended");
    let silence = storage.gate.write().await;
    let flush = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.flush().await }
    });
    while storage.waiting.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    for seed in 2..5 {
        store.append(&tenant, batch(seed, COUNT)).await.expect("appended meanwhile");
    }
    expect_exactly(&store, &tenant, 1..5, COUNT).await;
    assert!(!flush.is_finished());
    drop(silence);
    flush.await.expect("ends").expect("flushed");
    expect_exactly(&store, &tenant, 1..5, COUNT).await;
    Arc::into_inner(store).expect("nobody else has it").close().await.expect("closed");
}

/// An object store of which one upload fails when asked to, or that is away, or does not answer.
#[derive(Debug, Default)]
struct Failing {
    inner: InMemory,
    away: AtomicBool,
    /// Requests wait while somebody holds it.
    gate: tokio::sync::RwLock<()>,
    /// Requests that wait or have waited.
    waiting: AtomicU64,
    uploads_left: AtomicU64,
    armed: AtomicBool,
    lie: AtomicBool,
    failed: AtomicBool,
}

impl Failing {
    /// After `uploads` more, one fails. If `lie`, it happens nevertheless.
    fn fail_once(&self, uploads: u64, lie: bool) {
        self.uploads_left.store(uploads, Ordering::SeqCst);
        self.lie.store(lie, Ordering::SeqCst);
        self.armed.store(true, Ordering::SeqCst);
    }

    /// From now on everything fails, or nothing does.
    fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// What precedes every request.
    async fn arrive(&self) -> Result<()> {
        if self.gate.try_read().is_err() {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _passed = self.gate.read().await;
        }
        match self.away.load(Ordering::SeqCst) {
            true => Err(network_is_down()),
            false => Ok(()),
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    fn is_due(&self) -> bool {
        let armed = self.armed.load(Ordering::SeqCst);
        let due = armed && self.uploads_left.fetch_sub(1, Ordering::SeqCst) == 0;
        if due {
            self.armed.store(false, Ordering::SeqCst);
            self.failed.store(true, Ordering::SeqCst);
        }
        due
    }
}

fn network_is_down() -> object_store::Error {
    object_store::Error::Generic {
        store: "failing",
        source: "the network is down".into(),
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failing")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, location: &Key, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.arrive().await?;
        if !self.is_due() {
            return self.inner.put_opts(location, payload, opts).await;
        }
        if self.lie.load(Ordering::SeqCst) {
            self.inner.put_opts(location, payload, opts).await?;
        }
        Err(network_is_down())
    }

    async fn put_multipart_opts(&self, location: &Key, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.arrive().await?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Key, options: GetOptions) -> Result<GetResult> {
        self.arrive().await?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Key>>) -> BoxStream<'static, Result<Key>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.away.load(Ordering::SeqCst) {
            return futures::stream::once(async { Err(network_is_down()) }).boxed();
        }
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.arrive().await?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.arrive().await?;
        self.inner.copy_opts(from, to, options).await
    }
}
