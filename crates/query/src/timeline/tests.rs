use spanflame_model::{Claim, Profile, StackSet, Tenant};
use spanflame_testkit::{ProfileBuilder, Stacks, at, link, resource};

use super::*;
use crate::profile::Evidence;
use crate::tree::{CallTree, StackTotal};

fn timeline(profiles: &[Profile], stacks: &StackSet, limit: usize) -> Timeline {
    let mut moments = Moments::new(TypeSelector::Cpu, None, limit);
    let mut totals: Vec<StackTotal> = Vec::new();
    for profile in profiles {
        for sample in &profile.samples {
            moments.add(&StoredSample {
                tenant: Tenant::anonymous(),
                received: Timestamp::ZERO,
                profile: profile.fingerprint(&Tenant::anonymous()),
                info: profile.info.clone(),
                sample: sample.clone(),
            });
            totals.push(StackTotal {
                stack: sample.stack,
                value: 1,
                samples: 1,
            });
        }
    }
    moments.finish(ProfileAnswer {
        profile_type: TypeSelector::Cpu.nominal(),
        scope: None,
        total: 0,
        samples: 0,
        tree: CallTree::build(&totals, stacks),
        totals,
        stacks: stacks.clone(),
        rows: None,
        range: None,
        evidence: Evidence::default(),
    })
}

/// One line a moment: time, service and thread, stack, value, span.
fn check(timeline: &Timeline, expected: &[&str]) {
    let lines: Vec<String> = timeline
        .moments
        .iter()
        .map(|moment| {
            let thread = &timeline.threads[moment.thread as usize];
            let name = |frame: &u32| timeline.profile.tree.frames[*frame as usize].function.clone();
            let stack: Vec<String> = timeline.stacks[moment.stack as usize].iter().map(name).collect();
            let span = moment.span.map_or("-".to_owned(), |span| timeline.spans[span as usize].to_string());
            let place = format!("{}/{:?}/{:?}", thread.service, thread.process_id, thread.thread_id);
            format!("{} {place} {} {} {span}", moment.time, stack.join(";"), moment.value)
        })
        .collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_value_is_split_among_the_times_of_its_sample() {
    let mut stacks = Stacks::default();
    let sample = Sample {
        values: vec![3, 100],
        times: vec![at(10), at(20), at(30)],
        thread_id: Some(7),
        ..Sample::new(stacks.id("main;f"))
    };
    let profile = ProfileBuilder::cpu("cart", 33).time(0, 100).push(sample).build();
    let found = timeline(&[profile], &stacks.set, 10);
    check(
        &found,
        &[
            "10 cart/None/Some(7) main;f 33 -",
            "20 cart/None/Some(7) main;f 33 -",
            "30 cart/None/Some(7) main;f 34 -",
        ],
    );
    assert_eq!(found.range, Some(TimeRange::lasting(at(10), 21)));
}

#[test]
fn samples_without_times_are_counted_and_not_placed() {
    let mut stacks = Stacks::default();
    let stack = stacks.id("main;f");
    let cpu = ProfileBuilder::cpu("cart", 10).time(0, 100).sample(stack, Link::None, &[3, 30]);
    let found = timeline(&[cpu.build()], &stacks.set, 10);
    check(&found, &[]);
    assert_eq!((found.without_time, found.threads.len(), found.range), (3, 0, None));
}

#[test]
fn equal_thread_ids_of_two_instances_are_two_threads() {
    let mut stacks = Stacks::default();
    let (f, g) = (stacks.id("main;f"), stacks.id("main;g"));
    let of = |pod: &str, stack, time| {
        ProfileBuilder::timed("cart", 10)
            .time(0, 100)
            .resource(&resource("cart", &[("k8s.pod.name", pod)]))
            .push(Sample {
                thread_id: Some(1),
                pid: Some(1),
                link: link(1, 2, Claim::Active),
                times: vec![at(time)],
                ..Sample::new(stack)
            })
            .build()
    };
    let found = timeline(&[of("b", f, 20), of("a", g, 30)], &stacks.set, 10);
    let instances: Vec<_> = found.threads.iter().map(|thread| thread.instance.as_deref()).collect();
    assert_eq!(instances, [Some("a"), Some("b")]);
    check(
        &found,
        &[
            "20 cart/Some(1)/Some(1) main;f 10 0000000000000002",
            "30 cart/Some(1)/Some(1) main;g 10 0000000000000002",
        ],
    );
}

#[test]
fn beyond_the_limit_the_earliest_are_kept_and_only_their_threads() {
    let mut stacks = Stacks::default();
    let stack = stacks.id("main;f");
    let mut profile = ProfileBuilder::timed("cart", 10).time(0, 100);
    for time in (0..50).rev() {
        profile = profile.push(Sample {
            thread_id: Some(time as i64 / 10),
            times: vec![at(time)],
            ..Sample::new(stack)
        });
    }
    let found = timeline(&[profile.build()], &stacks.set, 12);
    let times: Vec<i64> = found.moments.iter().map(|moment| moment.time.unix_nanos()).collect();
    assert_eq!(times, (0..12).collect::<Vec<i64>>());
    assert_eq!((found.truncated, found.threads.len()), (true, 2));
}
