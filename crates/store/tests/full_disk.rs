//! A disk that fills up: a small tmpfs of its own, with log and tables on it.

#[allow(dead_code, reason = "shared by test files that each use a part")]
mod workload;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use spanflame_model::Tenant;
use spanflame_store::{ErrorKind, Store, StoreOptions};
use workload::{batch, count_by_seed, expect_exactly};

const DISK_BYTES: usize = 4 << 20;
const COUNT: u64 = 20;

/// A file system of its own; unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where this process may not mount.
    #[allow(clippy::print_stderr, reason = "a test that was skipped should say so")]
    fn mount() -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("temporary directory");
        let options = format!("size={DISK_BYTES}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "spanflame-test"])
            .arg(directory.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk(directory)),
            Ok(output) => {
                eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                eprintln!("skipped: mount: {error}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file that takes all room but so much.
    fn fill(&self, bytes_left: usize) -> PathBuf {
        let path = self.path().join("filler");
        let mut filler = std::fs::File::create(&path).expect("created");
        let mut len = 0;
        let full = loop {
            match filler.write(&[0; 4096]) {
                Ok(written) => len += written,
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{full}");
        filler.set_len((len - bytes_left) as u64).expect("truncated");
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A leftover mount is in the way of nobody but the next clean-up.
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn files(directory: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        match path.is_dir() {
            true => found.extend(files(&path, end)),
            false if path.to_string_lossy().ends_with(end) => found.push(path),
            false => {}
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_what_it_cannot_keep_and_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let data = disk.path().join("data");
    let tenant = Tenant::anonymous();
    let options = || StoreOptions {
        data: data.display().to_string(),
        flush_interval: Duration::from_secs(24 * 3600),
        ..StoreOptions::default()
    };
    let store = Store::open(options()).await.expect("opened");
    store.append(&tenant, batch(1, COUNT)).await.expect("appended");
    store.flush().await.expect("flushed");
    let filler = disk.fill(128 << 10);
    let mut next = 2;
    let refused = loop {
        assert!(next < 1000, "the disk is small");
        match store.append(&tenant, batch(next, COUNT)).await {
            Ok(_) => next += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    assert!(refused.to_string().contains(".wal"), "it names the file: {refused}");
    // Clients send again and again; what they send must not pile up.
    for _ in 0..20 {
        store.append(&tenant, batch(next, COUNT)).await.expect_err("still full");
    }
    let error = store.flush().await.expect_err("no room for tables either");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    expect_exactly(&store, &tenant, 1..next, COUNT).await;
    let segments = files(&data.join("wal"), ".wal");
    assert!(segments.len() < 5, "{} segments", segments.len());
    std::fs::remove_file(filler).expect("removed");
    while store.flush().await.is_err() {}
    for seed in next..next + 3 {
        store.append(&tenant, batch(seed, COUNT)).await.expect("there is room again");
    }
    let expected = (1..next + 3).map(|seed| (seed, (COUNT, COUNT))).collect();
    assert_eq!(count_by_seed(&store, &tenant).await, expected);
    store.close().await.expect("closed");
    assert_eq!(files(&data.join("wal"), ".wal"), Vec::<PathBuf>::new());
    let found = spanflame_store::verify(&options()).await.expect("verified");
    assert_eq!(found.findings, []);
    let store = Store::open(options()).await.expect("opened again");
    assert_eq!(count_by_seed(&store, &tenant).await, expected);
    store.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_before_the_disk_was_full_is_there_after_a_restart_on_the_full_disk() {
    let Some(disk) = SmallDisk::mount() else { return };
    let data = disk.path().join("data");
    let tenant = Tenant::anonymous();
    let options = || StoreOptions {
        data: data.display().to_string(),
        flush_interval: Duration::from_secs(24 * 3600),
        ..StoreOptions::default()
    };
    let store = Store::open(options()).await.expect("opened");
    for seed in 1..4 {
        store.append(&tenant, batch(seed, COUNT)).await.expect("appended");
    }
    let filler = disk.fill(0);
    store.close().await.expect_err("no room for tables");
    // The log is read and answered from memory; what needs room says so.
    let expected = (1..4).map(|seed| (seed, (COUNT, COUNT))).collect();
    let store = Store::open(options()).await.expect("opened");
    assert_eq!(count_by_seed(&store, &tenant).await, expected);
    store.append(&tenant, batch(4, COUNT)).await.expect_err("no room for the log");
    let error = store.close().await.expect_err("no room for tables");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    std::fs::remove_file(filler).expect("removed");
    let store = Store::open(options()).await.expect("opened again");
    assert_eq!(count_by_seed(&store, &tenant).await, expected);
    store.close().await.expect("closed");
}
