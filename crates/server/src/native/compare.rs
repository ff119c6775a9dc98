//! `GET /api/v1/compare`: two selections of spans, or of profiles, in one tree and one ranked list of functions.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_query::{
    CompareRequest, CompareSet, CompareSide, ComparedCost, ComparedFunction, Comparison, Engine, LabelSelector, RangeRule, Scope,
    TypeSelector,
};

use super::attributes::WireInterval;
use super::catalog::WireQuantiles;
use super::params::Params;
use super::profile::{WireEvidence, WireFrame, selection_scope, type_name};
use super::question::ask;
use super::spans::side;
use super::text::known;
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;

const PARAMETERS: [&str; 16] = [
    "base_q",
    "base_start",
    "base_end",
    "base_range",
    "base_trace",
    "base_span",
    "base_labels",
    "target_q",
    "target_start",
    "target_end",
    "target_range",
    "target_trace",
    "target_span",
    "target_labels",
    "type",
    "scope",
];

/// The most functions of one answer.
const FUNCTIONS_MAX: usize = 500;

pub(super) async fn compare(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &PARAMETERS)?;
    let request = CompareRequest {
        tenants: read_tenants(&headers)?,
        base: set(&params, "base_")?,
        target: set(&params, "target_")?,
        profile_type: params.read::<TypeSelector>("type")?.unwrap_or_default(),
        scope: params
            .word("scope", selection_scope, "span or subtree, for a selection of spans")?
            .unwrap_or_default(),
    };
    let asked = async move |engine: Engine| engine.compare(&request).await;
    ask(&app, "compare", asked, |comparison: &Comparison, watch| {
        Ok(watch.json(WireComparison::new(comparison)))
    })
    .await
}

/// The profiles of one side if it names labels, else its spans.
fn set(params: &Params, prefix: &'static str) -> Result<CompareSet, Failure> {
    let own = params.beginning_with(prefix);
    let Some(labels) = own.text("labels") else {
        return side(params, prefix, RangeRule::Overlap).map(CompareSet::Spans);
    };
    if let Some(other) = ["q", "range", "trace", "span"].into_iter().find(|name| own.text(name).is_some()) {
        let message = format!("{prefix}labels and {prefix}{other} are given, expected one of them");
        return Err(Failure::invalid("labels", message).of_field_beginning_with(prefix));
    }
    let range = own.range(now()).map_err(|failure| failure.of_field_beginning_with(prefix))?;
    let selector = LabelSelector::parse(labels).map_err(|error| {
        let failure = Failure::invalid("labels", error.to_string());
        failure.of_field_beginning_with(prefix)
    })?;
    Ok(CompareSet::Profiles { selector, range })
}

#[derive(Serialize)]
struct WireComparison<'a> {
    #[serde(rename = "type")]
    profile_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    base: WireSide<'a>,
    target: WireSide<'a>,
    frames: Vec<WireFrame<'a>>,
    tree: WireTwoTrees<'a>,
    functions: Vec<WireFunction<'a>>,
    functions_total: usize,
}

#[derive(Serialize)]
struct WireSide<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    spans: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    without_samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantiles: Option<WireQuantiles>,
    samples: u64,
    total: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_span: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<f64>,
    evidence: WireEvidence<'a>,
}

#[derive(Serialize)]
struct WireTwoTrees<'a> {
    frame: &'a [u32],
    parent: &'a [u32],
    base_self: &'a [i64],
    base_total: &'a [i64],
    base_samples: &'a [u64],
    target_self: &'a [i64],
    target_total: &'a [i64],
    target_samples: &'a [u64],
}

#[derive(Serialize)]
struct WireFunction<'a> {
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    base: WireCost,
    target: WireCost,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_difference: Option<f64>,
    #[serde(flatten)]
    difference: WireDifference,
    verdict: &'static str,
}

#[derive(Serialize)]
struct WireCost {
    #[serde(rename = "self")]
    self_value: i64,
    total: i64,
    samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<WireInterval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_span: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_span_interval: Option<WireInterval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second_interval: Option<WireInterval>,
}

