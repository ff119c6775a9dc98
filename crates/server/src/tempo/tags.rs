//! Tags and their values, v1 and v2: what Grafana's search box offers.
//!
//! Names come in order, values most frequent first. Intrinsics are offered as far as a query may use them. A filter
//! that does not parse is passed over, as Tempo does: it is what a user has typed so far.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde_json::{Value as Json, json};
use spanflame_model::{Tenant, Timestamp};
use spanflame_proto::tempo as wire;
use spanflame_query::traceql::Query;
use spanflame_query::{AttributeName, AttributeScope, AttributeValue, AttributesRequest, Engine, Listed, RangeRule, ValuesRequest};
use url::form_urlencoded;

use super::answer::{Answer, Object, Wire, list};
use super::params::{self, Params};
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;
use crate::question::ask;

/// Tags of a scope, or values, where no limit is given.
const LIMIT_DEFAULT: usize = 10_000;

/// What Tempo calls an intrinsic, in its order; where a query may not use one, it is not offered.
const INTRINSICS: [&str; 24] = [
    "duration",
    "event:name",
    "event:timeSinceStart",
    "instrumentation:name",
    "instrumentation:version",
    "kind",
    "link:spanID",
    "link:traceID",
    "name",
    "rootName",
    "rootServiceName",
    "span:childCount",
    "span:duration",
    "span:id",
    "span:kind",
    "span:name",
    "span:parentID",
    "span:status",
    "span:statusMessage",
    "status",
    "statusMessage",
    "trace:duration",
    "trace:rootName",
    "trace:rootService",
];

/// What is listed, whichever way it was asked.
pub(super) struct Listing {
    request: AttributesRequest,
    limit: usize,
}

impl Listing {
    fn of_params(params: &Params, headers: &HeaderMap) -> Result<Listing, Failure> {
        let query = params.text("q").and_then(|text| Query::parse(text).ok());
        let limit = params.count("limit", 0)?.filter(|limit| *limit > 0);
        Ok(Listing {
            request: AttributesRequest {
                tenants: read_tenants(headers)?,
                range: params.range(now())?,
                rule: RangeRule::Overlap,
                query,
            },
            limit: limit.map_or(LIMIT_DEFAULT, |limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        })
    }

    /// The same of a streaming request, whose times are seconds and where 0 is nothing.
    pub(super) fn of_request(tenants: Vec<Tenant>, query: &str, [start, end]: [u32; 2], limit: u32) -> Result<Listing, Failure> {
        let seconds = |seconds: u32| Timestamp::from_unix_nanos(u64::from(seconds) * 1_000_000_000).filter(|_| seconds > 0);
        let range = match (seconds(start), seconds(end)) {
            (None, None) => params::last_hour(now()),
            (start, end) => params::range(start, end, None, now())?,
        };
        Ok(Listing {
            request: AttributesRequest {
                tenants,
                range,
                rule: RangeRule::Overlap,
                query: Some(query).filter(|text| !text.is_empty()).and_then(|text| Query::parse(text).ok()),
            },
            limit: if limit == 0 { LIMIT_DEFAULT } else { limit as usize },
        })
    }

    /// Asks for names and writes what `answer` makes of them.
    pub(super) async fn names<A: Answer + 'static>(
        self,
        app: &Arc<App>,
        wire: Wire,
        answer: fn(Names<'_>) -> A,
        scope: Scope,
    ) -> Result<Response, Failure> {
        let Listing { request, limit } = self;
        let asked = async move |engine: Engine| match scope {
            Scope::Only(AttributeScope::Intrinsic) => Ok(Vec::new()),
            Scope::All | Scope::Only(_) => Ok(engine.attributes(&request).await?.items),
        };
        ask(app, "tempo_tags", asked, move |names: &Vec<AttributeName>, _| {
            Ok(wire.write(answer(Names { names, scope, limit })))
        })
        .await
    }

    /// Asks for the values of a tag and writes what `answer` makes of them.
    pub(super) async fn values<A: Answer + 'static>(
        self,
        app: &Arc<App>,
        wire: Wire,
        answer: fn(&[AttributeValue]) -> A,
        tag: &str,
    ) -> Result<Response, Failure> {
        let Listing { request, limit } = self;
        let tag = tag_of(tag);
        let asked = async move |engine: Engine| engine.attribute_values(&request, &tag, limit).await;
        ask(app, "tempo_tag_values", asked, move |values: &Listed<AttributeValue>, _| {
            Ok(wire.write(answer(&values.items)))
        })
        .await
    }
}

