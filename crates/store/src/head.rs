//! Rows in memory: what was acknowledged and is in no file yet.
//!
//! Batches are kept as they were logged and never change; maps from trace, span, stack and frame ids lead to
//! their rows. A view is bounded by the number of batches at the time it was taken, so it stays the same
//! while appends go on, and taking one copies nothing.
//!
//! Not here: durability (that is the write-ahead log) and the decision when to flush.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, BinaryArray, BooleanArray, Int64Array, StringArray};
use arrow::compute::filter_record_batch;
use arrow::record_batch::RecordBatch;
use parking_lot::RwLock;
use spanflame_model::{SpanId, Tenant, Timestamp};

use crate::schema::{self, Table, frame, sample, span, stack};

/// Rows that wait for their flush. Append-only; freezing stops nothing, it lists what there is.
#[derive(Default)]
pub(crate) struct Head {
    parts: RwLock<Parts>,
}

/// Everything in a head, for a flush.
pub(crate) struct FrozenHead {
    /// By tenant and table; no empty lists.
    pub(crate) rows: Vec<(Tenant, Table, Vec<RecordBatch>)>,
}

/// A head as it was at one instant.
#[derive(Clone)]
pub(crate) struct HeadView {
    head: Arc<Head>,
    /// Only batches before this number are in the view.
    end: u32,
}

/// Rows of one append in one table.
pub(crate) struct HeadBatch {
    pub(crate) tenant: Tenant,
    pub(crate) table: Table,
    pub(crate) rows: RecordBatch,
}

/// Some rows of a batch, in ascending order.
pub(crate) struct HeadRows {
    pub(crate) batch: Arc<HeadBatch>,
    pub(crate) rows: Vec<usize>,
}

impl Head {
    /// An empty head.
    pub(crate) fn new() -> Head {
        Head::default()
    }

    /// Adds the rows of one append; all become visible at once. Stacks and frames that this head already has
    /// are left out.
    pub(crate) fn push(&self, tenant: &Tenant, rows: Vec<(Table, RecordBatch)>) {
        let mut parts = self.parts.write();
        for (table, rows) in rows {
            parts.push(tenant, table, rows);
        }
    }

    /// Memory held by its rows.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.read().bytes
    }

    /// All rows, for a flush. The caller pushes no more.
    pub(crate) fn freeze(&self) -> FrozenHead {
        let mut grouped: BTreeMap<(Tenant, Table), Vec<RecordBatch>> = BTreeMap::new();
        for batch in &self.parts.read().batches {
            let key = (batch.tenant.clone(), batch.table);
            grouped.entry(key).or_default().push(batch.rows.clone());
        }
        let rows = grouped.into_iter().map(|((tenant, table), rows)| (tenant, table, rows));
        FrozenHead { rows: rows.collect() }
    }

    /// What it holds now.
    pub(crate) fn view(self: &Arc<Head>) -> HeadView {
        HeadView {
            head: Arc::clone(self),
            end: self.parts.read().batches.len() as u32,
        }
    }
}

impl HeadView {
    /// The spans of a trace.
    pub(crate) fn trace_spans(&self, tenants: &[Tenant], trace: &[u8; 16]) -> Vec<HeadRows> {
        self.find(tenants, |index, found| found.extend(index.spans.get(trace).into_iter().flatten()))
    }

    /// The samples that name a trace, and all that name candidates: the caller checks those.
    pub(crate) fn trace_samples(&self, tenants: &[Tenant], trace: &[u8; 16]) -> Vec<HeadRows> {
        self.find(tenants, |index, found| {
            found.extend(index.samples.get(trace).into_iter().flatten());
            found.extend(&index.candidates);
        })
    }

    /// The samples that name one of `spans` and no trace, and all that name candidates: the caller checks those.
    pub(crate) fn loose_samples(&self, tenants: &[Tenant], spans: &[SpanId]) -> Vec<HeadRows> {
        self.find(tenants, |index, found| {
            let named = spans.iter().filter_map(|span| index.loose_samples.get(span.as_bytes()));
            found.extend(named.flatten());
            found.extend(&index.candidates);
        })
    }

