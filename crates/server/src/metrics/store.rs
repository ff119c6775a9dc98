//! What the store counts, read at every scrape.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use spanflame_store::{Store, StoreStats, TableStats};

/// The store of a server, once it is open.
#[derive(Clone, Default)]
pub(super) struct StoreCollector(Arc<OnceLock<Store>>);

impl StoreCollector {
    pub(super) fn open(&self, store: Store) {
        let _ = self.0.set(store);
    }
}

impl fmt::Debug for StoreCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreCollector")
    }
}

impl Collector for StoreCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(store) = self.0.get() else {
            return Ok(());
        };
        encode(&store.stats(), &mut encoder)
    }
}

fn encode(stats: &StoreStats, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, value) in counters(stats) {
        counter(encoder, name, help, None, value)?;
    }
    for (name, help, value) in bytes(stats) {
        counter(encoder, name, help, Some(&Unit::Bytes), value)?;
    }
    for (name, help, value) in durations(stats) {
        counter(encoder, name, help, Some(&Unit::Seconds), value.as_secs_f64())?;
    }
    for (name, help, value) in gauges(stats) {
        let metric = ConstGauge::new(value as i64);
        let descriptor = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
        metric.encode(descriptor)?;
    }
    tables(encoder, &stats.tables)
}

/// A number of a table.
type Column = fn(&TableStats) -> u64;

/// Name, help and value.
type Row<T> = (&'static str, &'static str, T);

fn counters(stats: &StoreStats) -> [Row<u64>; 18] {
    [
        ("wal_syncs", "Syncs of the write-ahead log", stats.wal_syncs),
        (
            "wal_damaged_records",
            "Damaged records found at the start",
            stats.wal_damaged_records,
        ),
        ("appends", "Appends acknowledged", stats.appends),
        ("appends_busy", "Appends refused because memory was full", stats.appends_busy),
        ("appended_spans", "Spans stored, the server's own included", stats.spans),
        ("appended_samples", "Samples stored, the server's own included", stats.samples),
        (
            "appended_duplicate_spans",
            "Spans that arrived before and are kept once",
            stats.duplicate_spans,
        ),
        (
            "appended_duplicate_profiles",
            "Profiles that arrived before and are kept once",
            stats.duplicate_profiles,
        ),
        (
            "recognition_forgotten",
            "Fingerprints forgotten before their time",
            stats.recognition_forgotten,
        ),
        ("flushes", "Flushes committed", stats.flushes),
        (
            "flush_failures",
            "Attempts to flush that failed and are repeated",
            stats.flush_failures,
        ),
        ("compactions", "Merges committed", stats.compactions),
        (
            "compaction_failures",
            "Attempts to merge that failed and are repeated",
            stats.compaction_failures,
        ),
        ("rollups", "Windows of arrival rolled up", stats.rollups),
        (
            "rollup_failures",
            "Attempts to roll up that failed and are repeated",
            stats.rollup_failures,
        ),
        ("expired_files", "Files dropped because their time was over", stats.expired_files),
        (
            "oversize_files",
            "Files dropped because the tables were too large",
            stats.oversize_files,
        ),
        ("deleted_files", "Files deleted from the storage", stats.deleted_files),
    ]
}

fn bytes(stats: &StoreStats) -> [Row<u64>; 3] {
    [
        ("flush", "Bytes of files written by flushes", stats.flush_bytes),
        ("compaction", "Bytes of files written by merges", stats.compaction_bytes),
        ("rollup", "Bytes of files written by the rollup", stats.rollup_bytes),
    ]
}

fn durations(stats: &StoreStats) -> [Row<Duration>; 4] {
    [
        ("wal_sync", "Time spent in syncs of the log", stats.wal_sync_duration),
        ("flush", "Time spent in flushes", stats.flush_duration),
        ("compaction", "Time spent in merges", stats.compaction_duration),
        ("rollup", "Time spent in rollups", stats.rollup_duration),
    ]
}

