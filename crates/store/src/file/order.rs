//! The order of rows in a file, and which rows are there twice.
//!
//! | table | order |
//! |---|---|
//! | spans | trace id, start, span id |
//! | samples | trace id (absent first), span id, first time, profile |
//! | profiles | service (its first 16 bytes), service and type, minute, stack id |
//! | stacks, frames | id |
//!
//! Twice there are: spans equal in all but arrival; samples of one profile that arrived in two requests, of
//! which the earlier is kept; stacks and frames with equal ids, of which the later is kept, because it
//! says how long the content is still in use.

use std::sync::Arc;

use arrow::array::{Array, BinaryArray, Int64Array, ListArray, StringArray};
use arrow::compute::{concat_batches, interleave_record_batch};
use arrow::record_batch::RecordBatch;
use xxhash_rust::xxh3::xxh3_64;

use crate::Error;
use crate::rows::{Unreadable, column, numbers};
use crate::schema::{self, Table, frame, rollup, sample, span, stack};

/// Rows are copied and encoded in chunks of this many.
const CHUNK_ROWS: usize = 8192;
/// Of spans that share trace, start and id, at most this many are compared with each other.
const COMPARED_MAX: usize = 8;

/// Position of a row in its table's order. Rows with the same first four parts may be there twice; the last
/// says which of them is kept: the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128, u64, u64, u64, u64);

impl Key {
    fn group(&self) -> (u128, u64, u64, u64) {
        (self.0, self.1, self.2, self.3)
    }
}

/// Rows in order: key, position of the batch, position in the batch.
pub(super) struct Sorted {
    pub(super) batches: Vec<Arc<RecordBatch>>,
    pub(super) rows: Vec<(Key, u32, u32)>,
}

/// Sorts the rows of all batches.
pub(super) fn sort(table: Table, batches: &[RecordBatch]) -> Result<Sorted, Error> {
    let batches = coalesce(table, batches)?;
    let mut rows = Vec::with_capacity(batches.iter().map(|batch| batch.num_rows()).sum());
    for (position, batch) in batches.iter().enumerate() {
        let keys = keys(table, batch).map_err(|unreadable| unreadable.in_file("head"))?;
        rows.extend(keys.into_iter().enumerate().map(|(row, key)| (key, position as u32, row as u32)));
    }
    rows.sort_unstable();
    Ok(Sorted { batches, rows })
}

/// Joins small batches: copying rows out of thousands of them costs more than joining them first.
fn coalesce(table: Table, batches: &[RecordBatch]) -> Result<Vec<Arc<RecordBatch>>, Error> {
    let mut joined = Vec::new();
    let mut small: Vec<&RecordBatch> = Vec::new();
    let mut rows = 0;
    for batch in batches {
        small.push(batch);
        rows += batch.num_rows();
        if rows >= CHUNK_ROWS {
            joined.push(join(table, &std::mem::take(&mut small))?);
            rows = 0;
        }
    }
    if !small.is_empty() {
        joined.push(join(table, &small)?);
    }
    Ok(joined)
}

fn join(table: Table, batches: &[&RecordBatch]) -> Result<Arc<RecordBatch>, Error> {
    match batches {
        [one] => Ok(Arc::new((*one).clone())),
        many => concat_batches(&table.schema(), many.iter().copied())
            .map(Arc::new)
            .map_err(Error::arrow("join rows")),
    }
}

/// The keys of a batch's rows.
pub(super) fn keys(table: Table, batch: &RecordBatch) -> Result<Vec<Key>, Unreadable> {
    let received: &Int64Array = column(batch, schema::RECEIVED)?;
    let arrival = |row: usize| received.value(row) as u64;
    let rows = 0..batch.num_rows();
    Ok(match table {
        Table::Spans => {
            let (traces, spans) = (column(batch, span::TRACE_ID)?, column(batch, span::SPAN_ID)?);
            let starts: &Int64Array = column(batch, span::START)?;
            let key = |row| Key(wide(traces, row), starts.value(row) as u64, narrow(spans, row), 0, arrival(row));
            rows.map(key).collect()
        }
        Table::Samples => {
            let (traces, spans) = (column(batch, sample::TRACE_ID)?, column(batch, sample::SPAN_ID)?);
            let hashes: &BinaryArray = column(batch, sample::PROFILE_HASH)?;
            let times: &ListArray = column(batch, sample::TIMES)?;
            let starts: &Int64Array = column(batch, sample::PROFILE_START)?;
            let key = |row| {
                let first = numbers(times, row)?.first().copied().unwrap_or_else(|| starts.value(row));
                let profile = narrow(hashes, row);
                Ok(Key(wide(traces, row), narrow(spans, row), first as u64, profile, arrival(row)))
            };
            rows.map(key).collect::<Result<_, _>>()?
        }
        Table::Profiles => {
            let (services, types) = (column(batch, rollup::SERVICE)?, column(batch, rollup::PROFILE_TYPE)?);
            let minutes: &Int64Array = column(batch, rollup::MINUTE)?;
            let stacks: &Int64Array = column(batch, rollup::STACK_ID)?;
            let key = |row| {
                let series = series(services, types, row);
                Key(
                    series.0,
                    series.1,
                    minutes.value(row) as u64,
                    ordered(stacks.value(row)),
                    arrival(row),
                )
            };
            rows.map(key).collect()
        }
        Table::Stacks | Table::Frames => {
            let name = if table == Table::Stacks { stack::STACK_ID } else { frame::FRAME_ID };
            let ids: &Int64Array = column(batch, name)?;
            rows.map(|row| Key(0, ordered(ids.value(row)), 0, 0, !arrival(row))).collect()
        }
    })
}