/// Which scopes are listed.
#[derive(Clone, Copy)]
pub(super) enum Scope {
    All,
    Only(AttributeScope),
}

impl Scope {
    /// The scope of a word; nothing and `none` are all.
    pub(super) fn from_word(word: &str) -> Result<Scope, Failure> {
        if word.is_empty() || word == "none" {
            return Ok(Scope::All);
        }
        AttributeScope::from_word(word).map(Scope::Only).ok_or_else(|| {
            let word: String = word.chars().take(80).collect();
            let message = format!("scope is {word:?}, expected none, resource, span, event, link, instrumentation or intrinsic");
            Failure::invalid("scope", message)
        })
    }

    fn includes(self, scope: AttributeScope) -> bool {
        match self {
            Scope::All => true,
            Scope::Only(only) => only == scope,
        }
    }
}

/// What was found, and how much of it is wanted.
pub(super) struct Names<'a> {
    names: &'a [AttributeName],
    scope: Scope,
    limit: usize,
}

impl Names<'_> {
    /// Names by scope, the most frequent ones within the limit, in order.
    fn by_scope(&self) -> BTreeMap<AttributeScope, BTreeSet<&str>> {
        let mut scopes: BTreeMap<AttributeScope, BTreeSet<&str>> = BTreeMap::new();
        for name in self.names.iter().filter(|name| self.scope.includes(name.scope)) {
            let names = scopes.entry(name.scope).or_default();
            if names.len() < self.limit {
                names.insert(&name.key);
            }
        }
        if self.scope.includes(AttributeScope::Intrinsic) {
            let usable = |name: &&str| Query::parse(&format!("{{ {name} != nil }}")).is_ok();
            scopes.insert(AttributeScope::Intrinsic, INTRINSICS.into_iter().filter(usable).collect());
        }
        scopes
    }
}

pub(super) fn names_v1(names: Names<'_>) -> wire::SearchTagsResponse {
    let scopes = names.by_scope();
    let attributes = scopes
        .iter()
        .filter(|(scope, _)| **scope != AttributeScope::Intrinsic || !matches!(names.scope, Scope::All));
    let all: BTreeSet<&str> = attributes.flat_map(|(_, names)| names.iter().copied()).collect();
    wire::SearchTagsResponse {
        tag_names: all.into_iter().map(str::to_owned).collect(),
        metrics: Some(wire::MetadataMetrics::default()),
    }
}

pub(super) fn names_v2(names: Names<'_>) -> wire::SearchTagsV2Response {
    let scopes = names.by_scope().into_iter().map(|(scope, names)| wire::SearchTagsV2Scope {
        name: scope.as_str().to_owned(),
        tags: names.into_iter().map(str::to_owned).collect(),
    });
    wire::SearchTagsV2Response {
        scopes: scopes.collect(),
        metrics: Some(wire::MetadataMetrics::default()),
    }
}

pub(super) fn values_v1(values: &[AttributeValue]) -> wire::SearchTagValuesResponse {
    wire::SearchTagValuesResponse {
        tag_values: values.iter().map(|value| value.value.clone()).collect(),
        metrics: Some(wire::MetadataMetrics::default()),
    }
}

pub(super) fn values_v2(values: &[AttributeValue]) -> wire::SearchTagValuesV2Response {
    let value = |value: &AttributeValue| wire::TagValue {
        r#type: match value.value_type {
            "double" => "float",
            known @ ("int" | "bool" | "keyword") => known,
            _ => "string",
        }
        .to_owned(),
        value: value.value.clone(),
    };
    wire::SearchTagValuesV2Response {
        tag_values: values.iter().map(value).collect(),
        metrics: Some(wire::MetadataMetrics::default()),
    }
}

/// `GET /api/search/tags`
pub(super) async fn tags_v1(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let scope = Scope::from_word(params.text("scope").unwrap_or_default())?;
    let listing = Listing::of_params(&params, &headers)?;
    listing.names(&app, Wire::of(&headers), names_v1, scope).await
}

/// `GET /api/v2/search/tags`
pub(super) async fn tags_v2(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref())?;
    let scope = Scope::from_word(params.text("scope").unwrap_or_default())?;
    let listing = Listing::of_params(&params, &headers)?;
    listing.names(&app, Wire::of(&headers), names_v2, scope).await
}

/// `GET /api/search/tag/{tag}/values`
pub(super) async fn tag_values_v1(
    State(app): State<Arc<App>>,
    Path(tag): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let listing = Listing::of_params(&Params::parse(query.as_deref())?, &headers)?;
    listing.values(&app, Wire::of(&headers), values_v1, &tag).await
}

