use spanflame_model::{Batch, Claim, Link, ProfileType, SpanId, StackId, Tenant, Timestamp, TraceId};
use spanflame_store::{StoredSample, StoredSpan};
use spanflame_testkit::{Cost, LinkStyle, Plan, ProfileBuilder, SpanBuilder, Stacks, Workload, link, span_id, trace_id};

use super::*;

/// What a store would return for a trace: what names it, and what names one of its spans and no trace.
fn fetch(batches: &[Batch], trace: TraceId, also: Option<SpanId>) -> TraceData {
    let tenant = Tenant::anonymous();
    let spans = batches.iter().flat_map(|batch| &batch.spans).filter(|span| span.trace_id == trace);
    let mut spans: Vec<StoredSpan> = spans
        .map(|span| StoredSpan {
            tenant: tenant.clone(),
            received: Timestamp::ZERO,
            span: span.clone(),
        })
        .collect();
    spans.sort_by_key(|stored| (stored.span.start, stored.span.span_id));
    let known = |span: &SpanId| also == Some(*span) || spans.iter().any(|stored| stored.span.span_id == *span);
    let wanted = |link: &Link| match link {
        Link::None => false,
        Link::One {
            trace_id: None, span_id, ..
        } => span_id.as_ref().is_some_and(known),
        Link::One { trace_id, .. } => *trace_id == Some(trace),
        Link::Candidates { trace_ids, span_ids } => trace_ids.contains(&trace) || span_ids.iter().any(known),
    };
    let mut samples = Vec::new();
    for profile in batches.iter().flat_map(|batch| &batch.profiles) {
        let identity = profile.fingerprint(&tenant);
        for sample in profile.samples.iter().filter(|sample| wanted(&sample.link)) {
            samples.push(StoredSample {
                tenant: tenant.clone(),
                received: Timestamp::ZERO,
                profile: identity,
                info: profile.info.clone(),
                sample: sample.clone(),
            });
        }
    }
    TraceData {
        trace_id: trace,
        spans,
        samples,
    }
}

fn ask(data: &TraceData, span: Option<SpanId>, scope: Scope) -> Result<Draft, Error> {
    data.draft(ScopedQuestion {
        span,
        scope,
        selector: &TypeSelector::Cpu,
        range: None,
        keep: Keep::Sums,
    })
}

fn rows(draft: &Draft) -> Vec<(StackId, i64, u64)> {
    draft
        .gather
        .totals()
        .iter()
        .map(|total| (total.stack, total.value, total.samples))
        .collect()
}

fn codes(draft: &Draft) -> Vec<&'static str> {
    draft.evidence.reasons.iter().map(|reason| reason.code.as_str()).collect()
}

/// Every span and trace of a load gets exactly what the truth says.
fn check(load: &Workload) {
    for (id, truth) in &load.spans {
        let trace = truth.span.trace_id;
        let data = fetch(&load.batches, trace, Some(*id));
        if !truth.is_sent && truth.linked == Cost::default() && !names(&data, *id) {
            assert!(matches!(ask(&data, Some(*id), Scope::Span), Err(Error::NotFound { .. })));
            continue;
        }
        let own = ask(&data, Some(*id), Scope::Span).expect("known");
        assert_eq!(rows(&own), truth.linked.rows(), "span {id}");
        assert_eq!(codes(&own).contains(&"span_not_received"), !truth.is_sent, "span {id}");
        if load.spans.values().all(|truth| truth.is_sent) {
            let subtree = ask(&data, Some(*id), Scope::Subtree).expect("known");
            let certain = rows(&subtree);
            match subtree.evidence.ambiguous {
                0 => assert_eq!(certain, load.linked_in_subtree(*id).rows(), "subtree of {id}"),
                _ => assert!(certain.iter().map(|row| row.2).sum::<u64>() >= load.linked_in_subtree(*id).total().samples),
            }
        }
    }
    for (trace, cost) in &load.by_trace {
        let data = fetch(&load.batches, *trace, None);
        let whole = ask(&data, None, Scope::Trace).expect("known");
        if whole.evidence.ambiguous == 0 {
            assert_eq!(rows(&whole), cost.rows(), "trace {trace}");
        }
    }
}

fn names(data: &TraceData, span: SpanId) -> bool {
    data.samples.iter().any(|stored| match &stored.sample.link {
        Link::Candidates { span_ids, .. } => span_ids.contains(&span),
        link => link.span_id() == Some(span),
    })
}

#[test]
fn concurrent_spans_get_exactly_what_they_ran() {
    (1..4).for_each(|seed| check(&Plan::exact(seed).run()));
}

#[test]
fn every_style_of_links_is_answered_exactly() {
    for style in [
        LinkStyle::Active,
        LinkStyle::Label,
        LinkStyle::LocalRoot,
        LinkStyle::SpanIdOnly,
        LinkStyle::Ambiguous,
        LinkStyle::Unlinked,
    ] {
        check(&Plan::exact(7).with_style(style).run());
    }
}

