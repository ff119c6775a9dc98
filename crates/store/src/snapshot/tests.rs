//! Look-ups and scans over many files and a head find what a plain search over the batches finds.

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use spanflame_model::{Batch, Sample, Span, Value};

use super::*;
use crate::day::Day;
use crate::file::write;
use crate::fixture::{EPOCH, SPREAD_NS, Seeded, at, hashes, tenant, trace};
use crate::rows::encode;
use crate::version::{FileEntry, Tier};

/// Batches of two tenants: most of them in files, the last in a head.
struct World {
    store: Arc<InMemory>,
    files: Vec<Arc<FileEntry>>,
    snapshot: Snapshot,
    batches: Vec<(Tenant, Timestamp, Batch)>,
}

const BATCHES: u64 = 20;

async fn world(seed: u64, count: u64) -> World {
    let store = Arc::new(InMemory::new());
    let (mut files, head, mut batches) = (Vec::new(), Arc::new(Head::new()), Vec::new());
    let mut seeded = Seeded::new(seed);
    for n in 0..count {
        let (tenant, received, batch) = (tenant(if n % 3 == 0 { "b" } else { "a" }), at(EPOCH + n), seeded.batch());
        let rows = encode(&batch, &hashes(&tenant, &batch), received).expect("encoded");
        if n >= count * 3 / 4 {
            head.push(&tenant, rows);
        } else {
            for (table, rows) in rows {
                let path = Path::from(format!("{}/{n}.parquet", table.name()));
                let (bytes, stats) = write(table, &[rows], Tier::Flush).expect("written");
                store.put(&path, bytes.into()).await.expect("stored");
                let (tenant, day, tier) = (tenant.clone(), Day(0), Tier::Flush);
                files.push(Arc::new(FileEntry {
                    path,
                    table,
                    tenant,
                    day,
                    tier,
                    stats,
                }));
            }
        }
        batches.push((tenant, received, batch));
    }
    let version = Version::new(files.iter().cloned(), vec![head], None);
    let reader = Arc::new(Reader::new(Arc::clone(&store) as Arc<dyn ObjectStore>));
    let snapshot = Snapshot::new(Arc::new(version), reader);
    World {
        store,
        files,
        snapshot,
        batches,
    }
}

impl World {
    fn spans(&self, tenants: &[Tenant], is_wanted: impl Fn(&Span, Timestamp) -> bool) -> Vec<Fingerprint> {
        let of_tenants = self.batches.iter().filter(|(tenant, _, _)| tenants.contains(tenant));
        let spans = of_tenants.flat_map(|(tenant, received, batch)| batch.spans.iter().map(move |span| (tenant, *received, span)));
        let wanted = spans.filter(|(_, received, span)| is_wanted(span, *received));
        sorted(wanted.map(|(tenant, _, span)| span.fingerprint(tenant)))
    }

    fn samples(&self, tenants: &[Tenant], is_wanted: impl Fn(&ProfileInfo, &Sample, Timestamp) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        for (tenant, received, batch) in self.batches.iter().filter(|(tenant, _, _)| tenants.contains(tenant)) {
            for profile in &batch.profiles {
                let hash = profile.fingerprint(tenant);
                let wanted = profile.samples.iter().filter(|sample| is_wanted(&profile.info, sample, *received));
                found.extend(wanted.map(|sample| format!("{hash:?} {sample:?}")));
            }
        }
        found.sort();
        found
    }

    async fn scan(&self, scan: &SpanScan) -> Vec<Fingerprint> {
        let mut found = Vec::new();
        let visit = |spans: Vec<StoredSpan>| {
            found.extend(spans.iter().map(|stored| stored.span.fingerprint(&stored.tenant)));
            ControlFlow::Continue(())
        };
        self.snapshot.scan_spans(scan, visit).await.expect("scanned");
        sorted(found)
    }
}

fn sorted(found: impl IntoIterator<Item = Fingerprint>) -> Vec<Fingerprint> {
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort();
    found
}

fn shown(found: Vec<StoredSample>) -> Vec<String> {
    let mut shown: Vec<_> = found
        .iter()
        .map(|stored| format!("{:?} {:?}", stored.profile, stored.sample))
        .collect();
    shown.sort();
    shown
}

fn tenant_choices() -> [Vec<Tenant>; 3] {
    [
        vec![tenant("a")],
        vec![tenant("b")],
        vec![tenant("a"), tenant("b"), tenant("nobody")],
    ]
}

