//! What is known of a file without opening it.

use std::collections::BTreeSet;

use arrow::array::{BinaryArray, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::rows::{Unreadable, column, numbers};
use crate::schema::{self, Table, rollup, sample, span};

/// Bytes of an object that one checksum covers: 3 bytes of log for each 100 KB of file.
pub(crate) const CHECKSUM_BLOCK_BYTES: usize = 256 << 10;
/// Up to this many services of a file are listed.
const SERVICES_MAX: usize = 64;

/// What is in a file: enough to skip it without opening it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileStats {
    /// Number of rows.
    pub(crate) rows: u64,
    /// Size of the object.
    pub(crate) size_bytes: u64,
    /// First and last nanosecond that a row covers, both inclusive; `None` for tables without event time.
    pub(crate) time_unix_nano: Option<(i64, i64)>,
    /// First and last arrival, both inclusive.
    pub(crate) received_unix_nano: (i64, i64),
    /// Smallest and largest trace id, of spans and samples that have one.
    pub(crate) trace_ids: Option<([u8; 16], [u8; 16])>,
    /// The services, sorted, where there are few; `None` where there are many or the table has none.
    pub(crate) services: Option<Vec<String>>,
    /// Of each [`CHECKSUM_BLOCK_BYTES`] of the object, in order; empty for files of versions that wrote none.
    pub(crate) checksums: Vec<u32>,
}

impl FileStats {
    /// First and last nanosecond that rows cover, both inclusive.
    pub(crate) fn time_of(table: Table, rows: &RecordBatch) -> Result<Option<(i64, i64)>, Unreadable> {
        let mut stats = StatsBuilder::new(table);
        stats.add(rows)?;
        Ok(stats.time)
    }

    /// The statistics of Delta's `add` action: the number of rows, and bounds of the columns that readers
    /// from outside filter by.
    pub(crate) fn to_delta_stats_json(&self) -> String {
        let received = |nanos: i64| serde_json::json!({ schema::RECEIVED: nanos });
        let stats = serde_json::json!({
            "numRecords": self.rows,
            "minValues": received(self.received_unix_nano.0),
            "maxValues": received(self.received_unix_nano.1),
            "nullCount": received(0),
        });
        stats.to_string()
    }