#[derive(Serialize)]
struct WireDifference {
    #[serde(skip_serializing_if = "Option::is_none")]
    per_span_difference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_span_difference_interval: Option<WireInterval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second_difference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second_difference_interval: Option<WireInterval>,
}

impl<'a> WireComparison<'a> {
    fn new(comparison: &'a Comparison) -> WireComparison<'a> {
        let frames = &comparison.base_tree.frames;
        let function = |function: &ComparedFunction| {
            let frame = &frames[function.frame as usize];
            WireFunction {
                function: &frame.function,
                file: known(&frame.file),
                module: known(&frame.module),
                base: WireCost::new(&function.base, comparison.scope),
                target: WireCost::new(&function.target, comparison.scope),
                share_difference: function.target.share.zip(function.base.share).map(|(target, base)| target - base),
                difference: WireDifference::new(function, comparison.scope),
                verdict: function.verdict.as_str(),
            }
        };
        WireComparison {
            profile_type: type_name(&comparison.profile_type),
            unit: known(&comparison.profile_type.sample.unit),
            scope: comparison.scope.map(Scope::as_str),
            base: WireSide::new(&comparison.base),
            target: WireSide::new(&comparison.target),
            frames: frames.iter().map(WireFrame::new).collect(),
            tree: WireTwoTrees::new(comparison),
            functions: comparison.functions.iter().take(FUNCTIONS_MAX).map(function).collect(),
            functions_total: comparison.functions.len(),
        }
    }
}

impl<'a> WireSide<'a> {
    fn new(side: &'a CompareSide) -> WireSide<'a> {
        let profile = &side.profile;
        let per_unit = (side.units > 0.0).then(|| profile.total as f64 / side.units);
        WireSide {
            spans: side.spans.map(|spans| spans.spans),
            without_samples: side.spans.map(|spans| spans.without_samples),
            wall_ns: side.spans.map(|spans| spans.wall_ns),
            quantiles: side.spans.and_then(|spans| spans.quantiles).map(WireQuantiles::new),
            samples: profile.samples,
            total: profile.total,
            per_span: per_unit.filter(|_| side.spans.is_some()),
            per_second: per_unit.filter(|_| side.spans.is_none()),
            evidence: WireEvidence::new(&profile.evidence),
        }
    }
}

impl<'a> WireTwoTrees<'a> {
    fn new(comparison: &'a Comparison) -> WireTwoTrees<'a> {
        let (base, target) = (&comparison.base_tree, &comparison.target_tree);
        WireTwoTrees {
            frame: &base.frame,
            parent: &base.parent,
            base_self: &base.self_value,
            base_total: &base.total,
            base_samples: &base.samples,
            target_self: &target.self_value,
            target_total: &target.total,
            target_samples: &target.samples,
        }
    }
}

impl WireCost {
    /// Spans have a scope, profiles over time have none.
    fn new(cost: &ComparedCost, scope: Option<Scope>) -> WireCost {
        let (of_spans, of_seconds) = (scope.is_some(), scope.is_none());
        let interval = |wanted: bool| cost.per_unit_interval.filter(|_| wanted).map(WireInterval::new);
        WireCost {
            self_value: cost.self_value,
            total: cost.total,
            samples: cost.samples,
            share: cost.share,
            interval: cost.share_interval.map(WireInterval::new),
            per_span: cost.per_unit.filter(|_| of_spans),
            per_span_interval: interval(of_spans),
            per_second: cost.per_unit.filter(|_| of_seconds),
            per_second_interval: interval(of_seconds),
        }
    }
}

impl WireDifference {
    fn new(function: &ComparedFunction, scope: Option<Scope>) -> WireDifference {
        let (of_spans, of_seconds) = (scope.is_some(), scope.is_none());
        let interval = |wanted: bool| function.difference_interval.filter(|_| wanted).map(WireInterval::new);
        WireDifference {
            per_span_difference: function.difference.filter(|_| of_spans),
            per_span_difference_interval: interval(of_spans),
            per_second_difference: function.difference.filter(|_| of_seconds),
            per_second_difference_interval: interval(of_seconds),
        }
    }
}
