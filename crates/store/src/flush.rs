//! From frozen heads to committed files.
//!
//! A flush writes all files of a segment, then commits each table that has rows, under this node's id and
//! the segment's number, then swaps head for files in the version and deletes the segment. A failure at any
//! point leaves what was committed and repeats the rest: a table whose log has the number is left alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spanflame_model::Timestamp;
use tokio::sync::{mpsc, watch};

use crate::Error;
use crate::committer::{Frozen, Sequencer};
use crate::crash::crash_point;
use crate::log::Change;
use crate::recognition::Recognition;
use crate::schema::Table;
use crate::stats::Counters;
use crate::tables::{Partition, Tables, blocking};
use crate::version::{FileEntry, Tier};
use crate::wal::remove_segment;

/// Between two attempts to flush, doubling up to the limit.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(15);

/// How far flushing got.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Every segment up to this one is in the tables.
    pub(crate) flushed: u64,
    /// Everything that arrived until then is in the tables.
    pub(crate) last: Timestamp,
    /// The last attempt, if it failed, and for which segment. It is repeated.
    pub(crate) failed: Option<(u64, Error)>,
}

/// Takes frozen heads one after the other.
pub(crate) struct Flusher {
    /// Where files go.
    pub(crate) tables: Arc<Tables>,
    /// Where the segments lie.
    pub(crate) wal: PathBuf,
    /// This node's id in the tables' logs.
    pub(crate) node: String,
    /// Told what each segment held before it is deleted.
    pub(crate) recognition: Arc<Recognition>,
    /// Where to count.
    pub(crate) counters: Arc<Counters>,
    /// Told how far it got.
    pub(crate) progress: watch::Sender<Progress>,
}

impl Flusher {
    /// Flushes until no more frozen heads can come, and freezes the head whenever `interval` is over.
    pub(crate) async fn run(self, mut frozen: mpsc::UnboundedReceiver<Frozen>, sequencer: Arc<Sequencer>, interval: Duration) {
        let mut tick = tokio::time::interval(interval.max(Duration::from_millis(1)));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let next = tokio::select! {
                next = frozen.recv() => next,
                _ = tick.tick() => {
                    // Closed: what is left comes by itself.
                    let _ = sequencer.rotate().await;
                    continue;
                }
            };
            let Some(next) = next else { return };
            self.flush_until_done(&next).await;
        }
    }

    async fn flush_until_done(&self, frozen: &Frozen) {
        let mut pause = RETRY_MIN;
        let mut attempt = Attempt::default();
        loop {
            let begin = Instant::now();
            match self.flush(frozen, &mut attempt).await {
                Ok(bytes) => {
                    self.retire(frozen).await;
                    self.counters.flushes.add(1);
                    self.counters.flush_time.add_time(begin.elapsed());
                    self.counters.flush_bytes.add(bytes);
                    self.progress.send_replace(Progress {
                        flushed: frozen.number,
                        last: frozen.last,
                        failed: None,
                    });
                    return;
                }
                Err(error) => {
                    tracing::error!(segment = frozen.number, %error, cause = ?std::error::Error::source(&error), "flush failed, trying again");
                    self.counters.flush_failures.add(1);
                    attempt.repeated = true;
                    self.progress.send_modify(|progress| progress.failed = Some((frozen.number, error)));
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// One attempt. `attempt` remembers what earlier ones wrote. Returns the bytes of the files written.
    async fn flush(&self, frozen: &Frozen, attempt: &mut Attempt) -> Result<u64, Error> {
        self.write_files(frozen, attempt).await?;
        crash_point("between-file-and-commit");
        let number = i64::try_from(frozen.number).unwrap_or(i64::MAX);
        for (table, add) in &attempt.files {
            // Whether a commit that failed happened nevertheless, only the log knows.
            if attempt.repeated && has_flush(&self.tables, *table, &self.node, frozen.number).await? {
                continue;
            }
            let change = Change {
                add: add.clone(),
                data_change: true,
                progress: Some((self.node.clone(), number)),
                ..Change::default()
            };
            self.tables.commit(*table, &change).await?;
            crash_point("between-commits");
        }
        let added: Vec<Arc<FileEntry>> = attempt.files.values().flatten().cloned().collect();
        self.tables.version().update(|version| {
            let heads = version.heads().iter().filter(|head| !Arc::ptr_eq(head, &frozen.head)).cloned();
            version.with_files(&added, &[]).with_heads(heads.collect())
        });
        Ok(added.iter().map(|file| file.stats.size_bytes).sum())
    }

    async fn write_files(&self, frozen: &Frozen, attempt: &mut Attempt) -> Result<(), Error> {
        for (tenant, table, batches) in frozen.head.freeze().rows {
            let files = attempt.files.entry(table).or_default();
            if files.iter().any(|file| file.tenant == tenant) {
                continue;
            }
            crash_point("during-flush");
            let day = frozen.day;
            let partition = Partition { table, tenant, day };
            files.push(self.tables.write(partition, batches, Tier::Flush).await?);
        }
        Ok(())
    }

    /// The log is no longer needed: what it held is in the tables. A failure costs space and recognition of
    /// duplicates, never data, so it does not fail the flush.
    async fn retire(&self, frozen: &Frozen) {
        crash_point("before-retirement");
        let (recognition, wal) = (Arc::clone(&self.recognition), self.wal.clone());
        let (number, last, fingerprints) = (frozen.number, frozen.last, frozen.fingerprints.clone());
        let retired = blocking(move || {
            recognition.settle(number, &fingerprints, last)?;
            remove_segment(&wal, number)
        });
        if let Err(error) = retired.await {
            tracing::error!(segment = number, %error, "write-ahead log segment is flushed but could not be retired");
        }
    }
}

/// What attempts to flush one segment have in common.
#[derive(Default)]
struct Attempt {
    /// Files that are written, one a tenant.
    files: BTreeMap<Table, Vec<Arc<FileEntry>>>,
    /// Whether an attempt failed before.
    repeated: bool,
}

/// Whether a table's log has a flush of this node.
pub(crate) async fn has_flush(tables: &Tables, table: Table, node: &str, number: u64) -> Result<bool, Error> {
    let committed = tables.log(table).progress(node).await?;
    Ok(committed.is_some_and(|committed| u64::try_from(committed).is_ok_and(|committed| committed >= number)))
}
