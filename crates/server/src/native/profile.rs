//! Profiles of a span, a trace, or services over time, in every format.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use spanflame_formats::{Export, ExportRow, collapsed, links, pprof, speedscope};
use spanflame_model::{Attributes, ProfileType, Sample, Timestamp, ValueType};
use spanflame_query::{
    CallTree, Engine, Evidence, LabelSelector, ProfileAnswer, ProfileRequest, RangeRule, Reason, Row, Scope, SelectedProfile,
    SelectedRequest, Selection, ShownFrame, TypeSelector,
};

use super::catalog::WireQuantiles;
use super::params::{Params, id};
use super::question::{Stopwatch, ask};
use super::spans::selection;
use super::text::known;
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;

/// Reasons of an answer whose format has no place for them.
const REASON_HEADER: &str = "x-spanflame-reason";

/// How a profile is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ProfileFormat {
    #[default]
    Json,
    Collapsed,
    Pprof,
    Speedscope,
}

impl ProfileFormat {
    fn from_word(word: &str) -> Option<ProfileFormat> {
        match word {
            "json" => Some(ProfileFormat::Json),
            "collapsed" => Some(ProfileFormat::Collapsed),
            "pprof" => Some(ProfileFormat::Pprof),
            "speedscope" => Some(ProfileFormat::Speedscope),
            _ => None,
        }
    }
}

/// `GET /api/v1/traces/{trace_id}/spans/{span_id}/profile`.
pub(super) async fn of_span(
    State(app): State<Arc<App>>,
    Path((trace_id, span_id)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["scope", "type", "format", "start", "end"])?;
    let selection = span_selection(&params, &trace_id, &span_id)?;
    answer(&app, "span_profile", Question::new(&params, &headers, selection)?).await
}

/// `GET /api/v1/traces/{trace_id}/profile`.
pub(super) async fn of_trace(
    State(app): State<Arc<App>>,
    Path(trace_id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["scope", "type", "format", "start", "end"])?;
    let selection = trace_selection(&params, &trace_id)?;
    answer(&app, "trace_profile", Question::new(&params, &headers, selection)?).await
}

/// A trace of a path. Its scope is the trace; naming it is allowed.
pub(super) fn trace_selection(params: &Params, trace_id: &str) -> Result<Selection, Failure> {
    if let Some(other) = scope(params)?.filter(|scope| *scope != Scope::Trace) {
        let message = format!("scope is {:?}, expected trace; other scopes need a span", other.as_str());
        return Err(Failure::invalid("scope", message));
    }
    Ok(Selection::Trace {
        trace_id: id("trace_id", trace_id)?,
    })
}

/// A span of a path, in the scope that is asked for.
pub(super) fn span_selection(params: &Params, trace_id: &str, span_id: &str) -> Result<Selection, Failure> {
    Ok(Selection::Span {
        trace_id: id("trace_id", trace_id)?,
        span_id: id("span_id", span_id)?,
        scope: scope(params)?.unwrap_or_default(),
    })
}

/// `GET /api/v1/profile`: everything that the selected services ran in a range of time.
pub(super) async fn of_services(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["q", "type", "format", "start", "end"])?;
    let selector = LabelSelector::parse(params.text("q").unwrap_or_default())?;
    let mut question = Question::new(&params, &headers, Selection::Services { selector })?;
    question.request.range = Some(params.range(now())?);
    answer(&app, "services_profile", question).await
}

/// `GET /api/v1/spans/profile`: one profile of all spans that match.
pub(super) async fn of_selection(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["q", "start", "end", "range", "scope", "type", "format"])?;
    let format = format(&params)?;
    let request = SelectedRequest {
        tenants: read_tenants(&headers)?,
        spans: selection(&params, RangeRule::Overlap)?,
        scope: params
            .word("scope", selection_scope, "span or subtree, for a selection of spans")?
            .unwrap_or_default(),
        profile_type: params.read::<TypeSelector>("type")?.unwrap_or_default(),
        rows: format == ProfileFormat::Pprof,
    };
    let asked = async move |engine: Engine| engine.selected_profile(&request).await;
    ask(&app, "selected_profile", asked, move |answer: &SelectedProfile, watch| {
        Ok(match format {
            ProfileFormat::Json => watch.json(WireSelectedProfile::new(answer)),
            format => write(&answer.profile, format, &watch),
        })
    })
    .await
}

pub(super) fn selection_scope(word: &str) -> Option<Scope> {
    Scope::from_word(word).filter(|scope| matches!(scope, Scope::Span | Scope::Subtree))
}

fn format(params: &Params) -> Result<ProfileFormat, Failure> {
    let format = params.word("format", ProfileFormat::from_word, "json, collapsed, pprof or speedscope")?;
    Ok(format.unwrap_or_default())
}