    /// Everything, as text for a tag of Delta's `add` action.
    pub(crate) fn to_tag(&self) -> String {
        let hex = |id: &[u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect();
        let tag = Tag {
            rows: self.rows,
            size_bytes: self.size_bytes,
            time_unix_nano: self.time_unix_nano,
            received_unix_nano: self.received_unix_nano,
            trace_ids: self.trace_ids.as_ref().map(|(min, max)| (hex(min), hex(max))),
            services: self.services.clone(),
            checksums: self.checksums.iter().map(|checksum| format!("{checksum:08x}")).collect(),
        };
        serde_json::to_string(&tag).expect("numbers and text are always JSON")
    }

    /// What [`FileStats::to_tag`] wrote; `None` if it did not.
    pub(crate) fn from_tag(tag: &str) -> Option<FileStats> {
        let tag: Tag = serde_json::from_str(tag).ok()?;
        let id = |hex: &str| Some(u128::from_str_radix(hex, 16).ok()?.to_be_bytes());
        Some(FileStats {
            rows: tag.rows,
            size_bytes: tag.size_bytes,
            time_unix_nano: tag.time_unix_nano,
            received_unix_nano: tag.received_unix_nano,
            trace_ids: match &tag.trace_ids {
                Some((min, max)) => Some((id(min)?, id(max)?)),
                None => None,
            },
            services: tag.services,
            checksums: checksums_from_hex(&tag.checksums)?,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Tag {
    rows: u64,
    size_bytes: u64,
    time_unix_nano: Option<(i64, i64)>,
    received_unix_nano: (i64, i64),
    trace_ids: Option<(String, String)>,
    services: Option<Vec<String>>,
    /// Eight hexadecimal digits each.
    #[serde(default)]
    checksums: String,
}

/// CRC-32 of each block of an object: Parquet's writer leaves out the checksums of its pages, so these tell
/// where a medium changed a file.
pub(crate) fn checksums(object: &[u8]) -> Vec<u32> {
    object.chunks(CHECKSUM_BLOCK_BYTES).map(crc32fast::hash).collect()
}

fn checksums_from_hex(hex: &str) -> Option<Vec<u32>> {
    let digits = hex.as_bytes().chunks(8);
    digits
        .map(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
        .collect()
}

/// Gathers statistics while a file is written.
pub(super) struct StatsBuilder {
    table: Table,
    rows: u64,
    time: Option<(i64, i64)>,
    received: Option<(i64, i64)>,
    trace_ids: Option<([u8; 16], [u8; 16])>,
    services: BTreeSet<String>,
}

impl StatsBuilder {
    pub(super) fn new(table: Table) -> StatsBuilder {
        StatsBuilder {
            table,
            rows: 0,
            time: None,
            received: None,
            trace_ids: None,
            services: BTreeSet::new(),
        }
    }

    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<(), Unreadable> {
        self.rows += batch.num_rows() as u64;
        let received: &Int64Array = column(batch, schema::RECEIVED)?;
        received.values().iter().for_each(|at| widen(&mut self.received, *at, *at));
        match self.table {
            Table::Spans => {
                self.add_traces(column(batch, span::TRACE_ID)?);
                self.add_services(column(batch, span::SERVICE)?);
                let (starts, durations) = (
                    column::<Int64Array>(batch, span::START)?,
                    column::<Int64Array>(batch, span::DURATION)?,
                );
                for (start, duration) in starts.values().iter().zip(durations.values()) {
                    widen(&mut self.time, *start, last_nano(*start, *duration));
                }
            }
            Table::Samples => {
                self.add_traces(column(batch, sample::TRACE_ID)?);
                self.add_services(column(batch, sample::SERVICE)?);
                self.add_sample_times(batch)?;
            }
            Table::Profiles => {
                self.add_services(column(batch, rollup::SERVICE)?);
                let minutes: &Int64Array = column(batch, rollup::MINUTE)?;
                for minute in minutes.values() {
                    widen(&mut self.time, *minute, last_nano(*minute, 60_000_000_000));
                }
            }
            Table::Stacks | Table::Frames => {}
        }
        Ok(())
    }

    fn add_traces(&mut self, ids: &BinaryArray) {
        for id in ids.iter().flatten().filter_map(|id| <[u8; 16]>::try_from(id).ok()) {
            let (min, max) = self.trace_ids.get_or_insert((id, id));
            *min = (*min).min(id);
            *max = (*max).max(id);
        }
    }

    fn add_services(&mut self, services: &StringArray) {
        let mut last = "";
        for service in services.iter().flatten() {
            if service != last && self.services.len() <= SERVICES_MAX && !self.services.contains(service) {
                self.services.insert(service.to_owned());
            }
            last = service;
        }
    }

    fn add_sample_times(&mut self, batch: &RecordBatch) -> Result<(), Unreadable> {
        let times = column(batch, sample::TIMES)?;
        let starts: &Int64Array = column(batch, sample::PROFILE_START)?;
        let durations: &Int64Array = column(batch, sample::PROFILE_DURATION)?;
        for row in 0..batch.num_rows() {
            match numbers(times, row)? {
                [] => widen(
                    &mut self.time,
                    starts.value(row),
                    last_nano(starts.value(row), durations.value(row)),
                ),
                times => times.iter().for_each(|time| widen(&mut self.time, *time, *time)),
            }
        }
        Ok(())
    }

    /// The statistics of a file whose bytes are `object`.
    pub(super) fn finish(self, object: &[u8]) -> FileStats {
        let has_services = matches!(self.table, Table::Spans | Table::Samples | Table::Profiles);
        let few = has_services && self.services.len() <= SERVICES_MAX;
        FileStats {
            rows: self.rows,
            size_bytes: object.len() as u64,
            time_unix_nano: self.time,
            received_unix_nano: self.received.unwrap_or_default(),
            trace_ids: self.trace_ids,
            services: few.then(|| self.services.into_iter().collect()),
            checksums: checksums(object),
        }
    }
}

/// The last nanosecond of what starts at `start`; never before `start`.
fn last_nano(start: i64, duration: i64) -> i64 {
    start.saturating_add(duration.max(1) - 1)
}

fn widen(range: &mut Option<(i64, i64)>, first: i64, last: i64) {
    let (min, max) = range.get_or_insert((first, last));
    *min = (*min).min(first);
    *max = (*max).max(last);
}
