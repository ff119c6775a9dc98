//! The settings of a store.

use std::path::PathBuf;
use std::time::Duration;

/// When an append is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ack {
    /// When it is in the write-ahead log and the log is synced.
    #[default]
    Wal,
    /// When its flush is committed to the tables.
    Flush,
}

/// The settings of a store. Plain values; `Default` gives what `spanflame serve` uses.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where the tables lie: a local directory or an `object_store` URL (`s3://`, `gs://`, `az://`, `file://`).
    pub data: String,
    /// Where the write-ahead log lies; `None` is `<data>/wal`, which needs a local data directory.
    pub wal: Option<PathBuf>,
    /// When an append is acknowledged.
    pub ack: Ack,
    /// Rows wait in memory at most this long before they are flushed to table files.
    pub flush_interval: Duration,
    /// The head is flushed early when it holds this many bytes.
    pub flush_bytes: u64,
    /// Appends are refused as busy when the head and unflushed data hold this many bytes.
    pub head_bytes_max: u64,
    /// How far back equal spans and profiles are recognised, by arrival.
    pub recognition: Duration,
    /// Replaced files are deleted this long after they were replaced.
    pub grace: Duration,
    /// Spans, samples (and stacks for as long as anything may name them) older than this by arrival are dropped.
    pub retention_raw: Duration,
    /// Rollup rows older than this by arrival are dropped.
    pub retention_rollup: Duration,
    /// Oldest days are dropped first when the tables hold more than this many bytes; `None` is no limit.
    pub size_bytes_max: Option<u64>,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        StoreOptions {
            data: "spanflame-data".to_owned(),
            wal: None,
            ack: Ack::Wal,
            flush_interval: Duration::from_secs(10),
            flush_bytes: 64 << 20,
            head_bytes_max: 256 << 20,
            recognition: Duration::from_secs(3600),
            grace: Duration::from_secs(60),
            retention_raw: 14 * DAY,
            retention_rollup: 90 * DAY,
            size_bytes_max: None,
        }
    }
}
