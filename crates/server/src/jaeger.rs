//! Jaeger's query API, legacy and v3, as Jaeger's UI and Grafana's data source ask it; `docs/jaeger.md` lists what is
//! served.

use std::sync::Arc;

use axum::Router;
use axum::routing::MethodRouter;

use crate::app::App;

/// Every endpoint over HTTP: method, path, what serves it.
fn table() -> Vec<(&'static str, &'static str, MethodRouter<Arc<App>>)> {
    Vec::new()
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
