//! What a search asks, whichever API asks it.

use serde_json::Value as Json;
use spanflame_model::{Span, Tenant, TimeRange};
use spanflame_query::traceql::Query;
use spanflame_query::{Engine, Error, Tags, TracesRequest};

use super::params::Params;
use crate::failure::Failure;
use crate::ingest::now;
use crate::notation::traceql_string;
use crate::shown;

/// Traces where no limit is given, as Jaeger does.
const LIMIT_DEFAULT: usize = 100;

/// Spans of one answer; older traces that do not fit are left out.
const SPANS_MAX: usize = 200_000;

/// Most tags of one search.
const TAGS_MAX: usize = 100;

/// Conditions that hold on one span of a trace.
pub(super) struct Search {
    service: Option<String>,
    operation: Option<String>,
    tags: Vec<(String, String)>,
    range: TimeRange,
    duration_min_ns: Option<u64>,
    duration_max_ns: Option<u64>,
    limit: usize,
}

impl Search {
    /// A search of the legacy API.
    pub(super) fn legacy(params: &Params) -> Result<Search, Failure> {
        let mut tags = match params.text(&["tags"]) {
            Some(text) => tags_of_json("tags", text)?,
            None => Vec::new(),
        };
        for pair in params.all("tag") {
            let expected = || Failure::invalid("tag", format!("tag is {pair:?}, expected key:value"));
            let (key, value) = pair.split_once(':').ok_or_else(expected)?;
            tags.push((key.to_owned(), value.to_owned()));
        }
        Search {
            service: params.text(&["service"]).map(str::to_owned),
            operation: params.text(&["operation"]).map(str::to_owned),
            tags,
            range: params.range(&["start"], &["end"], now())?,
            duration_min_ns: params.duration_ns(&["minDuration"])?,
            duration_max_ns: params.duration_ns(&["maxDuration"])?,
            limit: params.count(&["limit"])?.unwrap_or(LIMIT_DEFAULT),
        }
        .checked()
    }

    /// A search of the API v3.
    pub(super) fn v3(params: &Params) -> Result<Search, Failure> {
        if let Some((name, _)) = params.named(&["query.filter", "filter"]) {
            let message = format!("{name} is not supported, expected query.attributes");
            return Err(Failure::invalid(name, message));
        }
        let tags = match params.named(&["query.attributes", "attributes"]) {
            Some((name, text)) => tags_of_json(name, text)?,
            None => Vec::new(),
        };
        let start = ["query.startTimeMin", "query.start_time_min", "startTimeMin"];
        let end = ["query.startTimeMax", "query.start_time_max", "startTimeMax"];
        let depth = [
            "query.searchDepth",
            "query.search_depth",
            "query.numTraces",
            "query.num_traces",
            "searchDepth",
        ];
        Search {
            service: params
                .text(&["query.serviceName", "query.service_name", "serviceName"])
                .map(str::to_owned),
            operation: params
                .text(&["query.operationName", "query.operation_name", "operationName"])
                .map(str::to_owned),
            tags,
            range: params.range(&start, &end, now())?,
            duration_min_ns: params.duration_ns(&["query.durationMin", "query.duration_min", "durationMin"])?,
            duration_max_ns: params.duration_ns(&["query.durationMax", "query.duration_max", "durationMax"])?,
            limit: params.count(&depth)?.unwrap_or(LIMIT_DEFAULT),
        }
        .checked()
    }

    fn checked(self) -> Result<Search, Failure> {
        if self.tags.len() > TAGS_MAX {
            let message = format!("{} tags are given, expected at most {TAGS_MAX}", self.tags.len());
            return Err(Failure::invalid("tags", message));
        }
        match (self.duration_min_ns, self.duration_max_ns) {
            (Some(min), Some(max)) if min > max => {
                let message = format!("minDuration is {min} ns and maxDuration {max} ns, expected the minimum below the maximum");
                Err(Failure::invalid("minDuration", message))
            }
            _ => Ok(self),
        }
    }

    /// The same for the engine.
    pub(super) fn request(self, tenants: Vec<Tenant>) -> Result<TracesRequest, Failure> {
        let mut terms = Vec::new();
        terms.extend(
            self.service
                .map(|name| format!("resource.service.name = {}", traceql_string(&name))),
        );
        terms.extend(self.operation.map(|name| format!("name = {}", traceql_string(&name))));
        terms.extend(self.duration_min_ns.map(|ns| format!("duration >= {ns}ns")));
        terms.extend(self.duration_max_ns.map(|ns| format!("duration <= {ns}ns")));
        let text = format!("{{ {} }}", terms.join(" && "));
        Ok(TracesRequest {
            tenants,
            query: Query::parse(&text).map_err(Error::TraceQl)?,
            tags: Tags::new(self.tags),
            range: self.range,
            limit: self.limit.min(TracesRequest::LIMIT_MAX),
            spans_max: 0,
        })
    }
}

/// The newest traces that match, whole, each in groups by resource; and how many more do not fit.
pub(super) async fn whole_traces(engine: &Engine, request: &TracesRequest) -> Result<(Vec<Vec<Span>>, usize), Error> {
    let ids = engine.newest_traces(request).await?;
    let (mut traces, mut spans) = (Vec::new(), 0);
    for id in &ids {
        let trace = engine.spans_of(&request.tenants, *id).await?;
        spans += trace.len();
        if spans > SPANS_MAX && !traces.is_empty() {
            break;
        }
        traces.push(shown::grouped(trace.into_iter().map(|stored| stored.span)));
    }
    let left_out = ids.len() - traces.len();
    Ok((traces, left_out))
}

/// Tags as a JSON object; values that are no text count as their text.
fn tags_of_json(name: &str, text: &str) -> Result<Vec<(String, String)>, Failure> {
    let expected = || {
        let text: String = text.chars().take(200).collect();
        Failure::invalid(name, format!("{name} is {text:?}, expected a JSON object of texts"))
    };
    let object: serde_json::Map<String, Json> = serde_json::from_str(text).map_err(|_| expected())?;
    let pairs = object.into_iter().map(|(key, value)| match value {
        Json::String(text) => Ok((key, text)),
        Json::Number(number) => Ok((key, number.to_string())),
        Json::Bool(value) => Ok((key, value.to_string())),
        Json::Null | Json::Array(_) | Json::Object(_) => Err(expected()),
    });
    pairs.collect()
}
