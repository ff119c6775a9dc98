//! The background work on the tables: roll up, merge, drop, delete.
//!
//! One thread of low priority does one thing at a time, so that ingest and questions go first and no two
//! changes meet. Files that left a table are deleted when their grace period is over by the clock; the list
//! of them is derived from the table's log at the start, so a restart forgets none.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};
use spanflame_model::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use crate::committer::now;
use crate::flush::Progress;
use crate::lock::DirectoryLock;
use crate::log::Change;
use crate::reader::Reader;
use crate::recognition::Recognition;
use crate::retention::{self, Reason};
use crate::schema::Table;
use crate::stats::Counters;
use crate::tables::Tables;
use crate::verify::{is_leftover, orphan};
use crate::version::FileEntry;
use crate::{Error, StoreOptions, compaction, rollup};

/// How often to look for work.
const TICK: Duration = Duration::from_secs(1);
/// Looks between two looks at retention and recognition.
const RETENTION_TICKS: u64 = 60;
/// Objects that no log names are left behind by a crash between file and commit. Younger ones may be
/// about to be committed, by this node or another.
const ORPHAN_AGE: Duration = Duration::from_secs(3600);
/// Deletions in flight.
const DELETIONS: usize = 8;

/// A request to do all that can be done now.
pub(crate) type Request = oneshot::Sender<Result<(), Error>>;

/// Everything the background work needs.
pub(crate) struct Maintenance {
    /// What to look after.
    pub(crate) tables: Arc<Tables>,
    /// How to read files to merge.
    pub(crate) reader: Arc<Reader>,
    /// What to expire.
    pub(crate) recognition: Arc<Recognition>,
    /// Where to count.
    pub(crate) counters: Arc<Counters>,
    /// How far flushing got.
    pub(crate) progress: watch::Receiver<Progress>,
    /// Retention and grace.
    pub(crate) options: StoreOptions,
    /// Held until this is done.
    pub(crate) _lock: Arc<DirectoryLock>,
}

/// Objects to delete, and when.
#[derive(Debug, Default)]
struct Condemned {
    /// Files that left their table, soonest first.
    replaced: VecDeque<(Timestamp, Path)>,
    /// Files that no log named when this process began.
    orphans: Vec<(Timestamp, Table, ObjectMeta)>,
}

