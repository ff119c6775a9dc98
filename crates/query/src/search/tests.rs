use spanflame_model::{Tenant, Timestamp};
use spanflame_testkit::{Random, SpanBuilder, at};

use super::*;

fn request(order: Order, limit: usize, page: Option<String>) -> SearchRequest {
    SearchRequest {
        tenants: vec![Tenant::anonymous()],
        query: Query::parse("{}").expect("parses"),
        range: TimeRange::ALL,
        rule: RangeRule::Overlap,
        order,
        limit,
        page,
    }
}

/// Spans in many ties of duration and start, one id stored twice; the clock of arrival is their number.
fn spans() -> Vec<StoredSpan> {
    let mut random = Random::new(5);
    let span = |number: u64| {
        let (start, duration) = (random.below(5), random.below(4));
        StoredSpan {
            tenant: Tenant::anonymous(),
            received: at(number),
            span: SpanBuilder::new(1 + number % 7, 1 + number / 2, "a").time(start, duration).build(),
        }
    };
    (0..200).map(span).collect()
}

fn walk(order: Order, limit: usize) -> Vec<Timestamp> {
    let (mut found, mut page) = (Vec::new(), None);
    for _ in 0..1000 {
        let request = request(order, limit, page);
        let cursor = request.cursor(at(199)).expect("valid");
        let mut ranking = Ranking::new(order, limit, &cursor);
        // What arrives during the walk is filtered by the store, through the bound in the cursor.
        let visible = spans().into_iter().filter(|stored| stored.received < cursor.received_before);
        visible.for_each(|stored| ranking.add(stored));
        let (spans, matched, next) = ranking.finish(&request, &cursor);
        assert_eq!(matched, 200, "every page counts all matches");
        found.extend(spans.iter().map(|stored| stored.received));
        page = next;
        if page.is_none() {
            return found;
        }
    }
    panic!("the walk does not end");
}

#[test]
fn a_walk_over_pages_visits_every_span_once_in_order() {
    for order in [Order::Duration, Order::Start] {
        let whole = walk(order, 1000);
        assert_eq!(whole.len(), 200);
        for limit in [1, 7, 100, 199, 200] {
            assert_eq!(walk(order, limit), whole, "limit {limit}");
        }
    }
}

#[test]
fn longest_and_newest_come_first_and_ids_break_ties() {
    let by = |order| {
        let all = spans();
        walk(order, 1000)
            .into_iter()
            .map(|received| all[received.unix_nanos() as usize].span.clone())
            .collect::<Vec<_>>()
    };
    let ids = |span: &spanflame_model::Span| (span.trace_id, span.span_id);
    assert!(by(Order::Duration).is_sorted_by_key(|span| (Reverse(span.duration_ns), ids(span))));
    assert!(by(Order::Start).is_sorted_by_key(|span| (Reverse(span.start), ids(span))));
}

#[test]
fn a_page_of_another_question_is_refused() {
    let first = request(Order::Duration, 1, None);
    let cursor = first.cursor(at(9)).expect("valid");
    let mut ranking = Ranking::new(Order::Duration, 1, &cursor);
    spans().into_iter().for_each(|stored| ranking.add(stored));
    let page = ranking.finish(&first, &cursor).2;
    assert!(page.is_some());
    assert!(request(Order::Duration, 5, page.clone()).cursor(at(9)).is_ok());
    assert!(request(Order::Start, 1, page).cursor(at(9)).is_err());
    for text in ["", "1", "2.0.0.0.1.0.1.1.0", "1.x.0.0.1.0.1.1.0"] {
        assert!(request(Order::Start, 1, Some(text.to_owned())).cursor(at(9)).is_err(), "{text}");
    }
}

#[test]
fn a_page_keeps_the_range_and_the_arrival_bound_of_the_first() {
    let first = request(Order::Duration, 1, None);
    let cursor = first.cursor(at(150)).expect("valid");
    let mut ranking = Ranking::new(Order::Duration, 1, &cursor);
    spans().into_iter().for_each(|stored| ranking.add(stored));
    let mut second = request(Order::Duration, 1, ranking.finish(&first, &cursor).2);
    second.range = TimeRange::lasting(at(3), 4);
    let continued = second.cursor(at(10_000)).expect("valid");
    assert_eq!((continued.range, continued.received_before), (TimeRange::ALL, at(151)));
}
