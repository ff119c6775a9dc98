//! `querier.v1.QuerierService`: the calls of Grafana's data source.

use std::sync::Arc;

use axum::response::Response;
use http::HeaderMap;
use prost::{Message, Name};
use spanflame_proto::pyroscope as wire;
use spanflame_query::{CatalogRequest, Engine, LabelSelector, ProfileSeries};

use super::labels::{self, Names};
use super::profile;
use super::series as over_time;
use super::{Endpoint, diff, heatmap, stats};
use crate::app::App;
use crate::connect::{self, Call, Manner};
use crate::failure::Failure;
use crate::question::ask;

/// Every call, as method and path.
pub(super) fn table() -> Vec<Endpoint> {
    vec![
        call("/querier.v1.QuerierService/ProfileTypes", connect::question(profile_types)),
        call("/querier.v1.QuerierService/LabelNames", connect::question(label_names)),
        call("/querier.v1.QuerierService/LabelValues", connect::question(label_values)),
        call("/querier.v1.QuerierService/Series", connect::question(series)),
        call(
            "/querier.v1.QuerierService/SelectMergeStacktraces",
            connect::question(profile::merge_stacktraces),
        ),
        call(
            "/querier.v1.QuerierService/SelectMergeSpanProfile",
            connect::question(profile::merge_span_profile),
        ),
        call(
            "/querier.v1.QuerierService/SelectMergeProfile",
            connect::question(profile::merge_profile),
        ),
        call("/querier.v1.QuerierService/SelectSeries", connect::question(over_time::select)),
        call("/querier.v1.QuerierService/SelectHeatmap", connect::question(heatmap::select)),
        call("/querier.v1.QuerierService/Diff", connect::question(diff::diff)),
        call(
            "/querier.v1.QuerierService/GetProfileStats",
            connect::question(stats::profile_stats),
        ),
        call("/querier.v1.QuerierService/AnalyzeQuery", connect::question(stats::analyze)),
    ]
}

fn call(path: &'static str, methods: axum::routing::MethodRouter<Arc<App>>) -> Endpoint {
    ("POST", path, methods)
}

async fn profile_types(app: Arc<App>, call: Call<wire::ProfileTypesRequest>) -> Result<Response, Failure> {
    let of = Of::new(&call.headers, (call.question.start, call.question.end), &[])?;
    let write = |series: &[ProfileSeries]| wire::ProfileTypesResponse {
        profile_types: labels::types(series).into_iter().map(labels::write_type).collect(),
    };
    catalog(app, "pyroscope_profile_types", call.manner, of, write).await
}

async fn label_names(app: Arc<App>, call: Call<wire::LabelNamesRequest>) -> Result<Response, Failure> {
    let of = Of::new(&call.headers, (call.question.start, call.question.end), &call.question.matchers)?;
    let names = Names::of(&call.headers);
    let write = move |series: &[ProfileSeries]| wire::LabelNamesResponse {
        names: labels::names(series, names),
    };
    catalog(app, "pyroscope_label_names", call.manner, of, write).await
}

async fn label_values(app: Arc<App>, call: Call<wire::LabelValuesRequest>) -> Result<Response, Failure> {
    let of = Of::new(&call.headers, (call.question.start, call.question.end), &call.question.matchers)?;
    let (names, name) = (Names::of(&call.headers), call.question.name);
    if name.is_empty() {
        return Err(Failure::invalid("name", "name is empty, expected the name of a label"));
    }
    let write = move |series: &[ProfileSeries]| wire::LabelValuesResponse {
        names: labels::values(series, &name, names),
    };
    catalog(app, "pyroscope_label_values", call.manner, of, write).await
}

async fn series(app: Arc<App>, call: Call<wire::SeriesRequest>) -> Result<Response, Failure> {
    let of = Of::new(&call.headers, (call.question.start, call.question.end), &call.question.matchers)?;
    let (names, wanted) = (Names::of(&call.headers), call.question.label_names);
    let write = move |series: &[ProfileSeries]| wire::SeriesResponse {
        labels_set: labels::series(series, &wanted, names),
    };
    catalog(app, "pyroscope_series", call.manner, of, write).await
}

/// Whose labels are asked for: of the profiles that one of the selectors selects.
struct Of {
    request: CatalogRequest,
    selectors: Vec<LabelSelector>,
}

impl Of {
    fn new(headers: &HeaderMap, (start_ms, end_ms): (i64, i64), matchers: &[String]) -> Result<Of, Failure> {
        let selectors = matchers.iter().filter(|text| !text.is_empty());
        Ok(Of {
            request: labels::catalog(headers, start_ms, end_ms)?,
            selectors: selectors.map(|text| labels::selector("matchers", text)).collect::<Result<_, _>>()?,
        })
    }
}

/// One question about labels.
async fn catalog<A: Message + Name>(
    app: Arc<App>,
    name: &'static str,
    manner: Manner,
    of: Of,
    write: impl FnOnce(&[ProfileSeries]) -> A + Send + 'static,
) -> Result<Response, Failure> {
    let asked = async move |engine: Engine| engine.profile_series(&of.request, &of.selectors).await;
    ask(&app, name, asked, move |series: &Vec<ProfileSeries>, _| {
        manner.answer(&write(series))
    })
    .await
}
