//! Profiles over time: one value a step, and what the dearest profile or span of a step was.
//!
//! A point at `t` holds what ran in the step that ends there; the first one is at `start`. Steps without samples have no
//! point.

use std::collections::HashMap;
use std::sync::Arc;

use axum::response::Response;
use http::HeaderMap;
use spanflame_model::{ProfileType, TimeRange, Timestamp};
use spanflame_proto::pyroscope as wire;
use spanflame_query::{Engine, Item, ItemId, ItemKind, SeriesRequest, StepSeries, Steps, TypeSelector};
use wire::{ExemplarType, TimeSeriesAggregationType};

use super::labels::{self, TYPE_NAMES};
use crate::admission::read_tenants;
use crate::app::App;
use crate::connect::Call;
use crate::failure::Failure;
use crate::question::ask;

/// The most points of one series.
const POINTS_MAX: u64 = 11_000;

const NANOS_PER_MS: u64 = 1_000_000;

/// The labels that tell a group from the others.
type Group<'a> = &'a [(String, String)];

/// What is asked over time, in the words of the request.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) profile_type: ProfileType,
    pub(super) by: Vec<String>,
    pub(super) request: SeriesRequest,
    /// No profile of this type meets the selector.
    pub(super) is_empty: bool,
}

impl Wanted {
    pub(super) fn new(
        headers: &HeaderMap,
        (profile_type, selector): (&str, &str),
        (start_ms, end_ms): (i64, i64),
        step_s: f64,
        by: Vec<String>,
    ) -> Result<Wanted, Failure> {
        let profile_type = labels::profile_type(profile_type)?;
        let selector = labels::selector("label_selector", selector)?;
        let is_empty = !selector.selects_type(&profile_type);
        Ok(Wanted {
            request: SeriesRequest {
                tenants: read_tenants(headers)?,
                selector,
                profile_type: TypeSelector::from(profile_type.clone()),
                steps: steps(labels::range(start_ms, end_ms)?, step_s)?,
                by: by.clone(),
            },
            profile_type,
            by,
            is_empty,
        })
    }

    /// The labels of a group, without those that its profiles do not have.
    pub(super) fn labels(&self, group: &[(String, String)]) -> Vec<wire::LabelPair> {
        let filled = group.iter().map(|(name, value)| match TYPE_NAMES.contains(&name.as_str()) {
            true => (name.clone(), labels::of_type(&self.profile_type, name)),
            false => (name.clone(), value.clone()),
        });
        labels::pairs(filled.filter(|(_, value)| !value.is_empty()))
    }

    /// When the point of a step is.
    pub(super) fn point_ms(&self, step: usize) -> i64 {
        let steps = &self.request.steps;
        ms(steps.range.start().saturating_add(steps.step_ns * (step as u64 + 1)))
    }
}

/// Steps whose ends are the points of a range.
fn steps(range: TimeRange, step_s: f64) -> Result<Steps, Failure> {
    if !(0.001..=1e9).contains(&step_s) {
        return Err(Failure::invalid(
            "step",
            format!("step is {step_s}, expected seconds, at least 0.001"),
        ));
    }
    let step_ns = ((step_s * 1e3).round() as u64) * NANOS_PER_MS;
    let points = (range.duration_ns() - NANOS_PER_MS) / step_ns + 1;
    if points > POINTS_MAX {
        let message = format!("the range has {points} steps, expected at most {POINTS_MAX}");
        return Err(Failure::invalid("step", message));
    }
    let first = range.start().saturating_sub(step_ns);
    Ok(Steps {
        range: TimeRange::lasting(first, step_ns * points),
        step_ns,
    })
}

pub(super) fn ms(time: Timestamp) -> i64 {
    time.unix_nanos() / NANOS_PER_MS as i64
}