#[test]
fn missing_and_late_spans_lose_nothing() {
    for style in [LinkStyle::Active, LinkStyle::Label, LinkStyle::LocalRoot, LinkStyle::SpanIdOnly] {
        let mut plan = Plan::exact(8).with_style(style);
        plan.missing_percent = 30;
        plan.late_percent = 40;
        check(&plan.run());
    }
}

#[test]
fn skewed_clocks_do_not_move_linked_samples_and_are_named() {
    let mut plan = Plan::exact(9);
    plan.services[0].ahead_ns = 30_000_000_000;
    let load = plan.run();
    check(&load);
    let data = fetch(&load.batches, trace_id(5), None);
    assert_eq!(codes(&ask(&data, None, Scope::Trace).expect("known")), ["clock_skew"]);
}

#[test]
fn precision_is_counted_as_the_links_say() {
    for (style, is_exact) in [(LinkStyle::Active, true), (LinkStyle::Label, false), (LinkStyle::LocalRoot, false)] {
        let load = Plan::exact(10).with_style(style).run();
        let root = load
            .spans
            .values()
            .find(|truth| truth.span.span_id == truth.local_root)
            .expect("there is one");
        let data = fetch(&load.batches, root.span.trace_id, None);
        let draft = ask(&data, Some(root.span.span_id), Scope::Span).expect("known");
        let precision = draft.evidence.precision;
        let samples = root.linked.total().samples;
        let expected = if is_exact { (samples, 0) } else { (0, samples) };
        assert_eq!((precision.span, precision.local_root), expected, "{style:?}");
    }
}

#[test]
fn a_child_without_samples_names_the_root_that_holds_them() {
    let load = Plan::exact(11).with_style(LinkStyle::LocalRoot).run();
    let data = fetch(&load.batches, trace_id(3), None);
    let draft = ask(&data, Some(span_id(301)), Scope::Span).expect("known");
    assert_eq!(codes(&draft), ["held_by_local_root"]);
    assert!(draft.evidence.reasons[0].text.contains(&span_id(300).to_string()));
}

#[test]
fn ambiguous_samples_belong_to_no_span_and_are_counted() {
    let mut stacks = Stacks::default();
    let candidates = Link::Candidates {
        trace_ids: vec![trace_id(1)],
        span_ids: vec![span_id(2), span_id(3)],
    };
    let batch = Batch {
        spans: vec![
            SpanBuilder::new(1, 1, "a").build(),
            SpanBuilder::new(1, 2, "a").parent(1).build(),
            SpanBuilder::new(1, 3, "a").parent(1).build(),
        ],
        profiles: vec![ProfileBuilder::cpu("a", 10).sample(stacks.id("main"), candidates, &[4, 40]).build()],
        stacks: stacks.set,
    };
    let data = fetch(&[batch], trace_id(1), None);
    let own = ask(&data, Some(span_id(2)), Scope::Span).expect("known");
    assert_eq!(
        (rows(&own).len(), own.evidence.ambiguous, codes(&own)),
        (0, 4, vec!["ambiguous_only"])
    );
    let both = ask(&data, Some(span_id(1)), Scope::Subtree).expect("known");
    assert_eq!((rows(&both)[0].1, both.evidence.ambiguous), (40, 4));
}

#[test]
fn another_type_is_named_and_not_mixed_in() {
    let mut stacks = Stacks::default();
    let batch = Batch {
        spans: vec![SpanBuilder::new(1, 1, "a").build()],
        profiles: vec![
            ProfileBuilder::of("a", &[("alloc_space", "bytes")], 0)
                .sample(stacks.id("main"), link(1, 1, Claim::Active), &[512])
                .build(),
        ],
        stacks: stacks.set,
    };
    let data = fetch(&[batch], trace_id(1), None);
    let draft = ask(&data, Some(span_id(1)), Scope::Span).expect("known");
    assert_eq!(codes(&draft), ["type_not_collected"]);
    let trace = data.to_trace();
    let memory: ProfileType = "memory:alloc_space:bytes::".parse().expect("valid");
    assert_eq!(trace.spans[0].profiles[&memory].value, 512);
}

#[test]
fn what_nothing_names_is_not_found() {
    let load = Plan::exact(12).run();
    let unknown = fetch(&load.batches, trace_id(9999), None);
    assert!(matches!(ask(&unknown, None, Scope::Trace), Err(Error::NotFound { .. })));
    let data = fetch(&load.batches, trace_id(1), None);
    assert!(matches!(
        ask(&data, Some(span_id(424_242)), Scope::Span),
        Err(Error::NotFound { .. })
    ));
}

#[test]
fn the_profiles_of_a_trace_are_those_of_its_spans() {
    let load = Plan::exact(13).run();
    let trace = fetch(&load.batches, trace_id(7), None).to_trace();
    assert!(trace.complete && trace.unassigned.is_empty());
    for span in &trace.spans {
        let truth = &load.spans[&span.stored.span.span_id];
        let expected = truth.linked.total();
        let found = span.profiles.get(&ProfileType::cpu()).copied().unwrap_or_default();
        assert_eq!((found.value, found.samples), (expected.value, expected.samples));
        assert_eq!(span.local_root_span_id, truth.local_root);
    }
}