fn sample_overlaps(info: &ProfileInfo, sample: &Sample, range: TimeRange) -> bool {
    match sample.times.as_slice() {
        [] => info.range().overlap(range).is_some(),
        times => times.iter().any(|time| range.contains(*time)),
    }
}

#[tokio::test]
async fn spans_of_a_trace_are_found_in_files_and_head() {
    let world = world(1, BATCHES).await;
    for tenants in tenant_choices() {
        for trace in (0..31).map(trace) {
            let found = world.snapshot.trace_spans(&tenants, trace).await.expect("found");
            assert!(found.is_sorted_by_key(|stored| (stored.span.start, stored.span.span_id)));
            let found = sorted(found.iter().map(|stored| stored.span.fingerprint(&stored.tenant)));
            assert_eq!(found, world.spans(&tenants, |span, _| span.trace_id == trace));
        }
    }
}

#[tokio::test]
async fn samples_of_a_trace_are_found_with_candidates() {
    let world = world(2, BATCHES).await;
    for tenants in tenant_choices() {
        for trace in (0..31).map(trace) {
            let found = world.snapshot.trace_samples(&tenants, trace).await.expect("found");
            let expected = world.samples(&tenants, |_, sample, _| match &sample.link {
                Link::One { trace_id, .. } => *trace_id == Some(trace),
                Link::Candidates { trace_ids, .. } => trace_ids.contains(&trace),
                Link::None => false,
            });
            assert_eq!(shown(found), expected);
        }
    }
}

#[tokio::test]
async fn samples_without_trace_are_found_by_span_near_in_time() {
    let world = world(3, BATCHES).await;
    let mut seeded = Seeded::new(9);
    for tenants in tenant_choices() {
        for _ in 0..30 {
            let spans: Vec<SpanId> = (0..3).map(|_| seeded.span_id()).collect();
            let near = TimeRange::lasting(seeded.time(), SPREAD_NS / 4);
            let found = world.snapshot.samples_by_span(&tenants, &spans, near).await.expect("found");
            let expected = world.samples(&tenants, |info, sample, _| {
                let named = match &sample.link {
                    Link::One { trace_id, span_id, .. } => trace_id.is_none() && span_id.is_some_and(|id| spans.contains(&id)),
                    Link::Candidates { span_ids, .. } => span_ids.iter().any(|id| spans.contains(id)),
                    Link::None => false,
                };
                named && sample_overlaps(info, sample, near)
            });
            assert_eq!(shown(found), expected);
        }
    }
}

/// What a condition on an attribute lets through: equal values, numbers of either kind, and any list.
fn may_equal(found: Option<&Value>, wanted: &Value) -> bool {
    match (found, wanted) {
        (Some(Value::Array(_)), _) => true,
        (Some(Value::Int(int)), Value::Double(double)) | (Some(Value::Double(double)), Value::Int(int)) => *int as f64 == *double,
        (found, wanted) => found == Some(wanted),
    }
}

