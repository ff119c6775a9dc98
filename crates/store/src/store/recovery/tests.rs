//! Segments written by hand, as a failed append and its repetition leave them.

use std::ops::ControlFlow;

use spanflame_model::{Batch, Tenant, TimeRange, Timestamp};

use crate::committer;
use crate::fixture::{Seeded, tenant};
use crate::log::Change;
use crate::paths::{Location, node_id};
use crate::rows;
use crate::schema::Table;
use crate::tables::Tables;
use crate::wal::{Record, SegmentWriter};
use crate::{SampleScan, SpanFields, SpanScan, Store, StoreOptions, StoredSample, StoredSpan};

/// Spans and samples, each as text and with the number of its segment.
type Found = (Vec<(String, usize)>, Vec<(String, usize)>);

/// One record for each of `batches`, in a segment of its own; the tables `flushed` have the first of them,
/// from a head without its rows. Returns what scans find once the store is open.
async fn check(batches: &[Batch], flushed: &[Table]) -> Found {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (wal, tenant) = (dir.path().join("wal"), tenant("a"));
    std::fs::create_dir_all(&wal).expect("created");
    let begin = committer::now();
    for (index, batch) in batches.iter().enumerate() {
        let mut writer = SegmentWriter::create(&wal, index as u64 + 1, &committer::tables()).expect("created");
        let record = record(&tenant, batch, begin.saturating_add(index as u64));
        writer.write(&SegmentWriter::encode(&record).expect("encoded")).expect("written");
    }
    let data = dir.path().display().to_string();
    let tables = Tables::open(Location::open(&data).expect("opened")).await.expect("opened");
    for table in flushed {
        let change = Change {
            progress: Some((node_id(&wal).expect("made"), 1)),
            ..Change::default()
        };
        tables.commit(*table, &change).await.expect("committed");
    }
    drop(tables);
    let options = StoreOptions {
        data,
        ..StoreOptions::default()
    };
    let store = Store::open(options.clone()).await.expect("opened");
    let replayed = found(&store, &tenant, begin).await;
    for batch in batches {
        let again = store.append(&tenant, batch.clone()).await.expect("appended");
        assert_eq!((again.spans, again.profiles), (0, 0), "recognised");
    }
    store.close().await.expect("closed");
    let store = Store::open(options).await.expect("opened again");
    assert_eq!(found(&store, &tenant, begin).await, replayed, "flushed and opened again");
    store.close().await.expect("closed");
    replayed
}

fn record(tenant: &Tenant, batch: &Batch, received: Timestamp) -> Record {
    let hashes: Vec<_> = batch.profiles.iter().map(|profile| profile.fingerprint(tenant)).collect();
    let spans = batch.spans.iter().map(|span| span.fingerprint(tenant));
    let rows = rows::encode(batch, &hashes, received).expect("encoded");
    Record {
        received,
        tenant: tenant.clone(),
        fingerprints: spans.chain(hashes.iter().copied()).collect(),
        batches: rows.into_iter().map(|(table, rows)| (table as usize, rows)).collect(),
    }
}

async fn found(store: &Store, tenant: &Tenant, begin: Timestamp) -> Found {
    let segment = |received: Timestamp| received.nanos_since(begin) as usize + 1;
    let (mut spans, mut samples) = (Vec::new(), Vec::new());
    let scan = SpanScan {
        tenants: vec![tenant.clone()],
        range: TimeRange::ALL,
        conditions: Vec::new(),
        fields: SpanFields::ALL,
        received_before: None,
    };
    let visit = |found: Vec<StoredSpan>| {
        spans.extend(found.iter().map(|stored| (format!("{:?}", stored.span), segment(stored.received))));
        ControlFlow::Continue(())
    };
    store.snapshot().scan_spans(&scan, visit).await.expect("scanned");
    let scan = SampleScan {
        tenants: vec![tenant.clone()],
        range: TimeRange::ALL,
        services: None,
        unlinked_only: false,
        received_before: None,
    };
    let visit = |found: Vec<StoredSample>| {
        let text = |stored: &StoredSample| format!("{:?} {:?}", stored.profile, stored.sample);
        samples.extend(found.iter().map(|stored| (text(stored), segment(stored.received))));
        ControlFlow::Continue(())
    };
    store.snapshot().scan_samples(&scan, visit).await.expect("scanned");
    spans.sort();
    samples.sort();
    (spans, samples)
}

/// What [`check`] is to return if the `n`th segment keeps what the `n`th of `kept` holds.
fn expected(kept: &[(usize, &Batch)]) -> Found {
    let (mut spans, mut samples) = (Vec::new(), Vec::new());
    for (segment, batch) in kept {
        spans.extend(batch.spans.iter().map(|span| (format!("{span:?}"), *segment)));
        for profile in &batch.profiles {
            let hash = profile.fingerprint(&tenant("a"));
            let texts = profile.samples.iter().map(|sample| format!("{hash:?} {sample:?}"));
            samples.extend(texts.map(|text| (text, *segment)));
        }
    }
    spans.sort();
    samples.sort();
    (spans, samples)
}

/// Two batches and one that has the first half of the first and all of the second.
fn batches() -> (Batch, Batch, Batch) {
    let mut seeded = Seeded::new(7);
    let (one, two) = (seeded.batch(), seeded.batch());
    let mut mixed = two.clone();
    mixed.spans.extend_from_slice(&one.spans[..one.spans.len() / 2]);
    mixed.profiles.extend_from_slice(&one.profiles[..1]);
    mixed.stacks.merge(one.stacks.clone());
    (one, two, mixed)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_and_was_sent_again_is_kept_once() {
    let (one, two, _) = batches();
    let found = check(&[one.clone(), two.clone(), one.clone()], &[]).await;
    assert_eq!(found, expected(&[(2, &two), (3, &one)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_and_was_sent_again_in_part_keeps_the_rest() {
    let (one, _, mixed) = batches();
    let mut rest = one.clone();
    rest.spans.drain(..one.spans.len() / 2);
    rest.profiles.drain(..1);
    let found = check(&[one, mixed.clone()], &[]).await;
    assert_eq!(found, expected(&[(1, &rest), (2, &mixed)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_again_is_kept_where_a_flush_went_without_it() {
    let (one, _, mixed) = batches();
    let mut rest = one.clone();
    rest.spans.clear();
    rest.profiles.drain(..1);
    let found = check(&[one, mixed.clone()], &[Table::Spans]).await;
    assert_eq!(found, expected(&[(1, &rest), (2, &mixed)]));
}
