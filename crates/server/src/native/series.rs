//! `GET /api/v1/profile/series`: what the selected profiles cost over time, by label.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_query::{Engine, LabelSelector, SeriesAnswer, SeriesRequest, StepSeries, Steps, TypeSelector};

use super::params::Params;
use super::profile::{WireEvidence, type_name};
use super::question::ask;
use super::text::{known, time};
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;

const BUCKETS_DEFAULT: usize = 100;
const LIMIT_DEFAULT: usize = 20;
const LIMIT_MAX: usize = 1000;
/// The most labels to group by.
const BY_MAX: usize = 8;

pub(super) async fn series(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse_with(query.as_deref(), &["q", "type", "start", "end", "buckets", "by", "limit"], &["by"])?;
    let by: Vec<String> = params.texts("by").map(str::to_owned).collect();
    if by.len() > BY_MAX {
        let message = format!("by is given {} times, expected at most {BY_MAX}", by.len());
        return Err(Failure::invalid("by", message));
    }
    let limit = params.count("limit", LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let buckets = params.count("buckets", Steps::MAX)?.unwrap_or(BUCKETS_DEFAULT);
    let request = SeriesRequest {
        tenants: read_tenants(&headers)?,
        selector: LabelSelector::parse(params.text("q").unwrap_or_default())?,
        profile_type: params.read::<TypeSelector>("type")?.unwrap_or_default(),
        steps: Steps::new(params.range(now())?, buckets),
        by,
    };
    let steps = request.steps;
    let asked = async move |engine: Engine| engine.profile_steps(&request).await;
    ask(&app, "profile_series", asked, move |answer: &SeriesAnswer, watch| {
        Ok(watch.json(WireAnswer::new(answer, steps, limit)))
    })
    .await
}

#[derive(Serialize)]
struct WireAnswer<'a> {
    #[serde(rename = "type")]
    profile_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    start_unix_nano: String,
    end_unix_nano: String,
    bucket_ns: u64,
    series: Vec<WireSeries<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<WireOthers>,
    evidence: WireEvidence<'a>,
}

#[derive(Serialize)]
struct WireSeries<'a> {
    labels: BTreeMap<&'a str, &'a str>,
    total: i64,
    value: &'a [i64],
    samples: &'a [u64],
}

/// What is beyond the limit, as one.
#[derive(Serialize)]
struct WireOthers {
    series: usize,
    total: i64,
    value: Vec<i64>,
    samples: Vec<u64>,
}

impl<'a> WireAnswer<'a> {
    fn new(answer: &'a SeriesAnswer, steps: Steps, limit: usize) -> WireAnswer<'a> {
        let (shown, rest) = answer.series.split_at(limit.min(answer.series.len()));
        let others = |sum: StepSeries| WireOthers {
            series: rest.len(),
            total: sum.total,
            value: sum.values,
            samples: sum.samples,
        };
        WireAnswer {
            profile_type: type_name(&answer.profile_type),
            unit: known(&answer.profile_type.sample.unit),
            start_unix_nano: time(steps.range.start()),
            end_unix_nano: time(steps.range.end()),
            bucket_ns: steps.step_ns,
            series: shown.iter().map(WireSeries::new).collect(),
            others: StepSeries::sum(rest).map(others),
            evidence: WireEvidence::new(&answer.evidence),
        }
    }
}

impl<'a> WireSeries<'a> {
    /// A label that its profiles do not have is absent.
    fn new(series: &'a StepSeries) -> WireSeries<'a> {
        let labels = series.labels.iter().filter(|(_, value)| !value.is_empty());
        WireSeries {
            labels: labels.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            total: series.total,
            value: &series.values,
            samples: &series.samples,
        }
    }
}
