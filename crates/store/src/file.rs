//! Table files: Parquet, sorted, with page index and bloom filters.

use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::Error;
use crate::schema::Table;
use crate::version::Tier;

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
    /// The services, sorted, where there are few.
    pub(crate) services: Option<Vec<String>>,
}

impl FileStats {
    /// The statistics of Delta's `add` action.
    pub(crate) fn to_delta_stats_json(&self, _table: Table) -> String {
        unimplemented!()
    }

    /// Everything, as text for a tag of Delta's `add` action.
    pub(crate) fn to_tag(&self) -> String {
        unimplemented!()
    }

    /// What [`FileStats::to_tag`] wrote.
    pub(crate) fn from_tag(_tag: &str) -> Option<FileStats> {
        unimplemented!()
    }
}

/// Sorts rows, drops those that are there twice, and encodes them. `batches` belong to one tenant.
pub(crate) fn write(_table: Table, _batches: &[RecordBatch], _tier: Tier) -> Result<(Bytes, FileStats), Error> {
    unimplemented!()
}

/// Merges sorted files of one tenant and table in bounded memory; rows that are there twice are kept once.
/// `emit` gets each finished file, at most `FILE_BYTES_MAX` long plus one row group.
pub(crate) async fn merge(
    _table: Table,
    _inputs: Vec<BoxStream<'static, Result<RecordBatch, Error>>>,
    _tier: Tier,
    _emit: impl AsyncFnMut(Bytes, FileStats) -> Result<(), Error>,
) -> Result<(), Error> {
    unimplemented!()
}
