//! Samples one by one, judged by loads whose truth is known.

use std::collections::BTreeMap;

use spanflame_model::{SpanId, Tenant, TimeRange};
use spanflame_query::{Engine, ErrorKind, LabelSelector, ProfileRequest, Scope, Selection, Timeline, TimelineRequest, TypeSelector};
use spanflame_store::{Store, StoreOptions};
use spanflame_testkit::{Cost, LinkStyle, Plan, Workload};

async fn store(dir: &tempfile::TempDir, load: &Workload) -> Store {
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.expect("opens an empty directory");
    for batch in &load.batches {
        store.append(&Tenant::anonymous(), batch.clone()).await.expect("is appended");
    }
    store
}

/// Every service says when.
fn timed(mut plan: Plan) -> Workload {
    plan.services.iter_mut().for_each(|service| service.timed = true);
    plan.run()
}

fn request(selection: Selection, range: Option<TimeRange>) -> TimelineRequest {
    TimelineRequest {
        profile: ProfileRequest {
            tenants: vec![Tenant::anonymous()],
            selection,
            profile_type: TypeSelector::Cpu,
            range,
            rows: false,
        },
        limit: TimelineRequest::LIMIT_MAX,
    }
}

async fn ask(engine: &Engine, selection: Selection, range: Option<TimeRange>) -> Timeline {
    engine.timeline(&request(selection, range)).await.expect("is known")
}

/// What the moments add up to: text of the stack -> value and number.
fn sums(timeline: &Timeline) -> BTreeMap<String, (i64, u64)> {
    let mut sums: BTreeMap<String, (i64, u64)> = BTreeMap::new();
    for moment in &timeline.moments {
        let name = |frame: &u32| timeline.profile.tree.frames[*frame as usize].function.as_str();
        let path: Vec<&str> = timeline.stacks[moment.stack as usize].iter().map(name).collect();
        let sum = sums.entry(path.join(";")).or_default();
        *sum = (sum.0 + moment.value, sum.1 + 1);
    }
    sums
}

fn truth(load: &Workload, costs: &Cost) -> BTreeMap<String, (i64, u64)> {
    let text = |id| {
        let sets = load.batches.iter().map(|batch| &batch.stacks);
        let known = sets.into_iter().find(|set| set.stack(id).is_some()).expect("was sent");
        spanflame_testkit::Stacks::text(known, id)
    };
    costs
        .rows()
        .into_iter()
        .map(|(stack, value, samples)| (text(stack), (value, samples)))
        .collect()
}

#[tokio::test]
async fn moments_of_a_span_add_up_to_what_it_ran_and_lie_in_it() {
    let load = timed(Plan::exact(61));
    let dir = tempfile::tempdir().expect("a directory");
    let store = store(&dir, &load).await;
    let engine = Engine::new(store.snapshot());
    for (span_id, known) in load.spans.iter().step_by(5) {
        let trace_id = known.span.trace_id;
        for scope in [Scope::Span, Scope::Subtree] {
            let selection = Selection::Span {
                trace_id,
                span_id: *span_id,
                scope,
            };
            let found = ask(&engine, selection, None).await;
            let expected = match scope {
                Scope::Span => known.linked.clone(),
                _ => load.linked_in_subtree(*span_id),
            };
            assert_eq!(sums(&found), truth(&load, &expected), "{scope:?} of {span_id}");
            assert!(found.moments.is_sorted_by_key(|moment| moment.time));
            for moment in &found.moments {
                let named = &load.spans[&found.spans[moment.span.expect("is linked") as usize]];
                assert!(named.span.range().contains(moment.time));
            }
            assert_eq!(found.range, Some(known.span.range()));
        }
    }
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn parts_of_a_trace_are_the_whole_and_profiles_without_times_are_counted() {
    let load = Plan::exact(62).run();
    let dir = tempfile::tempdir().expect("a directory");
    let store = store(&dir, &load).await;
    let engine = Engine::new(store.snapshot());
    let (trace_id, cost) = load.by_trace.iter().nth(3).expect("some traces");
    let trace = || Selection::Trace { trace_id: *trace_id };
    let whole = ask(&engine, trace(), None).await;
    let untimed = |span: &&SpanId| load.spans[*span].span.resource.service() == "cart";
    let members = || load.spans.keys().filter(|span| load.spans[*span].span.trace_id == *trace_id);
    let without: u64 = members().filter(untimed).map(|span| load.spans[span].linked.total().samples).sum();
    assert!(without > 0);
    assert_eq!(
        (whole.without_time, whole.moments.len() as u64 + without),
        (without, cost.total().samples)
    );
    assert_eq!(whole.profile.total, cost.total().value);

    let range = whole.range.expect("has spans");
    let middle = range.start().saturating_add(range.duration_ns() / 2);
    let halves = [TimeRange::new(range.start(), middle), TimeRange::new(middle, range.end())];
    let mut joined = Vec::new();
    for half in halves {
        let half = half.expect("not empty");
        let found = ask(&engine, trace(), Some(half)).await;
        assert_eq!(found.range, Some(half));
        joined.extend(found.moments.iter().map(|moment| (moment.time, moment.value)));
    }
    let all: Vec<_> = whole.moments.iter().map(|moment| (moment.time, moment.value)).collect();
    assert_eq!(joined, all);
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn samples_without_ids_are_shown_by_time_and_place() {
    let load = timed(Plan::exact(63).with_style(LinkStyle::Unlinked));
    let dir = tempfile::tempdir().expect("a directory");
    let store = store(&dir, &load).await;
    let engine = Engine::new(store.snapshot());
    let (span_id, known) = load.spans.iter().nth(20).expect("some spans");
    let selection = Selection::Span {
        trace_id: known.span.trace_id,
        span_id: *span_id,
        scope: Scope::Window,
    };
    let found = ask(&engine, selection, None).await;
    assert_eq!(found.moments.len() as u64, found.profile.samples);
    assert!(
        found
            .moments
            .iter()
            .all(|moment| moment.span.is_none() && known.span.range().contains(moment.time))
    );
    assert_eq!(found.threads.len(), 3);
    store.close().await.expect("is closed");
}

#[tokio::test]
async fn only_spans_and_traces_have_a_timeline() {
    let load = timed(Plan::exact(64));
    let dir = tempfile::tempdir().expect("a directory");
    let store = store(&dir, &load).await;
    let engine = Engine::new(store.snapshot());
    let selector = LabelSelector::default();
    let refused = engine.timeline(&request(Selection::Services { selector }, None)).await;
    assert_eq!(refused.expect_err("is refused").kind(), ErrorKind::Invalid);
    let trace_id = spanflame_testkit::trace_id(999_999);
    let unknown = engine.timeline(&request(Selection::Trace { trace_id }, None)).await;
    assert_eq!(unknown.expect_err("is not stored").kind(), ErrorKind::NotFound);
    store.close().await.expect("is closed");
}
