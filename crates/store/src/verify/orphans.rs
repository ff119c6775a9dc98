//! Files that the log of their table does not name.
//!
//! Most are leftovers: written by a process that died before the commit, and written again from the
//! write-ahead log, or inputs of a merge. Where a commit was lost, they are the only place of their rows. Which
//! it is, the rows tell: every append has an arrival of its own, stacks and frames have ids.

use std::collections::HashSet;
use std::path::Path as FilePath;
use std::sync::Arc;

use arrow::array::{BooleanArray, Int64Array};
use arrow::compute::filter_record_batch;
use arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use object_store::ObjectMeta;
use object_store::path::Path;
use spanflame_model::Tenant;

use crate::Error;
use crate::day::Day;
use crate::file::FileStats;
use crate::log::TableLog;
use crate::paths::Location;
use crate::reader::{Part, Reader};
use crate::rows::column;
use crate::schema::{self, Table, frame, stack};
use crate::version::{FileEntry, Tier};
use crate::wal::{list_segments, read_segment};

/// A file that lies in a table's folder without being part of the table.
#[derive(Debug)]
pub(crate) struct Orphan {
    /// As far as its name and size tell.
    pub(crate) file: FileEntry,
}

/// What tells rows of one table apart: those that are in its files or will be.
pub(crate) struct Accounted {
    identities: HashSet<(Tenant, i64)>,
}

impl Accounted {
    /// What the next start replays.
    pub(crate) fn of_segments(wal: &FilePath, table: Table) -> Result<Accounted, Error> {
        let mut identities = HashSet::new();
        for number in list_segments(wal)? {
            read_segment(wal, number, |_, record| {
                for (index, rows) in &record.batches {
                    if Table::ALL.get(*index) == Some(&table) {
                        let found = identities_of(table, rows, "a segment of the write-ahead log")?;
                        identities.extend(found.iter().map(|identity| (record.tenant.clone(), *identity)));
                    }
                }
                Ok(())
            })?;
        }
        Ok(Accounted { identities })
    }

    /// Adds the rows of a file.
    pub(crate) async fn add_file(&mut self, reader: &Reader, file: &FileEntry) -> Result<(), Error> {
        let name = identity_column(file.table);
        for rows in read(reader, file, Some(vec![name])).await? {
            let found = identities_of(file.table, &rows, file.path.as_ref())?;
            self.identities
                .extend(found.iter().map(|identity| (file.tenant.clone(), *identity)));
        }
        Ok(())
    }
}

/// Files that no log names, those with the most rewritten rows first. Without a log, all files. Sums are made
/// again from the samples, so the rollup has none.
pub(crate) async fn orphans(location: &Location, table: Table, log: Option<&TableLog>) -> Result<Vec<Orphan>, Error> {
    if table == Table::Profiles {
        return Ok(Vec::new());
    }
    let mut named = HashSet::new();
    let mut tenants = HashSet::new();
    if let Some(log) = log {
        for file in log.files().await? {
            tenants.insert(file.tenant);
            named.insert(file.path);
        }
        named.extend(log.tombstones().await?.into_iter().map(|tombstone| tombstone.path));
    }
    let folder = Path::from(table.name());
    let listing = location.store().list(Some(&folder));
    let objects: Vec<ObjectMeta> = listing.try_collect().await.map_err(Error::storage("list", &folder))?;
    let unnamed = objects.into_iter().filter(|object| !named.contains(&object.location));
    let mut orphans: Vec<Orphan> = unnamed.filter_map(|object| orphan(table, object, &tenants)).collect();
    orphans.sort_by(|a, b| (b.file.tier, &a.file.path).cmp(&(a.file.tier, &b.file.path)));
    Ok(orphans)
}

