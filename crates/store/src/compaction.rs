//! Few large files out of many small ones.
//!
//! Files rise through two tiers: flush files of some seconds merge into files of minutes, those into files of
//! hours, which stay. So a row is written three times in its life at most, and a look-up meets a bounded
//! number of files however long the store runs. Only files of one table, tenant and day merge.
//!
//! [`due`] decides and is pure; [`merge`] does it: one commit takes the inputs out and the outputs in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use spanflame_model::Timestamp;

use crate::Error;
use crate::crash::crash_point;
use crate::file;
use crate::log::Change;
use crate::reader::Reader;
use crate::schema::Table;
use crate::tables::{Partition, Tables};
use crate::version::{FileEntry, Tier, Version};

/// When files of a tier merge into the next.
struct Rule {
    from: Tier,
    to: Tier,
    /// As soon as there are so many.
    files: usize,
    /// Or when there are two and the oldest arrived so long ago.
    age: Duration,
}

const RULES: [Rule; 2] = [
    Rule {
        from: Tier::Flush,
        to: Tier::Minutes,
        files: 8,
        age: Duration::from_secs(120),
    },
    Rule {
        from: Tier::Minutes,
        to: Tier::Hours,
        files: 16,
        age: Duration::from_secs(3600),
    },
];

/// Inputs of one merge, so that its outputs, which exist beside them until the grace period ends, stay bounded.
const INPUT_BYTES_MAX: u64 = 1 << 30;

/// A merge to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Merge {
    pub(crate) partition: Partition,
    pub(crate) to: Tier,
    /// Oldest arrival first; at least two.
    pub(crate) inputs: Vec<Arc<FileEntry>>,
}

/// The merges that are due at `now`, small ones first. With `all`, wherever two files of a tier are.
pub(crate) fn due(version: &Version, now: Timestamp, all: bool) -> Vec<Merge> {
    let mut merges = Vec::new();
    for rule in &RULES {
        let mut partitions: BTreeMap<Partition, Vec<Arc<FileEntry>>> = BTreeMap::new();
        for file in Table::ALL.into_iter().flat_map(|table| version.files(table)) {
            if file.tier == rule.from {
                partitions.entry(partition(file)).or_default().push(Arc::clone(file));
            }
        }
        for (partition, mut inputs) in partitions {
            inputs.sort_by_key(|file| file.stats.received_unix_nano);
            let oldest = inputs[0].stats.received_unix_nano.0.max(0).unsigned_abs();
            let age = Duration::from_nanos(now.unix_nanos().max(0).unsigned_abs().saturating_sub(oldest));
            if inputs.len() < rule.files && !(all || age >= rule.age) {
                continue;
            }
            bound(&mut inputs);
            if inputs.len() >= 2 {
                merges.push(Merge {
                    partition,
                    to: rule.to,
                    inputs,
                });
            }
        }
    }
    merges
}

/// Merges and commits. Returns the bytes written.
pub(crate) async fn merge(tables: &Tables, reader: &Arc<Reader>, merge: Merge) -> Result<u64, Error> {
    let Merge { partition, to, inputs } = merge;
    let mut streams = Vec::with_capacity(inputs.len());
    for input in &inputs {
        streams.push(reader.rows(input).await?);
    }
    let mut outputs = Vec::new();
    file::merge(partition.table, streams, to, async |bytes, stats| {
        outputs.push(tables.put(partition.clone(), bytes, stats, to).await?);
        Ok(())
    })
    .await?;
    crash_point("during-compaction");
    let bytes = outputs.iter().map(|file| file.stats.size_bytes).sum();
    let change = Change {
        add: outputs,
        remove: inputs,
        data_change: false,
        progress: None,
    };
    tables.commit_and_show(partition.table, &change).await?;
    crash_point("after-compaction");
    Ok(bytes)
}

/// The part of a table that a file belongs to.
pub(crate) fn partition(file: &FileEntry) -> Partition {
    Partition {
        table: file.table,
        tenant: file.tenant.clone(),
        day: file.day,
    }
}

/// Leaves out what would make the merge too large; it is due again when this is done.
fn bound(inputs: &mut Vec<Arc<FileEntry>>) {
    let mut bytes = 0;
    let fits = inputs.iter().position(|file| {
        bytes += file.stats.size_bytes;
        bytes > INPUT_BYTES_MAX
    });
    inputs.truncate(fits.unwrap_or(inputs.len()));
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;
    use spanflame_model::Tenant;

    use super::*;
    use crate::day::Day;
    use crate::file::FileStats;

    fn entry(tier: Tier, tenant: &Tenant, second: i64) -> Arc<FileEntry> {
        Arc::new(FileEntry {
            path: Path::from(format!("{}-{second}", tier.as_str())),
            table: Table::Spans,
            tenant: tenant.clone(),
            day: Day(0),
            tier,
            stats: FileStats {
                received_unix_nano: (second * 1_000_000_000, second * 1_000_000_000),
                size_bytes: 1,
                ..FileStats::default()
            },
        })
    }

    /// Which files merge at second `now`, as `tier: seconds of arrival`.
    fn check(files: &[(Tier, i64)], now: i64, all: bool) -> Vec<String> {
        let tenant = Tenant::anonymous();
        let stranger = entry(Tier::Flush, &Tenant::own(), 1);
        let files = files.iter().map(|(tier, second)| entry(*tier, &tenant, *second)).chain([stranger]);
        let version = Version::new(files, Vec::new(), None);
        let now = Timestamp::from_unix_nanos_signed(now * 1_000_000_000).expect("not negative");
        let text = |merge: Merge| {
            let seconds = merge
                .inputs
                .iter()
                .map(|f| (f.stats.received_unix_nano.0 / 1_000_000_000).to_string());
            format!("{}: {}", merge.to.as_str(), seconds.collect::<Vec<_>>().join(" "))
        };
        due(&version, now, all).into_iter().map(text).collect()
    }

    #[test]
    fn many_files_merge_at_once_and_few_when_they_are_old() {
        let eight: Vec<_> = (0..8).rev().map(|n| (Tier::Flush, n * 10)).collect();
        assert_eq!(check(&eight, 71, false), ["minutes: 0 10 20 30 40 50 60 70"]);
        assert_eq!(check(&eight[1..], 71, false), [""; 0]);
        assert_eq!(check(&eight[6..], 119, false), [""; 0]);
        assert_eq!(check(&eight[6..], 121, false), ["minutes: 0 10"]);
        assert_eq!(check(&eight[7..], 9999, true), [""; 0]);
    }

    #[test]
    fn tiers_and_tenants_do_not_mix() {
        let files = [(Tier::Flush, 1), (Tier::Minutes, 2), (Tier::Hours, 3), (Tier::Hours, 4)];
        assert_eq!(check(&files, 9999, true), [""; 0]);
        let files = [(Tier::Flush, 1), (Tier::Flush, 2), (Tier::Minutes, 3), (Tier::Minutes, 4)];
        assert_eq!(check(&files, 10, true), ["minutes: 1 2", "hours: 3 4"]);
    }
}
