//! Merged profiles: of labels over time, of spans, of traces, in every format.

use std::sync::Arc;

use axum::response::Response;
use http::{HeaderMap, HeaderValue};
use spanflame_formats::{Export, ExportRow, pprof};
use spanflame_model::{Attributes, FrameId, SpanId, TimeRange, Timestamp, TraceId};
use spanflame_proto::pyroscope as wire;
use spanflame_query::{CallTree, Engine, LabelSelector, ProfileAnswer, ProfileRequest, Scope, Selection, StackTotal, TypeSelector};
use wire::ProfileFormat;

use super::flamegraph::{Merged, nodes};
use super::{labels, tree};
use crate::admission::read_tenants;
use crate::app::App;
use crate::connect::{Call, Manner};
use crate::failure::Failure;
use crate::question::ask;

/// The scope that a span or trace selector was answered in.
const SCOPE_HEADER: &str = "x-spanflame-scope";
/// Why there is nothing.
const REASON_HEADER: &str = "x-spanflame-reason";

/// What to merge, in the words of the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) profile_type: String,
    pub(super) selector: String,
    pub(super) start_ms: i64,
    pub(super) end_ms: i64,
    /// `None` is every span and sample without.
    pub(super) spans: Option<Vec<String>>,
    pub(super) traces: Vec<String>,
    /// UUIDs of single profiles.
    pub(super) profiles: Vec<String>,
    /// Only stacks that begin so, root first.
    pub(super) call_site: Vec<String>,
}

impl Wanted {
    /// The question; `None` where the answer is empty whatever is stored.
    pub(super) fn request(&self, headers: &HeaderMap) -> Result<Option<ProfileRequest>, Failure> {
        let profile_type = labels::profile_type(&self.profile_type)?;
        let selector = labels::selector("label_selector", &self.selector)?;
        let range = labels::range(self.start_ms, self.end_ms)?;
        let may_match = selector.selects_type(&profile_type);
        let selection = self.selection(selector)?;
        let is_empty = matches!(&selection, Selection::Named { span_ids, trace_ids, .. } if span_ids.is_empty() && trace_ids.is_empty());
        let request = ProfileRequest {
            tenants: read_tenants(headers)?,
            selection,
            profile_type: TypeSelector::from(profile_type),
            range: Some(range),
            rows: false,
        };
        Ok((may_match && !is_empty).then_some(request))
    }

    fn selection(&self, selector: LabelSelector) -> Result<Selection, Failure> {
        let spans = self.spans.as_deref().unwrap_or_default();
        if !spans.is_empty() && !self.traces.is_empty() {
            let message = "a span selector and a trace selector are given, expected one of them";
            return Err(Failure::invalid("trace_id_selector", message));
        }
        if !self.profiles.is_empty() {
            if self.spans.is_some() || !self.traces.is_empty() {
                let message = "a profile selector and one of spans or traces are given, expected one of them";
                return Err(Failure::invalid("profile_id_selector", message));
            }
            let ids = self.profiles.iter().map(|text| labels::profile_id(text));
            return Ok(Selection::Profiles {
                ids: ids.collect::<Result<_, _>>()?,
                selector,
            });
        }
        if self.spans.is_none() && self.traces.is_empty() {
            return Ok(Selection::Services { selector });
        }
        Ok(Selection::Named {
            span_ids: spans.iter().map(|text| span_id(text)).collect::<Result<_, _>>()?,
            trace_ids: self.traces.iter().map(|text| trace_id(text)).collect::<Result<_, _>>()?,
            selector,
        })
    }
}

/// Clients that fill in a template which they could not resolve are told so by the value.
fn span_id(text: &str) -> Result<SpanId, Failure> {
    let id = (text.len() == 16).then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| wrong_id("span_selector", text, 16))
}

fn trace_id(text: &str) -> Result<TraceId, Failure> {
    let id = (text.len() == 32).then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| wrong_id("trace_id_selector", text, 32))
}

fn wrong_id(field: &str, text: &str, digits: usize) -> Failure {
    let text: String = text.chars().take(200).collect();
    let count = text.chars().count();
    let message = format!("{field} has {text:?} of {count} characters, expected {digits} hexadecimal digits, not all 0");
    Failure::invalid(field, message)
}

