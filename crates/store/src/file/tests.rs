//! Files hold every row once, in order, in columns that others can read.

use arrow::array::{Array, BinaryArray, Int64Array};
use futures::{StreamExt, stream};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::fixture::{Seeded, at, hashes, tenant};
use crate::rows::{encode, encode_rollup};
use crate::schema::{RECEIVED, sample, span};

/// Rows of one table of some batches, each received at another time.
fn rows(table: Table, seeds: impl IntoIterator<Item = (u64, u64)>) -> Vec<RecordBatch> {
    let encoded = seeds.into_iter().flat_map(|(seed, received)| {
        let batch = Seeded::new(seed).batch();
        encode(&batch, &hashes(&tenant("t"), &batch), at(received)).expect("encoded")
    });
    encoded.filter(|(of, _)| *of == table).map(|(_, rows)| rows).collect()
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn read(bytes: Bytes) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("a Parquet file");
    reader.build().expect("readable").map(|rows| rows.expect("rows")).collect()
}

/// Writes one file for each seed, merges them, and returns the rows.
async fn merged(table: Table, seeds: &[(u64, u64)]) -> (Vec<RecordBatch>, FileStats) {
    let inputs = seeds.iter().map(|seed| {
        let (bytes, _) = write(table, &rows(table, [*seed]), Tier::Flush).expect("written");
        stream::iter(read(bytes).into_iter().map(Ok)).boxed()
    });
    let mut files = Vec::new();
    let emit = async |bytes: Bytes, stats: FileStats| {
        files.push((bytes, stats));
        Ok(())
    };
    merge(table, inputs.collect(), Tier::Minutes, emit).await.expect("merged");
    let (bytes, stats) = files.pop().expect("a file");
    assert!(files.is_empty());
    (read(bytes), stats)
}

const TABLES: [Table; 4] = [Table::Spans, Table::Samples, Table::Stacks, Table::Frames];

#[test]
fn files_have_the_columns_of_their_table_and_no_arrow_schema() {
    for table in TABLES {
        let (bytes, stats) = write(table, &rows(table, [(1, 1), (2, 2)]), Tier::Flush).expect("written");
        assert_eq!(stats.size_bytes, bytes.len() as u64);
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("a Parquet file");
        assert_eq!(reader.schema().fields(), table.schema().fields());
        assert_eq!(reader.metadata().file_metadata().key_value_metadata(), None);
    }
}

#[test]
fn rows_lie_in_order_of_their_ids() {
    let (bytes, _) = write(Table::Samples, &rows(Table::Samples, (0..20).map(|n| (n, n))), Tier::Flush).expect("written");
    let ids = |name: &str, rows: &RecordBatch| -> Vec<Option<Vec<u8>>> {
        let array = rows
            .column_by_name(name)
            .expect("a column")
            .as_any()
            .downcast_ref::<BinaryArray>()
            .expect("binary")
            .clone();
        array.iter().map(|id| id.map(<[u8]>::to_vec)).collect()
    };
    let read = read(bytes);
    let pairs: Vec<_> = read
        .iter()
        .flat_map(|rows| ids(sample::TRACE_ID, rows).into_iter().zip(ids(sample::SPAN_ID, rows)))
        .collect();
    assert!(pairs.len() > 100 && pairs[0].0.is_none());
    assert!(pairs.is_sorted());
}

#[test]
fn merging_files_equals_writing_their_rows_at_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let seeds: Vec<(u64, u64)> = (0..12).map(|n| (n, n + 1)).collect();
    for table in TABLES {
        let (at_once, expected) = write(table, &rows(table, seeds.iter().copied()), Tier::Minutes).expect("written");
        let (merged, stats) = runtime.block_on(merged(table, &seeds));
        let join = |batches: &[RecordBatch]| arrow::compute::concat_batches(&table.schema(), batches).expect("joined");
        assert_eq!(join(&merged), join(&read(at_once)));
        assert_eq!(FileStats { size_bytes: 0, ..stats }, FileStats { size_bytes: 0, ..expected });
    }
}

#[test]
fn what_was_sent_twice_is_kept_once_with_its_first_arrival() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for table in [Table::Spans, Table::Samples] {
        let once = rows(table, [(3, 10)]);
        for (seeds, arrival) in [([(3, 10), (3, 20)], 10), ([(3, 20), (3, 10)], 10)] {
            let (bytes, _) = write(table, &rows(table, seeds), Tier::Flush).expect("written");
            let (merged, stats) = runtime.block_on(merged(table, &seeds));
            assert_eq!((count(&read(bytes)), count(&merged)), (count(&once), count(&once)));
            assert_eq!(stats.received_unix_nano, (arrival, arrival));
        }
    }
}