fn scope(params: &Params) -> Result<Option<Scope>, Failure> {
    params.word("scope", Scope::from_word, "span, subtree, trace or window")
}

/// What to profile, and how to write it.
struct Question {
    request: ProfileRequest,
    format: ProfileFormat,
}

impl Question {
    fn new(params: &Params, headers: &HeaderMap, selection: Selection) -> Result<Question, Failure> {
        let format = format(params)?;
        Ok(Question {
            request: ProfileRequest {
                tenants: read_tenants(headers)?,
                selection,
                profile_type: params.read::<TypeSelector>("type")?.unwrap_or_default(),
                range: params.given_range(now())?,
                rows: format == ProfileFormat::Pprof,
            },
            format,
        })
    }
}

async fn answer(app: &Arc<App>, name: &'static str, question: Question) -> Result<Response, Failure> {
    let Question { request, format } = question;
    let asked = async move |engine: Engine| engine.profile(&request).await;
    ask(app, name, asked, move |profile: &ProfileAnswer, watch| {
        Ok(write(profile, format, &watch))
    })
    .await
}

fn write(profile: &ProfileAnswer, format: ProfileFormat, watch: &Stopwatch) -> Response {
    let (content_type, body) = match format {
        ProfileFormat::Json => return watch.json(WireProfile::new(profile)),
        // A profile without samples is a valid pprof file; the text formats have no such thing.
        ProfileFormat::Pprof => ("application/octet-stream", pprof::encode(&rows(profile))),
        ProfileFormat::Collapsed if profile.samples == 0 => ("text/plain; charset=utf-8", Vec::new()),
        ProfileFormat::Collapsed => ("text/plain; charset=utf-8", collapsed::encode(&totals(profile)).into_bytes()),
        ProfileFormat::Speedscope if profile.samples == 0 => ("application/json", Vec::new()),
        ProfileFormat::Speedscope => ("application/json", speedscope::encode(&totals(profile)).into_bytes()),
    };
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    let codes: Vec<&str> = profile.evidence.reasons.iter().map(|reason| reason.code.as_str()).collect();
    if let Ok(value) = HeaderValue::from_str(&codes.join(", "))
        && !codes.is_empty()
    {
        headers.insert(REASON_HEADER, value);
    }
    response
}

/// One row a stack, in the answer's own type.
fn totals(profile: &ProfileAnswer) -> Export {
    let row = |total: &spanflame_query::StackTotal| ExportRow {
        stack: total.stack,
        values: vec![total.value],
        labels: Vec::new(),
    };
    Export {
        period: profile
            .evidence
            .period_ns
            .and_then(|period| i64::try_from(period).ok())
            .unwrap_or(0),
        types: vec![profile.profile_type.sample.clone()],
        rows: profile.totals.iter().map(row).collect(),
        ..export(profile)
    }
}

/// One row a sample, with every value and label its client sent.
fn rows(profile: &ProfileAnswer) -> Export {
    let Some(rows) = &profile.rows else {
        return totals(profile);
    };
    let mut export = Export {
        period: rows.period,
        types: rows.types.clone(),
        rows: rows.rows.iter().map(export_row).collect(),
        ..export(profile)
    };
    export.profile_type.period = rows.period_type.clone();
    if export.types.is_empty() {
        export.types.push(profile.profile_type.sample.clone());
    }
    export
}

/// The time in a file is that of the profiles in it: "everything" as a range would say 56 years.
fn export(profile: &ProfileAnswer) -> Export {
    let asked = profile.range;
    let covered = profile.evidence.covered;
    let range = asked.zip(covered).and_then(|(asked, covered)| asked.overlap(covered)).or(asked);
    Export {
        profile_type: profile.profile_type.clone(),
        period: 0,
        start: range.map_or(Timestamp::ZERO, |range| range.start()),
        duration_ns: range.map_or(0, |range| range.duration_ns()),
        stacks: profile.stacks.clone(),
        rows: Vec::new(),
        types: Vec::new(),
        attributes: Attributes::new(),
    }
}

fn export_row(row: &Row) -> ExportRow {
    let sample = Sample {
        link: row.link.clone(),
        thread_id: row.thread_id,
        thread_name: row.thread_name.clone(),
        pid: row.pid,
        labels: row.labels.clone(),
        ..Sample::new(row.stack)
    };
    ExportRow {
        stack: row.stack,
        values: row.values.clone(),
        labels: links::labels_of(&sample),
    }
}

#[derive(Serialize)]
pub(super) struct WireProfile<'a> {
    #[serde(rename = "type")]
    profile_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    total: i64,
    samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_unix_nano: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_unix_nano: Option<String>,
    frames: Vec<WireFrame<'a>>,
    tree: WireTree<'a>,
    evidence: WireEvidence<'a>,
}