/// A signed number as an unsigned one of the same order.
fn ordered(number: i64) -> u64 {
    (number as u64) ^ (1 << 63)
}

/// The first 16 bytes at `row`, big-endian; 0 where it is null, so absent comes first.
fn wide(ids: &BinaryArray, row: usize) -> u128 {
    if ids.is_null(row) {
        return 0;
    }
    u128::from_be_bytes(prefix(ids.value(row)))
}

/// The first 8 bytes at `row`.
fn narrow(ids: &BinaryArray, row: usize) -> u64 {
    if ids.is_null(row) {
        return 0;
    }
    u64::from_be_bytes(prefix(ids.value(row)))
}

fn prefix<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut prefix = [0; N];
    let len = bytes.len().min(N);
    prefix[..len].copy_from_slice(&bytes[..len]);
    prefix
}

/// Orders by service and keeps the rows of one service and type together.
fn series(services: &StringArray, types: &StringArray, row: usize) -> (u128, u64) {
    let service = services.value(row).as_bytes();
    let hash = xxh3_64(service) ^ xxh3_64(types.value(row).as_bytes()).rotate_left(1);
    (u128::from_be_bytes(prefix(service)), hash)
}

/// Rows on their way into a file, in order; those that are there twice are left out.
pub(super) struct Rows {
    table: Table,
    batches: Vec<Arc<RecordBatch>>,
    picked: Vec<(usize, usize)>,
    /// Rows of the last key's group that were kept, to compare the next with.
    group: Option<Group>,
}

struct Group {
    first: Key,
    kept: Vec<(Arc<RecordBatch>, usize)>,
}

impl Rows {
    pub(super) fn new(table: Table) -> Rows {
        Rows {
            table,
            batches: Vec::new(),
            picked: Vec::with_capacity(CHUNK_ROWS),
            group: None,
        }
    }

    /// Adds the next row, unless it is there already. Keys must not descend.
    pub(super) fn push(&mut self, key: Key, batch: &Arc<RecordBatch>, row: usize) {
        if self.is_known(key, batch, row) {
            return;
        }
        let position = match self.batches.iter().rposition(|known| Arc::ptr_eq(known, batch)) {
            Some(position) => position,
            None => {
                self.batches.push(Arc::clone(batch));
                self.batches.len() - 1
            }
        };
        self.picked.push((position, row));
    }

    /// Whether it is time to take the rows out.
    pub(super) fn is_full(&self) -> bool {
        self.picked.len() >= CHUNK_ROWS
    }

    /// The rows added since the last call.
    pub(super) fn take(&mut self) -> Result<RecordBatch, Error> {
        if self.picked.is_empty() {
            return Ok(RecordBatch::new_empty(self.table.schema()));
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().map(Arc::as_ref).collect();
        let rows = interleave_record_batch(&batches, &self.picked).map_err(Error::arrow("put rows in order"));
        self.batches.clear();
        self.picked.clear();
        rows
    }

    fn is_known(&mut self, key: Key, batch: &Arc<RecordBatch>, row: usize) -> bool {
        let kept = (Arc::clone(batch), row);
        let Some(group) = self.group.as_mut().filter(|group| group.first.group() == key.group()) else {
            let kept = vec![kept];
            self.group = Some(Group { first: key, kept });
            return false;
        };
        match self.table {
            Table::Spans => {
                let known = group.kept.iter().any(|other| is_same_span(other, &kept));
                if !known && group.kept.len() < COMPARED_MAX {
                    group.kept.push(kept);
                }
                known
            }
            Table::Samples => key.4 != group.first.4,
            Table::Stacks | Table::Frames => true,
            Table::Profiles => false,
        }
    }
}

/// Whether two rows are equal in all but arrival.
fn is_same_span(a: &(Arc<RecordBatch>, usize), b: &(Arc<RecordBatch>, usize)) -> bool {
    let content = Table::Spans.column(schema::RECEIVED);
    let columns = a.0.columns().iter().zip(b.0.columns()).take(content);
    columns
        .into_iter()
        .all(|(x, y)| x.slice(a.1, 1).as_ref() == y.slice(b.1, 1).as_ref())
}
