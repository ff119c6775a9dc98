//! The store itself: append, snapshot, maintain.

mod recovery;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use object_store::ObjectStore;
use parking_lot::Mutex;
use spanflame_model::{Batch, Fingerprint, Tenant, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle as TaskHandle;

use crate::committer::{Commit, Committer, Sequencer};
use crate::day::Day;
use crate::flush::{Flusher, Progress};
use crate::known::KnownStacks;
use crate::lock::DirectoryLock;
use crate::maintenance::{self, Maintenance, Request};
use crate::paths::Location;
use crate::reader::Reader;
use crate::recognition::{Recognition, Seen};
use crate::rows;
use crate::schema::Table;
use crate::stats::{Counters, StoreStats, TableStats};
use crate::tables::Tables;
use crate::version::Tier;
use crate::wal::{Record, SegmentWriter};
use crate::{Ack, Error, Snapshot, StoreOptions};

/// What became of an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Spans stored.
    pub spans: u64,
    /// Spans that were stored before, kept once.
    pub duplicate_spans: u64,
    /// Profiles stored.
    pub profiles: u64,
    /// Profiles that were stored before, kept once.
    pub duplicate_profiles: u64,
    /// Samples stored.
    pub samples: u64,
}

/// One data directory: write-ahead log, head and tables. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    options: StoreOptions,
    tables: Arc<Tables>,
    reader: Arc<Reader>,
    recognition: Arc<Recognition>,
    known: KnownStacks,
    sequencer: Arc<Sequencer>,
    decided: watch::Receiver<Timestamp>,
    progress: watch::Receiver<Progress>,
    counters: Arc<Counters>,
    maintenance: Mutex<Option<mpsc::Sender<Request>>>,
    tasks: Mutex<Option<Tasks>>,
}

/// What runs until the store is closed. The lock is released last.
struct Tasks {
    committer: JoinHandle<()>,
    flusher: TaskHandle<()>,
    maintenance: JoinHandle<()>,
    lock: Arc<DirectoryLock>,
}

impl Drop for Shared {
    /// Without [`Store::close`] the tasks end by themselves, and the lock with the last of them.
    fn drop(&mut self) {
        self.sequencer.close();
    }
}

impl Store {
    /// Opens or creates the data directory, takes its lock, replays the log. Needs a tokio runtime: flush,
    /// compaction and retention run as its tasks until [`Store::close`].
    pub async fn open(options: StoreOptions) -> Result<Store, Error> {
        let location = Location::open(&options.data)?;
        Store::open_at(options, location).await
    }

    /// Like [`Store::open`], with the tables in an object store that the caller made. The path of the URL in
    /// `options.data` says where in it.
    pub async fn open_in(options: StoreOptions, storage: Arc<dyn ObjectStore>) -> Result<Store, Error> {
        let url = options.data.parse().map_err(|error| Error::Invalid {
            message: format!("data is {}, expected a URL: {error}", options.data),
        })?;
        let location = Location::remote(url, Some(storage))?;
        Store::open_at(options, location).await
    }

