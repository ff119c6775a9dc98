//! `GET /api/metrics/query_range`, `GET /api/metrics/query` and their streaming twins: TraceQL metrics.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde_json::{Value as Json, json};
use spanflame_model::{Tenant, TimeRange, Timestamp, Value};
use spanflame_proto::tempo as wire;
use spanflame_query::traceql::MetricsQuery;
use spanflame_query::{Engine, MetricSeries, MetricsAnswer, MetricsRequest};

use super::answer::{Answer, Object, Wire, attribute, double, key_values, list, runs, search_metrics};
use super::params::{self, Params};
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;
use crate::notation;
use crate::question::ask;

/// Steps where no length is given: about as many as a graph has room for.
const STEPS_DEFAULT: u64 = 100;
/// Lengths of a step that people read well, in seconds; longer ones are whole hours.
const STEPS_SECONDS: [u64; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
/// Examples of a series where no number is given, and the most.
const EXEMPLARS_DEFAULT: u64 = 100;
const EXEMPLARS_MAX: u64 = 1_000;
/// What stands for a value that spans do not have.
const NIL: &str = "nil";

/// `GET /api/metrics/query_range`
pub(super) async fn query_range(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let range = params.range(now())?;
    let step_ns = match params.text("step") {
        Some(text) => step_of(text)?,
        None => step_default_ns(range),
    };
    let exemplars = params.count("exemplars", 0)?.unwrap_or(EXEMPLARS_DEFAULT);
    let question = Question::new(&params, &headers, range, Some(step_ns), exemplars)?;
    question.answer(&app, Wire::of(&headers), range_response).await
}

/// `GET /api/metrics/query`
pub(super) async fn query(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let range = params.range(now())?;
    let question = Question::new(&params, &headers, range, None, 0)?;
    question.answer(&app, Wire::of(&headers), instant_response).await
}

/// What is asked, whichever way.
pub(super) struct Question(MetricsRequest);

impl Question {
    fn new(params: &Params, headers: &HeaderMap, range: TimeRange, step_ns: Option<u64>, exemplars: u64) -> Result<Question, Failure> {
        let text = params.named(&["q", "query"]).unwrap_or_default();
        Ok(Question(MetricsRequest {
            tenants: read_tenants(headers)?,
            query: MetricsQuery::parse(text).map_err(spanflame_query::Error::TraceQl)?,
            range,
            step_ns,
            exemplars: exemplars.min(EXEMPLARS_MAX) as usize,
        }))
    }

    /// The question of a streaming request; times and step are nanoseconds, 0 is nothing, no step is one value.
    pub(super) fn of_request(tenants: Vec<Tenant>, query: &str, [start, end]: [u64; 2], step_ns: Option<u64>) -> Result<Question, Failure> {
        let time = |nanos: u64| Timestamp::from_unix_nanos(nanos).filter(|_| nanos > 0);
        let range = match (time(start), time(end)) {
            (None, None) => params::last_hour(now()),
            (start, end) => params::range(start, end, None, now())?,
        };
        let step_ns = step_ns.map(|step| if step == 0 { step_default_ns(range) } else { step });
        Ok(Question(MetricsRequest {
            tenants,
            query: MetricsQuery::parse(query).map_err(spanflame_query::Error::TraceQl)?,
            range,
            step_ns,
            exemplars: EXEMPLARS_DEFAULT as usize,
        }))
    }

    pub(super) async fn answer<A: Answer + 'static>(
        self,
        app: &Arc<App>,
        wire: Wire,
        write: fn(&MetricsAnswer) -> A,
    ) -> Result<Response, Failure> {
        let asked = async move |engine: Engine| engine.metrics(&self.0).await;
        ask(app, "tempo_metrics", asked, move |answer: &MetricsAnswer, _| {
            Ok(wire.write(write(answer)))
        })
        .await
    }
}

/// A step as a duration or as seconds.
fn step_of(text: &str) -> Result<u64, Failure> {
    let seconds = text.parse::<f64>().ok().map(|seconds| (seconds * 1e9) as u64);
    let step = seconds.or_else(|| notation::duration_ns(text)).filter(|step| *step > 0);
    step.ok_or_else(|| {
        let text: String = text.chars().take(80).collect();
        Failure::invalid("step", format!("step is {text:?}, expected a duration such as 15s"))
    })
}

fn step_default_ns(range: TimeRange) -> u64 {
    let wanted = range.duration_ns().div_ceil(STEPS_DEFAULT).div_ceil(1_000_000_000);
    let known = STEPS_SECONDS.into_iter().find(|seconds| *seconds >= wanted);
    known.unwrap_or_else(|| wanted.next_multiple_of(3_600)) * 1_000_000_000
}

