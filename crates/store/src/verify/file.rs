//! One file of a table: whether it is what was written, and what of it can still be read.

use std::ops::Range;

use arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use object_store::ObjectStoreExt as _;
use parquet::arrow::arrow_reader::RowSelection;

use crate::Error;
use crate::file::{CHECKSUM_BLOCK_BYTES, checksums};
use crate::reader::{OpenFile, Part, Reader};
use crate::version::FileEntry;

/// How a file is.
pub(crate) enum Condition {
    /// As it was written.
    Whole,
    /// Not there.
    Missing,
    /// Not what was written.
    Damaged {
        /// What was found and what was expected.
        message: String,
        /// Blocks with a wrong checksum, ascending; none where only decoding told.
        blocks: Vec<usize>,
    },
}

/// Reads a whole file. An error is a medium that does not answer.
pub(crate) async fn condition(reader: &Reader, file: &FileEntry) -> Result<Condition, Error> {
    let object = match reader.store().get(&file.path).await {
        Ok(object) => object.bytes().await.map_err(Error::storage("read", &file.path))?,
        Err(object_store::Error::NotFound { .. }) => return Ok(Condition::Missing),
        Err(error) => return Err(Error::storage("read", &file.path)(error)),
    };
    let expected = &file.stats;
    let found = checksums(&object);
    let differs = |at: &usize| found.get(*at) != expected.checksums.get(*at);
    let blocks: Vec<usize> = (0..expected.checksums.len()).filter(differs).collect();
    let damaged = |message: String| Condition::Damaged {
        message,
        blocks: blocks.clone(),
    };
    if object.len() as u64 != expected.size_bytes {
        return Ok(damaged(format!("it has {} bytes, expected {}", object.len(), expected.size_bytes)));
    }
    if let Some(first) = blocks.first() {
        return Ok(damaged(format!(
            "{} of {} blocks of {CHECKSUM_BLOCK_BYTES} bytes have a wrong checksum, the first begins at byte {}",
            blocks.len(),
            expected.checksums.len(),
            first * CHECKSUM_BLOCK_BYTES
        )));
    }
    Ok(match count_rows(reader, file).await {
        Err(error) => damaged(with_cause(&error)),
        Ok(rows) if rows != expected.rows => damaged(format!("it has {rows} rows, expected {}", expected.rows)),
        Ok(_) => Condition::Whole,
    })
}

/// The rows of a file that can be read, without those that its damage may have changed.
pub(crate) async fn readable_rows(reader: &Reader, file: &FileEntry, condition: &Condition) -> Vec<RecordBatch> {
    let blocks = match condition {
        Condition::Missing => return Vec::new(),
        Condition::Whole => &[][..],
        Condition::Damaged { blocks, .. } => blocks,
    };
    let Ok(open) = reader.open(file).await else { return Vec::new() };
    let mut readable = Vec::new();
    for group in open.row_groups() {
        let Some(rows) = rows_beside(&open, group, blocks) else { continue };
        let part = Part {
            row_groups: vec![group],
            rows: Some(rows),
            columns: None,
            predicates: Vec::new(),
        };
        // A row group that does not decode is lost, the others are not.
        if let Ok(batches) = reader.read(file, &open, part).await
            && let Ok(batches) = batches.try_collect::<Vec<_>>().await
        {
            readable.extend(batches);
        }
    }
    readable
}

async fn count_rows(reader: &Reader, file: &FileEntry) -> Result<u64, Error> {
    let open = reader.open(file).await?;
    let all = Part {
        row_groups: open.row_groups(),
        rows: None,
        columns: None,
        predicates: Vec::new(),
    };
    let mut batches = reader.read(file, &open, all).await?;
    let mut rows = 0;
    loop {
        match batches.try_next().await {
            Ok(Some(batch)) => rows += batch.num_rows() as u64,
            Ok(None) => return Ok(rows),
            Err(source) => return Err(reader.explain(file, source).await),
        }
    }
}

/// The rows of a row group none of whose pages lies in one of `blocks`; `None` if what all its rows need does.
fn rows_beside(open: &OpenFile, group: usize, blocks: &[usize]) -> Option<RowSelection> {
    let rows = open.row_count(group) as usize;
    let mut lost: Vec<Range<usize>> = Vec::new();
    let metadata = open.metadata.metadata();
    for (leaf, column) in metadata.row_group(group).columns().iter().enumerate() {
        let (start, len) = column.byte_range();
        if !overlaps(start..start + len, blocks) {
            continue;
        }
        let pages = metadata.offset_index()?.get(group)?.get(leaf)?.page_locations();
        let first_page = pages.first().map_or(start + len, |page| page.offset.unsigned_abs());
        if overlaps(start..first_page, blocks) {
            return None;
        }
        let first_row = |page: usize| pages.get(page).map_or(rows, |page| page.first_row_index.unsigned_abs() as usize);
        for (at, page) in pages.iter().enumerate() {
            let begin = page.offset.unsigned_abs();
            if overlaps(begin..begin + u64::from(page.compressed_page_size.unsigned_abs()), blocks) {
                lost.push(first_row(at)..first_row(at + 1));
            }
        }
    }
    Some(RowSelection::from_consecutive_ranges(complement(lost, rows).into_iter(), rows))
}

fn overlaps(bytes: Range<u64>, blocks: &[usize]) -> bool {
    let block = CHECKSUM_BLOCK_BYTES as u64;
    blocks.iter().any(|at| {
        let begin = *at as u64 * block;
        begin < bytes.end && bytes.start < begin + block
    })
}

/// What of `0..len` is in none of the ranges.
fn complement(mut ranges: Vec<Range<usize>>, len: usize) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut rest = Vec::new();
    let mut at = 0;
    for range in ranges {
        if range.start > at {
            rest.push(at..range.start);
        }
        at = at.max(range.end);
    }
    if at < len {
        rest.push(at..len);
    }
    rest
}

fn with_cause(error: &Error) -> String {
    match error {
        Error::Corrupt { message, .. } => message.clone(),
        error => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_on_no_lost_page_remain() {
        assert_eq!(complement(vec![4..6, 0..2, 5..7], 10), [2..4, 7..10]);
        assert_eq!(complement(vec![4..6, 6..10], 10).len(), 1);
        assert_eq!(complement(vec![0..4, 2..10], 10), [0..0; 0]);
    }

    #[test]
    fn a_block_touches_what_shares_a_byte_with_it() {
        let block = CHECKSUM_BLOCK_BYTES as u64;
        assert!(overlaps(block - 1..block + 1, &[1]));
        assert!(!overlaps(0..block, &[1]));
        assert!(!overlaps(2 * block..2 * block + 5, &[1]));
    }
}
