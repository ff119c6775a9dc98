//! Table files: Parquet, sorted, with page index and bloom filters.
//!
//! A file holds rows of one tenant and one table in the table's order (`order`), so that the rows of a trace
//! lie on a few neighbouring pages. Writing drops what is there twice (`order::Collapse`), whether it comes
//! from a head or from files that are merged.
//!
//! Not here: where files lie, which are merged, and how they are read.

mod merge;
mod order;
mod stats;
mod writer;

use arrow::record_batch::RecordBatch;
use bytes::Bytes;

pub(crate) use merge::merge;
pub(crate) use stats::{CHECKSUM_BLOCK_BYTES, FileStats, checksums};

use crate::Error;
use crate::schema::Table;
use crate::version::Tier;

/// A merge begins the next file when one is this long.
pub(crate) const FILE_BYTES_MAX: u64 = 128 << 20;

/// Sorts rows, drops those that are there twice, and encodes them. `batches` belong to one tenant.
///
/// Encoding takes some microseconds of CPU a row: call it where blocking is allowed.
pub(crate) fn write(table: Table, batches: &[RecordBatch], tier: Tier) -> Result<(Bytes, FileStats), Error> {
    let sorted = order::sort(table, batches)?;
    let mut writer = writer::FileWriter::new(table, tier, sorted.rows.len());
    let mut rows = order::Rows::new(table);
    for (key, batch, row) in sorted.rows {
        rows.push(key, &sorted.batches[batch as usize], row as usize);
        if rows.is_full() {
            writer.write(&rows.take()?)?;
        }
    }
    writer.write(&rows.take()?)?;
    writer.finish()
}

#[cfg(test)]
mod tests;
