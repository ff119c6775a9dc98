//! What is encoded comes back.

use spanflame_model::{StackSet, Value};

use super::*;
use crate::fixture::{Seeded, at, hashes, tenant};
use crate::schema::span;
use crate::{SpanFields, StoredSample, StoredSpan};

fn rows_of(tables: &[(Table, RecordBatch)], table: Table) -> Option<&RecordBatch> {
    tables.iter().find(|(of, _)| *of == table).map(|(_, rows)| rows)
}

/// Decodes all rows and compares with what was encoded.
fn check(batch: &Batch) {
    let (tenant, received) = (tenant("t"), at(77));
    let hashes = hashes(&tenant, batch);
    let tables = encode(batch, &hashes, received).expect("encoded");
    let mut spans: Vec<StoredSpan> = Vec::new();
    if let Some(rows) = rows_of(&tables, Table::Spans) {
        let mut decoder = SpanDecoder::new(tenant.clone(), SpanFields::ALL);
        decoder.decode(rows, 0..rows.num_rows(), &mut spans).expect("decoded");
    }
    assert!(spans.iter().all(|stored| stored.received == received && stored.tenant == tenant));
    assert_eq!(spans.into_iter().map(|stored| stored.span).collect::<Vec<_>>(), batch.spans);

    let mut samples: Vec<StoredSample> = Vec::new();
    if let Some(rows) = rows_of(&tables, Table::Samples) {
        let mut decoder = SampleDecoder::new(tenant.clone());
        decoder.decode(rows, 0..rows.num_rows(), &mut samples).expect("decoded");
    }
    let mut samples = samples.into_iter();
    for (profile, hash) in batch.profiles.iter().zip(&hashes) {
        for expected in &profile.samples {
            let stored = samples.next().expect("a sample for each");
            assert_eq!((stored.profile, stored.received), (*hash, received));
            assert_eq!((&stored.sample, &stored.info), (expected, &profile.info));
        }
    }
    assert!(samples.next().is_none());
    check_stacks(&tables, &batch.stacks);
}

fn check_stacks(tables: &[(Table, RecordBatch)], expected: &StackSet) {
    let mut set = StackSet::new();
    if let Some(rows) = rows_of(tables, Table::Stacks) {
        decode_stacks(rows, 0..rows.num_rows(), |id, stack| set.insert_stack(id, stack)).expect("decoded");
    }
    if let Some(rows) = rows_of(tables, Table::Frames) {
        decode_frames(rows, 0..rows.num_rows(), |id, frame| set.insert_frame(id, frame)).expect("decoded");
    }
    assert_eq!(
        (set.stacks().len(), set.frames().len()),
        (expected.stacks().len(), expected.frames().len())
    );
    assert!(expected.stacks().all(|(id, stack)| set.stack(id) == Some(stack)));
    assert!(expected.frames().all(|(id, frame)| set.frame(id) == Some(frame)));
}

#[test]
fn batches_come_back_as_they_were() {
    for seed in 0..60 {
        check(&Seeded::new(seed).batch());
    }
}

#[test]
fn samples_of_one_profile_share_its_info() {
    let batch = Seeded::new(5).batch();
    let tenant = tenant("t");
    let tables = encode(&batch, &hashes(&tenant, &batch), at(1)).expect("encoded");
    let rows = rows_of(&tables, Table::Samples).expect("samples");
    let mut samples = Vec::new();
    SampleDecoder::new(tenant)
        .decode(rows, 0..rows.num_rows(), &mut samples)
        .expect("decoded");
    let infos: std::collections::HashSet<_> = samples.iter().map(|stored| std::sync::Arc::as_ptr(&stored.info)).collect();
    let profiles = batch.profiles.iter().filter(|profile| !profile.samples.is_empty()).count();
    assert_eq!(infos.len(), profiles);
}

#[test]
fn attributes_read_as_plain_text_from_outside() {
    let mut batch = Seeded::new(1).batch();
    batch.spans.truncate(1);
    batch.spans[0].attributes = [("code", Value::Int(200)), ("ok", Value::Bool(true))].into_iter().collect();
    let tables = encode(&batch, &hashes(&tenant("t"), &batch), at(1)).expect("encoded");
    let rows = rows_of(&tables, Table::Spans).expect("spans");
    let shown = |name| arrow::util::display::array_value_to_string(rows.column_by_name(name).expect("a column"), 0).expect("shown");
    assert_eq!(
        (shown(span::ATTRIBUTES).as_str(), shown(span::ATTRIBUTE_TYPES).as_str()),
        ("{code: 200, ok: true}", "ib")
    );
}

#[test]
fn values_that_nest_too_deeply_are_refused() {
    let nested = (0..60).fold(Value::Int(1), |inner, _| Value::Array(vec![inner]));
    let mut batch = Seeded::new(1).batch();
    batch.spans[0].attributes.insert("deep", nested);
    let error = encode(&batch, &hashes(&tenant("t"), &batch), at(1)).expect_err("too deep");
    assert_eq!(error.kind(), crate::ErrorKind::Invalid);
}

#[test]
fn rows_of_another_table_are_called_damaged() {
    let batch = Seeded::new(1).batch();
    let tables = encode(&batch, &hashes(&tenant("t"), &batch), at(1)).expect("encoded");
    let stacks = rows_of(&tables, Table::Stacks).expect("stacks");
    let error = SpanDecoder::new(tenant("t"), SpanFields::ALL).decode(stacks, [0], &mut Vec::new());
    let error = error.expect_err("no spans").in_file("x.parquet");
    assert_eq!(error.to_string(), "x.parquet is damaged at byte 0: column trace_id is missing");
}