    /// Rows of spans or samples that name one of `spans`, by looking at all of them: an index would cost more memory
    /// than heads, which are young, are worth.
    pub(crate) fn naming_spans(&self, tenants: &[Tenant], table: Table, spans: &HashSet<SpanId>) -> Vec<HeadRows> {
        let name = if table == Table::Spans { span::SPAN_ID } else { sample::SPAN_ID };
        let rows = |batch: Arc<HeadBatch>| {
            let ids = binary(&batch.rows, name);
            let named = |id: &[u8]| SpanId::from_slice(id).is_some_and(|id| spans.contains(&id));
            let rows = (0..ids.len()).filter(|row| ids.is_valid(*row) && named(ids.value(*row))).collect();
            HeadRows { batch, rows }
        };
        self.batches(tenants, table).into_iter().map(rows).collect()
    }

    /// Rows that hold one of the stacks or frames `ids`.
    pub(crate) fn by_content(&self, tenants: &[Tenant], table: Table, ids: &[i64]) -> Vec<HeadRows> {
        self.find(tenants, |index, found| {
            let known = if table == Table::Stacks { &index.stacks } else { &index.frames };
            found.extend(ids.iter().filter_map(|id| known.get(id)));
        })
    }

    /// All batches of a table.
    pub(crate) fn batches(&self, tenants: &[Tenant], table: Table) -> Vec<Arc<HeadBatch>> {
        let parts = self.head.parts.read();
        let visible = &parts.batches[..self.end as usize];
        let wanted = |batch: &&Arc<HeadBatch>| batch.table == table && tenants.contains(&batch.tenant);
        visible.iter().filter(wanted).cloned().collect()
    }

    /// The latest arrival.
    pub(crate) fn last_received(&self) -> Option<Timestamp> {
        let parts = self.head.parts.read();
        let last = |batch: &Arc<HeadBatch>| received(&batch.rows)?.values().iter().copied().max();
        let latest = parts.batches[..self.end as usize].iter().filter_map(last).max()?;
        Timestamp::from_unix_nanos_signed(latest)
    }

    fn find(&self, tenants: &[Tenant], ranges: impl Fn(&TenantIndex, &mut Vec<RowRange>)) -> Vec<HeadRows> {
        let parts = self.head.parts.read();
        let mut found = Vec::new();
        for index in tenants.iter().filter_map(|tenant| parts.tenants.get(tenant)) {
            ranges(index, &mut found);
        }
        let mut by_batch: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for range in found.iter().filter(|range| range.batch < self.end) {
            let rows = range.start as usize..range.start as usize + range.len as usize;
            by_batch.entry(range.batch).or_default().extend(rows);
        }
        let rows = |(batch, mut rows): (u32, Vec<usize>)| {
            rows.sort_unstable();
            rows.dedup();
            let batch = Arc::clone(&parts.batches[batch as usize]);
            HeadRows { batch, rows }
        };
        by_batch.into_iter().map(rows).collect()
    }
}

#[derive(Default)]
struct Parts {
    batches: Vec<Arc<HeadBatch>>,
    tenants: HashMap<Tenant, TenantIndex>,
    bytes: u64,
}

/// Where the rows of one tenant lie.
#[derive(Default)]
struct TenantIndex {
    spans: HashMap<[u8; 16], Vec<RowRange>>,
    samples: HashMap<[u8; 16], Vec<RowRange>>,
    /// Samples that name a span and no trace.
    loose_samples: HashMap<[u8; 8], Vec<RowRange>>,
    candidates: Vec<RowRange>,
    stacks: HashMap<i64, RowRange>,
    frames: HashMap<i64, RowRange>,
}

/// Rows of one batch that follow each other.
#[derive(Clone, Copy)]
struct RowRange {
    batch: u32,
    start: u32,
    len: u32,
}

