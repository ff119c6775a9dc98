//! What tells clients that a server is there, and which.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::answer::json_response;
use crate::Config;
use crate::app::App;
use crate::failure::Failure;

/// The version of Tempo whose API this is: clients switch features on by it.
const TEMPO_VERSION: &str = "2.9.0";

/// `GET /api/echo`
pub(super) async fn echo() -> &'static str {
    "echo"
}

/// `GET /ready`
pub(super) async fn ready(State(app): State<Arc<App>>) -> Result<Response, Failure> {
    app.ready().map(|()| "ready\n".into_response())
}

/// `GET /api/status/buildinfo`
pub(super) async fn build_info() -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let body = json!({
        "version": TEMPO_VERSION,
        "revision": format!("spanflame-{version}"),
        "branch": "",
        "buildDate": "",
        "buildUser": "",
        "goVersion": "",
    });
    json_response(body.to_string())
}

/// `GET /status`: the endpoints and the settings.
pub(super) async fn status(State(app): State<Arc<App>>) -> String {
    format!("{}\n{}", endpoints().await, config(State(app)).await)
}

/// `GET /status/version`
pub(super) async fn version() -> String {
    format!(
        "spanflame, version {}, serves the API of Tempo {TEMPO_VERSION}\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// `GET /status/services`
pub(super) async fn services(State(app): State<Arc<App>>) -> String {
    let state = if app.ready().is_ok() { "Running" } else { "Starting or stopping" };
    format!("spanflame: {state}\n")
}

/// `GET /status/endpoints`
pub(super) async fn endpoints() -> String {
    let lines = super::endpoints().into_iter().map(|(method, path)| format!("{method} {path}\n"));
    lines.collect()
}

/// `GET /status/config`: every setting in TOML, as `spanflame config` shows it.
pub(super) async fn config(State(app): State<Arc<App>>) -> String {
    Config::describe(&app.config)
}
