use spanflame_model::{Claim, Tenant, Timestamp};
use spanflame_store::StoredSpan;
use spanflame_testkit::{ProfileBuilder, SpanBuilder, Stacks, at, link, span_id, trace_id};

use super::*;
use crate::measure::TypeSelector;

/// Root 1 of `shop` with child 2 in its process and 3 in another, which has child 4.
fn trace(claim: Claim, links: &[(u64, &str, u64)]) -> TraceData {
    let stored = |span| StoredSpan {
        tenant: Tenant::anonymous(),
        received: Timestamp::ZERO,
        span,
    };
    let spans = vec![
        stored(SpanBuilder::new(1, 1, "shop").time(1000, 1000).build()),
        stored(SpanBuilder::new(1, 2, "shop").parent(1).time(1100, 100).build()),
        stored(SpanBuilder::new(1, 3, "cart").parent(1).time(1200, 500).build()),
        stored(SpanBuilder::new(1, 4, "cart").parent(3).time(1300, 100).build()),
    ];
    let mut stacks = Stacks::default();
    let mut samples = Vec::new();
    for (span, service, cost) in links {
        let stack = stacks.id(&format!("main;{service}"));
        let profile = ProfileBuilder::cpu(service, 10)
            .time(0, 10_000)
            .sample(stack, link(1, *span, claim), &[1, *cost as i64])
            .build();
        samples.extend(profile.samples.iter().map(|sample| StoredSample {
            tenant: Tenant::anonymous(),
            received: Timestamp::ZERO,
            profile: profile.fingerprint(&Tenant::anonymous()),
            info: profile.info.clone(),
            sample: sample.clone(),
        }));
    }
    TraceData {
        trace_id: trace_id(1),
        spans,
        samples,
    }
}

/// Scope and CPU of the spans with these numbers.
fn check(data: &TraceData, spans: &[u64], selector: &str, range: Option<(u64, u64)>, expected: (Option<Scope>, i64)) {
    let selector = LabelSelector::parse(selector).expect("valid");
    let range = range.map(|(start, end)| TimeRange::new(at(start), at(end)).expect("start < end"));
    let mut count = NamedCount::new(&selector, range, Draft::new(&TypeSelector::Cpu, None, false));
    let ids: Vec<SpanId> = spans.iter().map(|span| span_id(*span)).collect();
    count.add_trace(data, Some(&ids));
    assert_eq!((count.scope, count.draft.gather.sum().value), expected, "spans {spans:?}");
}

const EACH: [(u64, &str, u64); 4] = [(1, "shop", 100), (2, "shop", 20), (3, "cart", 3000), (4, "cart", 400)];

#[test]
fn a_label_of_the_span_that_ran_is_answered_for_the_span_alone() {
    let data = trace(Claim::Active, &EACH);
    check(&data, &[1], "{}", None, (Some(Scope::Span), 100));
    check(&data, &[1, 2], "{}", None, (Some(Scope::Span), 120));
    check(&data, &[1, 1], "{}", None, (Some(Scope::Span), 100));
}

#[test]
fn a_label_of_the_local_root_is_answered_with_descendants_of_the_selected_labels() {
    let data = trace(Claim::Label, &[(1, "shop", 100), (3, "cart", 3000)]);
    check(&data, &[1], "{}", None, (Some(Scope::Subtree), 3100));
    check(&data, &[1], r#"{service_name="shop"}"#, None, (Some(Scope::Subtree), 100));
    check(&data, &[1, 3], "{}", None, (Some(Scope::Subtree), 3100));
    check(&data, &[2], "{}", None, (Some(Scope::Subtree), 0));
}

#[test]
fn a_span_without_samples_of_its_own_is_answered_with_its_descendants() {
    let data = trace(Claim::Active, &[(4, "cart", 400)]);
    check(&data, &[3], "{}", None, (Some(Scope::Subtree), 400));
    check(&data, &[2], "{}", None, (Some(Scope::Subtree), 0));
}

#[test]
fn a_range_finds_profiles_and_does_not_cut_them() {
    let data = trace(Claim::Active, &EACH);
    check(&data, &[1], "{}", Some((9_999, 20_000)), (Some(Scope::Span), 100));
    check(&data, &[1], "{}", Some((10_000, 20_000)), (Some(Scope::Span), 0));
}

#[test]
fn a_trace_is_everything_that_names_it() {
    let data = trace(Claim::Label, &EACH);
    let selector = LabelSelector::default();
    let mut count = NamedCount::new(&selector, None, Draft::new(&TypeSelector::Cpu, None, false));
    count.add_trace(&data, None);
    assert_eq!((count.scope, count.draft.gather.sum().value), (Some(Scope::Trace), 3520));
}