#[tokio::test]
async fn scans_of_spans_equal_a_plain_search() {
    let world = world(4, BATCHES).await;
    let conditions: [Vec<SpanCondition>; 10] = [
        vec![],
        vec![SpanCondition::Service("svc-1".to_owned())],
        vec![SpanCondition::Name("operation-2".to_owned()), SpanCondition::Kind(SpanKind::Server)],
        vec![SpanCondition::Status(StatusCode::Error), SpanCondition::DurationMin(1_000_000)],
        vec![SpanCondition::DurationMax(10_000_000_000)],
        vec![SpanCondition::SpanAttribute("key-3".to_owned(), Value::from("cart"))],
        vec![SpanCondition::ResourceAttribute("service.name".to_owned(), Value::from("svc-2"))],
        vec![SpanCondition::AnyAttribute("key-1".to_owned(), Value::Double(3.0))],
        vec![SpanCondition::SpanAttribute("key-2".to_owned(), Value::Int(3))],
        vec![SpanCondition::Service("nobody".to_owned())],
    ];
    let meets = |span: &Span, condition: &SpanCondition| match condition {
        SpanCondition::Service(service) => span.resource.service() == service,
        SpanCondition::Name(name) => span.name == *name,
        SpanCondition::Kind(kind) => span.kind == *kind,
        SpanCondition::Status(status) => span.status == *status,
        SpanCondition::DurationMin(min) => span.duration_ns >= *min,
        SpanCondition::DurationMax(max) => span.duration_ns <= *max,
        SpanCondition::SpanAttribute(key, value) => may_equal(span.attributes.get(key), value),
        SpanCondition::ResourceAttribute(key, value) => may_equal(span.resource.attributes().get(key), value),
        SpanCondition::AnyAttribute(key, value) => {
            may_equal(span.attributes.get(key), value) || may_equal(span.resource.attributes().get(key), value)
        }
    };
    let mut nonempty = 0;
    for tenants in tenant_choices() {
        for conditions in &conditions {
            for (range, received_before) in [
                (TimeRange::ALL, None),
                (TimeRange::lasting(at(EPOCH + SPREAD_NS / 3), SPREAD_NS / 3), None),
                (TimeRange::ALL, Some(at(EPOCH + 9))),
            ] {
                let scan = SpanScan {
                    tenants: tenants.clone(),
                    range,
                    conditions: conditions.clone(),
                    fields: SpanFields::ALL,
                    received_before,
                };
                let expected = world.spans(&tenants, |span, received| {
                    span.range().overlap(range).is_some()
                        && received_before.is_none_or(|before| received < before)
                        && conditions.iter().all(|condition| meets(span, condition))
                });
                nonempty += usize::from(!expected.is_empty());
                assert_eq!(world.scan(&scan).await, expected, "{scan:?}");
            }
        }
    }
    assert!(nonempty > 50, "only {nonempty} scans found something");
}

#[tokio::test]
async fn a_scan_fills_in_only_what_was_asked_for() {
    let world = world(4, BATCHES).await;
    let scan = SpanScan {
        tenants: vec![tenant("a")],
        range: TimeRange::ALL,
        conditions: Vec::new(),
        fields: SpanFields::default(),
        received_before: None,
    };
    let (mut services, mut spans) = (HashSet::new(), 0);
    let visit = |found: Vec<StoredSpan>| {
        for stored in found {
            assert!(stored.span.attributes.is_empty() && stored.span.events.is_empty() && stored.span.links.is_empty());
            services.insert(stored.span.resource.service().to_owned());
            spans += 1;
        }
        ControlFlow::Continue(())
    };
    let stats = world.snapshot.scan_spans(&scan, visit).await.expect("scanned");
    assert_eq!((spans, services.len()), (world.spans(&scan.tenants, |_, _| true).len(), 3));
    assert_eq!(stats.rows, spans as u64);
}

