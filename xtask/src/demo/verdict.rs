//! Whether every planted cause was named for the right spans and for no other.

use std::time::Duration;

use serde_json::Value;

use super::ask::{self, Ask, Hottest};
use super::record::{Plant, Record};
use crate::{Failure, process};

/// Below this many samples nothing is named: the small-number rule of the answers themselves.
const SAMPLES_TO_NAME: u64 = 20;

/// Samples of a planted function that ordinary requests may hold in sum: they run it too, for microseconds.
const STRAY_SAMPLES_MAX: u64 = 2;

/// Ordinary requests looked at, those first that ran beside a slow one.
const ORDINARY_MAX: usize = 60;

/// How long samples may take from a service to an answer.
const SAMPLES_PATIENCE: Duration = Duration::from_secs(45);

/// A cause: the function, and the span that it makes slow.
struct Cause {
    plant: Plant,
    what: &'static str,
    service: &'static str,
    span: &'static str,
    function: &'static str,
}

const CAUSES: [Cause; 2] = [
    Cause {
        plant: Plant::LargeCart,
        what: "large cart",
        service: "cart",
        span: "render cart",
        function: "serialize_lines_again",
    },
    Cause {
        plant: Plant::OddCoupon,
        what: "odd coupon",
        service: "pricing",
        span: "match coupon",
        function: "match_from",
    },
];

/// What all requests share and the aggregate shows.
const SHARED_FUNCTION: &str = "stretch_key";

/// The span that `why` chose of a trace.
struct SlowSpan {
    service: String,
    name: String,
}

/// One line of the table.
struct Row {
    planted: String,
    expected: String,
    found: String,
    good: bool,
}

