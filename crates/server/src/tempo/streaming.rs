//! `tempopb.StreamingQuerier`: the same questions over gRPC, answered as a stream of parts.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use http::Request;
use prost::Message;
use spanflame_formats::compression;
use spanflame_model::Tenant;
use spanflame_proto::tempo as wire;

use super::answer::Wire;
use super::metrics::{Question, instant_response, range_response};
use super::search::Search;
use super::tags::{Listing, Scope, names_v1, names_v2, values_v1, values_v2};
use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::grpc;

/// Largest request: its longest part is a query of 128 KiB.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Every method.
pub(super) fn table() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("/tempopb.StreamingQuerier/Search", method(search)),
        ("/tempopb.StreamingQuerier/SearchTags", method(tags)),
        ("/tempopb.StreamingQuerier/SearchTagsV2", method(tags_v2)),
        ("/tempopb.StreamingQuerier/SearchTagValues", method(tag_values)),
        ("/tempopb.StreamingQuerier/SearchTagValuesV2", method(tag_values_v2)),
        ("/tempopb.StreamingQuerier/MetricsQueryRange", method(metrics_range)),
        ("/tempopb.StreamingQuerier/MetricsQueryInstant", method(metrics_instant)),
    ]
}

async fn search(app: Arc<App>, tenants: Vec<Tenant>, request: wire::SearchRequest) -> Result<Response, Failure> {
    Search::of_request(request)?.answer(&app, tenants, Wire::Grpc).await
}

async fn tags(app: Arc<App>, tenants: Vec<Tenant>, request: wire::SearchTagsRequest) -> Result<Response, Failure> {
    let scope = Scope::from_word(&request.scope)?;
    let listing = Listing::of_request(tenants, "", [request.start, request.end], request.max_tags_per_scope)?;
    listing.names(&app, Wire::Grpc, names_v1, scope).await
}

async fn tags_v2(app: Arc<App>, tenants: Vec<Tenant>, request: wire::SearchTagsRequest) -> Result<Response, Failure> {
    let scope = Scope::from_word(&request.scope)?;
    let listing = Listing::of_request(tenants, "", [request.start, request.end], request.max_tags_per_scope)?;
    listing.names(&app, Wire::Grpc, names_v2, scope).await
}

async fn tag_values(app: Arc<App>, tenants: Vec<Tenant>, request: wire::SearchTagValuesRequest) -> Result<Response, Failure> {
    let range = [request.start, request.end];
    let listing = Listing::of_request(tenants, &request.query, range, request.max_tag_values)?;
    listing.values(&app, Wire::Grpc, values_v1, &request.tag_name).await
}

async fn tag_values_v2(app: Arc<App>, tenants: Vec<Tenant>, request: wire::SearchTagValuesRequest) -> Result<Response, Failure> {
    let range = [request.start, request.end];
    let listing = Listing::of_request(tenants, &request.query, range, request.max_tag_values)?;
    listing.values(&app, Wire::Grpc, values_v2, &request.tag_name).await
}

async fn metrics_range(app: Arc<App>, tenants: Vec<Tenant>, request: wire::QueryRangeRequest) -> Result<Response, Failure> {
    let question = Question::of_request(tenants, &request.query, [request.start, request.end], Some(request.step))?;
    question.answer(&app, Wire::Grpc, range_response).await
}

async fn metrics_instant(app: Arc<App>, tenants: Vec<Tenant>, request: wire::QueryInstantRequest) -> Result<Response, Failure> {
    let question = Question::of_request(tenants, &request.query, [request.start, request.end], None)?;
    question.answer(&app, Wire::Grpc, instant_response).await
}

/// The gRPC methods of this dialect.
pub(super) fn routes() -> Router<Arc<App>> {
    let route = |router: Router<Arc<App>>, (path, methods)| router.route(path, methods);
    table().into_iter().fold(Router::new(), route)
}

/// A method that reads one message.
fn method<M, A, F>(answer: A) -> MethodRouter<Arc<App>>
where
    M: Message + Default + 'static,
    A: Fn(Arc<App>, Vec<Tenant>, M) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Failure>> + Send,
{
    post(move |State(app): State<Arc<App>>, request: Request<Body>| async move {
        let result = match read::<M>(&app, request).await {
            Ok((tenants, message)) => answer(app, tenants, message).await,
            Err(failure) => Err(failure),
        };
        result.unwrap_or_else(|failure| grpc::refusal(&failure, Vec::new()))
    })
}

async fn read<M: Message + Default>(app: &App, request: Request<Body>) -> Result<(Vec<Tenant>, M), Failure> {
    let (parts, body) = request.into_parts();
    let tenants = read_tenants(&parts.headers)?;
    let received = grpc::read(app, &parts.headers, body).await?;
    let bytes = compression::decompress(received.encoding, &received.message, REQUEST_BYTES_MAX)?;
    let message = M::decode(bytes.as_ref()).map_err(|error| Failure::invalid("body", format!("the message is malformed: {error}")))?;
    Ok((tenants, message))
}
