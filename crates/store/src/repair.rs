//! Makes a damaged directory whole again: everything that can still be read is there, once.
//!
//! ```text
//! 1 logs      damaged commits are set aside; the table is what it was before them
//! 2 files     readable rows of damaged files go to new files; damaged and missing ones leave the table
//! 3 segments  the store opens, replays and flushes as after a crash
//! 4 orphans   rows that are in no file of their table are committed again
//! ```
//!
//! What is set aside is moved to `quarantine/` in the data directory and never deleted. Each step is one
//! commit a file, so a repair that dies is simply run again.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::lock::DirectoryLock;
use crate::log::Change;
use crate::paths::Location;
use crate::reader::Reader;
use crate::schema::Table;
use crate::tables::{Partition, Tables};
use crate::verify::{Accounted, Condition, Verification, condition, examine, orphans, readable_rows, unaccounted_rows};
use crate::version::FileEntry;
use crate::{Error, Store, StoreOptions};

/// Objects that a repair set aside lie below this.
const QUARANTINE: &str = "quarantine";

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// What it found before it began.
    pub found: Verification,
    /// Objects moved below `quarantine/`, by their name before.
    pub set_aside: Vec<String>,
    /// Rows of damaged files that were kept.
    pub rows_kept: u64,
    /// Rows of damaged and missing files that are gone.
    pub rows_lost: u64,
    /// Rows that were in no file of their table and are again.
    pub rows_restored: u64,
}

/// Repairs a data directory that no server holds. Ask [`verify`](crate::verify) first: it says what this does.
///
/// # Errors
///
/// [`Error::Locked`] if a server holds it, and where the medium does not answer.
pub async fn repair(options: &StoreOptions) -> Result<Repair, Error> {
    let location = Location::open(&options.data)?;
    let wal = location.wal_directory(options);
    let mut repair = Repair::default();
    {
        let _lock = DirectoryLock::acquire(&wal)?;
        let examined = examine(&location, &wal).await?;
        for damage in &examined.logs {
            for object in &damage.beyond {
                set_aside(&location, object, &mut repair).await?;
            }
        }
        repair.found = examined.verification;
        replace_damaged(&location, &mut repair).await?;
    }
    // Whoever keeps data longer than the defaults say must not lose it here.
    let store = Store::open(StoreOptions {
        retention_raw: Duration::MAX,
        retention_rollup: Duration::MAX,
        size_bytes_max: None,
        ..options.clone()
    })
    .await?;
    let restored = restore(&store, &location, &wal, &mut repair).await;
    let closed = store.close().await;
    restored.and(closed)?;
    Ok(repair)
}

/// Takes damaged files out of their tables and writes what can be read of them again.
async fn replace_damaged(location: &Location, repair: &mut Repair) -> Result<(), Error> {
    let tables = Tables::open(location.clone()).await?;
    let reader = Reader::of(location);
    let version = tables.version().get();
    for file in Table::ALL.into_iter().flat_map(|table| version.files(table)) {
        let condition = condition(&reader, file).await?;
        if matches!(condition, Condition::Whole) {
            continue;
        }
        let rows = readable_rows(&reader, file, &condition).await;
        let kept: u64 = rows.iter().map(|rows| rows.num_rows() as u64).sum();
        let mut change = Change {
            remove: vec![Arc::clone(file)],
            data_change: true,
            ..Change::default()
        };
        if kept > 0 {
            change.add.push(tables.write(partition(file), rows, file.tier).await?);
        }
        if matches!(condition, Condition::Damaged { .. }) {
            copy_aside(location, &file.path, repair).await?;
        }
        tables.commit(file.table, &change).await?;
        repair.rows_kept += kept;
        repair.rows_lost += file.stats.rows.saturating_sub(kept);
    }
    Ok(())
}

/// Commits rows that are in no file of their table. Replayed segments come first: they hold most of such rows.
async fn restore(store: &Store, location: &Location, wal: &std::path::Path, repair: &mut Repair) -> Result<(), Error> {
    store.flush().await?;
    let tables = store.tables();
    let reader = Reader::of(location);
    for table in Table::ALL {
        let log = tables.log(table);
        let orphans = orphans(location, table, Some(log)).await?;
        if orphans.is_empty() {
            continue;
        }
        let mut accounted = Accounted::of_segments(wal, table)?;
        for file in log.files().await? {
            accounted.add_file(&reader, &file).await?;
        }
        for orphan in orphans {
            // What cannot be read was never whole.
            let Ok(rows) = unaccounted_rows(&reader, &orphan, &mut accounted).await else {
                continue;
            };
            let count: u64 = rows.iter().map(|rows| rows.num_rows() as u64).sum();
            if count == 0 {
                continue;
            }
            let change = Change {
                add: vec![tables.write(partition(&orphan.file), rows, orphan.file.tier).await?],
                data_change: true,
                ..Change::default()
            };
            tables.commit_and_show(table, &change).await?;
            repair.rows_restored += count;
        }
    }
    Ok(())
}

fn partition(file: &FileEntry) -> Partition {
    Partition {
        table: file.table,
        tenant: file.tenant.clone(),
        day: file.day,
    }
}

async fn set_aside(location: &Location, object: &Path, repair: &mut Repair) -> Result<(), Error> {
    copy_aside(location, object, repair).await?;
    let deleted = location.store().delete(object).await;
    deleted.map_err(Error::storage("delete", object))
}

async fn copy_aside(location: &Location, object: &Path, repair: &mut Repair) -> Result<(), Error> {
    let aside = Path::from_iter(Path::from(QUARANTINE).parts().chain(object.parts()));
    let copied = location.store().copy(object, &aside).await;
    copied.map_err(Error::storage("copy", object))?;
    repair.set_aside.push(object.to_string());
    Ok(())
}