/// Waits until every slow request has enough samples in one of its spans: spans and samples of a trace arrive apart.
pub(super) fn wait_for_samples(ask: &Ask, records: &[Record]) -> Result<(), Failure> {
    let is_planted = |record: &&Record| CAUSES.iter().any(|cause| cause.plant == record.plant);
    process::wait_until("arrival of the samples of the slow requests", SAMPLES_PATIENCE, || {
        for record in records.iter().filter(is_planted) {
            match explain(ask, &record.trace_id)? {
                Some((_, hottest)) if hottest.of_samples >= SAMPLES_TO_NAME => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    })
}

/// Prints the table planted / found; fails if a line of it is not as planted.
pub(super) fn judge(ask: &Ask, records: &[Record], since_unix_nano: u128) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for cause in &CAUSES {
        rows.push(right_spans(ask, records, cause)?);
    }
    let ordinary = ordinary_beside_slow(records);
    for cause in &CAUSES {
        rows.push(no_other_spans(ask, &ordinary, records, cause)?);
    }
    rows.push(aggregate(ask, since_unix_nano)?);
    print_table(&rows);
    let bad = rows.iter().filter(|row| !row.good).count();
    if bad == 0 {
        Ok(())
    } else {
        Err(format!("{bad} of {} lines are not as planted", rows.len()).into())
    }
}

/// Every slow request of the cause: its span with most CPU is the planted one and names the planted function.
fn right_spans(ask: &Ask, records: &[Record], cause: &Cause) -> Result<Row, Failure> {
    let planted: Vec<&Record> = records.iter().filter(|record| record.plant == cause.plant).collect();
    let (mut named, mut samples, mut other) = (0, 0, None);
    for record in &planted {
        let found = explain(ask, &record.trace_id)?;
        match found {
            Some((span, hottest)) if is_named(cause, &span, &hottest) => {
                named += 1;
                samples += hottest.samples;
            }
            Some((span, hottest)) => {
                other = Some(format!(
                    "{} / {}: {} ({} of {})",
                    span.service, span.name, hottest.function, hottest.samples, hottest.of_samples
                ));
            }
            None => other = Some("no samples".to_owned()),
        }
    }
    let other = other.map(|other| format!("; else {other}")).unwrap_or_default();
    let mean = samples.checked_div(named).unwrap_or_default();
    Ok(Row {
        planted: format!("{} x {}", planted.len(), cause.what),
        expected: format!("{} / {}: {}", cause.service, cause.span, cause.function),
        found: format!("{named} of {}, {mean} samples each{other}", planted.len()),
        good: named == planted.len() as u64 && named > 0,
    })
}

fn is_named(cause: &Cause, span: &SlowSpan, hottest: &Hottest) -> bool {
    let right_span = span.service == cause.service && span.name == cause.span;
    right_span && is_function(&hottest.function, cause.function) && hottest.of_samples >= SAMPLES_TO_NAME
}

/// Whether a full name like `shop::pattern::match_from` is that function.
fn is_function(full: &str, function: &str) -> bool {
    full.rsplit("::")
        .find(|part| !(part.len() == 17 && part.starts_with('h')))
        .is_some_and(|last| last == function)
}

/// Requests without this cause hold no samples of its function, though they ran on the same threads at the same time.
fn no_other_spans(ask: &Ask, ordinary: &[&Record], records: &[Record], cause: &Cause) -> Result<Row, Failure> {
    let others = records
        .iter()
        .filter(|record| record.plant != cause.plant && record.plant != Plant::Nothing);
    let others: Vec<&Record> = ordinary.iter().copied().chain(others).collect();
    let mut stray = 0;
    for record in &others {
        let functions = trace_profile(ask, &record.trace_id)?
            .map(|profile| ask::own_samples(&profile))
            .unwrap_or_default();
        stray += functions
            .iter()
            .filter(|(name, _)| is_function(name, cause.function))
            .map(|(_, samples)| samples)
            .sum::<u64>();
    }
    Ok(Row {
        planted: format!("{} other requests", others.len()),
        expected: format!("no {}", cause.function),
        found: format!("{stray} samples of it"),
        good: stray <= STRAY_SAMPLES_MAX && !others.is_empty(),
    })
}

/// Ordinary requests by how near they were answered to a slow one.
fn ordinary_beside_slow(records: &[Record]) -> Vec<&Record> {
    let slow: Vec<usize> = (0..records.len()).filter(|&at| records[at].plant != Plant::Nothing).collect();
    let distance = |at: usize| slow.iter().map(|&other| at.abs_diff(other)).min().unwrap_or(usize::MAX);
    let mut ordinary: Vec<usize> = (0..records.len()).filter(|&at| records[at].plant == Plant::Nothing).collect();
    ordinary.sort_by_key(|&at| (distance(at), at));
    ordinary.into_iter().take(ORDINARY_MAX).map(|at| &records[at]).collect()
}

/// All requests together name what they share.
fn aggregate(ask: &Ask, since_unix_nano: u128) -> Result<Row, Failure> {
    let profile = ask.json(&["profile", "{ }", "--start", &since_unix_nano.to_string()])?;
    let hottest = profile.as_ref().and_then(ask::hottest);
    let good = hottest
        .as_ref()
        .is_some_and(|hottest| is_function(&hottest.function, SHARED_FUNCTION));
    let found = hottest.map_or("no samples".to_owned(), |hottest| {
        format!("{} ({} of {} samples)", hottest.function, hottest.samples, hottest.of_samples)
    });
    Ok(Row {
        planted: "session check in every request".to_owned(),
        expected: format!("aggregate: {SHARED_FUNCTION}"),
        found,
        good,
    })
}

/// What `why` shows first for a trace: a span and the hottest function of its own samples; `None` if the span has none.
fn explain(ask: &Ask, trace_id: &str) -> Result<Option<(SlowSpan, Hottest)>, Failure> {
    let Some(answer) = ask.json(&["why", trace_id])? else {
        return Ok(None);
    };
    let profile = &answer["profiles"][0];
    let own = profile["scope"] == "span";
    let hottest = ask::hottest(profile).filter(|_| own);
    Ok(shown_span(&answer).zip(hottest))
}

fn trace_profile(ask: &Ask, trace_id: &str) -> Result<Option<Value>, Failure> {
    ask.json(&["profile", "--trace", trace_id])
}

/// The span that an answer of `why` is about.
fn shown_span(answer: &Value) -> Option<SlowSpan> {
    let span_id = answer["span_id"].as_str()?;
    let span = answer["trace"]["spans"]
        .as_array()?
        .iter()
        .find(|span| span["span_id"] == span_id)?;
    let text = |name: &str| span[name].as_str().unwrap_or_default().to_owned();
    Some(SlowSpan {
        service: text("service"),
        name: text("name"),
    })
}

fn print_table(rows: &[Row]) {
    let width = |of: fn(&Row) -> &str| rows.iter().map(|row| of(row).len()).max().unwrap_or_default();
    let (planted, expected) = (width(|row| &row.planted), width(|row| &row.expected));
    println!("\n{:planted$}  {:expected$}  found", "planted", "to be named");
    for row in rows {
        let mark = if row.good { "ok" } else { "WRONG" };
        println!("{:planted$}  {:expected$}  {mark}: {}", row.planted, row.expected, row.found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_function_is_known_by_its_last_word() {
        assert!(is_function("spanflame_shop::pattern::match_from", "match_from"));
        assert!(is_function("spanflame_shop::pattern::match_from::h0123456789abcdef", "match_from"));
        assert!(!is_function("spanflame_shop::pattern::match_from::{{closure}}", "match_from"));
    }

    #[test]
    fn the_span_that_why_chose_is_found_in_the_trace() {
        let answer = json!({ "span_id": "b", "trace": { "spans": [
            { "span_id": "a", "service": "frontend", "name": "GET /checkout" },
            { "span_id": "b", "service": "cart", "name": "render cart" },
        ] } });
        assert_eq!(shown_span(&answer).map(|span| span.name), Some("render cart".to_owned()));
        assert!(shown_span(&json!({ "span_id": null, "trace": { "spans": [] } })).is_none());
    }
}
