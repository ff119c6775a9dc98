//! What a process finds when it opens a directory: segments that are not in the tables yet.
//!
//! A record may be on the medium although its append was told that it failed. Its sender tried again, so a
//! later segment holds the same spans and profiles, and these were acknowledged. Therefore segments are
//! replayed from the last to the first, and a record keeps only the rows whose fingerprints no later record
//! and no flushed run holds. Keeping the first one would be wrong where a table has the earlier segment's
//! number: it was flushed without the rows of the failed append. Keeping the last one is right for each table
//! by itself, because a table that has the number of a segment has those of all before.
//!
//! Stacks and frames are content by id and may be there twice.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, BinaryArray, BooleanArray};
use arrow::compute::filter_record_batch;
use arrow::record_batch::RecordBatch;
use spanflame_model::{Fingerprint, Timestamp};

use crate::Error;
use crate::committer::{Frozen, now};
use crate::day::Day;
use crate::flush::has_flush;
use crate::head::Head;
use crate::paths::node_id;
use crate::recognition::{Recognition, Seen};
use crate::schema::{Table, sample};
use crate::stats::Counters;
use crate::tables::Tables;
use crate::version::Version;
use crate::wal::{Damage, Record, keep_damaged, list_segments, read_segment};

/// Where the last process stopped.
pub(super) struct Recovered {
    /// This node's id in the tables' logs.
    pub(super) node: String,
    /// What is recognised.
    pub(super) recognition: Arc<Recognition>,
    /// What was acknowledged and is not in every table, oldest first. Its heads are in the version.
    pub(super) frozen: Vec<Frozen>,
    /// The latest arrival.
    pub(super) last: Timestamp,
    /// Number for the next segment, which no table has seen.
    pub(super) next: u64,
}

/// Replays the segments in `wal`, each for the tables that lack it.
pub(super) async fn recover(wal: &Path, tables: &Tables, counters: &Counters, reach: Duration) -> Result<Recovered, Error> {
    let node = node_id(wal)?;
    let recognition = Arc::new(Recognition::open(wal, reach, now())?);
    let mut flushed = 0;
    for table in Table::ALL {
        let progress = tables.log(table).progress(&node).await?;
        flushed = flushed.max(progress.and_then(|number| u64::try_from(number).ok()).unwrap_or(0));
    }
    let mut next = flushed.max(recognition.last_segment()?) + 1;
    let version = tables.version().get();
    let mut last = Table::ALL
        .into_iter()
        .flat_map(|table| version.files(table))
        .filter_map(|file| Timestamp::from_unix_nanos_signed(file.stats.received_unix_nano.1))
        .max()
        .unwrap_or(Timestamp::ZERO);
    let mut frozen = Vec::new();
    for number in list_segments(wal)?.into_iter().rev() {
        let lacking = lacking(tables, &node, number).await?;
        let segment = replay(wal, number, &lacking, &recognition, counters)?;
        last = last.max(segment.last);
        next = next.max(number + 1);
        frozen.push(segment);
    }
    frozen.reverse();
    let heads: Vec<Arc<Head>> = frozen.iter().map(|frozen: &Frozen| Arc::clone(&frozen.head)).collect();
    tables.version().update(|version: &Version| version.with_heads(heads));
    Ok(Recovered {
        node,
        recognition,
        frozen,
        last,
        next,
    })
}

/// The tables that do not have the flush of a segment.
async fn lacking(tables: &Tables, node: &str, number: u64) -> Result<Vec<Table>, Error> {
    let mut lacking = Vec::new();
    for table in Table::ALL {
        if !has_flush(tables, table, node, number).await? {
            lacking.push(table);
        }
    }
    Ok(lacking)
}

