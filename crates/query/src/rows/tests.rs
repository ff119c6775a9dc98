use spanflame_model::{Claim, Profile, Tenant, Timestamp};
use spanflame_testkit::{ProfileBuilder, Stacks, link};

use super::*;

fn collect(profiles: &[Profile]) -> Rows {
    let mut rows = RowCollector::new(TypeSelector::Cpu, None);
    for profile in profiles {
        for sample in &profile.samples {
            rows.add(&StoredSample {
                tenant: Tenant::anonymous(),
                received: Timestamp::ZERO,
                profile: profile.fingerprint(&Tenant::anonymous()),
                info: profile.info.clone(),
                sample: sample.clone(),
            });
        }
    }
    rows.finish().expect("is small")
}

fn check(profiles: &[Profile], types: &[&str], values: &[&[i64]]) {
    let rows = collect(profiles);
    assert_eq!(
        rows.types.iter().map(|t| format!("{}/{}", t.kind, t.unit)).collect::<Vec<_>>(),
        types
    );
    let mut found: Vec<Vec<i64>> = rows.rows.into_iter().map(|row| row.values).collect();
    found.sort_unstable();
    assert_eq!(found, values);
}

#[test]
fn all_values_are_kept_where_profiles_agree() {
    let stack = Stacks::default().id("main");
    let profile = ProfileBuilder::cpu("a", 10)
        .sample(stack, link(1, 1, Claim::Label), &[1, 10])
        .sample(stack, link(1, 1, Claim::Label), &[2, 20])
        .sample(stack, link(1, 2, Claim::Label), &[5, 50])
        .build();
    check(&[profile], &["samples/count", "cpu/nanoseconds"], &[&[3, 30], &[5, 50]]);
}

#[test]
fn the_wanted_value_is_added_where_nobody_sent_it() {
    let profile = ProfileBuilder::timed("a", 10)
        .observed(Stacks::default().id("main"), Link::None, &[1, 2, 3])
        .build();
    check(&[profile], &["samples/count", "cpu/nanoseconds"], &[&[3, 30]]);
}

#[test]
fn profiles_that_differ_keep_what_was_asked_for() {
    let mut stacks = Stacks::default();
    let counted = ProfileBuilder::timed("a", 10).observed(stacks.id("main"), Link::None, &[1]).build();
    let summed = ProfileBuilder::cpu("a", 10)
        .sample(stacks.id("main;f"), Link::None, &[7, 70])
        .build();
    check(&[counted, summed], &["cpu/nanoseconds"], &[&[10], &[70]]);
}