impl Maintenance {
    /// Works until `requests` is closed.
    pub(crate) async fn run(self, mut requests: mpsc::Receiver<Request>) {
        let mut condemned = self.find_condemned().await.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot list replaced files, they are deleted after the next start");
            Condemned::default()
        });
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ticks = 0;
        loop {
            let request = tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => Some(request),
                    None => return,
                },
                _ = tick.tick() => None,
            };
            let all = request.is_some();
            let mut outcome = self.roll_up(all).await;
            outcome = outcome.and(self.compact(&mut condemned, all).await);
            if all || ticks % RETENTION_TICKS == 0 {
                outcome = outcome.and(self.expire(&mut condemned).await);
            }
            outcome = outcome.and(self.delete(&mut condemned).await);
            ticks += 1;
            match (request, outcome) {
                (Some(request), outcome) => {
                    let _ = request.send(outcome);
                }
                (None, Err(error)) => {
                    tracing::error!(%error, cause = ?std::error::Error::source(&error), "maintenance failed, trying again");
                }
                (None, Ok(())) => {}
            }
        }
    }

    /// Rolls up what is due.
    async fn roll_up(&self, all: bool) -> Result<(), Error> {
        let version = self.tables.version().get();
        let flushed = self.progress.borrow().last;
        if let Some(window) = rollup::due(&version, flushed, now(), all) {
            let begin = Instant::now();
            let bytes = rollup::roll(&self.tables, &self.reader, window).await.inspect_err(|_| {
                self.counters.rollup_failures.add(1);
            })?;
            self.counters.rollups.add(1);
            self.counters.rollup_time.add_time(begin.elapsed());
            self.counters.rollup_bytes.add(bytes);
        }
        Ok(())
    }

    /// Merges what is due, until nothing is.
    async fn compact(&self, condemned: &mut Condemned, all: bool) -> Result<(), Error> {
        loop {
            // A damaged file stays as it is until it is repaired; the others go on merging.
            let damaged: Vec<Path> = self.reader.damaged().into_keys().collect();
            let version = self.tables.version().get().with_files(&[], &damaged);
            let Some(merge) = compaction::due(&version, now(), all).into_iter().next() else {
                return Ok(());
            };
            let begin = Instant::now();
            let replaced: Vec<Path> = merge.inputs.iter().map(|file| file.path.clone()).collect();
            let bytes = match compaction::merge(&self.tables, &self.reader, merge).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.counters.compaction_failures.add(1);
                    self.reader.pass_damage(error.clone())?;
                    // Without the damaged input the next merge is another one.
                    match self.reader.damaged().keys().any(|path| replaced.contains(path)) {
                        true => continue,
                        false => return Err(error),
                    }
                }
            };
            self.condemn(condemned, replaced);
            self.counters.compactions.add(1);
            self.counters.compaction_time.add_time(begin.elapsed());
            self.counters.compaction_bytes.add(bytes);
        }
    }

    /// Drops what is too old or too much.
    async fn expire(&self, condemned: &mut Condemned) -> Result<(), Error> {
        self.recognition.expire(now())?;
        let due = retention::due(&self.tables.version().get(), &self.options, now());
        let mut tables: BTreeMap<Table, Vec<Arc<FileEntry>>> = BTreeMap::new();
        for (file, reason) in due {
            match reason {
                Reason::Age => self.counters.expired.add(1),
                Reason::Size => {
                    tracing::warn!(file = %file.path, day = %file.day, limit_bytes = self.options.size_bytes_max, "dropped because the tables are too large");
                    self.counters.oversize.add(1);
                }
            }
            tables.entry(file.table).or_default().push(file);
        }
        for (table, remove) in tables {
            tracing::info!(table = table.name(), files = remove.len(), "retention drops files");
            let dropped: Vec<Path> = remove.iter().map(|file| file.path.clone()).collect();
            let change = Change {
                remove,
                data_change: true,
                ..Change::default()
            };
            self.tables.commit_and_show(table, &change).await?;
            self.condemn(condemned, dropped);
        }
        Ok(())
    }

    fn condemn(&self, condemned: &mut Condemned, paths: Vec<Path>) {
        let due = now().saturating_add(nanos(self.options.grace));
        condemned.replaced.extend(paths.into_iter().map(|path| (due, path)));
    }

    /// Deletes what may be deleted by now.
    async fn delete(&self, condemned: &mut Condemned) -> Result<(), Error> {
        let now = now();
        while condemned.replaced.front().is_some_and(|(due, _)| *due <= now) {
            let due = condemned.replaced.iter().take_while(|(due, _)| *due <= now);
            let batch: Vec<Path> = due.take(DELETIONS).map(|(_, path)| path.clone()).collect();
            self.delete_objects(&batch).await?;
            condemned.replaced.drain(..batch.len());
        }
        let due = condemned.orphans.extract_if(.., |(due, ..)| *due <= now);
        for (_, table, object) in due.collect::<Vec<_>>() {
            self.delete_orphan(table, object).await?;
        }
        Ok(())
    }

    /// Deletes a file that no log named, unless it was committed since, also by another node, or is the only
    /// place of rows whose commit was lost.
    async fn delete_orphan(&self, table: Table, object: ObjectMeta) -> Result<(), Error> {
        let path = object.location.clone();
        let files: Vec<_> = self.tables.log(table).newest_files().await?.into_iter().map(Arc::new).collect();
        if files.iter().any(|file| file.path == path) {
            return Ok(());
        }
        let tenants = files.iter().map(|file| file.tenant.clone()).collect();
        // Sums are made again from samples; what cannot be read was never whole.
        let orphan = orphan(table, object, &tenants).filter(|_| table != Table::Profiles);
        if let Some(orphan) = orphan
            && !is_leftover(&self.reader, &orphan, &files).await.unwrap_or(true)
        {
            tracing::error!(file = %path, "a file holds rows that its table does not have: its commit was lost; stop the server and run `spanflame repair`");
            return Ok(());
        }
        tracing::info!(file = %path, "deleting a file that was never committed");
        self.delete_objects(std::slice::from_ref(&path)).await
    }

    async fn delete_objects(&self, paths: &[Path]) -> Result<(), Error> {
        let store = self.tables.location().store();
        let deletions = paths.iter().map(|path| async move {
            match store.delete(path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(Error::storage("delete", path)(error)),
            }
        });
        futures::future::try_join_all(deletions).await?;
        self.counters.deleted.add(paths.len() as u64);
        Ok(())
    }

    /// What earlier processes left to delete: replaced files by the tables' logs, and files that a crash left
    /// without a commit.
    async fn find_condemned(&self) -> Result<Condemned, Error> {
        let grace = nanos(self.options.grace);
        let mut condemned = Condemned::default();
        for table in Table::ALL {
            let prefix = Path::from(table.name());
            let listing = self.tables.location().store().list(Some(&prefix));
            let objects: Vec<_> = listing.try_collect().await.map_err(Error::storage("list", &prefix))?;
            let mut removed = BTreeMap::new();
            for tombstone in self.tables.log(table).tombstones().await? {
                removed.insert(tombstone.path, tombstone.removed_unix_ms);
            }
            let version = self.tables.version().get();
            let live: HashSet<&Path> = version.files(table).iter().map(|file| &file.path).collect();
            for object in objects {
                let is_file = object.location.as_ref().ends_with(".parquet") && !object.location.as_ref().contains("_delta_log");
                if !is_file || live.contains(&object.location) {
                    continue;
                }
                match removed.get(&object.location) {
                    Some(ms) => condemned.replaced.push_back((at_ms(*ms).saturating_add(grace), object.location)),
                    None => {
                        let written = at_ms(object.last_modified.timestamp_millis());
                        let due = written.saturating_add(nanos(ORPHAN_AGE));
                        condemned.orphans.push((due, table, object));
                    }
                }
            }
        }
        condemned.replaced.make_contiguous().sort();
        Ok(condemned)
    }
}

/// Runs the background work on a thread of low priority until `requests` is closed.
pub(crate) fn start(maintenance: Maintenance, requests: mpsc::Receiver<Request>) -> Result<std::thread::JoinHandle<()>, Error> {
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new()
        .name("store-maintenance".to_owned())
        .spawn(move || {
            lower_priority();
            runtime.block_on(maintenance.run(requests));
        })
        .map_err(Error::io("start a thread for", std::path::Path::new("maintenance")))
}

/// Lets every other thread go first. Linux keeps the nice value by thread; elsewhere nothing happens.
fn lower_priority() {
    const NICE: i32 = 10;
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes three numbers and touches no memory of ours. 0 is the calling thread.
    let failed = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) } != 0;
    #[cfg(not(target_os = "linux"))]
    let failed = NICE == 0;
    if failed {
        tracing::debug!("maintenance runs at normal priority");
    }
}

fn at_ms(ms: i64) -> Timestamp {
    Timestamp::from_unix_nanos_signed(ms.saturating_mul(1_000_000)).unwrap_or(Timestamp::ZERO)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
