//! `/pyroscope/render` and its kin: the API of before the calls, as plain HTTP with JSON.
//!
//! Times are those of `/ingest`: Unix seconds, milli-, micro- or nanoseconds, `YYYYMMDD`, `now-1h`. A query is a profile
//! type or an application with suffix, then labels: `process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="cart"}`
//! or `cart.cpu{}`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use serde_json::{Value, json};
use spanflame_model::{ProfileType, Timestamp};
use spanflame_proto::pyroscope as wire;
use spanflame_query::{Engine, ProfileAnswer, ProfileSeries, StepSeries};
use url::form_urlencoded;

use super::flamegraph::{Merged, nodes};
use super::ingest::{sample_type, window};
use super::labels::{self, Names};
use super::profile::{self, Wanted};
use super::series;
use super::{Endpoint, diff};
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;
use crate::question::ask;

/// Points of a timeline, and how close they may be.
const POINTS: f64 = 1500.0;
const STEP_S_MIN: f64 = 15.0;

/// The range of a query that names none.
const RANGE_DEFAULT: &str = "now-1h";

pub(super) fn table() -> Vec<Endpoint> {
    vec![
        ("GET", "/pyroscope/render", get(render)),
        ("GET", "/pyroscope/render-diff", get(render_diff)),
        ("GET", "/pyroscope/label-names", get(label_names)),
        ("GET", "/pyroscope/label-values", get(label_values)),
    ]
}

/// Parameters by name, the last one where one is repeated; unknown ones are ignored, as old clients expect.
struct Params(HashMap<String, String>);

impl Params {
    fn parse(query: Option<&str>) -> Params {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Params(pairs.into_owned().filter(|(_, value)| !value.is_empty()).collect())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn time_ms(&self, name: &str, default: &str) -> Result<i64, Failure> {
        let text = self.text(name).unwrap_or(default);
        let time: Option<Timestamp> = window::time(text, now());
        time.map(series::ms).ok_or_else(|| {
            let text: String = text.chars().take(80).collect();
            Failure::invalid(name, format!("{name} is {text:?}, expected {}", window::SPELLINGS))
        })
    }

    fn max_nodes(&self) -> Option<i64> {
        let text = self.text("maxNodes").or_else(|| self.text("max-nodes"));
        text.and_then(|text| text.parse().ok())
    }

    /// What the parameters `query`, `from` and `until` ask for, with a prefix before their names.
    fn wanted(&self, [query, from, until]: [&str; 3]) -> Result<Wanted, Failure> {
        let text = self
            .text(query)
            .ok_or_else(|| Failure::invalid(query, format!("{query} is missing")))?;
        let (profile_type, selector) = split(query, text)?;
        Ok(Wanted {
            profile_type: profile_type.to_string(),
            selector,
            start_ms: self.time_ms(from, RANGE_DEFAULT)?,
            end_ms: self.time_ms(until, "now")?,
            ..Wanted::default()
        })
    }
}

/// Profile type and selector of a query.
fn split(field: &str, query: &str) -> Result<(ProfileType, String), Failure> {
    let (name, labels) = query.split_at(query.find('{').unwrap_or(query.len()));
    let (name, labels) = (name.trim(), if labels.is_empty() { "{}" } else { labels });
    if name.contains(':') {
        return Ok((labels::profile_type(name)?, labels.to_owned()));
    }
    let (app, profile_type) = sample_type::application(name).ok_or_else(|| {
        let name: String = name.chars().take(200).collect();
        Failure::invalid(
            field,
            format!("{field} begins with {name:?}, expected a profile type of five parts or app.suffix"),
        )
    })?;
    let inner = labels.trim().trim_start_matches('{').trim_end_matches('}').trim();
    let app = serde_json::to_string(app).map_err(|error| Failure::internal("the name cannot be quoted", &error))?;
    let separator = if inner.is_empty() { "" } else { ", " };
    Ok((profile_type, format!("{{service_name={app}{separator}{inner}}}")))
}

async fn render(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    answered(single(app, Params::parse(query.as_deref()), headers).await)
}

async fn single(app: Arc<App>, params: Params, headers: HeaderMap) -> Result<Response, Failure> {
    let wanted = params.wanted(["query", "from", "until"])?;
    let max_nodes = params.max_nodes();
    if params.text("format") == Some("dot") {
        return profile::answer(&app, "pyroscope_render", wanted, &headers, move |profile| {
            let mut response = Response::new(Body::from(profile::dot(profile, max_nodes)));
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, text);
            Ok(response)
        })
        .await;
    }
    let by: Vec<String> = params.text("groupBy").into_iter().map(str::to_owned).collect();
    let step_s = ((wanted.end_ms - wanted.start_ms) as f64 / 1e3 / POINTS).max(STEP_S_MIN).round();
    let (range, about) = (
        (wanted.start_ms, wanted.end_ms),
        (wanted.profile_type.as_str(), wanted.selector.as_str()),
    );
    let all = series::Wanted::new(&headers, about, range, step_s, Vec::new())?;
    let grouped = series::Wanted::new(&headers, about, range, step_s, by)?;
    let request = wanted.request(&headers)?;
    let average = matches!(params.text("aggregation"), Some("avg" | "average"));
    let asked = async move |engine: Engine| {
        let profile = profile::merged(&engine, request.as_ref(), &[]).await?;
        let timeline = engine.profile_steps(&all.request).await?.series;
        let groups = match grouped.by.is_empty() {
            true => Vec::new(),
            false => engine.profile_steps(&grouped.request).await?.series,
        };
        let group = |series: &StepSeries| (series.labels[0].1.clone(), Timeline::of(&grouped, Some(series), average));
        Ok(Rendered {
            timeline: Timeline::of(&all, timeline.first(), average),
            groups: groups.iter().map(group).collect(),
            profile_type: all.profile_type.clone(),
            profile,
        })
    };
    ask(&app, "pyroscope_render", asked, move |rendered: &Rendered, _| {
        json_of(&rendered.json(max_nodes))
    })
    .await
}

