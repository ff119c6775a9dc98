//! What is dropped: files whose time is over, and the oldest ones where the tables are too large.
//!
//! By arrival, so that old uploads and odd clocks expire with their upload. Spans and samples go file by
//! file. Stacks and frames of a day are kept until nothing that arrived on that day may name them. Pure: it
//! decides, `maintenance.rs` commits.

use std::sync::Arc;
use std::time::Duration;

use spanflame_model::Timestamp;

use crate::StoreOptions;
use crate::day::Day;
use crate::schema::Table;
use crate::version::{FileEntry, Version};

/// Why a file is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Older than its retention.
    Age,
    /// The tables hold more than they may.
    Size,
}

/// Files to drop at `now`.
pub(crate) fn due(version: &Version, options: &StoreOptions, now: Timestamp) -> Vec<(Arc<FileEntry>, Reason)> {
    let (old, mut kept): (Vec<_>, Vec<_>) = Table::ALL
        .into_iter()
        .flat_map(|table| version.files(table))
        .cloned()
        .partition(|file| is_old(file, options, now));
    let mut dropped: Vec<_> = old.into_iter().map(|file| (file, Reason::Age)).collect();
    let Some(max) = options.size_bytes_max else { return dropped };
    let mut bytes: u64 = kept.iter().map(|file| file.stats.size_bytes).sum();
    // Today's stacks are still being referred to by what arrives: they were written once and will not be again.
    kept.retain(|file| !(is_stack(file.table) && file.day >= Day::of(now)));
    // Of a day, raw data goes before the rollup, and stacks last.
    kept.sort_by_key(|file| (file.day, rank(file.table), file.stats.received_unix_nano));
    for file in kept {
        if bytes <= max {
            break;
        }
        bytes -= file.stats.size_bytes;
        dropped.push((file, Reason::Size));
    }
    dropped
}

fn is_old(file: &FileEntry, options: &StoreOptions, now: Timestamp) -> bool {
    let horizon = |retention: Duration| now.saturating_sub(u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX));
    let received = |retention| file.stats.received_unix_nano.1 < horizon(retention).unix_nanos();
    match file.table {
        Table::Spans | Table::Samples => received(options.retention_raw),
        Table::Profiles => received(options.retention_rollup),
        Table::Stacks | Table::Frames => file.day < Day::of(horizon(options.retention_raw.max(options.retention_rollup))),
    }
}

fn is_stack(table: Table) -> bool {
    matches!(table, Table::Stacks | Table::Frames)
}

fn rank(table: Table) -> u8 {
    match table {
        Table::Spans | Table::Samples => 0,
        Table::Profiles => 1,
        Table::Stacks | Table::Frames => 2,
    }
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;
    use spanflame_model::Tenant;

    use super::*;
    use crate::file::FileStats;
    use crate::version::Tier;

    const HOUR: i64 = 3_600_000_000_000;

    fn entry(table: Table, hour: i64) -> Arc<FileEntry> {
        let at = Timestamp::from_unix_nanos_signed(hour * HOUR).expect("not negative");
        Arc::new(FileEntry {
            path: Path::from(format!("{}-{hour}", table.name())),
            table,
            tenant: Tenant::anonymous(),
            day: Day::of(at),
            tier: Tier::Hours,
            stats: FileStats {
                received_unix_nano: (hour * HOUR, hour * HOUR),
                size_bytes: 10,
                ..FileStats::default()
            },
        })
    }

    /// Files of every table that arrived at hours 0, 30 and 60: which go at hour 60?
    fn check(raw_hours: u64, rollup_hours: u64, size_bytes_max: Option<u64>) -> Vec<String> {
        let files = Table::ALL.into_iter().flat_map(|table| [0, 30, 60].map(|hour| entry(table, hour)));
        let version = Version::new(files, Vec::new(), None);
        let options = StoreOptions {
            retention_raw: Duration::from_secs(raw_hours * 3600),
            retention_rollup: Duration::from_secs(rollup_hours * 3600),
            size_bytes_max,
            ..StoreOptions::default()
        };
        let now = Timestamp::from_unix_nanos_signed(60 * HOUR).expect("not negative");
        let mut dropped: Vec<_> = due(&version, &options, now).iter().map(|(file, _)| file.path.to_string()).collect();
        dropped.sort();
        dropped
    }

    #[test]
    fn raw_data_expires_before_the_rollup_and_stacks_with_the_last_that_may_name_them() {
        assert_eq!(check(61, 61, None), [""; 0]);
        assert_eq!(check(20, 61, None), ["samples-0", "samples-30", "spans-0", "spans-30"]);
        assert_eq!(
            check(20, 35, None),
            [
                "frames-0",
                "profiles-0",
                "samples-0",
                "samples-30",
                "spans-0",
                "spans-30",
                "stacks-0"
            ]
        );
    }

    #[test]
    fn the_oldest_go_first_when_there_is_too_much() {
        assert_eq!(check(99, 99, Some(150)), [""; 0]);
        assert_eq!(check(99, 99, Some(149)), ["spans-0"]);
        assert_eq!(check(99, 99, Some(115)), ["profiles-0", "samples-0", "spans-0", "stacks-0"]);
        let all_but_todays_stacks = 13;
        assert_eq!(check(99, 99, Some(0)).len(), all_but_todays_stacks);
    }
}
