//! Attributes of spans: which there are, which values they have, and which values set some spans apart.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_query::stats::Interval;
use spanflame_query::{
    AttributeName, AttributeScope, AttributeValue, AttributesComparison, AttributesComparisonRequest, AttributesRequest, Engine, Listed,
    OverRepresented, RangeRule, SpanSelection, ValuesRequest,
};

use super::params::Params;
use super::question::ask;
use super::spans::{selection, side};
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;

const VALUES_DEFAULT: usize = 100;
/// Values of one answer; what a person picks from is far fewer.
const VALUES_MAX: usize = 10_000;

/// `GET /api/v1/attributes`: by spans descending, then scope and key.
pub(super) async fn names(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["q", "start", "end", "range"])?;
    let request = request(&params, &headers)?;
    let asked = async move |engine: Engine| engine.attributes(&request).await;
    ask(&app, "attributes", asked, |listed: &Listed<AttributeName>, watch| {
        Ok(watch.json(WireNames {
            attributes: listed.items.iter().map(WireName::new).collect(),
            truncated: listed.truncated,
        }))
    })
    .await
}

/// `GET /api/v1/attributes/{scope}/{key}/values`: by spans descending, then value.
pub(super) async fn values(
    State(app): State<Arc<App>>,
    Path((scope, key)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["q", "start", "end", "range", "limit"])?;
    let scope = AttributeScope::from_word(&scope).ok_or_else(|| {
        let words = AttributeScope::ALL.map(AttributeScope::as_str).join(", ");
        let scope: String = scope.chars().take(200).collect();
        Failure::invalid("scope", format!("scope is {scope:?}, expected one of {words}"))
    })?;
    let request = request(&params, &headers)?;
    let limit = params.count("limit", VALUES_MAX)?.unwrap_or(VALUES_DEFAULT);
    let wanted = ValuesRequest { scope: Some(scope), key };
    let asked = async move |engine: Engine| engine.attribute_values(&request, &wanted, limit).await;
    ask(&app, "attribute_values", asked, |listed: &Listed<AttributeValue>, watch| {
        Ok(watch.json(WireValues {
            values: listed.items.iter().map(WireValue::new).collect(),
            truncated: listed.truncated,
        }))
    })
    .await
}

/// `GET /api/v1/spans/attributes/compare`: by difference of shares descending.
pub(super) async fn compare(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &COMPARE_PARAMETERS)?;
    let request = AttributesComparisonRequest {
        tenants: read_tenants(&headers)?,
        base: side(&params, "base_", RangeRule::Overlap)?,
        target: side(&params, "target_", RangeRule::Overlap)?,
        limit: params
            .count("limit", AttributesComparisonRequest::LIMIT_MAX)?
            .unwrap_or(AttributesComparisonRequest::LIMIT_DEFAULT),
    };
    let asked = async move |engine: Engine| engine.compare_attributes(&request).await;
    ask(&app, "compare_attributes", asked, |found: &AttributesComparison, watch| {
        Ok(watch.json(WireComparison::new(found)))
    })
    .await
}

const COMPARE_PARAMETERS: [&str; 13] = [
    "base_q",
    "base_start",
    "base_end",
    "base_range",
    "base_trace",
    "base_span",
    "target_q",
    "target_start",
    "target_end",
    "target_range",
    "target_trace",
    "target_span",
    "limit",
];

fn request(params: &Params, headers: &HeaderMap) -> Result<AttributesRequest, Failure> {
    let SpanSelection { query, range, rule } = selection(params, RangeRule::Overlap)?;
    Ok(AttributesRequest {
        tenants: read_tenants(headers)?,
        range,
        rule,
        query: Some(query),
    })
}

#[derive(Serialize)]
struct WireNames<'a> {
    attributes: Vec<WireName<'a>>,
    truncated: bool,
}

#[derive(Serialize)]
struct WireName<'a> {
    scope: &'static str,
    key: &'a str,
    value_types: &'a BTreeSet<&'static str>,
    spans: u64,
}

impl<'a> WireName<'a> {
    fn new(name: &'a AttributeName) -> WireName<'a> {
        WireName {
            scope: name.scope.as_str(),
            key: &name.key,
            value_types: &name.value_types,
            spans: name.spans,
        }
    }
}

#[derive(Serialize)]
struct WireValues<'a> {
    values: Vec<WireValue<'a>>,
    truncated: bool,
}

#[derive(Serialize)]
struct WireValue<'a> {
    value: &'a str,
    value_type: &'static str,
    spans: u64,
}

impl<'a> WireValue<'a> {
    fn new(value: &'a AttributeValue) -> WireValue<'a> {
        WireValue {
            value: &value.value,
            value_type: value.value_type,
            spans: value.spans,
        }
    }
}

#[derive(Serialize)]
struct WireComparison<'a> {
    base: WireSide,
    target: WireSide,
    attributes: Vec<WireOver<'a>>,
    truncated_keys: Vec<String>,
}

#[derive(Serialize)]
struct WireSide {
    spans: u64,
}

#[derive(Serialize)]
struct WireOver<'a> {
    scope: &'static str,
    key: &'a str,
    value: &'a str,
    value_type: &'static str,
    target_spans: u64,
    base_spans: u64,
    target_share: f64,
    target_interval: WireInterval,
    base_share: f64,
    base_interval: WireInterval,
    difference: f64,
}

#[derive(Serialize)]
pub(super) struct WireInterval {
    low: f64,
    high: f64,
}

impl<'a> WireComparison<'a> {
    fn new(found: &'a AttributesComparison) -> WireComparison<'a> {
        WireComparison {
            base: WireSide { spans: found.base_spans },
            target: WireSide { spans: found.target_spans },
            attributes: found.values.iter().map(WireOver::new).collect(),
            truncated_keys: found
                .truncated_keys
                .iter()
                .map(|(scope, key)| format!("{}.{key}", scope.as_str()))
                .collect(),
        }
    }
}

impl<'a> WireOver<'a> {
    fn new(value: &'a OverRepresented) -> WireOver<'a> {
        WireOver {
            scope: value.scope.as_str(),
            key: &value.key,
            value: &value.value,
            value_type: value.value_type,
            target_spans: value.target_spans,
            base_spans: value.base_spans,
            target_share: value.target_share,
            target_interval: WireInterval::new(value.target_interval),
            base_share: value.base_share,
            base_interval: WireInterval::new(value.base_interval),
            difference: value.difference(),
        }
    }
}

impl WireInterval {
    pub(super) fn new(interval: Interval) -> WireInterval {
        WireInterval {
            low: interval.low,
            high: interval.high,
        }
    }
}