/// `GET /api/v2/search/tag/{tag}/values`
pub(super) async fn tag_values_v2(
    State(app): State<Arc<App>>,
    Path(tag): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let listing = Listing::of_params(&Params::parse(query.as_deref())?, &headers)?;
    listing.values(&app, Wire::of(&headers), values_v2, &tag).await
}

/// What a tag names: an intrinsic, an attribute of a scope, or one of any scope. Browsers encode it twice.
fn tag_of(tag: &str) -> ValuesRequest {
    let plain = format!("tag={}", tag.replace('+', "%2B").replace('&', "%26"));
    let decoded = form_urlencoded::parse(plain.as_bytes()).next();
    let tag = decoded.map_or_else(|| tag.to_owned(), |(_, tag)| tag.into_owned());
    let intrinsic = match tag.as_str() {
        "name" | "span:name" => Some("name"),
        "status" | "span:status" | "status.code" => Some("status"),
        "statusMessage" | "span:statusMessage" => Some("statusMessage"),
        "kind" | "span:kind" => Some("kind"),
        "rootName" | "trace:rootName" | "root.name" => Some("rootName"),
        "rootServiceName" | "trace:rootService" | "root.service.name" => Some("rootServiceName"),
        known @ ("instrumentation:name" | "instrumentation:version" | "event:name") => Some(known),
        // Their values are numbers and ids without end: nothing to choose from.
        other if INTRINSICS.contains(&other) => Some(""),
        _ => None,
    };
    if let Some(key) = intrinsic {
        return ValuesRequest {
            scope: Some(AttributeScope::Intrinsic),
            key: key.to_owned(),
        };
    }
    let (scope, key) = match tag.split_once('.') {
        Some(("", key)) => (None, key),
        Some((scope, key)) => match AttributeScope::from_word(scope) {
            Some(AttributeScope::Intrinsic) | None => (None, tag.as_str()),
            some => (some, key),
        },
        None => (None, tag.as_str()),
    };
    let quoted = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
    let key = quoted.map_or_else(|| key.to_owned(), |key| key.replace("\\\"", "\"").replace("\\\\", "\\"));
    ValuesRequest { scope, key }
}

fn metrics(metrics: &Option<wire::MetadataMetrics>) -> Json {
    let metrics = metrics.unwrap_or_default();
    Object::new()
        .long("inspectedBytes", metrics.inspected_bytes)
        .with("totalJobs", metrics.total_jobs)
        .with("completedJobs", metrics.completed_jobs)
        .into()
}

impl Answer for wire::SearchTagsResponse {
    fn json(&self) -> Json {
        json!({ "tagNames": self.tag_names })
    }
}

impl Answer for wire::SearchTagsV2Response {
    fn json(&self) -> Json {
        let scopes = list(&self.scopes, |scope| json!({ "name": scope.name, "tags": scope.tags }));
        json!({ "scopes": scopes, "metrics": metrics(&self.metrics) })
    }
}

impl Answer for wire::SearchTagValuesResponse {
    fn json(&self) -> Json {
        json!({ "tagValues": self.tag_values })
    }
}

impl Answer for wire::SearchTagValuesV2Response {
    fn json(&self) -> Json {
        let values = list(&self.tag_values, |value| json!({ "type": value.r#type, "value": value.value }));
        json!({ "tagValues": values, "metrics": metrics(&self.metrics) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tag: &str, scope: Option<AttributeScope>, key: &str) {
        let expected = ValuesRequest {
            scope,
            key: key.to_owned(),
        };
        assert_eq!(tag_of(tag), expected, "{tag}");
    }

    #[test]
    fn a_tag_names_an_intrinsic_or_an_attribute() {
        check("resource.service.name", Some(AttributeScope::Resource), "service.name");
        check("resource%2Eservice%2Ename", Some(AttributeScope::Resource), "service.name");
        check("span.http.url", Some(AttributeScope::Span), "http.url");
        check(".http.url", None, "http.url");
        check("http.url", None, "http.url");
        check("span.\"a b\"", Some(AttributeScope::Span), "a b");
        check("span.a+b", Some(AttributeScope::Span), "a+b");
        check("status", Some(AttributeScope::Intrinsic), "status");
        check("trace:rootService", Some(AttributeScope::Intrinsic), "rootServiceName");
        check("duration", Some(AttributeScope::Intrinsic), "");
    }
}
