use spanflame_model::{Claim, Link, Profile, Sample, Tenant, Timestamp};
use spanflame_testkit::{ProfileBuilder, SpanBuilder, Stacks, at, link, resource, span_id, trace_id};

use super::*;

const SPAN: [(&str, &str); 4] = [
    ("host.name", "h1"),
    ("container.id", "c1"),
    ("service.instance.id", "i1"),
    ("process.pid", "42"),
];

fn span() -> Span {
    SpanBuilder::new(1, 1, "cart")
        .resource(&resource("cart", &SPAN))
        .attribute("thread.id", 7_i64)
        .time(100, 100)
        .build()
}

fn sample(of: &Profile) -> StoredSample {
    StoredSample {
        tenant: Tenant::anonymous(),
        received: Timestamp::ZERO,
        profile: of.fingerprint(&Tenant::anonymous()),
        info: of.info.clone(),
        sample: of.samples[0].clone(),
    }
}

fn profile(service: &str, labels: &[(&str, &str)], link: Link, thread: Option<i64>) -> StoredSample {
    let sample_at = Sample {
        link,
        times: vec![at(150)],
        thread_id: thread,
        ..Sample::new(Stacks::default().id("main"))
    };
    sample(
        &ProfileBuilder::timed(service, 10)
            .resource(&resource(service, labels))
            .push(sample_at)
            .build(),
    )
}

fn check(service: &str, labels: &[(&str, &str)], thread: Option<i64>, expected: Option<WindowMatch>) {
    let stored = profile(service, labels, Link::None, thread);
    assert_eq!(Place::of_span(&span()).matches(&stored), expected);
}

#[test]
fn the_finest_place_that_both_sides_know_matches() {
    check("cart", &SPAN, Some(7), Some(WindowMatch::Thread));
    check("cart", &SPAN, Some(8), Some(WindowMatch::Process));
    check("cart", &SPAN[..3], None, Some(WindowMatch::Instance));
    check("cart", &SPAN[..2], None, Some(WindowMatch::Container));
    check("cart", &SPAN[..1], None, Some(WindowMatch::Host));
    check("cart", &[], None, Some(WindowMatch::Service));
    check("other", &[], None, None);
}

#[test]
fn an_agent_that_knows_no_service_matches_by_place() {
    check(
        "unknown_service",
        &[("host.name", "h1"), ("process.pid", "42")],
        Some(7),
        Some(WindowMatch::Thread),
    );
    check("unknown_service", &[("container.id", "c1")], None, Some(WindowMatch::Container));
    check("unknown_service", &[("process.pid", "42")], None, None);
}

#[test]
fn an_equal_pid_in_another_container_is_another_process() {
    check(
        "cart",
        &[("container.id", "c2"), ("process.pid", "42")],
        None,
        Some(WindowMatch::Service),
    );
    check(
        "unknown_service",
        &[("container.id", "c2"), ("host.name", "h1"), ("process.pid", "42")],
        None,
        None,
    );
}

fn count(samples: &[StoredSample]) -> (Option<WindowMatch>, i64, u64) {
    let span = span();
    let mut count = WindowCount::new(&span, &TypeSelector::Cpu, span.range(), false);
    samples.iter().for_each(|stored| count.add(stored));
    let draft = count.finish();
    (
        draft.evidence.window_match,
        draft.gather.sum().value,
        draft.evidence.precision.window,
    )
}

#[test]
fn finer_matches_replace_coarser_ones_in_any_order() {
    let (thread, process) = (
        profile("cart", &SPAN, Link::None, Some(7)),
        profile("cart", &SPAN, Link::None, Some(8)),
    );
    let service = profile("cart", &[], Link::None, None);
    let expected = (Some(WindowMatch::Thread), 20, 2);
    assert_eq!(count(&[service.clone(), process.clone(), thread.clone(), thread.clone()]), expected);
    assert_eq!(count(&[thread.clone(), thread, process, service]), expected);
}

#[test]
fn samples_that_name_other_spans_are_not_ours() {
    let named = |link| profile("cart", &SPAN, link, Some(7));
    let candidates = |ids: [u64; 2]| Link::Candidates {
        trace_ids: vec![trace_id(1)],
        span_ids: ids.map(span_id).to_vec(),
    };
    assert_eq!(count(&[named(link(1, 2, Claim::Active)), named(candidates([2, 3]))]), (None, 0, 0));
    assert_eq!(count(&[named(candidates([1, 2]))]), (Some(WindowMatch::Thread), 10, 1));
}

#[test]
fn a_coarse_profile_counts_in_proportion_and_says_so() {
    let whole = ProfileBuilder::cpu("cart", 10)
        .time(0, 1000)
        .sample(Stacks::default().id("main"), Link::None, &[50, 500])
        .build();
    let span = span();
    let mut count = WindowCount::new(&span, &TypeSelector::Cpu, span.range(), false);
    count.add(&sample(&whole));
    let draft = count.finish();
    assert_eq!(
        (
            draft.gather.sum().value,
            draft.evidence.prorated,
            draft.evidence.prorated_profile_ns
        ),
        (50, 50, 1000)
    );
    assert_eq!(draft.evidence.covered_ns, 100);
}
