use spanflame_model::{Link, Profile, Timestamp};
use spanflame_testkit::{ProfileBuilder, Stacks, at, resource};

use super::*;

fn gather(selector: &str, profiles: &[Profile], range: Option<TimeRange>) -> Vec<i64> {
    let mut gather = Gather::new(selector.parse().expect("valid"), range);
    for profile in profiles {
        for sample in &profile.samples {
            gather.add(&StoredSample {
                tenant: Tenant::anonymous(),
                received: Timestamp::ZERO,
                profile: profile.fingerprint(&Tenant::anonymous()),
                info: profile.info.clone(),
                sample: sample.clone(),
            });
        }
    }
    gather.totals().iter().map(|total| total.value).collect()
}

fn memory(instance: &str, start: u64, value: i64) -> Profile {
    ProfileBuilder::of("cart", &[("alloc_space", "bytes"), ("inuse_space", "bytes")], 0)
        .time(start, 10)
        .resource(&resource("cart", &[("service.instance.id", instance)]))
        .sample(Stacks::default().id("main;grow"), Link::None, &[value, value])
        .build()
}

#[test]
fn gauges_are_averaged_over_profiles_and_added_over_series() {
    let profiles = [memory("a", 0, 100), memory("a", 10, 300), memory("b", 0, 50)];
    assert_eq!(gather("inuse_space", &profiles, None), [250]);
}

#[test]
fn flows_are_added() {
    let profiles = [memory("a", 0, 100), memory("a", 10, 300), memory("b", 0, 50)];
    assert_eq!(gather("alloc_space", &profiles, None), [450]);
}

#[test]
fn small_parts_add_up_before_they_are_rounded() {
    let mut stacks = Stacks::default();
    let mut profile = ProfileBuilder::of("cart", &[("alloc_objects", "count")], 0).time(0, 100);
    for index in 0..10 {
        profile = profile.sample(stacks.id(&format!("main;f{index}")), Link::None, &[1]);
    }
    let range = TimeRange::new(at(0), at(30));
    let values = gather("alloc_objects", &[profile.build()], range);
    assert_eq!((values.iter().sum::<i64>(), values.len()), (3, 10));
}
