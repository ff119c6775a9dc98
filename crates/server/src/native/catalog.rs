//! What there is: services, profile types, label names and values.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_model::TimeRange;
use spanflame_query::{CatalogRequest, Engine, Quantiles, Service, Steps, TypeInfo};

use super::params::Params;
use super::question::ask;
use super::text::time;
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;

fn request(query: Option<&str>, headers: &HeaderMap) -> Result<CatalogRequest, Failure> {
    let params = Params::parse(query, &["start", "end"])?;
    Ok(CatalogRequest {
        tenants: read_tenants(headers)?,
        range: params.range(now())?,
    })
}

/// `GET /api/v1/services`, by name.
pub(super) async fn services(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["start", "end", "buckets"])?;
    let request = CatalogRequest {
        tenants: read_tenants(&headers)?,
        range: params.range(now())?,
    };
    let range = request.range;
    let steps = params.count("buckets", Steps::MAX)?.map(|count| Steps::new(range, count));
    let asked = async move |engine: Engine| match steps {
        Some(steps) => engine.services_over_time(&request, steps).await,
        None => engine.services(&request).await,
    };
    ask(&app, "services", asked, move |services: &Vec<Service>, watch| {
        let services = services.iter().map(|service| WireService::new(service, range)).collect();
        Ok(watch.json(WireServices {
            services,
            start_unix_nano: time(range.start()),
            end_unix_nano: time(range.end()),
            bucket_ns: steps.map(|steps| steps.step_ns),
        }))
    })
    .await
}

/// `GET /api/v1/profile-types`, by name.
pub(super) async fn profile_types(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let request = request(query.as_deref(), &headers)?;
    let asked = async move |engine: Engine| engine.profile_types(&request).await;
    ask(&app, "profile_types", asked, |types: &Vec<TypeInfo>, watch| {
        Ok(watch.json(WireTypes {
            profile_types: types.iter().map(WireType::new).collect(),
        }))
    })
    .await
}

/// `GET /api/v1/labels`, in order.
pub(super) async fn labels(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let request = request(query.as_deref(), &headers)?;
    let asked = async move |engine: Engine| engine.label_names(&request).await;
    ask(&app, "labels", asked, |labels: &Vec<String>, watch| {
        Ok(watch.json(WireLabels { labels }))
    })
    .await
}

/// `GET /api/v1/labels/{name}/values`, in order.
pub(super) async fn label_values(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let request = request(query.as_deref(), &headers)?;
    let asked = async move |engine: Engine| engine.label_values(&request, &name).await;
    ask(&app, "label_values", asked, |values: &Vec<String>, watch| {
        Ok(watch.json(WireValues { values }))
    })
    .await
}

#[derive(Serialize)]
struct WireServices<'a> {
    services: Vec<WireService<'a>>,
    start_unix_nano: String,
    end_unix_nano: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket_ns: Option<u64>,
}

#[derive(Serialize)]
struct WireService<'a> {
    name: &'a str,
    spans: u64,
    requests: u64,
    errors: u64,
    requests_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<WireQuantiles>,
    samples: u64,
    linked_samples: u64,
    cpu_ns: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<WireServiceSeries<'a>>,
}

#[derive(Serialize)]
struct WireServiceSeries<'a> {
    requests: &'a [u64],
    errors: &'a [u64],
    p99_ns: &'a [Option<u64>],
}

#[derive(Serialize)]
pub(super) struct WireQuantiles {
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    exact: bool,
}

impl<'a> WireService<'a> {
    fn new(service: &'a Service, range: TimeRange) -> WireService<'a> {
        WireService {
            name: &service.name,
            spans: service.spans,
            requests: service.requests,
            errors: service.errors,
            requests_per_second: service.requests_per_second(range),
            duration: service.duration.map(WireQuantiles::new),
            samples: service.samples,
            linked_samples: service.linked_samples,
            cpu_ns: service.cpu_ns,
            cpu_ns_per_request: service.cpu_ns_per_request(),
            series: service.series.as_ref().map(|series| WireServiceSeries {
                requests: &series.requests,
                errors: &series.errors,
                p99_ns: &series.p99_ns,
            }),
        }
    }
}

impl WireQuantiles {
    pub(super) fn new(duration: Quantiles) -> WireQuantiles {
        WireQuantiles {
            p50_ns: duration.p50_ns,
            p90_ns: duration.p90_ns,
            p99_ns: duration.p99_ns,
            max_ns: duration.max_ns,
            exact: duration.exact,
        }
    }
}

#[derive(Serialize)]
struct WireTypes<'a> {
    profile_types: Vec<WireType<'a>>,
}

#[derive(Serialize)]
struct WireType<'a> {
    #[serde(rename = "type")]
    profile_type: String,
    unit: &'a str,
    services: &'a [String],
    samples: u64,
}

impl<'a> WireType<'a> {
    fn new(info: &'a TypeInfo) -> WireType<'a> {
        WireType {
            profile_type: info.profile_type.to_string(),
            unit: &info.profile_type.sample.unit,
            services: &info.services,
            samples: info.samples,
        }
    }
}

#[derive(Serialize)]
struct WireLabels<'a> {
    labels: &'a [String],
}

#[derive(Serialize)]
struct WireValues<'a> {
    values: &'a [String],
}
