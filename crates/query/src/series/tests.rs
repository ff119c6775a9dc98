use spanflame_model::{Claim, Profile};
use spanflame_testkit::{ProfileBuilder, Stacks, at, link, resource, span_id, trace_id};

use super::*;

const SPACE: [(&str, &str); 1] = [("inuse_space", "bytes")];

fn request(profile_type: &str, by: &[&str]) -> SeriesRequest {
    let range = TimeRange::new(at(1000), at(1300)).expect("not empty");
    SeriesRequest {
        tenants: vec![Tenant::anonymous()],
        selector: LabelSelector::default(),
        profile_type: profile_type.parse().expect("a type"),
        steps: Steps { range, step_ns: 100 },
        by: by.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn stored(profiles: &[Profile]) -> Vec<StoredSample> {
    let of = |profile: &Profile| {
        let (info, identity) = (profile.info.clone(), profile.fingerprint(&Tenant::anonymous()));
        let samples = profile.samples.clone();
        samples.into_iter().map(move |sample| StoredSample {
            tenant: Tenant::anonymous(),
            received: Timestamp::ZERO,
            profile: identity,
            info: info.clone(),
            sample,
        })
    };
    profiles.iter().flat_map(of).collect()
}

/// Labels of each series, then its values.
fn check(request: &SeriesRequest, profiles: &[Profile], expected: &[(&str, [i64; 3])]) {
    let mut count = SeriesCount::new(request);
    stored(profiles).iter().for_each(|sample| count.add(sample));
    let text = |series: &StepSeries| {
        let labels: Vec<&str> = series.labels.iter().map(|(_, value)| value.as_str()).collect();
        (labels.join(","), series.values.clone())
    };
    let found: Vec<(String, Vec<i64>)> = count.finish().iter().map(text).collect();
    let expected: Vec<(String, Vec<i64>)> = expected
        .iter()
        .map(|(labels, values)| ((*labels).to_owned(), values.to_vec()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn flows_count_where_they_were_observed() {
    let mut stacks = Stacks::default();
    let stack = stacks.id("main");
    let none = || Link::None;
    let profiles = [
        ProfileBuilder::timed("cart", 10)
            .time(900, 500)
            .observed(stack, none(), &[950, 1010, 1299, 1300])
            .build(),
        ProfileBuilder::cpu("shop", 10)
            .time(1050, 100)
            .sample(stack, none(), &[4, 40])
            .build(),
    ];
    check(
        &request("cpu", &["service.name"]),
        &profiles,
        &[("shop", [20, 20, 0]), ("cart", [10, 0, 10])],
    );
    check(&request("cpu", &[]), &profiles, &[("", [30, 20, 10])]);
}

#[test]
fn gauges_are_averaged_over_profiles_and_added_over_senders() {
    let mut stacks = Stacks::default();
    let stack = stacks.id("main");
    let heap = |pod: &str, start: u64, bytes: i64| {
        ProfileBuilder::of("cart", &SPACE, 0)
            .resource(&resource("cart", &[("pod", pod)]))
            .time(start, 50)
            .sample(stack, Link::None, &[bytes])
            .build()
    };
    let profiles = [heap("a", 1000, 10), heap("a", 1050, 30), heap("b", 1090, 5), heap("b", 1210, 7)];
    check(&request("inuse_space", &[]), &profiles, &[("", [25, 0, 7])]);
    check(&request("inuse_space", &["pod"]), &profiles, &[("a", [20, 0, 0]), ("b", [5, 0, 7])]);
}

#[test]
fn items_are_single_profiles_or_spans() {
    let mut stacks = Stacks::default();
    let (a, b) = (stacks.id("main;a"), stacks.id("main;b"));
    let profiles = [
        ProfileBuilder::cpu("cart", 10)
            .time(1000, 100)
            .sample(a, link(1, 5, Claim::Label), &[1, 10])
            .sample(b, link(1, 5, Claim::Label), &[2, 20])
            .sample(b, Link::None, &[3, 30])
            .build(),
        ProfileBuilder::cpu("cart", 10)
            .time(1200, 100)
            .sample(b, link(1, 5, Claim::Label), &[1, 10])
            .build(),
    ];
    let items = |kind: ItemKind| {
        let mut count = ItemCount::new(kind, &request("cpu", &[]));
        stored(&profiles).iter().for_each(|sample| count.add(sample));
        count.finish()
    };
    let values: Vec<i64> = items(ItemKind::Profile).iter().map(|item| item.value).collect();
    assert_eq!(values, [60, 10]);
    let spans = items(ItemKind::Span);
    let span: Vec<(ItemId, i64, Timestamp)> = spans.iter().map(|item| (item.id, item.value, item.at)).collect();
    assert_eq!(span, [(ItemId::Span(Some(trace_id(1)), span_id(5)), 40, at(1000))]);
}