pub(super) fn range_response(answer: &MetricsAnswer) -> wire::QueryRangeResponse {
    let (status, message) = status_of(answer);
    wire::QueryRangeResponse {
        series: answer.series.iter().map(|series| time_series(series, &answer.times)).collect(),
        metrics: Some(metrics_of(answer)),
        status: status as i32,
        message,
    }
}

pub(super) fn instant_response(answer: &MetricsAnswer) -> wire::QueryInstantResponse {
    let (status, message) = status_of(answer);
    let instant = |series: &MetricSeries| {
        let value = series.values.first().copied().flatten()?;
        Some(wire::InstantSeries {
            labels: labels(series),
            value,
            ..wire::InstantSeries::default()
        })
    };
    wire::QueryInstantResponse {
        series: answer.series.iter().filter_map(instant).collect(),
        metrics: Some(metrics_of(answer)),
        status: status as i32,
        message,
    }
}

fn status_of(answer: &MetricsAnswer) -> (wire::PartialStatus, String) {
    match answer.left_out {
        0 => (wire::PartialStatus::Complete, String::new()),
        left_out => {
            let message = format!(
                "{left_out} of {} spans are in no series, because there are more than {} of them",
                answer.spans,
                MetricsRequest::SERIES_MAX
            );
            (wire::PartialStatus::Partial, message)
        }
    }
}

fn metrics_of(_: &MetricsAnswer) -> wire::SearchMetrics {
    wire::SearchMetrics {
        completed_jobs: 1,
        total_jobs: 1,
        ..wire::SearchMetrics::default()
    }
}

fn time_series(series: &MetricSeries, times: &[Timestamp]) -> wire::TimeSeries {
    let millis = |time: Timestamp| time.unix_nanos() / 1_000_000;
    let samples = times.iter().zip(&series.values).filter_map(|(time, value)| {
        Some(wire::Sample {
            timestamp_ms: millis(*time),
            value: (*value)?,
        })
    });
    let exemplars = series.exemplars.iter().map(|example| wire::Exemplar {
        labels: vec![attribute("trace:id", &Value::Str(example.trace_id.to_string()))],
        value: example.value,
        timestamp_ms: millis(example.time),
    });
    wire::TimeSeries {
        labels: labels(series),
        samples: samples.collect(),
        exemplars: exemplars.collect(),
        ..wire::TimeSeries::default()
    }
}

fn labels(series: &MetricSeries) -> Vec<wire::KeyValue> {
    let label = |(name, value): &(String, Option<Value>)| match value {
        Some(value) => attribute(name, value),
        None => attribute(name, &Value::Str(NIL.to_owned())),
    };
    series.labels.iter().map(label).collect()
}

impl Answer for wire::QueryRangeResponse {
    fn json(&self) -> Json {
        let sample = |sample: &wire::Sample| json!({ "timestampMs": sample.timestamp_ms.to_string(), "value": double(sample.value) });
        let exemplar = |exemplar: &wire::Exemplar| {
            json!({
                "labels": key_values(&exemplar.labels),
                "value": double(exemplar.value),
                "timestampMs": exemplar.timestamp_ms.to_string(),
            })
        };
        let series = |series: &wire::TimeSeries| {
            Object::new()
                .always("labels", key_values(&series.labels))
                .always("samples", list(&series.samples, sample))
                .with("exemplars", list(&series.exemplars, exemplar))
                .into()
        };
        partial(list(&self.series, series), &self.metrics, self.status, &self.message)
    }

    fn parts(self) -> Vec<Self> {
        let (metrics, status, message) = (self.metrics, self.status, self.message);
        let part = |series| wire::QueryRangeResponse {
            series,
            metrics,
            status,
            message: message.clone(),
        };
        let mut parts: Vec<Self> = runs(self.series).into_iter().map(part).collect();
        if parts.is_empty() {
            parts.push(part(Vec::new()));
        }
        parts
    }
}

impl Answer for wire::QueryInstantResponse {
    fn json(&self) -> Json {
        let series = |series: &wire::InstantSeries| json!({ "labels": key_values(&series.labels), "value": double(series.value) });
        partial(list(&self.series, series), &self.metrics, self.status, &self.message)
    }
}

fn partial(series: Json, metrics: &Option<wire::SearchMetrics>, status: i32, message: &str) -> Json {
    let is_partial = status == wire::PartialStatus::Partial as i32;
    Object::new()
        .always("series", series)
        .always("metrics", search_metrics(metrics))
        .with("status", if is_partial { "PARTIAL" } else { "" })
        .with("message", message)
        .into()
}