/// `SelectSeries`.
pub(super) async fn select(app: Arc<App>, call: Call<wire::SelectSeriesRequest>) -> Result<Response, Failure> {
    let Call { question, headers, manner } = call;
    let (aggregation, exemplar_type) = (question.aggregation(), question.exemplar_type());
    if question.stack_trace_selector.is_some_and(|selector| !selector.call_site.is_empty()) {
        let message = "stack_trace_selector is not supported over time, expected none";
        return Err(Failure::invalid("stack_trace_selector", message));
    }
    let limit = question
        .limit
        .and_then(|limit| usize::try_from(limit).ok())
        .filter(|limit| *limit > 0);
    let wanted = Wanted::new(
        &headers,
        (&question.profile_type_id, &question.label_selector),
        (question.start, question.end),
        question.step,
        question.group_by,
    )?;
    let kind = match exemplar_type {
        ExemplarType::Individual => Some(ItemKind::Profile),
        ExemplarType::Span => Some(ItemKind::Span),
        ExemplarType::Unspecified | ExemplarType::None => None,
    };
    let asked = async move |engine: Engine| {
        let (mut series, mut items) = (Vec::new(), Vec::new());
        if !wanted.is_empty {
            series = engine.profile_steps(&wanted.request).await?.series;
            if let Some(kind) = kind {
                items = engine.profile_items(kind, &wanted.request).await?;
            }
        }
        series.truncate(limit.unwrap_or(usize::MAX));
        Ok(wire::SelectSeriesResponse {
            series: write(&wanted, &series, &items, aggregation),
        })
    };
    ask(
        &app,
        "pyroscope_select_series",
        asked,
        move |answer: &wire::SelectSeriesResponse, _| manner.answer(answer),
    )
    .await
}

fn write(wanted: &Wanted, series: &[StepSeries], items: &[Item], aggregation: TimeSeriesAggregationType) -> Vec<wire::Series> {
    let mut dearest: HashMap<(Group<'_>, usize), &Item> = HashMap::new();
    for item in items {
        let best = dearest.entry((&item.labels, wanted.request.steps.of(item.at))).or_insert(item);
        if item.value > best.value {
            *best = item;
        }
    }
    let one = |series: &StepSeries| {
        let steps = (0..series.values.len()).filter(|step| series.samples[*step] > 0);
        let points = steps.map(|step| {
            let sum = series.values[step] as f64;
            let item = dearest.get(&(series.labels.as_slice(), step));
            wire::Point {
                value: match aggregation {
                    TimeSeriesAggregationType::Sum => sum,
                    TimeSeriesAggregationType::Average => sum / series.profiles[step].max(1) as f64,
                },
                timestamp: wanted.point_ms(step),
                annotations: Vec::new(),
                exemplars: item.map(|item| exemplar(wanted, item)).into_iter().collect(),
            }
        });
        wire::Series {
            labels: wanted.labels(&series.labels),
            points: points.collect(),
        }
    };
    series.iter().map(one).collect()
}

/// One profile or span on the wire.
pub(super) fn exemplar(wanted: &Wanted, item: &Item) -> wire::Exemplar {
    let (profile_id, span_id, trace_id) = match item.id {
        ItemId::Profile(id) => (labels::write_profile_id(id), String::new(), String::new()),
        ItemId::Span(trace, span) => {
            let trace = trace.map_or(String::new(), |trace| trace.to_string());
            (String::new(), span.to_string(), trace)
        }
    };
    wire::Exemplar {
        timestamp: ms(item.at),
        profile_id,
        span_id,
        trace_id,
        value: item.value,
        labels: wanted.labels(&item.labels),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_at_the_ends_of_steps_and_the_first_one_is_at_start() {
        let range = labels::range(100_000, 130_000).expect("valid");
        let steps = steps(range, 15.0).expect("valid");
        assert_eq!(
            (steps.count(), ms(steps.range.start()), ms(steps.range.end())),
            (3, 85_000, 130_000)
        );
        let message = |step| super::steps(range, step).expect_err("wrong").message;
        assert_eq!(message(0.0005), "step is 0.0005, expected seconds, at least 0.001");
        assert_eq!(message(f64::NAN), "step is NaN, expected seconds, at least 0.001");
        assert_eq!(message(0.001), "the range has 30001 steps, expected at most 11000");
    }
}
