//! Grafana Pyroscope's API: what its SDKs and agents write to, and what its data source of Grafana, Profiles Drilldown
//! and old clients ask; `docs/pyroscope.md` lists what is served.
//!
//! Its paths are at the root of port 4040. Most questions are unary calls that `connect.rs` carries; the older ones are
//! plain HTTP with JSON.

mod diff;
mod flamegraph;
mod heatmap;
mod ingest;
mod labels;
mod profile;
mod push;
mod querier;
mod render;
mod series;
mod stats;
mod tree;

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, post};

use crate::app::App;
use crate::connect;

type Endpoint = (&'static str, &'static str, MethodRouter<Arc<App>>);

/// Every endpoint over HTTP: method, path, what serves it.
fn table() -> Vec<Endpoint> {
    let mut table = vec![
        ("POST", "/ingest", post(ingest::ingest)),
        ("POST", "/pyroscope/ingest", post(ingest::ingest)),
        ("POST", "/push.v1.PusherService/Push", connect::raw(push::push)),
    ];
    table.extend(querier::table());
    table.extend(render::table());
    table
}

/// The paths of this dialect, for Connect, gRPC and plain HTTP.
pub(crate) fn routes() -> Router<Arc<App>> {
    let route = |router: Router<Arc<App>>, (_, path, methods): Endpoint| router.route(path, methods);
    table().into_iter().fold(Router::new(), route)
}

/// Method and path of every endpoint.
pub(crate) fn endpoints() -> Vec<(&'static str, &'static str)> {
    table().into_iter().map(|(method, path, _)| (method, path)).collect()
}
