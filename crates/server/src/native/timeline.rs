//! `GET .../samples`: when the samples of a span or trace were taken, and on which threads.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_query::{Engine, ProfileRequest, Scope, Selection, Timeline, TimelineRequest, TimelineThread, TypeSelector};

use super::params::Params;
use super::profile::{WireEvidence, WireFrame, span_selection, trace_selection, type_name};
use super::question::ask;
use super::text::{known, time};
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;

const PARAMETERS: [&str; 4] = ["scope", "type", "start", "end"];

/// `GET /api/v1/traces/{trace_id}/spans/{span_id}/samples`.
pub(super) async fn of_span(
    State(app): State<Arc<App>>,
    Path((trace_id, span_id)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &PARAMETERS)?;
    let selection = span_selection(&params, &trace_id, &span_id)?;
    answer(&app, "span_samples", request(&params, &headers, selection)?).await
}

/// `GET /api/v1/traces/{trace_id}/samples`.
pub(super) async fn of_trace(
    State(app): State<Arc<App>>,
    Path(trace_id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &PARAMETERS)?;
    let selection = trace_selection(&params, &trace_id)?;
    answer(&app, "trace_samples", request(&params, &headers, selection)?).await
}

fn request(params: &Params, headers: &HeaderMap, selection: Selection) -> Result<TimelineRequest, Failure> {
    Ok(TimelineRequest {
        profile: ProfileRequest {
            tenants: read_tenants(headers)?,
            selection,
            profile_type: params.read::<TypeSelector>("type")?.unwrap_or_default(),
            range: params.given_range(now())?,
            rows: false,
        },
        limit: TimelineRequest::LIMIT_MAX,
    })
}

async fn answer(app: &Arc<App>, name: &'static str, request: TimelineRequest) -> Result<Response, Failure> {
    let limit = request.limit;
    let asked = async move |engine: Engine| engine.timeline(&request).await;
    ask(app, name, asked, move |timeline: &Timeline, watch| {
        Ok(watch.json(WireTimeline::new(timeline, limit)))
    })
    .await
}

#[derive(Serialize)]
struct WireTimeline<'a> {
    #[serde(rename = "type")]
    profile_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_unix_nano: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<u64>,
    threads: Vec<WireThread<'a>>,
    frames: Vec<WireFrame<'a>>,
    stacks: &'a [Vec<u32>],
    samples: WireMoments,
    spans: Vec<String>,
    without_time: u64,
    truncated: bool,
    limit: usize,
    evidence: WireEvidence<'a>,
}

#[derive(Serialize)]
struct WireThread<'a> {
    service: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_name: Option<&'a str>,
}

/// Samples by field, for readers that want typed arrays.
#[derive(Serialize)]
struct WireMoments {
    offset_ns: Vec<i64>,
    thread: Vec<u32>,
    stack: Vec<u32>,
    value: Vec<i64>,
    span: Vec<Option<u32>>,
}

impl<'a> WireTimeline<'a> {
    fn new(timeline: &'a Timeline, limit: usize) -> WireTimeline<'a> {
        let profile = &timeline.profile;
        WireTimeline {
            profile_type: type_name(&profile.profile_type),
            unit: known(&profile.profile_type.sample.unit),
            scope: profile.scope.map(Scope::as_str),
            start_unix_nano: timeline.range.map(|range| time(range.start())),
            duration_ns: timeline.range.map(|range| range.duration_ns()),
            threads: timeline.threads.iter().map(WireThread::new).collect(),
            frames: profile.tree.frames.iter().map(WireFrame::new).collect(),
            stacks: &timeline.stacks,
            samples: WireMoments::new(timeline),
            spans: timeline.spans.iter().map(ToString::to_string).collect(),
            without_time: timeline.without_time,
            truncated: timeline.truncated,
            limit,
            evidence: WireEvidence::new(&profile.evidence),
        }
    }
}

impl<'a> WireThread<'a> {
    fn new(thread: &'a TimelineThread) -> WireThread<'a> {
        WireThread {
            service: &thread.service,
            instance: thread.instance.as_deref(),
            process_id: thread.process_id,
            thread_id: thread.thread_id,
            thread_name: thread.thread_name.as_deref(),
        }
    }
}

impl WireMoments {
    fn new(timeline: &Timeline) -> WireMoments {
        let start = timeline.range.map_or(0, |range| range.start().unix_nanos());
        let moments = &timeline.moments;
        WireMoments {
            // Both times have 63 bits, so their difference fits 64.
            offset_ns: moments.iter().map(|moment| moment.time.unix_nanos() - start).collect(),
            thread: moments.iter().map(|moment| moment.thread).collect(),
            stack: moments.iter().map(|moment| moment.stack).collect(),
            value: moments.iter().map(|moment| moment.value).collect(),
            span: moments.iter().map(|moment| moment.span).collect(),
        }
    }
}