#[derive(Serialize)]
struct WireSelectedProfile<'a> {
    #[serde(flatten)]
    profile: WireProfile<'a>,
    selection: WireSelectedSpans,
    /// What one span of the selection cost on average, in the type's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_span: Option<f64>,
}

#[derive(Serialize)]
struct WireSelectedSpans {
    spans: u64,
    without_samples: u64,
    wall_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantiles: Option<WireQuantiles>,
}

#[derive(Serialize)]
pub(super) struct WireFrame<'a> {
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unresolved: bool,
}

#[derive(Serialize)]
struct WireTree<'a> {
    frame: &'a [u32],
    parent: &'a [u32],
    #[serde(rename = "self")]
    self_value: &'a [i64],
    total: &'a [i64],
    samples: &'a [u64],
}

#[derive(Serialize)]
pub(super) struct WireEvidence<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    period_ns: Option<u64>,
    precision: WirePrecision,
    ambiguous: u64,
    unresolved_frames: u64,
    covered_ns: u64,
    window_match: Option<&'static str>,
    #[serde(skip_serializing_if = "is_zero")]
    prorated: u64,
    #[serde(skip_serializing_if = "is_zero")]
    prorated_profile_ns: u64,
    reasons: Vec<WireReason<'a>>,
}

#[derive(Serialize)]
struct WirePrecision {
    span: u64,
    local_root: u64,
    trace: u64,
    window: u64,
}

#[derive(Serialize)]
struct WireReason<'a> {
    code: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> WireProfile<'a> {
    pub(super) fn new(profile: &'a ProfileAnswer) -> WireProfile<'a> {
        WireProfile {
            profile_type: type_name(&profile.profile_type),
            unit: known(&profile.profile_type.sample.unit),
            scope: profile.scope.map(Scope::as_str),
            total: profile.total,
            samples: profile.samples,
            start_unix_nano: profile.range.map(|range| super::text::time(range.start())),
            end_unix_nano: profile.range.map(|range| super::text::time(range.end())),
            frames: profile.tree.frames.iter().map(WireFrame::new).collect(),
            tree: WireTree::new(&profile.tree),
            evidence: WireEvidence::new(&profile.evidence),
        }
    }
}

impl<'a> WireSelectedProfile<'a> {
    fn new(answer: &'a SelectedProfile) -> WireSelectedProfile<'a> {
        let spans = &answer.spans;
        WireSelectedProfile {
            profile: WireProfile::new(&answer.profile),
            selection: WireSelectedSpans {
                spans: spans.spans,
                without_samples: spans.without_samples,
                wall_ns: spans.wall_ns,
                quantiles: spans.quantiles.map(WireQuantiles::new),
            },
            per_span: (spans.spans > 0).then(|| answer.profile.total as f64 / spans.spans as f64),
        }
    }
}

/// The full name; of a kind that nobody has sent only what was asked for is known.
pub(super) fn type_name(profile_type: &ProfileType) -> String {
    let ProfileType { sample, period, .. } = profile_type;
    match sample.unit.is_empty() && *period == ValueType::default() {
        true => sample.kind.clone(),
        false => profile_type.to_string(),
    }
}

impl<'a> WireFrame<'a> {
    pub(super) fn new(frame: &'a ShownFrame) -> WireFrame<'a> {
        WireFrame {
            function: &frame.function,
            file: known(&frame.file),
            line: (frame.line > 0).then_some(frame.line),
            module: known(&frame.module),
            kind: known(&frame.kind),
            unresolved: frame.unresolved,
        }
    }
}

impl<'a> WireTree<'a> {
    fn new(tree: &'a CallTree) -> WireTree<'a> {
        WireTree {
            frame: &tree.frame,
            parent: &tree.parent,
            self_value: &tree.self_value,
            total: &tree.total,
            samples: &tree.samples,
        }
    }
}

impl<'a> WireEvidence<'a> {
    pub(super) fn new(evidence: &'a Evidence) -> WireEvidence<'a> {
        let precision = evidence.precision;
        WireEvidence {
            period_ns: evidence.period_ns,
            precision: WirePrecision {
                span: precision.span,
                local_root: precision.local_root,
                trace: precision.trace,
                window: precision.window,
            },
            ambiguous: evidence.ambiguous,
            unresolved_frames: evidence.unresolved_frames,
            covered_ns: evidence.covered_ns,
            window_match: evidence.window_match.map(|matched| matched.as_str()),
            prorated: evidence.prorated,
            prorated_profile_ns: evidence.prorated_profile_ns,
            reasons: evidence.reasons.iter().map(WireReason::new).collect(),
        }
    }
}

impl<'a> WireReason<'a> {
    fn new(reason: &'a Reason) -> WireReason<'a> {
        WireReason {
            code: reason.code.as_str(),
            text: &reason.text,
            hint: known(&reason.hint),
        }
    }
}
