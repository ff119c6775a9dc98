//! The cart service: `GET /cart?user=N&lines=N`.

use std::error::Error;

use axum::extract::Query;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use spanflame_shop::{cart, service, session};

#[derive(Deserialize)]
struct Ask {
    user: u64,
    lines: u32,
}

#[derive(Serialize)]
struct Answer {
    page_bytes: usize,
}

/// Larger carts are cut, so that one request costs a second at most.
const LINES_MAX: u32 = 5_000;

async fn show_cart(Query(ask): Query<Ask>) -> Json<Answer> {
    session::verify_session(ask.user);
    let page = cart::cart(ask.lines.min(LINES_MAX)).await;
    Json(Answer { page_bytes: page.len() })
}

fn main() -> Result<(), Box<dyn Error>> {
    service::run("cart", |_| Ok(Router::new().route("/cart", get(show_cart))))
}
