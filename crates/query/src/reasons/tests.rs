use spanflame_model::{Claim, Profile, Tenant};
use spanflame_testkit::{ProfileBuilder, SpanBuilder, Stacks, at, link, resource};

use super::*;

const SECOND: u64 = 1_000_000_000;
/// When the span under test begins; it lasts 50 ms.
const START: u64 = 1000 * SECOND;

fn profile(start: u64, named: Link) -> Profile {
    let stack = Stacks::default().id("main");
    ProfileBuilder::cpu("cart", 10_000_000)
        .time(start, 10 * SECOND)
        .sample(stack, named, &[30, 300_000_000])
        .build()
}

fn check(profiles: &[Profile], scope: Scope, clock: Clock, expected: &[&str]) {
    let span = SpanBuilder::new(1, 1, "cart").time(START, SECOND / 20).build();
    let (found, _) = explained(&span, profiles, scope, clock);
    assert_eq!(found, expected);
}

/// The codes and the text of the last reason.
fn explained(span: &Span, profiles: &[Profile], scope: Scope, clock: Clock) -> (Vec<&'static str>, String) {
    let mut around = Surroundings::of(span);
    for profile in profiles {
        for sample in &profile.samples {
            let stored = StoredSample {
                tenant: Tenant::anonymous(),
                received: Timestamp::ZERO,
                profile: profile.fingerprint(&Tenant::anonymous()),
                info: profile.info.clone(),
                sample: sample.clone(),
            };
            around.add(&stored, &TypeSelector::Cpu);
        }
    }
    let reasons = explain(scope, &around, clock);
    let codes = reasons.iter().map(|reason| reason.code.as_str()).collect();
    (codes, reasons.last().map(|reason| reason.text.clone()).unwrap_or_default())
}

#[test]
fn another_process_of_the_service_tells_nothing_about_this_one() {
    let of_instance = |name: &str| resource("cart", &[("service.instance.id", name)]);
    let span = SpanBuilder::new(1, 1, "cart")
        .resource(&of_instance("a"))
        .time(START, SECOND / 20)
        .build();
    let profile_of = |name: &str| {
        let stack = Stacks::default().id("main");
        ProfileBuilder::cpu("cart", 10_000_000)
            .resource(&of_instance(name))
            .time(START - 5 * SECOND, 10 * SECOND)
            .sample(stack, other_span(), &[30, 300_000_000])
            .build()
    };
    let (codes, text) = explained(&span, &[profile_of("b")], Scope::Span, later(3600));
    assert_eq!(codes, ["service_not_profiled"]);
    assert!(text.contains("in other processes only: 30 samples"), "{text}");
    let (codes, _) = explained(&span, &[profile_of("b"), profile_of("a")], Scope::Span, later(3600));
    assert_eq!(codes, ["not_running"]);
}

fn later(seconds: u64) -> Clock {
    Clock {
        now: at(START + seconds * SECOND),
        retention_ns: Some(86_400 * SECOND),
    }
}

fn other_span() -> Link {
    link(2, 2, Claim::Active)
}

#[test]
fn without_profiles_the_age_of_the_span_decides() {
    check(&[], Scope::Span, later(3600), &["service_not_profiled"]);
    check(&[], Scope::Span, later(10), &["not_yet_arrived", "service_not_profiled"]);
    check(&[], Scope::Span, later(2 * 86_400), &["expired", "service_not_profiled"]);
}

#[test]
fn a_profile_that_ended_before_does_not_cover_the_span() {
    check(
        &[profile(START - 60 * SECOND, other_span())],
        Scope::Span,
        later(3600),
        &["service_not_profiled"],
    );
}

#[test]
fn samples_on_both_sides_show_that_the_profiler_ran() {
    let sides = [
        profile(START - 60 * SECOND, other_span()),
        profile(START + 60 * SECOND, other_span()),
    ];
    check(&sides, Scope::Span, later(3600), &["not_running"]);
}

#[test]
fn what_the_service_sent_meanwhile_decides() {
    let covering = START - 5 * SECOND;
    check(
        &[profile(covering, Link::None)],
        Scope::Span,
        later(3600),
        &["samples_without_link"],
    );
    check(&[profile(covering, other_span())], Scope::Span, later(3600), &["not_running"]);
    check(
        &[profile(covering, other_span())],
        Scope::Window,
        later(3600),
        &["all_samples_linked"],
    );
    let mut coarse = profile(covering, other_span());
    std::sync::Arc::make_mut(&mut coarse.info).period = 100_000_000;
    check(&[coarse], Scope::Span, later(3600), &["shorter_than_period"]);
}

#[test]
fn few_links_among_many_samples_are_said() {
    let covering = START - 5 * SECOND;
    let mixed = [
        profile(covering, other_span()),
        profile(covering, Link::None),
        profile(covering, Link::None),
    ];
    check(&mixed, Scope::Span, later(3600), &["not_running", "samples_without_link"]);
}

#[test]
fn another_type_is_named() {
    let stack = Stacks::default().id("main");
    let memory = ProfileBuilder::of("cart", &[("inuse_space", "bytes")], 0)
        .time(START, SECOND)
        .sample(stack, Link::None, &[1])
        .build();
    check(&[memory], Scope::Span, later(3600), &["type_not_collected"]);
}

#[test]
fn durations_read_well() {
    let texts = [
        999,
        1500,
        52_631_578,
        90 * SECOND,
        300 * SECOND,
        7200 * SECOND,
        14 * 86_400 * SECOND,
    ]
    .map(text_of_ns);
    assert_eq!(texts, ["999ns", "1.5us", "52.6ms", "90s", "5min", "2h", "14d"]);
}