fn gauges(stats: &StoreStats) -> [Row<u64>; 3] {
    [
        ("wal_segment_bytes", "Bytes in the segment that is being written", stats.wal_bytes),
        ("head_bytes", "Memory held by rows that are in no file yet", stats.head_bytes),
        (
            "recognition_keys",
            "Fingerprints held to recognise duplicates",
            stats.recognition_keys,
        ),
    ]
}

fn counter<N>(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, unit: Option<&Unit>, value: N) -> fmt::Result
where
    ConstCounter<N>: EncodeMetric,
{
    let metric = ConstCounter::new(value);
    let descriptor = encoder.encode_descriptor(name, help, unit, metric.metric_type())?;
    metric.encode(descriptor)
}

/// Files, bytes and rows of each table in each tier.
fn tables(encoder: &mut DescriptorEncoder<'_>, tables: &[TableStats]) -> fmt::Result {
    let columns: [Row<Column>; 3] = [
        ("table_files", "Files of a table in a tier", |table| table.files),
        ("table_size_bytes", "Bytes of a table in a tier", |table| table.bytes),
        ("table_rows", "Rows of a table in a tier", |table| table.rows),
    ];
    for (name, help, column) in columns {
        let kind = ConstGauge::new(0i64).metric_type();
        let mut descriptor = encoder.encode_descriptor(name, help, None, kind)?;
        for table in tables {
            let labels = [("table", table.table), ("tier", table.tier)];
            let metric = ConstGauge::new(column(table) as i64);
            metric.encode(descriptor.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[derive(Debug)]
    struct Fixed(StoreStats);

    impl Collector for Fixed {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            encode(&self.0, &mut encoder)
        }
    }

    /// Every field gets a number of its own from `number`. No field is left to a default, so a new one does
    /// not compile until it is here.
    fn stats(mut number: impl FnMut() -> u64) -> StoreStats {
        StoreStats {
            wal_bytes: number(),
            wal_syncs: number(),
            wal_sync_duration: Duration::from_secs(number()),
            wal_damaged_records: number(),
            head_bytes: number(),
            appends: number(),
            appends_busy: number(),
            spans: number(),
            samples: number(),
            duplicate_spans: number(),
            duplicate_profiles: number(),
            recognition_keys: number(),
            recognition_forgotten: number(),
            flushes: number(),
            flush_failures: number(),
            flush_duration: Duration::from_secs(number()),
            flush_bytes: number(),
            compactions: number(),
            compaction_failures: number(),
            compaction_duration: Duration::from_secs(number()),
            compaction_bytes: number(),
            rollups: number(),
            rollup_failures: number(),
            rollup_duration: Duration::from_secs(number()),
            rollup_bytes: number(),
            expired_files: number(),
            oversize_files: number(),
            deleted_files: number(),
            tables: vec![TableStats {
                table: "spans",
                tier: "hours",
                files: number(),
                bytes: number(),
                rows: number(),
            }],
        }
    }

    #[test]
    fn every_number_of_the_store_is_exported_once() {
        let mut given = Vec::new();
        let stats = stats(|| {
            given.push(1000 + given.len() as u64);
            1000 + given.len() as u64 - 1
        });
        let mut registry = Registry::with_prefix("spanflame");
        registry.register_collector(Box::new(Fixed(stats)));
        let mut text = String::new();
        text::encode(&mut text, &registry).expect("a string takes everything");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let value = |line: &str| line.rsplit_once(' ').and_then(|(_, value)| value.parse::<f64>().ok());
        let mut exported: Vec<u64> = lines.map(|line| value(line).expect("a number") as u64).collect();
        exported.sort_unstable();
        assert_eq!(exported, given, "{text}");
        for line in [
            "spanflame_rollup_seconds_total 1023.0",
            "spanflame_rollup_bytes_total 1024",
            "spanflame_wal_damaged_records_total 1003",
            "spanflame_table_rows{table=\"spans\",tier=\"hours\"} 1030",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }
}