#[test]
fn equal_stacks_are_kept_once_with_their_last_arrival() {
    let (bytes, stats) = write(Table::Stacks, &rows(Table::Stacks, [(3, 10), (3, 20)]), Tier::Flush).expect("written");
    assert_eq!(count(&read(bytes)), count(&rows(Table::Stacks, [(3, 10)])));
    assert_eq!(stats.received_unix_nano, (20, 20));
}

#[test]
fn equal_samples_within_one_profile_are_all_kept() {
    let mut batch = Seeded::new(3).batch();
    let mut profile = batch.profiles.remove(0);
    profile.samples.truncate(1);
    profile.samples.push(profile.samples[0].clone());
    batch.profiles = vec![profile];
    let tables = encode(&batch, &hashes(&tenant("t"), &batch), at(1)).expect("encoded");
    let (_, samples) = tables.into_iter().find(|(table, _)| *table == Table::Samples).expect("samples");
    let (bytes, stats) = write(Table::Samples, &[samples], Tier::Flush).expect("written");
    assert_eq!((count(&read(bytes)), stats.rows), (2, 2));
}

#[test]
fn statistics_survive_their_tag_and_hold_every_row() {
    let batches = rows(Table::Spans, [(1, 5), (2, 9)]);
    let (_, stats) = write(Table::Spans, &batches, Tier::Flush).expect("written");
    assert_eq!(FileStats::from_tag(&stats.to_tag()).as_ref(), Some(&stats));
    assert_eq!(stats.received_unix_nano, (5, 9));
    let (first, last) = stats.time_unix_nano.expect("spans have times");
    for batch in &batches {
        let starts: &Int64Array = crate::rows::column(batch, span::START).expect("starts");
        assert!(starts.values().iter().all(|start| (first..=last).contains(start)));
    }
    let delta: serde_json::Value = serde_json::from_str(&stats.to_delta_stats_json()).expect("JSON");
    assert_eq!(
        (&delta["numRecords"], &delta["maxValues"][RECEIVED]),
        (&stats.rows.into(), &9.into())
    );
}

#[test]
fn rollup_rows_come_back() {
    let batch = Seeded::new(3).batch();
    let info = &batch.profiles[0].info;
    let row = |n: u64, span_name: Option<&str>| crate::RollupRow {
        info: std::sync::Arc::clone(info),
        profile_type: info.profile_type(0),
        minute: at(n * 60_000_000_000),
        span_name: span_name.map(str::to_owned),
        stack: spanflame_model::StackId(u64::MAX - n),
        sum: -3,
        count: n,
    };
    let rows = encode_rollup(&[row(2, None), row(1, Some("x"))], at(9)).expect("encoded");
    let (bytes, stats) = write(Table::Profiles, &[rows], Tier::Hours).expect("written");
    let rows = read(bytes);
    let mut decoded = Vec::new();
    crate::rows::RollupDecoder::default()
        .decode(&rows[0], 0..2, &mut decoded)
        .expect("decoded");
    let shown: Vec<_> = decoded
        .iter()
        .map(|r| (r.minute, r.span_name.as_deref(), r.stack.0, r.sum, r.count))
        .collect();
    let minute = |n: u64| at(n * 60_000_000_000);
    assert_eq!(
        shown,
        [(minute(1), Some("x"), u64::MAX - 1, -3, 1), (minute(2), None, u64::MAX - 2, -3, 2)]
    );
    assert_eq!(decoded[0].info.resource, info.resource);
    assert_eq!(decoded[0].profile_type.sample, info.types[0]);
    assert_eq!(stats.time_unix_nano, Some((60_000_000_000, 179_999_999_999)));
}

#[test]
fn only_the_ids_that_are_looked_up_have_bloom_filters() {
    let filtered = |bytes: Bytes| -> Vec<String> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("a Parquet file");
        let columns = reader.metadata().row_group(0).columns().iter();
        let with_filter = columns.filter(|column| column.bloom_filter_offset().is_some());
        with_filter.map(|column| column.column_path().string()).collect()
    };
    for (table, expected) in [
        (Table::Spans, vec!["trace_id", "span_id"]),
        (Table::Samples, vec!["trace_id", "span_id"]),
        (Table::Stacks, vec!["stack_id"]),
        (Table::Frames, vec!["frame_id"]),
    ] {
        let (bytes, _) = write(table, &rows(table, (0..9).map(|n| (n, n))), Tier::Flush).expect("written");
        assert_eq!(filtered(bytes), expected);
    }
}
