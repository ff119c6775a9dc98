use spanflame_testkit::{SpanBuilder, at};

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Nine spans of two services, one a second; the n-th lasts n ms and has size n.
fn spans() -> Vec<Span> {
    let span = |n: u64| {
        let service = if n.is_multiple_of(3) { "a" } else { "b" };
        SpanBuilder::new(n, n, service)
            .time(n * SECOND, n * 1_000_000)
            .attribute("size", Value::Int(n as i64))
            .build()
    };
    (1..=9).map(span).collect()
}

/// From second 1 to 10 in steps of 5 seconds, which are cut at 0, 5 and 10.
fn ask(query: &str, step_ns: Option<u64>) -> MetricsAnswer {
    let request = MetricsRequest {
        tenants: vec![Tenant::anonymous()],
        query: MetricsQuery::parse(query).expect("parses"),
        range: TimeRange::new(at(SECOND), at(10 * SECOND)).expect("start before end"),
        step_ns,
        exemplars: 1,
    };
    let mut meter = Meter::new(&request).expect("few steps");
    spans().iter().for_each(|span| meter.add(span));
    meter.finish()
}

/// Every series as `label=value ...: value value`.
fn check(query: &str, expected: &[&str]) {
    let answer = ask(query, Some(5 * SECOND));
    assert_eq!(answer.times, [at(5 * SECOND), at(10 * SECOND)]);
    let text = |series: &MetricSeries| {
        let labels = series.labels.iter().map(|(name, value)| {
            let value = value.as_ref().map_or("nil".to_owned(), text_of);
            format!("{name}={value}")
        });
        let values = series
            .values
            .iter()
            .map(|value| value.map_or("-".to_owned(), |value| format!("{value:.4}")));
        format!("{}: {}", labels.collect::<Vec<_>>().join(" "), values.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(answer.series.iter().map(text).collect::<Vec<_>>(), expected, "{query}");
}

#[test]
fn spans_are_counted_at_the_step_in_which_they_began() {
    check("{} | count_over_time()", &["__name__=count_over_time: 4.0000 5.0000"]);
    check("{} | rate()", &["__name__=rate: 0.8000 1.0000"]);
    check(
        "{} | count_over_time() by(resource.service.name)",
        &["resource.service.name=a: 1.0000 2.0000", "resource.service.name=b: 3.0000 3.0000"],
    );
    check("{} | count_over_time() by(.absent)", &[".absent=nil: 4.0000 5.0000"]);
}

#[test]
fn durations_are_seconds_and_other_numbers_themselves() {
    check("{} | max_over_time(duration)", &["__name__=max_over_time: 0.0040 0.0090"]);
    check("{} | min_over_time(.size)", &["__name__=min_over_time: 1.0000 5.0000"]);
    check("{} | sum_over_time(span.size)", &["__name__=sum_over_time: 10.0000 35.0000"]);
    check("{} | avg_over_time(.size)", &["__name__=avg_over_time: 2.5000 7.0000"]);
    check("{} | avg_over_time(.absent)", &[]);
}

#[test]
fn quantiles_are_within_a_percent_and_buckets_are_powers_of_two() {
    let answer = ask("{} | quantile_over_time(.size, 0.5, 1)", Some(5 * SECOND));
    let near = |value: Option<f64>, expected: f64| value.is_some_and(|value| (value / expected - 1.0).abs() <= 0.01);
    assert!(near(answer.series[0].values[1], 7.0), "{:?}", answer.series[0]);
    assert_eq!(answer.series[1].values, [Some(4.0), Some(9.0)]);
    assert_eq!(answer.series[1].labels, [("p".to_owned(), Some(Value::Double(1.0)))]);
    check(
        "{} | histogram_over_time(.size)",
        &[
            "__bucket=1: 1.0000 0.0000",
            "__bucket=2: 1.0000 0.0000",
            "__bucket=4: 2.0000 0.0000",
            "__bucket=8: 0.0000 4.0000",
            "__bucket=16: 0.0000 1.0000",
        ],
    );
}

#[test]
fn stages_keep_what_is_asked_for_at_each_step() {
    check(
        "{} | count_over_time() by(resource.service.name) | topk(1)",
        &["resource.service.name=b: 3.0000 3.0000"],
    );
    check(
        "{} | count_over_time() by(resource.service.name) | bottomk(1)",
        &["resource.service.name=a: 1.0000 2.0000"],
    );
    check("{} | count_over_time() | > 4", &["__name__=count_over_time: - 5.0000"]);
}

#[test]
fn without_steps_there_is_one_value_and_examples_measure_most() {
    let answer = ask("{} | max_over_time(duration)", None);
    assert_eq!(answer.series[0].values, [Some(0.009)]);
    let example = answer.series[0].exemplars[0];
    assert_eq!((example.trace_id, example.time), (spanflame_testkit::trace_id(9), at(9 * SECOND)));
    assert_eq!((answer.spans, answer.left_out), (9, 0));
}

#[test]
fn too_many_steps_are_refused() {
    let request = MetricsRequest {
        tenants: vec![Tenant::anonymous()],
        query: MetricsQuery::parse("{} | rate()").expect("parses"),
        range: TimeRange::new(at(0), at(SECOND)).expect("start before end"),
        step_ns: Some(1),
        exemplars: 0,
    };
    assert!(Meter::new(&request).is_err());
}