/// Everything that `render` answers.
struct Rendered {
    profile: ProfileAnswer,
    profile_type: ProfileType,
    timeline: Timeline,
    groups: HashMap<String, Timeline>,
}

/// Values by step.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Timeline {
    /// Unix seconds.
    start_time: i64,
    samples: Vec<f64>,
    /// Seconds.
    duration_delta: i64,
    watermarks: Option<Value>,
}

impl Timeline {
    fn of(wanted: &series::Wanted, series: Option<&StepSeries>, average: bool) -> Timeline {
        let steps = &wanted.request.steps;
        let value = |step: usize| match series {
            Some(series) if average => series.values[step] as f64 / series.profiles[step].max(1) as f64,
            Some(series) => series.values[step] as f64,
            None => 0.0,
        };
        Timeline {
            start_time: wanted.point_ms(0) / 1000,
            samples: (0..steps.count()).map(value).collect(),
            duration_delta: (steps.step_ns / 1_000_000_000) as i64,
            watermarks: None,
        }
    }
}

impl Rendered {
    fn json(&self, max_nodes: Option<i64>) -> Value {
        let graph = Merged::of([&self.profile.tree]).cut(nodes(max_nodes)).into_flamegraph();
        json!({
            "version": 1,
            "flamebearer": {
                "names": graph.names,
                "levels": levels(&graph.levels),
                "numTicks": graph.total,
                "maxSelf": graph.max_self,
            },
            "metadata": metadata("single", &self.profile_type),
            "timeline": self.timeline,
            "groups": self.groups,
            "heatmap": null,
        })
    }
}

fn levels(levels: &[wire::Level]) -> Vec<&[i64]> {
    levels.iter().map(|level| level.values.as_slice()).collect()
}

/// Ticks divided by the rate are seconds where time is measured.
fn metadata(format: &str, profile_type: &ProfileType) -> Value {
    let (units, rate) = match profile_type.sample.unit.as_str() {
        _ if profile_type.sample.is_nanoseconds() => ("samples", 1_000_000_000),
        "bytes" => ("bytes", 100),
        _ => ("objects", 100),
    };
    json!({
        "format": format,
        "spyName": "",
        "sampleRate": rate,
        "units": units,
        "name": profile_type.sample.kind,
    })
}

async fn render_diff(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    answered(double(app, Params::parse(query.as_deref()), headers).await)
}

