//! The frontend: `GET /checkout?user=N&lines=N&coupon=TEXT` asks the cart, then the price.

use std::error::Error;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;
use spanflame_shop::{service, session, trace_context};
use tracing::{Instrument, info_span};

#[derive(Deserialize)]
struct Ask {
    user: u64,
    lines: u32,
    coupon: String,
}

struct Backends {
    client: reqwest::Client,
    cart: String,
    pricing: String,
}

async fn checkout(State(backends): State<Arc<Backends>>, Query(ask): Query<Ask>) -> Result<String, StatusCode> {
    session::verify_session(ask.user);
    let user = ask.user.to_string();
    let cart = [("user", user.as_str()), ("lines", &ask.lines.to_string())];
    let cart = backends.call(&format!("{}/cart", backends.cart), &cart).await?;
    let price = [("user", user.as_str()), ("coupon", &ask.coupon)];
    let price = backends.call(&format!("{}/price", backends.pricing), &price).await?;
    Ok(format!("{cart}{price}"))
}

impl Backends {
    async fn call(&self, url: &str, query: &[(&str, &str)]) -> Result<String, StatusCode> {
        let span = info_span!("call", otel.name = "GET", otel.kind = "client", url.full = url);
        let request = self.client.get(url).query(query).headers(trace_context::headers_of(&span));
        let answer = async { request.send().await?.error_for_status()?.text().await };
        answer.instrument(span).await.map_err(|_| StatusCode::BAD_GATEWAY)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    service::run("frontend", |flags| {
        let backends = Backends {
            client: reqwest::Client::new(),
            cart: flags.require("--cart")?.to_owned(),
            pricing: flags.require("--pricing")?.to_owned(),
        };
        Ok(Router::new().route("/checkout", get(checkout)).with_state(Arc::new(backends)))
    })
}
