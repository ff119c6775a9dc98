use spanflame_model::{Claim, Link, Span, Tenant, Timestamp};
use spanflame_store::{StoredSample, StoredSpan};
use spanflame_testkit::{ProfileBuilder, SpanBuilder, Stacks, link, span_id, trace_id};

use super::*;

fn stored(spans: Vec<Span>) -> Vec<StoredSpan> {
    let store = |span| StoredSpan {
        tenant: Tenant::anonymous(),
        received: Timestamp::ZERO,
        span,
    };
    spans.into_iter().map(store).collect()
}

fn sample(link: Link) -> StoredSample {
    let profile = ProfileBuilder::cpu("a", 10)
        .sample(Stacks::default().id("main"), link, &[1, 10])
        .build();
    StoredSample {
        tenant: Tenant::anonymous(),
        received: Timestamp::ZERO,
        profile: profile.fingerprint(&Tenant::anonymous()),
        info: profile.info.clone(),
        sample: profile.samples[0].clone(),
    }
}

/// Service `a` has root 1 with child 2; 2 calls service `b`, which has 3 with child 4.
fn two_services() -> Vec<StoredSpan> {
    stored(vec![
        SpanBuilder::new(1, 1, "a").build(),
        SpanBuilder::new(1, 2, "a").parent(1).build(),
        SpanBuilder::new(1, 3, "b").parent(2).build(),
        SpanBuilder::new(1, 4, "b").parent(3).build(),
    ])
}

fn check(spans: &[StoredSpan], claimed: Link, expected: Owner) {
    assert_eq!(TraceIndex::new(trace_id(1), spans).owner(&sample(claimed)), expected);
}

#[test]
fn a_label_is_exact_on_a_span_without_children_in_its_process() {
    let spans = two_services();
    check(&spans, link(1, 2, Claim::Label), Owner::Span(span_id(2), Precision::Span));
    check(&spans, link(1, 4, Claim::Label), Owner::Span(span_id(4), Precision::Span));
}

#[test]
fn a_label_on_a_local_root_with_children_may_mean_any_of_them() {
    let spans = two_services();
    check(&spans, link(1, 1, Claim::Label), Owner::Span(span_id(1), Precision::LocalRoot));
    check(&spans, link(1, 3, Claim::Label), Owner::Span(span_id(3), Precision::LocalRoot));
}

#[test]
fn a_label_on_an_inner_span_with_children_is_exact() {
    let spans = stored(vec![
        SpanBuilder::new(1, 1, "a").build(),
        SpanBuilder::new(1, 2, "a").parent(1).build(),
        SpanBuilder::new(1, 3, "a").parent(2).build(),
    ]);
    check(&spans, link(1, 2, Claim::Label), Owner::Span(span_id(2), Precision::Span));
}

#[test]
fn claims_that_say_what_they_mean_are_believed() {
    let spans = two_services();
    check(&spans, link(1, 1, Claim::Active), Owner::Span(span_id(1), Precision::Span));
    check(&spans, link(1, 4, Claim::LocalRoot), Owner::Span(span_id(4), Precision::LocalRoot));
}

#[test]
fn a_claim_without_trace_finds_it_near_in_time_only() {
    let spans = two_services();
    check(&spans, link(0, 4, Claim::Active), Owner::Span(span_id(4), Precision::Span));
    let later = stored(vec![SpanBuilder::new(1, 4, "b").time(2 * NEAR_NS, 10).build()]);
    check(&later, link(0, 4, Claim::Active), Owner::Elsewhere);
    check(&spans, link(0, 9, Claim::Active), Owner::Elsewhere);
}

#[test]
fn another_tenants_span_is_not_found_through_its_id() {
    let mut spans = two_services();
    spans.iter_mut().for_each(|stored| stored.tenant = "other".parse().expect("valid"));
    check(&spans, link(0, 4, Claim::Active), Owner::Elsewhere);
}

#[test]
fn another_trace_is_elsewhere_and_a_bare_trace_is_known() {
    let spans = two_services();
    check(&spans, link(2, 4, Claim::Active), Owner::Elsewhere);
    check(&spans, link(1, 0, Claim::Active), Owner::TraceOnly);
    check(&spans, Link::None, Owner::Elsewhere);
}