/// The rows of a segment for the tables that lack it. Its fingerprints are recognised from here on.
fn replay(wal: &Path, number: u64, lacking: &[Table], recognition: &Recognition, counters: &Counters) -> Result<Frozen, Error> {
    let head = Arc::new(Head::new());
    let (mut first, mut last, mut records, mut repeated) = (None, Timestamp::ZERO, 0u64, 0usize);
    let mut fingerprints = Vec::new();
    let damages = read_segment(wal, number, |_, mut record| {
        repeated += keep_claimed(&mut record, recognition)?;
        let rows = record.batches.into_iter();
        let rows = rows.filter_map(|(index, batch)| Table::ALL.get(index).map(|table| (*table, batch)));
        let rows: Vec<_> = rows.filter(|(table, _)| lacking.contains(table)).collect();
        if !rows.is_empty() {
            head.push(&record.tenant, rows);
        }
        first.get_or_insert(record.received);
        last = last.max(record.received);
        records += 1;
        fingerprints.extend(record.fingerprints);
        Ok(())
    })?;
    report(wal, number, &damages, counters)?;
    tracing::info!(segment = number, records, repeated, "write-ahead log segment replayed");
    Ok(Frozen {
        number,
        day: Day::of(first.unwrap_or(Timestamp::ZERO)),
        last,
        head,
        fingerprints,
    })
}

/// Drops the spans and profiles of a record that are recognised already, and returns how many. The others
/// belong to this record from here on.
fn keep_claimed(record: &mut Record, recognition: &Recognition) -> Result<usize, Error> {
    let seen = recognition.claim(&record.fingerprints, record.received);
    let is_new: Vec<bool> = seen.iter().map(|seen| *seen == Seen::New).collect();
    let repeated = is_new.iter().filter(|new| !**new).count();
    if repeated == 0 {
        return Ok(0);
    }
    let prints = record.fingerprints.iter().zip(&is_new);
    let gone: HashSet<[u8; 16]> = prints.filter(|(_, new)| !**new).map(|(print, _)| print.0.to_be_bytes()).collect();
    for (index, rows) in &mut record.batches {
        let keep: BooleanArray = match Table::ALL.get(*index) {
            // The first fingerprints of a record are those of its spans, one for each row.
            Some(Table::Spans) => (0..rows.num_rows()).map(|row| is_new.get(row).copied().or(Some(true))).collect(),
            Some(Table::Samples) => samples_without(rows, &gone),
            _ => continue,
        };
        *rows = filter_record_batch(rows, &keep).map_err(Error::arrow("leave out rows of a later record"))?;
    }
    let mut is_new = is_new.into_iter();
    record.fingerprints.retain(|_: &Fingerprint| is_new.next().unwrap_or(true));
    Ok(repeated)
}

/// Which samples belong to none of the profiles `gone`.
fn samples_without(rows: &RecordBatch, gone: &HashSet<[u8; 16]>) -> BooleanArray {
    let hashes: Option<&BinaryArray> = rows.column_by_name(sample::PROFILE_HASH).and_then(|c| c.as_any().downcast_ref());
    let is_gone = |row: usize| {
        let hash: Option<[u8; 16]> = hashes.and_then(|hashes| hashes.value(row).try_into().ok());
        hash.is_some_and(|hash| gone.contains(&hash))
    };
    (0..rows.num_rows()).map(|row| Some(!is_gone(row))).collect()
}

/// Says what could not be read. A segment with damage in the middle is kept aside for people to look at.
fn report(wal: &Path, number: u64, damages: &[Damage], counters: &Counters) -> Result<(), Error> {
    for damage in damages {
        match damage {
            Damage::TornTail { offset, len } => {
                tracing::warn!(
                    segment = number,
                    offset,
                    bytes = len,
                    "write-ahead log ends in a torn record, which was never acknowledged"
                );
            }
            Damage::Corrupt { offset, message } => {
                counters.wal_damaged.add(1);
                tracing::error!(
                    segment = number,
                    offset,
                    message,
                    "write-ahead log record is damaged, the others are kept"
                );
            }
        }
    }
    if damages.iter().any(|damage| matches!(damage, Damage::Corrupt { .. })) {
        keep_damaged(wal, number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
