use spanflame_model::StackSet;
use spanflame_testkit::Stacks;

use super::*;
use crate::profile::Evidence;
use crate::tree::StackTotal;

/// A side of `units` spans with these observations of 10 ns each.
fn side(units: u64, stacks: &[(&str, u64)]) -> CompareSide {
    let mut known = Stacks::default();
    let totals: Vec<StackTotal> = stacks
        .iter()
        .map(|(stack, samples)| StackTotal {
            stack: known.id(stack),
            value: 10 * *samples as i64,
            samples: *samples,
        })
        .collect();
    let stacks: StackSet = known.set;
    let tree = CallTree::build(&totals, &stacks);
    CompareSide {
        units: units as f64,
        spans: Some(SelectedSpans {
            spans: units,
            ..SelectedSpans::default()
        }),
        profile: ProfileAnswer {
            profile_type: ProfileType::cpu(),
            scope: Some(Scope::Span),
            total: tree.total[0],
            samples: tree.samples[0],
            tree,
            totals,
            stacks,
            rows: None,
            range: None,
            evidence: Evidence::default(),
        },
    }
}

/// One line a function: name, samples of both sides, verdict.
fn check(base: CompareSide, target: CompareSide, expected: &[&str]) {
    let found = Comparison::new(Some(Scope::Span), base, target);
    let lines: Vec<String> = found
        .functions
        .iter()
        .map(|function| {
            let name = &found.base_tree.frames[function.frame as usize].function;
            let (base, target) = (function.base.samples, function.target.samples);
            format!("{name} {base} {target} {}", function.verdict.as_str())
        })
        .collect();
    assert_eq!(lines, expected);
    for tree in [&found.base_tree, &found.target_tree] {
        assert_eq!(tree.self_value.iter().sum::<i64>(), tree.total[0]);
        assert_eq!(tree.frames, found.base_tree.frames);
    }
    assert_eq!(
        (found.base_tree.total[0], found.target_tree.total[0]),
        (found.base.profile.total, found.target.profile.total)
    );
}

#[test]
fn costs_are_compared_by_span_and_not_by_share() {
    check(
        side(100, &[("main;render", 400), ("main;query", 100), ("main;old", 90)]),
        side(50, &[("main;render", 200), ("main;query", 300), ("main;new;query", 80)]),
        &[
            "query 100 380 more",
            "main 590 580 more",
            "new 0 80 only_in_target",
            "old 90 0 only_in_base",
            "render 400 200 not_significant",
        ],
    );
}

#[test]
fn few_samples_are_no_verdict() {
    check(
        side(10, &[("f", 2)]),
        side(10, &[("f", 2), ("g", 4)]),
        &["g 0 4 too_few_samples", "f 2 2 too_few_samples"],
    );
    check(side(10, &[]), side(10, &[("f", 900)]), &["f 0 900 too_few_samples"]);
    check(side(0, &[]), side(0, &[]), &[]);
}

#[test]
fn twenty_against_twenty_five_samples_are_chance() {
    check(side(10, &[("f", 20)]), side(10, &[("f", 25)]), &["f 20 25 not_significant"]);
}

#[test]
fn small_numbers_have_no_share() {
    let found = Comparison::new(None, side(2, &[("f", 4)]), side(2, &[("f", 4), ("g", 1)]));
    let shares: Vec<_> = found.functions.iter().map(|f| (f.base.share, f.target.share.is_some())).collect();
    assert_eq!(shares, [(None, true), (None, true)]);
}