async fn double(app: Arc<App>, params: Params, headers: HeaderMap) -> Result<Response, Failure> {
    let left = params.wanted(["leftQuery", "leftFrom", "leftUntil"])?;
    let right = params.wanted(["rightQuery", "rightFrom", "rightUntil"])?;
    let (profile_type, max_nodes) = (labels::profile_type(&left.profile_type)?, params.max_nodes());
    diff::compare(&app, [left, right], &headers, move |[left, right]| {
        let graph = Merged::of([&left.tree, &right.tree]).cut(nodes(max_nodes)).into_diff();
        json_of(&json!({
            "version": 1,
            "flamebearer": {
                "names": graph.names,
                "levels": levels(&graph.levels),
                "numTicks": graph.total,
                "maxSelf": graph.max_self,
            },
            "metadata": metadata("double", &profile_type),
            "timeline": null,
            "leftTicks": graph.left_ticks,
            "rightTicks": graph.right_ticks,
            "groups": null,
            "heatmap": null,
        }))
    })
    .await
}

async fn label_names(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let names = Names::of(&headers);
    let params = Params::parse(query.as_deref());
    answered(catalog(app, &params, headers, move |series| labels::names(series, names)).await)
}

async fn label_values(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let names = Names::of(&headers);
    let params = Params::parse(query.as_deref());
    let Some(label) = params.text("label").map(str::to_owned) else {
        return answered(Err(Failure::invalid("label", "label is missing, expected the name of a label")));
    };
    // Under this name old clients ask for profile types.
    let label = if label == "__name__" {
        "__profile_type__".to_owned()
    } else {
        label
    };
    answered(catalog(app, &params, headers, move |series| labels::values(series, &label, names)).await)
}

async fn catalog(
    app: Arc<App>,
    params: &Params,
    headers: HeaderMap,
    write: impl FnOnce(&[ProfileSeries]) -> Vec<String> + Send + 'static,
) -> Result<Response, Failure> {
    let (from, until) = (params.time_ms("from", RANGE_DEFAULT)?, params.time_ms("until", "now")?);
    let request = labels::catalog(&headers, from, until)?;
    let query = params.text("query").map(|query| query.find('{').map_or("{}", |at| &query[at..]));
    let selector = labels::selector("query", query.unwrap_or("{}"))?;
    let asked = async move |engine: Engine| engine.profile_series(&request, &[selector]).await;
    ask(&app, "pyroscope_labels", asked, move |series: &Vec<ProfileSeries>, _| {
        json_of(&write(series))
    })
    .await
}

fn json_of(value: &impl Serialize) -> Result<Response, Failure> {
    let bytes = serde_json::to_vec(value).map_err(|error| Failure::internal("the answer cannot be written", &error))?;
    let mut response = Response::new(Body::from(bytes));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Failures in the manner of the calls.
fn answered(result: Result<Response, Failure>) -> Response {
    result.unwrap_or_else(|failure| crate::connect::Manner::JSON.refusal(&failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: Result<(&str, &str), &str>) {
        let found = split("query", query).map(|(profile_type, selector)| (profile_type.to_string(), selector));
        let found = found
            .as_ref()
            .map(|(profile_type, selector)| (profile_type.as_str(), selector.as_str()));
        assert_eq!(found.map_err(|failure| failure.message.as_str()), expected);
    }

    #[test]
    fn a_query_is_a_type_or_an_application_with_suffix() {
        let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        check(&format!("{cpu}{{service_name=\"cart\"}}"), Ok((cpu, "{service_name=\"cart\"}")));
        check(cpu, Ok((cpu, "{}")));
        check("cart.cpu{}", Ok((cpu, "{service_name=\"cart\"}")));
        check("cart", Ok((cpu, "{service_name=\"cart\"}")));
        check(
            "my.cart.itimer{region=\"eu\"}",
            Ok((cpu, "{service_name=\"my.cart\", region=\"eu\"}")),
        );
        check(
            "cart.inuse_space{}",
            Ok(("memory:inuse_space:bytes:space:bytes", "{service_name=\"cart\"}")),
        );
        check(
            "",
            Err("query begins with \"\", expected a profile type of five parts or app.suffix"),
        );
    }
}
