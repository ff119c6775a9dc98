//! Reads the few rows that hold given ids, out of all files of a table.
//!
//! Bloom filters and row-group bounds leave the files and row groups that may hold an id, the page index
//! leaves the pages, and only these are read. Files are read at the same time, a bounded number of them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, BinaryArray, BooleanArray, StringArray};
use arrow::buffer::BooleanBuffer;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicateFn, RowSelection};
use spanflame_model::{Tenant, TimeRange};

use crate::reader::{OpenFile, Part, Reader, Wanted};
use crate::rows::{Unreadable, column};
use crate::schema::Table;
use crate::version::FileEntry;
use crate::{Error, Snapshot};

/// Files that one lookup reads at the same time.
const FILES_AT_ONCE_MAX: usize = 32;

type Matches = dyn Fn(&RecordBatch) -> Result<BooleanArray, Unreadable> + Send + Sync;

/// A search for ids in one column.
#[derive(Clone)]
pub(crate) struct Lookup {
    table: Table,
    column: &'static str,
    place: Place,
    /// Only rows that have no value in this column.
    absent: Option<&'static str>,
    /// Only files with a row in this time.
    near: Option<TimeRange>,
    /// What is read of the rows found; `None` is all.
    columns: Option<Vec<&'static str>>,
    matches: Arc<Matches>,
}

/// How pages are found.
#[derive(Clone)]
enum Place {
    /// Those that may hold one of these values.
    Of(Wanted),
    /// Those that hold any value.
    Present,
}

impl Lookup {
    /// Rows whose `column` holds a wanted value; `matches` says which rows do, given that column.
    pub(crate) fn new(
        table: Table,
        column: &'static str,
        wanted: Wanted,
        matches: impl Fn(&RecordBatch) -> Result<BooleanArray, Unreadable> + Send + Sync + 'static,
    ) -> Lookup {
        Lookup {
            table,
            column,
            place: Place::Of(wanted),
            absent: None,
            near: None,
            columns: None,
            matches: Arc::new(matches),
        }
    }

    /// Rows whose binary `column` holds one of `ids`.
    pub(crate) fn ids(table: Table, name: &'static str, ids: Vec<Vec<u8>>) -> Lookup {
        let wanted = Wanted::ids(ids.iter().map(Vec::as_slice));
        let (one, ids) = match <[Vec<u8>; 1]>::try_from(ids) {
            Ok([one]) => (Some(one), HashSet::new()),
            Err(ids) => (None, ids.into_iter().collect::<HashSet<Vec<u8>>>()),
        };
        Lookup::new(table, name, wanted, move |rows| {
            let known: &BinaryArray = column(rows, name)?;
            // Where no page can be left out, a quarter of a million ids are compared; hashing each would cost more than
            // reading them.
            let is_wanted = |id: &[u8]| match &one {
                Some(one) => id == one.as_slice(),
                None => ids.contains(id),
            };
            let passes = |row: usize| known.is_valid(row) && is_wanted(known.value(row));
            Ok(BooleanArray::new(BooleanBuffer::collect_bool(known.len(), passes), None))
        })
    }

    /// Rows whose text `column` is not null and holds one of `parts`.
    pub(crate) fn containing(table: Table, name: &'static str, parts: Vec<String>) -> Lookup {
        Lookup {
            table,
            column: name,
            place: Place::Present,
            absent: None,
            near: None,
            columns: None,
            matches: Arc::new(move |rows| {
                let known: &StringArray = column(rows, name)?;
                let is_wanted = |text: Option<&str>| Some(text.is_some_and(|text| parts.iter().any(|part| text.contains(part.as_str()))));
                Ok(known.iter().map(is_wanted).collect())
            }),
        }
    }

    /// Only rows that have no value in the column `absent`; pages without such rows are not read.
    pub(crate) fn without(self, absent: &'static str) -> Lookup {
        Lookup {
            absent: Some(absent),
            ..self
        }
    }

    /// Only files with a row in `near`; which rows are, is for the caller to check.
    pub(crate) fn near(self, near: TimeRange) -> Lookup {
        Lookup { near: Some(near), ..self }
    }