#[test]
fn candidates_are_inside_only_if_all_of_them_are() {
    let spans = two_services();
    let candidates = |traces: &[u64], spans: &[u64]| Link::Candidates {
        trace_ids: traces.iter().map(|id| trace_id(*id)).collect(),
        span_ids: spans.iter().map(|id| span_id(*id)).collect(),
    };
    let owner = |ids: &[u64], inside| Owner::Candidates(ids.iter().map(|id| span_id(*id)).collect(), inside);
    check(&spans, candidates(&[1], &[2, 4]), owner(&[2, 4], true));
    check(&spans, candidates(&[], &[2, 4]), owner(&[2, 4], true));
    check(&spans, candidates(&[], &[2, 9]), owner(&[2, 9], false));
    check(&spans, candidates(&[1, 2], &[2, 4]), owner(&[2, 4], false));
    check(&spans, candidates(&[2], &[8, 9]), Owner::Elsewhere);
}

fn check_local_roots(spans: Vec<Span>, expected: &[(u64, u64)]) {
    let spans = stored(spans);
    let index = TraceIndex::new(trace_id(1), &spans);
    let found: Vec<_> = expected.iter().map(|(span, _)| index.local_root(span_id(*span))).collect();
    assert_eq!(found, expected.iter().map(|(_, root)| span_id(*root)).collect::<Vec<_>>());
}

#[test]
fn the_local_root_is_where_the_resource_changes() {
    let spans = two_services().into_iter().map(|stored| stored.span).collect();
    check_local_roots(spans, &[(1, 1), (2, 1), (3, 3), (4, 3)]);
}

#[test]
fn flags_decide_where_they_are_set() {
    let spans = vec![
        SpanBuilder::new(1, 1, "a").build(),
        SpanBuilder::new(1, 2, "a").parent(1).parent_is_remote(true).build(),
        SpanBuilder::new(1, 3, "b").parent(2).parent_is_remote(false).build(),
    ];
    check_local_roots(spans, &[(2, 2), (3, 2)]);
}

#[test]
fn a_span_whose_parent_is_missing_is_a_local_root() {
    check_local_roots(vec![SpanBuilder::new(1, 2, "a").parent(1).build()], &[(2, 2)]);
}

#[test]
fn circles_end() {
    let circle = vec![
        SpanBuilder::new(1, 1, "a").parent(2).build(),
        SpanBuilder::new(1, 2, "a").parent(1).build(),
        SpanBuilder::new(1, 3, "a").parent(3).build(),
    ];
    let spans = stored(circle);
    let index = TraceIndex::new(trace_id(1), &spans);
    assert_eq!(index.subtree(span_id(1)).len(), 2);
    assert_eq!(index.subtree(span_id(3)).len(), 1);
    assert!([span_id(1), span_id(2)].contains(&index.local_root(span_id(1))));
}

#[test]
fn the_halves_of_a_shared_id_are_one_span() {
    let halves = vec![
        SpanBuilder::new(1, 1, "a").build(),
        SpanBuilder::new(1, 2, "a").parent(1).build(),
        SpanBuilder::new(1, 2, "b").parent(1).build(),
        SpanBuilder::new(1, 3, "b").parent(2).build(),
    ];
    check_local_roots(halves, &[(2, 2), (3, 2)]);
}

#[test]
fn a_subtree_is_profiled_if_a_span_below_is() {
    let spans = two_services();
    let index = TraceIndex::new(trace_id(1), &spans);
    let profiled = |samples: &[Link]| {
        let samples: Vec<StoredSample> = samples.iter().cloned().map(sample).collect();
        let mut ids: Vec<SpanId> = index.profiled_subtrees(&samples).into_iter().collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(profiled(&[link(1, 3, Claim::Active)]), [1, 2, 3].map(span_id));
    assert_eq!(profiled(&[link(2, 3, Claim::Active)]), []);
    // A sample of either 2 or 4 belongs for sure to what holds both.
    let either = Link::Candidates {
        trace_ids: vec![trace_id(1)],
        span_ids: vec![span_id(2), span_id(4)],
    };
    assert_eq!(profiled(&[either]), [1, 2].map(span_id));
}
