//! How much there is, and how much a query would look at.

use std::sync::Arc;

use axum::response::Response;
use spanflame_model::TimeRange;
use spanflame_proto::pyroscope as wire;
use spanflame_query::{CatalogRequest, Engine, StoredVolume};

use super::labels;
use super::series::ms;
use crate::admission::read_tenants;
use crate::app::App;
use crate::connect::Call;
use crate::failure::Failure;
use crate::question::ask;

/// `GetProfileStats`.
pub(super) async fn profile_stats(app: Arc<App>, call: Call<wire::GetProfileStatsRequest>) -> Result<Response, Failure> {
    let manner = call.manner;
    let request = CatalogRequest {
        tenants: read_tenants(&call.headers)?,
        range: TimeRange::ALL,
    };
    let asked = async move |engine: Engine| engine.profile_volume(&request);
    ask(&app, "pyroscope_profile_stats", asked, move |volume: &StoredVolume, _| {
        manner.answer(&wire::GetProfileStatsResponse {
            data_ingested: volume.time.is_some(),
            oldest_profile_time: volume.time.map_or(0, |time| ms(time.start())),
            newest_profile_time: volume.time.map_or(0, |time| ms(time.end().saturating_sub(1))),
        })
    })
    .await
}

/// `AnalyzeQuery`.
pub(super) async fn analyze(app: Arc<App>, call: Call<wire::AnalyzeQueryRequest>) -> Result<Response, Failure> {
    let wire::AnalyzeQueryRequest { start, end, query } = call.question;
    let manner = call.manner;
    let request = labels::catalog(&call.headers, start, end)?;
    // A profile type before the braces, as users write queries.
    let text = query.find('{').map_or("{}", |at| &query[at..]);
    let selector = labels::selector("query", text)?;
    let asked = async move |engine: Engine| {
        let volume = engine.profile_volume(&request)?;
        let series = engine.profile_series(&request, &[selector]).await?;
        let series_count = series.iter().map(|series| series.types.len() as u64).sum();
        Ok(wire::AnalyzeQueryResponse {
            query_scopes: vec![wire::QueryScope {
                component_type: "store".to_owned(),
                component_count: 1,
                block_count: volume.files,
                series_count,
                profile_count: 0,
                sample_count: volume.rows,
                index_bytes: 0,
                profile_bytes: volume.bytes,
                symbol_bytes: 0,
            }],
            query_impact: Some(wire::QueryImpact {
                total_bytes_in_time_range: volume.bytes,
                total_queried_series: series_count,
                deduplication_needed: false,
            }),
        })
    };
    ask(
        &app,
        "pyroscope_analyze_query",
        asked,
        move |answer: &wire::AnalyzeQueryResponse, _| manner.answer(answer),
    )
    .await
}
