//! The store itself: append, snapshot, maintain.

use spanflame_model::{Batch, Tenant};

use crate::{Error, Snapshot, StoreOptions};

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
pub struct Store {}

impl Store {
    /// Opens or creates the data directory, takes its lock, replays the log. Needs a tokio runtime: flush,
    /// compaction and retention run as its tasks until [`Store::close`].
    pub async fn open(_options: StoreOptions) -> Result<Store, Error> {
        unimplemented!()
    }

    /// Makes a batch durable and visible, then returns.
    pub async fn append(&self, _tenant: &Tenant, _batch: Batch) -> Result<Appended, Error> {
        unimplemented!()
    }

    /// A consistent view of everything acknowledged so far.
    pub fn snapshot(&self) -> Snapshot {
        unimplemented!()
    }

    /// Flushes what the head holds now and waits for the commit.
    pub async fn flush(&self) -> Result<(), Error> {
        unimplemented!()
    }

    /// Runs compaction, rollup, retention and clean-up now, and waits until nothing is left to do.
    pub async fn maintain(&self) -> Result<(), Error> {
        unimplemented!()
    }

    /// Stops the background tasks, flushes, releases the lock.
    pub async fn close(self) -> Result<(), Error> {
        unimplemented!()
    }
}
