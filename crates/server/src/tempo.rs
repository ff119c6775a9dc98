//! Grafana Tempo's query API, as Tempo's data source of Grafana asks it; `docs/tempo.md` lists what is served.
//!
//! Answers are JSON or protobuf in Tempo's shapes, errors are plain text. Clients decode strictly: a JSON field that
//! Tempo does not have makes their query fail, so nothing is ever added to an answer.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get};

use crate::app::App;

/// Every endpoint over HTTP: method, path, what serves it.
fn table() -> Vec<(&'static str, &'static str, MethodRouter<Arc<App>>)> {
    vec![("GET", "/api/echo", get(async || "echo"))]
}

/// The HTTP paths of this dialect.
pub(crate) fn routes() -> Router<Arc<App>> {
    let route = |router: Router<Arc<App>>, (_, path, methods)| router.route(path, methods);
    table().into_iter().fold(Router::new(), route)
}

/// Method and path of every endpoint.
pub(crate) fn endpoints() -> Vec<(&'static str, &'static str)> {
    table().into_iter().map(|(method, path, _)| (method, path)).collect()
}