    async fn open_at(options: StoreOptions, location: Location) -> Result<Store, Error> {
        let wal: PathBuf = location.wal_directory(&options);
        let lock = DirectoryLock::acquire(&wal)?;
        let reader = Reader::of(&location);
        let tables = Arc::new(Tables::open(location).await?);
        let reader = Arc::new(reader.watching(tables.version()));
        let counters = Arc::new(Counters::default());
        let recovered = recovery::recover(&wal, &tables, &counters, options.recognition).await?;
        let (frozen, frozen_inbox) = tokio::sync::mpsc::unbounded_channel();
        // Every segment before the first that is left is in the tables.
        let flushed = recovered.frozen.first().map_or(recovered.next, |first| first.number) - 1;
        let last_frozen = recovered.frozen.last().map_or(flushed, |last| last.number);
        for head in recovered.frozen {
            let _ = frozen.send(head);
        }
        let (decided, decided_view) = watch::channel(recovered.last);
        let (progress, progress_view) = watch::channel(Progress {
            flushed,
            // What is left to flush may have arrived before what is in files.
            last: if flushed == last_frozen { recovered.last } else { Timestamp::ZERO },
            failed: None,
        });
        let committer = Committer {
            directory: wal.clone(),
            next: recovered.next,
            last_frozen,
            flush_bytes: options.flush_bytes,
            version: Arc::clone(tables.version()),
            recognition: Arc::clone(&recovered.recognition),
            counters: Arc::clone(&counters),
            frozen,
            decided,
        };
        let (sequencer, committer) = committer.start(recovered.last)?;
        let flusher = Flusher {
            tables: Arc::clone(&tables),
            wal,
            node: recovered.node,
            recognition: Arc::clone(&recovered.recognition),
            counters: Arc::clone(&counters),
            progress,
        };
        let lock = Arc::new(lock);
        let (flush_lock, interval, order) = (Arc::clone(&lock), options.flush_interval, Arc::clone(&sequencer));
        let flusher = tokio::spawn(async move {
            flusher.run(frozen_inbox, order, interval).await;
            drop(flush_lock);
        });
        let maintenance = Maintenance {
            tables: Arc::clone(&tables),
            reader: Arc::clone(&reader),
            recognition: Arc::clone(&recovered.recognition),
            counters: Arc::clone(&counters),
            progress: progress_view.clone(),
            options: options.clone(),
            _lock: Arc::clone(&lock),
        };
        let (requests, request_inbox) = mpsc::channel(1);
        let maintenance = maintenance::start(maintenance, request_inbox)?;
        Ok(Store {
            shared: Arc::new(Shared {
                options,
                tables,
                reader,
                recognition: recovered.recognition,
                known: KnownStacks::default(),
                sequencer,
                decided: decided_view,
                progress: progress_view,
                counters,
                maintenance: Mutex::new(Some(requests)),
                tasks: Mutex::new(Some(Tasks {
                    committer,
                    flusher,
                    maintenance,
                    lock,
                })),
            }),
        })
    }

    /// Makes a batch durable and visible, then returns.
    ///
    /// Spans and profiles that arrived before, in this batch or another, are counted and not stored again;
    /// where the other one is still on its way to the disk, this waits for it. Fails with
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) when flushing falls behind. After an error nothing of the
    /// batch is acknowledged, and it may be sent again.
    pub async fn append(&self, tenant: &Tenant, batch: Batch) -> Result<Appended, Error> {
        let shared = &self.shared;
        shared.admit()?;
        let prints = Prints::of(tenant, &batch);
        let (submitted, appended, rivals) = shared.submit(tenant, batch, prints)?;
        let mut segment = None;
        if let Some(pending) = submitted {
            let number = pending.done.await.map_err(|_| Error::Closed)??;
            shared.known.remember(tenant, pending.day, &pending.stacks);
            segment = Some(number);
        }
        shared.wait_for(rivals).await?;
        if shared.options.ack == Ack::Flush {
            // Of a duplicate nobody knows the segment; freezing what there is covers it.
            let number = match segment {
                Some(number) => number,
                None => shared.sequencer.rotate().await?,
            };
            shared.flushed(number).await?;
        }
        shared.count(&appended);
        Ok(appended)
    }

    /// A consistent view of everything acknowledged so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.shared.tables.version().get(), Arc::clone(&self.shared.reader))
    }

    /// Flushes what the head holds now and waits for the commit. Fails with the error of the first attempt
    /// that fails; attempts go on nevertheless.
    pub async fn flush(&self) -> Result<(), Error> {
        let number = self.shared.sequencer.rotate().await?;
        self.shared.flushed(number).await
    }

    /// Runs compaction, rollup, retention and clean-up now, and waits until nothing is left to do.
    pub async fn maintain(&self) -> Result<(), Error> {
        let requests = self.shared.maintenance.lock().clone().ok_or(Error::Closed)?;
        let (done, answer) = oneshot::channel();
        requests.send(done).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// What the store holds and has done.
    pub fn stats(&self) -> StoreStats {
        let shared = &self.shared;
        let version = shared.tables.version().get();
        let tables = Table::ALL.into_iter().flat_map(|table| Tier::ALL.map(|tier| (table, tier)));
        let tables = tables.map(|(table, tier)| {
            let files = version.files(table).iter().filter(|file| file.tier == tier);
            let mut stats = TableStats {
                table: table.name(),
                tier: tier.as_str(),
                ..TableStats::default()
            };
            for file in files {
                stats.files += 1;
                stats.bytes += file.stats.size_bytes;
                stats.rows += file.stats.rows;
            }
            stats
        });
        let (recognition_keys, recognition_forgotten) = shared.recognition.sizes();
        StoreStats {
            head_bytes: shared.head_bytes(),
            recognition_keys,
            recognition_forgotten,
            tables: tables.collect(),
            ..shared.counters.read()
        }
    }

    /// The tables, for who repairs them.
    pub(crate) fn tables(&self) -> &Tables {
        &self.shared.tables
    }

    /// Stops the background tasks, flushes, releases the lock.
    pub async fn close(self) -> Result<(), Error> {
        let flushed = self.flush().await;
        self.shared.sequencer.close();
        let Some(tasks) = self.shared.tasks.lock().take() else {
            return Err(Error::Closed);
        };
        self.shared.maintenance.lock().take();
        // A flush that fails is repeated for ever, but its rows are safe in the log.
        if flushed.is_err() {
            tasks.flusher.abort();
        }
        let threads = [tasks.committer, tasks.maintenance];
        let threads = tokio::task::spawn_blocking(|| threads.map(JoinHandle::join).into_iter().all(|ended| ended.is_ok()));
        let threads_ended = threads.await.unwrap_or(false);
        let _ = tasks.flusher.await;
        drop(tasks.lock);
        if !threads_ended {
            return Err(Error::Internal {
                message: "a thread of the store panicked".to_owned(),
            });
        }
        flushed
    }
}