/// The rows of an orphan that are not accounted for. From here on they are.
pub(crate) async fn unaccounted_rows(reader: &Reader, orphan: &Orphan, accounted: &mut Accounted) -> Result<Vec<RecordBatch>, Error> {
    let file = &orphan.file;
    let mut missing = Vec::new();
    let mut found = Vec::new();
    for rows in read(reader, file, None).await? {
        let identities = identities_of(file.table, &rows, file.path.as_ref())?;
        let key = |identity: &i64| (file.tenant.clone(), *identity);
        let keep = identities
            .iter()
            .map(|identity| Some(!accounted.identities.contains(&key(identity))));
        let keep: BooleanArray = keep.collect();
        found.extend(identities.iter().map(key));
        if keep.true_count() > 0 {
            missing.push(filter_record_batch(&rows, &keep).map_err(Error::arrow("keep rows that no file has"))?);
        }
    }
    accounted.identities.extend(found);
    Ok(missing)
}

/// Whether every row of an orphan is in one of its table's `files`, so that it may be deleted.
pub(crate) async fn is_leftover(reader: &Reader, orphan: &Orphan, files: &[Arc<FileEntry>]) -> Result<bool, Error> {
    let file = &orphan.file;
    let mut missing = HashSet::new();
    for rows in read(reader, file, Some(vec![identity_column(file.table)])).await? {
        missing.extend(identities_of(file.table, &rows, file.path.as_ref())?);
    }
    let by_arrival = identity_column(file.table) == schema::RECEIVED;
    for live in files.iter().filter(|live| live.tenant == file.tenant) {
        let (first, last) = live.stats.received_unix_nano;
        if missing.is_empty() {
            break;
        }
        if by_arrival && !missing.iter().any(|at| (first..=last).contains(at)) {
            continue;
        }
        for rows in read(reader, live, Some(vec![identity_column(file.table)])).await? {
            for identity in identities_of(file.table, &rows, live.path.as_ref())? {
                missing.remove(&identity);
            }
        }
    }
    Ok(missing.is_empty())
}

async fn read(reader: &Reader, file: &FileEntry, columns: Option<Vec<&'static str>>) -> Result<Vec<RecordBatch>, Error> {
    let open = reader.open(file).await?;
    let part = Part {
        row_groups: open.row_groups(),
        rows: None,
        columns,
        predicates: Vec::new(),
    };
    let batches = reader.read(file, &open, part).await?;
    match batches.try_collect().await {
        Ok(batches) => Ok(batches),
        Err(source) => Err(reader.explain(file, source).await),
    }
}

fn identity_column(table: Table) -> &'static str {
    match table {
        Table::Spans | Table::Samples | Table::Profiles => schema::RECEIVED,
        Table::Stacks => stack::STACK_ID,
        Table::Frames => frame::FRAME_ID,
    }
}

fn identities_of(table: Table, rows: &RecordBatch, file: &str) -> Result<Vec<i64>, Error> {
    let identities: &Int64Array = column(rows, identity_column(table)).map_err(|unreadable| unreadable.in_file(file))?;
    Ok(identities.values().to_vec())
}

/// `spans/tenant=a/day=2026-11-30/flush-0123456789abcdef-0.parquet`; `None` for what is named otherwise.
pub(crate) fn orphan(table: Table, object: ObjectMeta, tenants: &HashSet<Tenant>) -> Option<Orphan> {
    let parts: Vec<String> = object.location.parts().map(|part| part.as_ref().to_owned()).collect();
    let [_, tenant, day, name] = parts.as_slice() else { return None };
    let in_path = tenant.strip_prefix("tenant=")?;
    // Some letters of a tenant are replaced in paths; the log has the whole name.
    let known = tenants.iter().find(|tenant| Location::tenant_in_path(tenant) == in_path);
    let tenant = known.cloned().or_else(|| in_path.parse().ok())?;
    let tier = Tier::from_word(name.strip_suffix(".parquet")?.split('-').next()?)?;
    Some(Orphan {
        file: FileEntry {
            table,
            tenant,
            day: day.strip_prefix("day=")?.parse::<Day>().ok()?,
            tier,
            stats: FileStats {
                size_bytes: object.size,
                ..FileStats::default()
            },
            path: object.location,
        },
    })
}
