//! The tables as a whole: writing files and committing them, for flush, merge and clean-up.

use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use futures::future::try_join_all;
use object_store::ObjectStoreExt as _;
use spanflame_model::{Tenant, Timestamp};

use crate::Error;
use crate::current::SharedVersion;
use crate::day::Day;
use crate::file::{self, FileStats};
use crate::log::{Change, ROLLUP, TableLog};
use crate::paths::{FileNames, Location};
use crate::schema::Table;
use crate::version::{FileEntry, Tier, Version};

/// Files of all tables: where they lie, their logs, and the version that readers get.
pub(crate) struct Tables {
    location: Location,
    logs: Vec<TableLog>,
    names: FileNames,
    version: Arc<SharedVersion>,
}

/// To which part of a table a file belongs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Partition {
    /// The table.
    pub(crate) table: Table,
    /// Whose rows.
    pub(crate) tenant: Tenant,
    /// The day on which they arrived.
    pub(crate) day: Day,
}

impl Tables {
    /// Opens or creates every table.
    pub(crate) async fn open(location: Location) -> Result<Tables, Error> {
        let logs = try_join_all(Table::ALL.map(|table| TableLog::open(&location, table))).await?;
        let files = try_join_all(logs.iter().map(TableLog::files)).await?;
        let files = files.into_iter().flatten().map(Arc::new);
        let rolled_up = logs[Table::Profiles as usize].progress(ROLLUP).await?;
        let rollup_until = rolled_up.and_then(Timestamp::from_unix_nanos_signed);
        Ok(Tables {
            location,
            logs,
            names: FileNames::new(),
            version: Arc::new(SharedVersion::new(Version::new(files, Vec::new(), rollup_until))),
        })
    }

    /// Where they lie.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// The log of a table.
    pub(crate) fn log(&self, table: Table) -> &TableLog {
        &self.logs[table as usize]
    }

    /// The version that readers get.
    pub(crate) fn version(&self) -> &Arc<SharedVersion> {
        &self.version
    }

    /// Encodes rows as one file of a partition and stores it. Nobody sees it before it is committed.
    pub(crate) async fn write(&self, partition: Partition, batches: Vec<RecordBatch>, tier: Tier) -> Result<Arc<FileEntry>, Error> {
        let table = partition.table;
        let (bytes, stats) = blocking(move || file::write(table, &batches, tier)).await?;
        self.put(partition, bytes, stats, tier).await
    }

    /// Stores an encoded file of a partition. Nobody sees it before it is committed.
    pub(crate) async fn put(&self, partition: Partition, bytes: Bytes, stats: FileStats, tier: Tier) -> Result<Arc<FileEntry>, Error> {
        let Partition { table, tenant, day } = partition;
        let path = self.names.next(table, &tenant, day, tier);
        let store = self.location.store();
        store.put(&path, bytes.into()).await.map_err(Error::storage("write", &path))?;
        Ok(Arc::new(FileEntry {
            path,
            table,
            tenant,
            day,
            tier,
            stats,
        }))
    }

    /// Makes the new files of a change durable, then the change itself. Does not touch the version.
    pub(crate) async fn commit(&self, table: Table, change: &Change) -> Result<(), Error> {
        let location = self.location.clone();
        let objects: Vec<_> = change.add.iter().map(|file| file.path.clone()).collect();
        blocking(move || location.sync(&objects)).await?;
        self.log(table).commit(change).await
    }

    /// Commits a change and shows it to readers.
    pub(crate) async fn commit_and_show(&self, table: Table, change: &Change) -> Result<(), Error> {
        self.commit(table, change).await?;
        let removed: Vec<_> = change.remove.iter().map(|file| file.path.clone()).collect();
        self.version.update(|version| version.with_files(&change.add, &removed));
        Ok(())
    }
}

/// Runs what takes CPU time or blocks on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal {
        message: format!("a background task ended early: {error}"),
    })?
}
