//! Batches whose content follows from a number, and the check that a store holds them exactly once.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use spanflame_model::{
    Attributes, Batch, Claim, Frame, Link, Profile, ProfileInfo, Resource, Sample, Scope, Span, SpanId, SpanKind, StackSet, StatusCode,
    Tenant, TimeRange, Timestamp, TraceId, ValueType,
};
use spanflame_store::{SampleScan, SpanFields, SpanScan, Store, StoredSample, StoredSpan};

const START: u64 = 1_790_000_000_000_000_000;

/// The trace of the `index`th span of a batch.
pub(crate) fn trace(seed: u64, index: u64) -> TraceId {
    let mut bytes = [0; 16];
    // As random ids are: the low bits of the number vary the high bits of the id.
    bytes[..8].copy_from_slice(&(seed * 1_000_003 + index).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[8..].copy_from_slice(&(seed << 32 | index | 1 << 63).to_be_bytes());
    TraceId::from_bytes(bytes).expect("not zero")
}

/// `count` spans of as many traces, and one profile with a sample for each.
pub(crate) fn batch(seed: u64, count: u64) -> Batch {
    let resource = Arc::new(Resource::new(Attributes::from_iter([("service.name", "shop")])));
    let scope = Arc::new(Scope::default());
    let mut stacks = StackSet::new();
    let frame = |stacks: &mut StackSet, function: &str| {
        stacks.add_frame(Frame {
            function: function.to_owned(),
            ..Frame::default()
        })
    };
    let frames = [frame(&mut stacks, "leaf"), frame(&mut stacks, "main")];
    let stack = stacks.add_stack(&frames);
    let at = |index: u64| Timestamp::from_unix_nanos(START + seed * 1_000_000_000 + index * 1000).expect("in range");
    let span = |index: u64| Span {
        trace_id: trace(seed, index),
        span_id: SpanId::from_u64(index + 1).expect("not zero"),
        parent_span_id: None,
        trace_state: String::new(),
        flags: 0,
        name: format!("GET /{}", index % 7),
        kind: SpanKind::Server,
        start: at(index),
        duration_ns: 1000 + index,
        status: StatusCode::Ok,
        status_message: String::new(),
        attributes: Attributes::from_iter([("http.route", format!("/{}", index % 7))]),
        events: Vec::new(),
        links: Vec::new(),
        dropped: [0; 3],
        resource: Arc::clone(&resource),
        scope: Arc::clone(&scope),
    };
    let sample = |index: u64| Sample {
        link: Link::One {
            trace_id: Some(trace(seed, index)),
            span_id: SpanId::from_u64(index + 1),
            claim: Claim::Active,
        },
        values: vec![(index + 1) as i64],
        times: vec![at(index)],
        ..Sample::new(stack)
    };
    let value_type = |kind: &str, unit: &str| ValueType {
        kind: kind.into(),
        unit: unit.into(),
    };
    let info = ProfileInfo {
        profile_id: None,
        name: String::new(),
        types: vec![value_type("cpu", "nanoseconds")],
        period_type: value_type("cpu", "nanoseconds"),
        period: 10_000_000,
        start: at(0),
        duration_ns: 1_000_000,
        resource: Arc::clone(&resource),
        scope: Arc::clone(&scope),
        attributes: Attributes::new(),
    };
    Batch {
        spans: (0..count).map(span).collect(),
        profiles: vec![Profile {
            info: Arc::new(info),
            samples: (0..count).map(sample).collect(),
        }],
        stacks,
    }
}

/// Every span, sample and stack of the batches is there, each once, as it was sent.
pub(crate) async fn expect_exactly(store: &Store, tenant: &Tenant, seeds: Range<u64>, count: u64) {
    let snapshot = store.snapshot();
    let tenants = [tenant.clone()];
    for seed in seeds {
        let sent = batch(seed, count);
        let samples: BTreeMap<_, _> = sent.profiles[0].samples.iter().map(|s| (s.link.trace_id(), s)).collect();
        for span in &sent.spans {
            let spans = snapshot.trace_spans(&tenants, span.trace_id).await.expect("read");
            let found: Vec<_> = spans.iter().map(|stored| &stored.span).collect();
            assert_eq!(found, [span], "spans of batch {seed}");
            let found = snapshot.trace_samples(&tenants, span.trace_id).await.expect("read");
            let found: Vec<_> = found.iter().map(|stored| &stored.sample).collect();
            assert_eq!(found, [samples[&Some(span.trace_id)]], "samples of batch {seed}");
        }
        let ids: Vec<_> = sent.stacks.stacks().map(|(id, _)| id).collect();
        let stacks = snapshot.stacks(&tenants, &ids).await.expect("read");
        assert_eq!(stacks.stacks().len(), ids.len(), "stacks of batch {seed}");
        assert_eq!(stacks.frames().len(), sent.stacks.frames().len(), "frames of batch {seed}");
    }
}

/// How many spans and samples of each batch a full scan finds, duplicates counted.
pub(crate) async fn count_by_seed(store: &Store, tenant: &Tenant) -> BTreeMap<u64, (u64, u64)> {
    let seed = |trace: TraceId| u64::from_be_bytes(trace.as_bytes()[8..].try_into().expect("8 bytes")) << 1 >> 33;
    let snapshot = store.snapshot();
    let mut counts: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let scan = SpanScan {
        tenants: vec![tenant.clone()],
        range: TimeRange::ALL,
        conditions: Vec::new(),
        fields: SpanFields::default(),
        received_before: None,
    };
    let visit = |spans: Vec<StoredSpan>| {
        spans.iter().for_each(|s| counts.entry(seed(s.span.trace_id)).or_default().0 += 1);
        ControlFlow::Continue(())
    };
    snapshot.scan_spans(&scan, visit).await.expect("scanned");
    let scan = SampleScan {
        tenants: vec![tenant.clone()],
        range: TimeRange::ALL,
        services: None,
        unlinked_only: false,
        received_before: None,
    };
    let visit = |samples: Vec<StoredSample>| {
        let traces = samples.iter().filter_map(|s| s.sample.link.trace_id());
        traces.for_each(|trace| counts.entry(seed(trace)).or_default().1 += 1);
        ControlFlow::Continue(())
    };
    snapshot.scan_samples(&scan, visit).await.expect("scanned");
    counts
}