impl Parts {
    fn push(&mut self, tenant: &Tenant, table: Table, rows: RecordBatch) {
        let batch = self.batches.len() as u32;
        let index = self.tenants.entry(tenant.clone()).or_default();
        let rows = match table {
            Table::Spans => {
                index_ids(&mut index.spans, binary(&rows, span::TRACE_ID), batch);
                rows
            }
            Table::Samples => {
                index.add_samples(&rows, batch);
                rows
            }
            Table::Stacks => keep_new(&mut index.stacks, rows, stack::STACK_ID, batch),
            Table::Frames => keep_new(&mut index.frames, rows, frame::FRAME_ID, batch),
            Table::Profiles => rows,
        };
        if rows.num_rows() == 0 {
            return;
        }
        self.bytes += bytes_of(&rows);
        let tenant = tenant.clone();
        self.batches.push(Arc::new(HeadBatch { tenant, table, rows }));
    }
}

impl TenantIndex {
    fn add_samples(&mut self, rows: &RecordBatch, batch: u32) {
        let traces = binary(rows, sample::TRACE_ID);
        index_ids(&mut self.samples, traces, batch);
        let range = |row: usize| RowRange {
            batch,
            start: row as u32,
            len: 1,
        };
        if traces.null_count() > 0 {
            let spans = binary(rows, sample::SPAN_ID);
            for row in (0..rows.num_rows()).filter(|row| traces.is_null(*row) && spans.is_valid(*row)) {
                if let Ok(id) = spans.value(row).try_into() {
                    self.loose_samples.entry(id).or_default().push(range(row));
                }
            }
        }
        let candidates: &StringArray = array(rows, sample::CANDIDATES);
        if candidates.null_count() < rows.num_rows() {
            let named = (0..rows.num_rows()).filter(|row| candidates.is_valid(*row));
            self.candidates.extend(named.map(range));
        }
    }
}

/// Adds every run of rows with the same id; senders mostly keep the spans of a trace together.
fn index_ids<const N: usize>(index: &mut HashMap<[u8; N], Vec<RowRange>>, ids: &BinaryArray, batch: u32) {
    let mut start = 0;
    while start < ids.len() {
        let mut end = start + 1;
        if ids.is_null(start) {
            start = end;
            continue;
        }
        let id = ids.value(start);
        while end < ids.len() && ids.is_valid(end) && ids.value(end) == id {
            end += 1;
        }
        if let Ok(id) = id.try_into() {
            let (start, len) = (start as u32, (end - start) as u32);
            index.entry(id).or_default().push(RowRange { batch, start, len });
        }
        start = end;
    }
}

/// The rows whose content this head does not have yet.
fn keep_new(index: &mut HashMap<i64, RowRange>, rows: RecordBatch, id_column: &str, batch: u32) -> RecordBatch {
    let ids: &Int64Array = array(&rows, id_column);
    let mut start = 0;
    let mut is_new = |id: &i64| {
        let std::collections::hash_map::Entry::Vacant(entry) = index.entry(*id) else {
            return false;
        };
        entry.insert(RowRange { batch, start, len: 1 });
        start += 1;
        true
    };
    let new: Vec<bool> = ids.values().iter().map(&mut is_new).collect();
    if new.iter().all(|new| *new) {
        return rows;
    }
    filter_record_batch(&rows, &BooleanArray::from(new)).expect("the mask has one entry for every row")
}

/// Bytes of the rows themselves: arrays that were decoded from one buffer count only their part of it.
fn bytes_of(rows: &RecordBatch) -> u64 {
    let bytes = |column: &Arc<dyn Array>| column.to_data().get_slice_memory_size().unwrap_or(0) as u64;
    rows.columns().iter().map(bytes).sum()
}

fn received(rows: &RecordBatch) -> Option<&Int64Array> {
    rows.column_by_name(schema::RECEIVED)?.as_any().downcast_ref()
}

fn binary<'a>(rows: &'a RecordBatch, name: &str) -> &'a BinaryArray {
    array(rows, name)
}

fn array<'a, A: 'static>(rows: &'a RecordBatch, name: &str) -> &'a A {
    let column = rows.column_by_name(name).and_then(|column| column.as_any().downcast_ref());
    column.expect("rows of a head are of their table's schema")
}
