//! Pyroscope's paths, as its SDKs and agents write to them; `docs/pyroscope.md` lists what is served.

mod ingest;
mod push;

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use spanflame_model::Tenant;

use crate::app::App;
use crate::failure::{Failure, FailureKind};
use crate::ingest::Taken;
use crate::rejections;

/// Every endpoint over HTTP: method, path, what serves it.
fn table() -> Vec<(&'static str, &'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("POST", "/ingest", post(ingest::ingest)),
        ("POST", "/pyroscope/ingest", post(ingest::ingest)),
        ("POST", "/push.v1.PusherService/Push", post(push::push)),
    ]
}

/// The paths of this dialect, for Connect, gRPC and plain HTTP.
pub(crate) fn routes() -> Router<Arc<App>> {
    let route = |router: Router<Arc<App>>, (_, path, methods)| router.route(path, methods);
    table().into_iter().fold(Router::new(), route)
}

/// Method and path of every endpoint.
pub(crate) fn endpoints() -> Vec<(&'static str, &'static str)> {
    table().into_iter().map(|(method, path, _)| (method, path)).collect()
}

/// Fails if nothing of a request was kept and something was refused; else logs what was refused and says so in the
/// answer.
fn answer_partly(app: &App, tenant: &Tenant, headers: &http::HeaderMap, taken: &Taken, mut answer: Response) -> Result<Response, Failure> {
    app.rejections.note(tenant, headers, &taken.rejects);
    let kept = taken.appended.profiles + taken.appended.duplicate_profiles;
    match taken.rejects.message().filter(|_| kept == 0) {
        Some(message) => Err(Failure::new(FailureKind::Invalid, format!("nothing could be kept: {message}"))),
        None => {
            rejections::tell(answer.headers_mut(), &taken.rejects);
            Ok(answer)
        }
    }
}
