//! What the store counts, read at every scrape.

use std::fmt;
use std::sync::{Arc, OnceLock};

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
        let stats = store.stats();
        for (name, help, value) in counters(&stats) {
            counter(&mut encoder, name, help, None, value)?;
        }
        for (name, help, value) in durations(&stats) {
            counter(&mut encoder, name, help, Some(&Unit::Seconds), value)?;
        }
        for (name, help, value) in gauges(&stats) {
            let metric = ConstGauge::new(value as i64);
            let descriptor = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(descriptor)?;
        }
        tables(&mut encoder, &stats.tables)
    }
}

/// A number of a table.
type Column = fn(&TableStats) -> u64;

/// Name, help and value.
type Row<T> = (&'static str, &'static str, T);

fn counters(stats: &StoreStats) -> [Row<u64>; 12] {
    [
        ("wal_syncs", "Syncs of the write-ahead log", stats.wal_syncs),
        (
            "wal_damaged_records",
            "Damaged records found at the start",
            stats.wal_damaged_records,
        ),
        ("appends", "Appends acknowledged", stats.appends),
        ("appends_busy", "Appends refused because memory was full", stats.appends_busy),
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
        ("expired_files", "Files dropped because their time was over", stats.expired_files),
        (
            "oversize_files",
            "Files dropped because the tables were too large",
            stats.oversize_files,
        ),
        ("deleted_files", "Files deleted from the storage", stats.deleted_files),
    ]
}

fn durations(stats: &StoreStats) -> [Row<f64>; 3] {
    [
        ("wal_sync", "Time spent in syncs of the log", stats.wal_sync_duration.as_secs_f64()),
        ("flush", "Time spent in flushes", stats.flush_duration.as_secs_f64()),
        ("compaction", "Time spent in merges", stats.compaction_duration.as_secs_f64()),
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