/// `SelectMergeStacktraces`.
pub(super) async fn merge_stacktraces(app: Arc<App>, call: Call<wire::SelectMergeStacktracesRequest>) -> Result<Response, Failure> {
    let Call { question, headers, manner } = call;
    let (format, max_nodes) = (question.format(), question.max_nodes);
    let wanted = of_stacktraces(question)?;
    answer(&app, "pyroscope_stacktraces", wanted, &headers, move |profile| {
        let mut response = wire::SelectMergeStacktracesResponse::default();
        match format {
            ProfileFormat::Unspecified | ProfileFormat::Flamegraph => response.flamegraph = Some(flamegraph(profile, max_nodes)),
            ProfileFormat::Tree => response.tree = binary_tree(profile, max_nodes),
            ProfileFormat::Dot => response.dot = dot(profile, max_nodes),
            ProfileFormat::Pprof => {
                let profile = Some(pprof::to_message(&export(profile)));
                response.pprof = Some(wire::PprofAnswer { profile });
            }
        }
        finish(manner, profile, &response)
    })
    .await
}

/// The request of `SelectMergeStacktraces`, alone or as a side of a comparison.
pub(super) fn of_stacktraces(question: wire::SelectMergeStacktracesRequest) -> Result<Wanted, Failure> {
    Ok(Wanted {
        profile_type: question.profile_type_id,
        selector: question.label_selector,
        start_ms: question.start,
        end_ms: question.end,
        spans: Some(question.span_selector).filter(|spans| !spans.is_empty()),
        traces: question.trace_id_selector,
        profiles: question.profile_id_selector,
        call_site: call_site(question.stack_trace_selector),
    })
}

/// Function names, root first.
pub(super) fn call_site(selector: Option<wire::StackTraceSelector>) -> Vec<String> {
    let sites = selector.into_iter().flat_map(|selector| selector.call_site);
    sites.map(|site| site.name).collect()
}

/// `SelectMergeSpanProfile`. Without a span there is nothing, never the whole service.
pub(super) async fn merge_span_profile(app: Arc<App>, call: Call<wire::SelectMergeSpanProfileRequest>) -> Result<Response, Failure> {
    let Call { question, headers, manner } = call;
    let (format, max_nodes) = (question.format(), question.max_nodes);
    let wanted = Wanted {
        profile_type: question.profile_type_id,
        selector: question.label_selector,
        start_ms: question.start,
        end_ms: question.end,
        spans: Some(question.span_selector),
        ..Wanted::default()
    };
    answer(&app, "pyroscope_span_profile", wanted, &headers, move |profile| {
        let mut response = wire::SelectMergeSpanProfileResponse::default();
        match format {
            ProfileFormat::Unspecified | ProfileFormat::Flamegraph => response.flamegraph = Some(flamegraph(profile, max_nodes)),
            ProfileFormat::Tree => response.tree = binary_tree(profile, max_nodes),
            other => {
                let message = format!("format is {}, expected a flame graph or a tree", other.as_str_name());
                return Err(Failure::invalid("format", message));
            }
        }
        finish(manner, profile, &response)
    })
    .await
}

/// `SelectMergeProfile`: pprof, every stack in it.
pub(super) async fn merge_profile(app: Arc<App>, call: Call<wire::SelectMergeProfileRequest>) -> Result<Response, Failure> {
    let Call { question, headers, manner } = call;
    let wanted = of_stacktraces(wire::SelectMergeStacktracesRequest {
        profile_type_id: question.profile_type_id,
        label_selector: question.label_selector,
        start: question.start,
        end: question.end,
        stack_trace_selector: question.stack_trace_selector,
        profile_id_selector: question.profile_id_selector,
        trace_id_selector: question.trace_id_selector,
        ..wire::SelectMergeStacktracesRequest::default()
    })?;
    answer(&app, "pyroscope_profile", wanted, &headers, move |profile| {
        finish(manner, profile, &pprof::to_message(&export(profile)))
    })
    .await
}

