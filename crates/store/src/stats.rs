//! What the store counts: the server exports it as metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// State and counters of a store. Counters begin at 0 when it is opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreStats {
    /// Bytes in the segment that is being written.
    pub wal_bytes: u64,
    /// Syncs of the write-ahead log; each made one group of appends durable.
    pub wal_syncs: u64,
    /// Time spent in them.
    pub wal_sync_duration: Duration,
    /// Records of the write-ahead log that were damaged when it was opened.
    pub wal_damaged_records: u64,
    /// Memory held by rows that are in no file yet.
    pub head_bytes: u64,
    /// Appends acknowledged.
    pub appends: u64,
    /// Appends refused because `StoreOptions::head_bytes_max` was reached.
    pub appends_busy: u64,
    /// Spans stored.
    pub spans: u64,
    /// Samples stored.
    pub samples: u64,
    /// Spans that arrived before.
    pub duplicate_spans: u64,
    /// Profiles that arrived before.
    pub duplicate_profiles: u64,
    /// Fingerprints held to recognise duplicates.
    pub recognition_keys: u64,
    /// Fingerprints forgotten before their time because there were too many.
    pub recognition_forgotten: u64,
    /// Flushes committed.
    pub flushes: u64,
    /// Attempts to flush that failed; each is tried again.
    pub flush_failures: u64,
    /// Time spent in flushes that were committed.
    pub flush_duration: Duration,
    /// Bytes of files that flushes wrote.
    pub flush_bytes: u64,
    /// Merges committed.
    pub compactions: u64,
    /// Attempts to merge that failed; each is tried again.
    pub compaction_failures: u64,
    /// Time spent in merges that were committed.
    pub compaction_duration: Duration,
    /// Bytes of files that merges wrote.
    pub compaction_bytes: u64,
    /// Windows of arrival rolled up.
    pub rollups: u64,
    /// Attempts to roll up that failed; each is tried again.
    pub rollup_failures: u64,
    /// Time spent in rollups that were committed.
    pub rollup_duration: Duration,
    /// Bytes of files that the rollup wrote.
    pub rollup_bytes: u64,
    /// Files dropped because their time was over.
    pub expired_files: u64,
    /// Files dropped because the tables were too large.
    pub oversize_files: u64,
    /// Replaced or dropped files deleted from the storage.
    pub deleted_files: u64,
    /// What each table holds, by name and tier.
    pub tables: Vec<TableStats>,
}

/// What a table holds in one tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Name of the table.
    pub table: &'static str,
    /// `flush`, `minutes` or `hours`.
    pub tier: &'static str,
    /// Number of files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Rows in them.
    pub rows: u64,
}

/// A number that grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds.
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    /// Adds time, in nanoseconds.
    pub(crate) fn add_time(&self, time: Duration) {
        self.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Replaces it: for a gauge.
    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Reads it.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Reads it as time.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.get())
    }
}

/// The counters behind [`StoreStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) wal_bytes: Counter,
    pub(crate) wal_syncs: Counter,
    pub(crate) wal_sync_time: Counter,
    pub(crate) wal_damaged: Counter,
    pub(crate) appends: Counter,
    pub(crate) busy: Counter,
    pub(crate) spans: Counter,
    pub(crate) samples: Counter,
    pub(crate) duplicate_spans: Counter,
    pub(crate) duplicate_profiles: Counter,
    pub(crate) flushes: Counter,
    pub(crate) flush_failures: Counter,
    pub(crate) flush_time: Counter,
    pub(crate) flush_bytes: Counter,
    pub(crate) compactions: Counter,
    pub(crate) compaction_failures: Counter,
    pub(crate) compaction_time: Counter,
    pub(crate) compaction_bytes: Counter,
    pub(crate) rollups: Counter,
    pub(crate) rollup_failures: Counter,
    pub(crate) rollup_time: Counter,
    pub(crate) rollup_bytes: Counter,
    pub(crate) expired: Counter,
    pub(crate) oversize: Counter,
    pub(crate) deleted: Counter,
}

impl Counters {
    /// Everything counted here; what the store knows besides is left at its default.
    pub(crate) fn read(&self) -> StoreStats {
        StoreStats {
            wal_bytes: self.wal_bytes.get(),
            wal_syncs: self.wal_syncs.get(),
            wal_sync_duration: self.wal_sync_time.time(),
            wal_damaged_records: self.wal_damaged.get(),
            appends: self.appends.get(),
            appends_busy: self.busy.get(),
            spans: self.spans.get(),
            samples: self.samples.get(),
            duplicate_spans: self.duplicate_spans.get(),
            duplicate_profiles: self.duplicate_profiles.get(),
            flushes: self.flushes.get(),
            flush_failures: self.flush_failures.get(),
            flush_duration: self.flush_time.time(),
            flush_bytes: self.flush_bytes.get(),
            compactions: self.compactions.get(),
            compaction_failures: self.compaction_failures.get(),
            compaction_duration: self.compaction_time.time(),
            compaction_bytes: self.compaction_bytes.get(),
            rollups: self.rollups.get(),
            rollup_failures: self.rollup_failures.get(),
            rollup_duration: self.rollup_time.time(),
            rollup_bytes: self.rollup_bytes.get(),
            expired_files: self.expired.get(),
            oversize_files: self.oversize.get(),
            deleted_files: self.deleted.get(),
            ..StoreStats::default()
        }
    }
}