    /// Only these columns of the rows found.
    pub(crate) fn reading(self, columns: Vec<&'static str>) -> Lookup {
        let columns = Some(columns);
        Lookup { columns, ..self }
    }

    /// The rows found, with the file of each batch, in no order.
    pub(crate) fn run(&self, snapshot: &Snapshot, tenants: &[Tenant]) -> BoxStream<'static, Result<(Arc<FileEntry>, RecordBatch), Error>> {
        let files: Vec<Arc<FileEntry>> = snapshot
            .version
            .files(self.table)
            .iter()
            .filter(|file| tenants.contains(&file.tenant) && self.may_be_in(file))
            .cloned()
            .collect();
        let (reader, lookup) = (Arc::clone(&snapshot.reader), self.clone());
        let searches = files.into_iter().map(move |file| {
            let (reader, lookup) = (Arc::clone(&reader), lookup.clone());
            lookup.search(reader, file).boxed()
        });
        let found = stream::iter(searches).buffer_unordered(FILES_AT_ONCE_MAX);
        found
            .map_ok(|batches| stream::iter(batches.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    fn may_be_in(&self, file: &FileEntry) -> bool {
        use crate::schema::{sample, span};
        if let (Some(near), Some((first, last))) = (self.near, file.stats.time_unix_nano)
            && (first >= near.end().unix_nanos() || last < near.start().unix_nanos())
        {
            return false;
        }
        let by_trace = matches!(
            (self.table, self.column),
            (Table::Spans, span::TRACE_ID) | (Table::Samples, sample::TRACE_ID)
        );
        match (&self.place, &file.stats.trace_ids) {
            (Place::Of(Wanted::Ids(ids)), Some((min, max))) if by_trace => ids
                .iter()
                .any(|id| min.as_slice() <= id.as_slice() && id.as_slice() <= max.as_slice()),
            (_, None) if by_trace => false,
            _ => true,
        }
    }

    /// The rows of one file; none of a damaged one, which [`Reader::damaged`] names from then on.
    async fn search(self, reader: Arc<Reader>, file: Arc<FileEntry>) -> Result<Vec<(Arc<FileEntry>, RecordBatch)>, Error> {
        match self.search_file(&reader, &file).await {
            Ok(found) => Ok(found),
            Err(error) => reader.pass_damage(error).map(|()| Vec::new()),
        }
    }

    async fn search_file(self, reader: &Reader, file: &Arc<FileEntry>) -> Result<Vec<(Arc<FileEntry>, RecordBatch)>, Error> {
        let open = reader.open(file).await?;
        let (row_groups, rows) = self.place(&open);
        if row_groups.is_empty() || !rows.selects_any() {
            return Ok(Vec::new());
        }
        let (matches, path) = (Arc::clone(&self.matches), file.path.to_string());
        let mask = ProjectionMask::columns(open.metadata.parquet_schema(), [self.column]);
        let predicate = ArrowPredicateFn::new(mask, move |rows| {
            matches(&rows).map_err(|unreadable| ArrowError::ExternalError(Box::new(unreadable.in_file(&path))))
        });
        let part = Part {
            row_groups,
            rows: Some(rows),
            columns: self.columns.clone(),
            predicates: vec![Box::new(predicate)],
        };
        let batches = reader.read(file, &open, part).await?.try_collect::<Vec<RecordBatch>>().await;
        match batches {
            Ok(batches) => Ok(batches.into_iter().map(|rows| (Arc::clone(file), rows)).collect()),
            Err(source) => Err(reader.explain(file, source).await),
        }
    }

    fn place(&self, open: &OpenFile) -> (Vec<usize>, RowSelection) {
        let group_may = |group: usize| match self.absent {
            Some(absent) => open.null_count(group, absent) != Some(0),
            None => true,
        };
        let groups = open.row_groups().into_iter().filter(|group| group_may(*group)).collect();
        let (groups, rows) = match &self.place {
            Place::Of(wanted) => open.find(groups, self.column, wanted),
            Place::Present => open.find_present(groups, self.column),
        };
        match self.absent {
            Some(absent) => {
                let without = open.pages_without(&groups, absent);
                (groups, rows.intersection(&without))
            }
            None => (groups, rows),
        }
    }
}
