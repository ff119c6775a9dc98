//! What a process finds when it opens a directory: segments that are not in the tables yet.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spanflame_model::Timestamp;

use crate::Error;
use crate::committer::{Frozen, now};
use crate::day::Day;
use crate::flush::has_flush;
use crate::head::Head;
use crate::paths::node_id;
use crate::recognition::Recognition;
use crate::schema::Table;
use crate::stats::Counters;
use crate::tables::Tables;
use crate::version::Version;
use crate::wal::{Damage, keep_damaged, list_segments, read_segment};

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
    for number in list_segments(wal)? {
        let segment = replay(wal, number, tables, &node, counters).await?;
        for (fingerprint, received) in segment.arrivals {
            recognition.restore(&[fingerprint], received);
        }
        last = last.max(segment.frozen.last);
        next = next.max(number + 1);
        frozen.push(segment.frozen);
    }
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

struct Replayed {
    frozen: Frozen,
    arrivals: Vec<(spanflame_model::Fingerprint, Timestamp)>,
}

async fn replay(wal: &Path, number: u64, tables: &Tables, node: &str, counters: &Counters) -> Result<Replayed, Error> {
    let mut lacking = Vec::new();
    for table in Table::ALL {
        if !has_flush(tables, table, node, number).await? {
            lacking.push(table);
        }
    }
    let head = Arc::new(Head::new());
    let (mut first, mut last, mut records) = (None, Timestamp::ZERO, 0u64);
    let mut arrivals = Vec::new();
    let damages = read_segment(wal, number, |_, record| {
        let rows = record
            .batches
            .into_iter()
            .filter_map(|(index, batch)| Table::ALL.get(index).map(|table| (*table, batch)));
        let rows: Vec<_> = rows.filter(|(table, _)| lacking.contains(table)).collect();
        if !rows.is_empty() {
            head.push(&record.tenant, rows);
        }
        first.get_or_insert(record.received);
        last = last.max(record.received);
        records += 1;
        arrivals.extend(record.fingerprints.into_iter().map(|f| (f, record.received)));
        Ok(())
    })?;
    report(wal, number, &damages, counters)?;
    tracing::info!(segment = number, records, "write-ahead log segment replayed");
    Ok(Replayed {
        frozen: Frozen {
            number,
            day: Day::of(first.unwrap_or(Timestamp::ZERO)),
            last,
            head,
            fingerprints: arrivals.iter().map(|(fingerprint, _)| *fingerprint).collect(),
        },
        arrivals,
    })
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