/// Asks for a profile and writes it; what needs no question is answered from an empty one.
pub(super) async fn answer<W>(
    app: &Arc<App>,
    name: &'static str,
    wanted: Wanted,
    headers: &HeaderMap,
    write: W,
) -> Result<Response, Failure>
where
    W: FnOnce(&ProfileAnswer) -> Result<Response, Failure> + Send + 'static,
{
    let request = wanted.request(headers)?;
    let asked = async move |engine: Engine| merged(&engine, request.as_ref(), &wanted.call_site).await;
    ask(app, name, asked, move |profile: &ProfileAnswer, _| write(profile)).await
}

/// The profile of a request, only of stacks that begin with `call_site`.
pub(super) async fn merged(
    engine: &Engine,
    request: Option<&ProfileRequest>,
    call_site: &[String],
) -> Result<ProfileAnswer, spanflame_query::Error> {
    let Some(request) = request else {
        return Ok(ProfileAnswer::empty(TypeSelector::default()));
    };
    let mut profile = engine.profile(request).await?;
    if !call_site.is_empty() {
        let stacks = &profile.stacks;
        let begins = |total: &StackTotal| {
            let frames = stacks.stack(total.stack).map(|frames| &frames[..]).unwrap_or_default();
            let name = |id: &FrameId| stacks.frame(*id).map(|frame| frame.display_name());
            frames.len() >= call_site.len() && frames.iter().rev().zip(call_site).all(|(id, site)| name(id).as_ref() == Some(site))
        };
        profile.totals.retain(begins);
        profile.tree = CallTree::build(&profile.totals, &profile.stacks);
        profile.total = profile.tree.total[0];
    }
    Ok(profile)
}

fn flamegraph(profile: &ProfileAnswer, max_nodes: Option<i64>) -> wire::FlameGraph {
    Merged::of([&profile.tree]).cut(nodes(max_nodes)).into_flamegraph()
}

fn binary_tree(profile: &ProfileAnswer, max_nodes: Option<i64>) -> Vec<u8> {
    tree::encode(&Merged::of([&profile.tree]).cut(nodes(max_nodes)))
}

/// The profile as a graph for Graphviz.
pub(super) fn dot(profile: &ProfileAnswer, max_nodes: Option<i64>) -> String {
    let nodes = nodes(max_nodes.or(Some(tree::GRAPH_NODES_DEFAULT)));
    tree::graph(&Merged::of([&profile.tree]).cut(nodes), &profile.profile_type.sample.unit)
}

/// One value a stack.
pub(super) fn export(profile: &ProfileAnswer) -> Export {
    let row = |total: &StackTotal| ExportRow {
        stack: total.stack,
        values: vec![total.value],
        labels: Vec::new(),
    };
    let covered = profile.range.zip(profile.evidence.covered);
    let range = covered
        .and_then(|(asked, covered): (TimeRange, TimeRange)| asked.overlap(covered))
        .or(profile.range);
    Export {
        profile_type: profile.profile_type.clone(),
        period: profile
            .evidence
            .period_ns
            .and_then(|period| i64::try_from(period).ok())
            .unwrap_or(0),
        start: range.map_or(Timestamp::ZERO, TimeRange::start),
        duration_ns: range.map_or(0, TimeRange::duration_ns),
        stacks: profile.stacks.clone(),
        rows: profile.totals.iter().map(row).collect(),
        types: vec![profile.profile_type.sample.clone()],
        attributes: Attributes::new(),
    }
}

/// Writes an answer, with scope and reasons beside it.
pub(super) fn finish<A: prost::Message + prost::Name>(manner: Manner, profile: &ProfileAnswer, answer: &A) -> Result<Response, Failure> {
    let mut response = manner.answer(answer)?;
    let headers = response.headers_mut();
    if let Some(scope) = profile.scope.map(Scope::as_str) {
        headers.insert(SCOPE_HEADER, HeaderValue::from_static(scope));
    }
    let codes: Vec<&str> = profile.evidence.reasons.iter().map(|reason| reason.code.as_str()).collect();
    if let Ok(codes) = HeaderValue::from_str(&codes.join(", "))
        && !codes.is_empty()
    {
        headers.insert(REASON_HEADER, codes);
    }
    Ok(response)
}