/// Fingerprints of a batch: spans, then profiles.
struct Prints {
    all: Vec<Fingerprint>,
    spans: usize,
}

impl Prints {
    fn of(tenant: &Tenant, batch: &Batch) -> Prints {
        let spans = batch.spans.iter().map(|span| span.fingerprint(tenant));
        let profiles = batch.profiles.iter().map(|profile| profile.fingerprint(tenant));
        Prints {
            all: spans.chain(profiles).collect(),
            spans: batch.spans.len(),
        }
    }
}

/// An append that is on its way.
struct Pending {
    done: oneshot::Receiver<Result<u64, Error>>,
    day: Day,
    stacks: spanflame_model::StackSet,
}

/// Duplicates of appends that may be in flight: what, and when the other arrived.
type Rivals = Vec<(Fingerprint, Timestamp)>;

impl Shared {
    fn head_bytes(&self) -> u64 {
        self.tables.version().get().heads().iter().map(|head| head.bytes()).sum()
    }

    fn admit(&self) -> Result<(), Error> {
        let used_bytes = self.head_bytes();
        if used_bytes < self.options.head_bytes_max {
            return Ok(());
        }
        self.counters.busy.add(1);
        Err(Error::Busy {
            used_bytes,
            max_bytes: self.options.head_bytes_max,
        })
    }

