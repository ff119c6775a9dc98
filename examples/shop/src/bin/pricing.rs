//! The pricing service: `GET /price?user=N&coupon=TEXT`.

use std::error::Error;

use axum::extract::Query;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use spanflame_shop::{pricing, service, session};

#[derive(Deserialize)]
struct Ask {
    user: u64,
    coupon: String,
}

#[derive(Serialize)]
struct Answer {
    discount_percent: u32,
}

async fn show_price(Query(ask): Query<Ask>) -> Json<Answer> {
    session::verify_session(ask.user);
    Json(Answer {
        discount_percent: pricing::price(&ask.coupon).await,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    service::run("pricing", |_| Ok(Router::new().route("/price", get(show_price))))
}