#[tokio::test]
async fn a_scan_stops_when_its_caller_has_seen_enough() {
    let world = world(4, BATCHES).await;
    let scan = SpanScan {
        tenants: vec![tenant("a")],
        range: TimeRange::ALL,
        conditions: Vec::new(),
        fields: SpanFields::default(),
        received_before: Some(at(EPOCH + 2)),
    };
    let mut calls = 0;
    let visit = |_| {
        calls += 1;
        ControlFlow::Break(())
    };
    world.snapshot.scan_spans(&scan, visit).await.expect("scanned");
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn scans_of_samples_equal_a_plain_search() {
    let world = world(5, BATCHES).await;
    let third = TimeRange::lasting(at(EPOCH + SPREAD_NS / 3), SPREAD_NS / 3);
    for tenants in tenant_choices() {
        for range in [TimeRange::ALL, third] {
            for services in [None, Some(vec!["svc-1".to_owned(), "svc-2".to_owned()])] {
                for unlinked_only in [false, true] {
                    let scan = SampleScan {
                        tenants: tenants.clone(),
                        range,
                        services: services.clone(),
                        unlinked_only,
                        received_before: None,
                    };
                    let mut found = Vec::new();
                    let visit = |samples| {
                        found.extend(samples);
                        ControlFlow::Continue(())
                    };
                    world.snapshot.scan_samples(&scan, visit).await.expect("scanned");
                    let expected = world.samples(&tenants, |info, sample, _| {
                        let unlinked = sample.link.trace_id().is_none() && sample.link.span_id().is_none();
                        let of_service = |names: &Vec<String>| names.iter().any(|name| name == info.resource.service());
                        sample_overlaps(info, sample, range) && services.as_ref().is_none_or(of_service) && (unlinked || !unlinked_only)
                    });
                    assert_eq!(shown(found), expected, "{scan:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn stacks_come_with_their_frames_and_only_to_their_tenant() {
    let world = world(6, BATCHES).await;
    let (_, _, batch) = world
        .batches
        .iter()
        .find(|(owner, _, _)| *owner == tenant("a"))
        .expect("a batch of a");
    let ids: Vec<StackId> = batch.stacks.stacks().map(|(id, _)| id).collect();
    for _ in 0..2 {
        let found = world.snapshot.stacks(&[tenant("a")], &ids).await.expect("found");
        for (id, stack) in batch.stacks.stacks() {
            assert_eq!(found.stack(id), Some(stack));
            assert!(stack.iter().all(|frame| found.frame(*frame) == batch.stacks.frame(*frame)));
        }
    }
    assert!(world.snapshot.stacks(&[tenant("nobody")], &ids).await.expect("none").is_empty());
}

#[tokio::test]
async fn a_view_does_not_change_when_rows_arrive() {
    let head = Arc::new(Head::new());
    let reader = Arc::new(Reader::new(Arc::new(InMemory::new())));
    let version = Arc::new(Version::new([], vec![Arc::clone(&head)], None));
    let before = Snapshot::new(Arc::clone(&version), Arc::clone(&reader));
    let (tenant, batch) = (tenant("a"), Seeded::new(1).batch());
    head.push(&tenant, encode(&batch, &hashes(&tenant, &batch), at(5)).expect("encoded"));
    let after = Snapshot::new(version, reader);
    let trace = batch.spans[0].trace_id;
    let tenants = [tenant];
    assert!(before.trace_spans(&tenants, trace).await.expect("found").is_empty());
    assert!(!after.trace_spans(&tenants, trace).await.expect("found").is_empty());
    assert_eq!((before.last_received(), after.last_received()), (None, Some(at(5))));
}

#[tokio::test]
async fn what_was_sent_again_is_returned_once() {
    let head = Arc::new(Head::new());
    let (tenant, batch) = (tenant("a"), Seeded::new(1).batch());
    for received in [5, 9] {
        head.push(&tenant, encode(&batch, &hashes(&tenant, &batch), at(received)).expect("encoded"));
    }
    let version = Arc::new(Version::new([], vec![head], None));
    let snapshot = Snapshot::new(version, Arc::new(Reader::new(Arc::new(InMemory::new()))));
    let tenants = [tenant];
    let traces: HashSet<TraceId> = batch.spans.iter().map(|span| span.trace_id).collect();
    let mut spans = 0;
    for trace in traces {
        let found = snapshot.trace_spans(&tenants, trace).await.expect("found");
        assert!(found.iter().all(|stored| stored.received == at(5)));
        spans += found.len();
        let samples = snapshot.trace_samples(&tenants, trace).await.expect("found");
        assert!(samples.iter().all(|stored| stored.received == at(5)));
    }
    assert_eq!(spans, batch.spans.len());
}

#[tokio::test]
async fn missing_short_and_foreign_files_are_named_as_damaged() {
    for (damage, expected) in [("missing", "is missing"), ("short", "eof"), ("foreign", "corrupt footer")] {
        let world = world(7, 4).await;
        let file = world
            .files
            .iter()
            .find(|file| file.table == Table::Spans && file.tenant == tenant("a"))
            .expect("a file");
        let size = file.stats.size_bytes as usize;
        match damage {
            "missing" => world.store.delete(&file.path).await.expect("deleted"),
            "short" => {
                let bytes = world.store.get(&file.path).await.expect("stored").bytes().await.expect("read");
                world
                    .store
                    .put(&file.path, bytes.slice(..size / 2).into())
                    .await
                    .map(drop)
                    .expect("stored");
            }
            _ => world.store.put(&file.path, vec![7; size].into()).await.map(drop).expect("stored"),
        }
        let scan = SpanScan {
            tenants: vec![tenant("a")],
            range: TimeRange::ALL,
            conditions: Vec::new(),
            fields: SpanFields::ALL,
            received_before: None,
        };
        let scanned = world.snapshot.scan_spans(&scan, |_| ControlFlow::Continue(())).await;
        scanned.expect("the others are read");
        let damaged = world.snapshot.damaged_files();
        let [(name, message)] = damaged.as_slice() else {
            panic!("{damaged:?}")
        };
        assert_eq!(name, file.path.as_ref());
        assert!(message.to_lowercase().contains(expected), "{message}");
    }
}

#[tokio::test]
async fn the_services_of_spans_are_listed_without_reading() {
    let world = world(5, BATCHES).await;
    let tenants = [tenant("a")];
    let sent = world.batches.iter().filter(|(tenant, _, _)| *tenant == tenants[0]);
    let expected: BTreeSet<String> = sent
        .flat_map(|(_, _, batch)| &batch.spans)
        .map(|span| span.resource.service().to_owned())
        .collect();
    assert_eq!(world.snapshot.span_services(&tenants).expect("readable"), Some(expected));
}

#[tokio::test]
async fn what_arrives_is_followed_without_gap_or_repetition() {
    let world = world(6, BATCHES).await;
    let tenants = vec![tenant("a")];
    let mut followed = 0;
    // Three steps, the second over files and head.
    for (after, before) in [(0, EPOCH + 7), (EPOCH + 6, EPOCH + 17), (EPOCH + 16, EPOCH + 100)] {
        let scan = SpanScan {
            tenants: tenants.clone(),
            range: TimeRange::ALL,
            conditions: Vec::new(),
            fields: SpanFields::default(),
            received_before: Some(at(before)),
        };
        let count = |batch: Vec<StoredSpan>| {
            followed += batch.len();
            ControlFlow::Continue(())
        };
        world.snapshot.scan_spans_after(&scan, at(after), count).await.expect("readable");
    }
    let sent = world.batches.iter().filter(|(tenant, _, _)| *tenant == tenants[0]);
    assert_eq!(followed, sent.map(|(_, _, batch)| batch.spans.len()).sum::<usize>());
}

#[tokio::test]
async fn the_traces_of_spans_come_from_samples_and_else_from_spans() {
    let world = world(7, BATCHES).await;
    let tenants = [tenant("a")];
    let of_tenant = || world.batches.iter().filter(|(owner, _, _)| *owner == tenants[0]);
    let mut of_samples: Vec<(SpanId, TraceId)> = Vec::new();
    let mut of_spans: Vec<(SpanId, TraceId)> = Vec::new();
    for (_, _, batch) in of_tenant() {
        let links = batch
            .profiles
            .iter()
            .flat_map(|profile| &profile.samples)
            .map(|sample| &sample.link);
        of_samples.extend(links.filter_map(|link| link.span_id().zip(link.trace_id())));
        of_spans.extend(batch.spans.iter().map(|span| (span.span_id, span.trace_id)));
    }
    let mut ids: Vec<SpanId> = of_samples.iter().chain(&of_spans).map(|(span, _)| *span).collect();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.iter().any(|id| of_samples.iter().any(|(span, _)| span == id)));
    assert!(ids.iter().any(|id| !of_samples.iter().any(|(span, _)| span == id)));
    for some in ids.chunks(3) {
        let named = |pairs: &[(SpanId, TraceId)], id: &SpanId| -> Vec<(SpanId, TraceId)> {
            pairs.iter().filter(|(span, _)| span == id).copied().collect()
        };
        let of = |id: &SpanId| match named(&of_samples, id) {
            none if none.is_empty() => named(&of_spans, id),
            pairs => pairs,
        };
        let mut expected: Vec<(SpanId, TraceId)> = some.iter().flat_map(of).collect();
        expected.sort_unstable();
        expected.dedup();
        let found = world.snapshot.traces_of_spans(&tenants, some, TimeRange::ALL).await.expect("found");
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn every_sender_is_visited_with_each_of_its_types() {
    let world = world(8, BATCHES).await;
    let tenants = vec![tenant("a")];
    let of = |info: &ProfileInfo| format!("{:?} {:?} {}", info.resource.attributes(), info.types, info.name);
    let sent = world.batches.iter().filter(|(tenant, _, _)| *tenant == tenants[0]);
    let profiles = sent
        .flat_map(|(_, _, batch)| &batch.profiles)
        .filter(|profile| !profile.samples.is_empty());
    let expected: BTreeSet<String> = profiles.map(|profile| of(&profile.info)).collect();
    let scan = SenderScan {
        tenants,
        range: TimeRange::ALL,
        services: None,
    };
    let mut found = BTreeSet::new();
    let visit = |infos: Vec<Arc<ProfileInfo>>| {
        found.extend(infos.iter().map(|info| of(info)));
        ControlFlow::Continue(())
    };
    world.snapshot.scan_senders(&scan, visit).await.expect("readable");
    assert!(expected.len() > 1);
    assert_eq!(found, expected);
}