    /// Drops duplicates, encodes the rest and hands it to the committer. Never waits, so a caller that goes
    /// away cannot leave it half done.
    fn submit(&self, tenant: &Tenant, batch: Batch, prints: Prints) -> Result<(Option<Pending>, Appended, Rivals), Error> {
        let mut ticket = self.sequencer.begin()?;
        let received = ticket.received();
        let seen = self.recognition.claim(&prints.all, received);
        let claimed = prints.all.iter().zip(&seen).filter(|(_, seen)| **seen == Seen::New);
        let claimed: Vec<Fingerprint> = claimed.map(|(fingerprint, _)| *fingerprint).collect();
        ticket.claim(claimed.clone());
        let rivals = prints.all.iter().zip(&seen).filter_map(|(fingerprint, seen)| match seen {
            Seen::Recent(other) if *other != received => Some((*fingerprint, *other)),
            _ => None,
        });
        let rivals: Rivals = rivals.collect();
        let (batch, hashes, appended) = keep_new(batch, &prints, &seen);
        if claimed.is_empty() {
            return Ok((None, appended, rivals));
        }
        let day = Day::of(received);
        let batch = Batch {
            stacks: match batch.profiles.is_empty() {
                true => spanflame_model::StackSet::new(),
                false => self.known.unknown(tenant, day, batch.stacks),
            },
            ..batch
        };
        let rows = rows::encode(&batch, &hashes, received)?;
        let record = Record {
            received,
            tenant: tenant.clone(),
            fingerprints: claimed,
            batches: rows.into_iter().map(|(table, rows)| (table as usize, rows)).collect(),
        };
        let encoded = SegmentWriter::encode(&record)?;
        let (done, answer) = oneshot::channel();
        ticket.submit(Commit { record, encoded, done });
        let pending = Pending {
            done: answer,
            day,
            stacks: batch.stacks,
        };
        Ok((Some(pending), appended, rivals))
    }

    /// Waits until the appends that hold the same spans and profiles are durable.
    async fn wait_for(&self, rivals: Rivals) -> Result<(), Error> {
        let Some(latest) = rivals.iter().map(|(_, received)| *received).max() else {
            return Ok(());
        };
        let mut decided = self.decided.clone();
        decided.wait_for(|decided| *decided >= latest).await.map_err(|_| Error::Closed)?;
        let held = rivals
            .iter()
            .all(|(fingerprint, received)| self.recognition.holds(*fingerprint, *received));
        if held {
            return Ok(());
        }
        Err(Error::Internal {
            message: "an append that holds a part of this batch failed, so this part is not durable".to_owned(),
        })
    }

    async fn flushed(&self, number: u64) -> Result<(), Error> {
        let mut progress = self.progress.clone();
        let reached = progress
            .wait_for(|p| p.flushed >= number || p.failed.as_ref().is_some_and(|(failed, _)| *failed <= number))
            .await
            .map_err(|_| Error::Closed)?;
        match &reached.failed {
            Some((_, error)) if reached.flushed < number => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn count(&self, appended: &Appended) {
        self.counters.appends.add(1);
        self.counters.spans.add(appended.spans);
        self.counters.samples.add(appended.samples);
        self.counters.duplicate_spans.add(appended.duplicate_spans);
        self.counters.duplicate_profiles.add(appended.duplicate_profiles);
    }
}

/// The spans and profiles that are new, the fingerprints of those profiles, and the counts.
fn keep_new(batch: Batch, prints: &Prints, seen: &[Seen]) -> (Batch, Vec<Fingerprint>, Appended) {
    let (seen_spans, seen_profiles) = seen.split_at(prints.spans);
    let mut appended = Appended {
        duplicate_spans: seen_spans.iter().filter(|seen| **seen != Seen::New).count() as u64,
        duplicate_profiles: seen_profiles.iter().filter(|seen| **seen != Seen::New).count() as u64,
        ..Appended::default()
    };
    let is_new = |(item, seen)| (seen == &Seen::New).then_some(item);
    let spans: Vec<_> = batch.spans.into_iter().zip(seen_spans).filter_map(is_new).collect();
    let profiles = batch.profiles.into_iter().zip(seen_profiles);
    let profiles: Vec<_> = profiles.filter_map(|(item, seen)| (seen == &Seen::New).then_some(item)).collect();
    let hashes = prints.all[prints.spans..].iter().zip(seen_profiles);
    let hashes = hashes.filter_map(|(hash, seen)| (seen == &Seen::New).then_some(*hash)).collect();
    appended.spans = spans.len() as u64;
    appended.profiles = profiles.len() as u64;
    appended.samples = profiles.iter().map(|profile| profile.samples.len() as u64).sum();
    let batch = Batch {
        spans,
        profiles,
        stacks: batch.stacks,
    };
    (batch, hashes, appended)
}
