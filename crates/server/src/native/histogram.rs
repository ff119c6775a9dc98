//! `GET /api/v1/spans/histogram`: spans by time and duration.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use spanflame_query::{Cell, Engine, Histogram, HistogramRequest, RangeRule};

use super::catalog::WireQuantiles;
use super::params::Params;
use super::question::ask;
use super::spans::selection;
use super::text::time;
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;

const BUCKETS_DEFAULT: usize = 60;
const ROWS_DEFAULT: usize = 40;

pub(super) async fn histogram(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Failure> {
    let params = Params::parse(query.as_deref(), &["q", "start", "end", "range", "buckets", "rows"])?;
    let request = HistogramRequest {
        tenants: read_tenants(&headers)?,
        spans: selection(&params, RangeRule::Start)?,
        buckets: params.count("buckets", HistogramRequest::BUCKETS_MAX)?.unwrap_or(BUCKETS_DEFAULT),
        rows: params.count("rows", HistogramRequest::ROWS_MAX)?.unwrap_or(ROWS_DEFAULT),
    };
    let asked = async move |engine: Engine| engine.histogram(&request).await;
    ask(&app, "histogram", asked, |histogram: &Histogram, watch| {
        Ok(watch.json(WireHistogram::new(histogram)))
    })
    .await
}

#[derive(Serialize)]
struct WireHistogram<'a> {
    start_unix_nano: String,
    end_unix_nano: String,
    bucket_ns: u64,
    matched: u64,
    inspected: u64,
    count: &'a [u64],
    errors: &'a [u64],
    duration: WireCells<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantiles: Option<WireQuantiles>,
}

#[derive(Serialize)]
struct WireCells<'a> {
    bounds_ns: &'a [u64],
    cells: WireColumns,
}

/// Cells by field, for readers that want typed arrays.
#[derive(Serialize)]
struct WireColumns {
    bucket: Vec<u32>,
    row: Vec<u32>,
    count: Vec<u64>,
    errors: Vec<u64>,
}

impl<'a> WireHistogram<'a> {
    fn new(histogram: &'a Histogram) -> WireHistogram<'a> {
        WireHistogram {
            start_unix_nano: time(histogram.steps.range.start()),
            end_unix_nano: time(histogram.steps.range.end()),
            bucket_ns: histogram.steps.step_ns,
            matched: histogram.matched,
            inspected: histogram.inspected,
            count: &histogram.count,
            errors: &histogram.errors,
            duration: WireCells {
                bounds_ns: &histogram.bounds_ns,
                cells: WireColumns::new(&histogram.cells),
            },
            quantiles: histogram.quantiles.map(WireQuantiles::new),
        }
    }
}

impl WireColumns {
    fn new(cells: &[Cell]) -> WireColumns {
        WireColumns {
            bucket: cells.iter().map(|cell| cell.bucket).collect(),
            row: cells.iter().map(|cell| cell.row).collect(),
            count: cells.iter().map(|cell| cell.count).collect(),
            errors: cells.iter().map(|cell| cell.errors).collect(),
        }
    }
}
