//! Keeps a number of checkouts in flight and records what each was, so that answers can be judged.
//!
//! Flags: `--frontend URL`, `--record PATH` (a JSON line per request), `--in-flight N` (default 10).
//! Runs until it is ended. Which requests are slow is a fixed rhythm, not chance: every run plants the same.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use spanflame_shop::flags::Flags;
use spanflame_shop::{pricing, service};
use tokio::sync::mpsc;

/// A large cart and an odd coupon come once in so many requests, half a round apart: each costs a small share of one core, less in
/// sum than the session check that all requests share.
const ROUND: u64 = 120;
const LARGE_CART_AT: u64 = 20;
const ODD_COUPON_AT: u64 = 80;

const SMALL_CART_LINES: u32 = 8;
const LARGE_CART_LINES: u32 = 4_000;

const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// What was planted into a request. The names are the record's.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Plant {
    Nothing,
    LargeCart,
    OddCoupon,
}

#[derive(Serialize)]
struct Record {
    trace_id: String,
    plant: Plant,
    latency_ms: u64,
}

fn plant_of(request: u64) -> Plant {
    match request % ROUND {
        LARGE_CART_AT => Plant::LargeCart,
        ODD_COUPON_AT => Plant::OddCoupon,
        _ => Plant::Nothing,
    }
}

async fn check_out(client: &reqwest::Client, frontend: &str, request: u64) -> Option<Record> {
    let plant = plant_of(request);
    let lines = if matches!(plant, Plant::LargeCart) {
        LARGE_CART_LINES
    } else {
        SMALL_CART_LINES
    };
    let coupon = if matches!(plant, Plant::OddCoupon) {
        pricing::odd_coupon()
    } else {
        "WINTER".to_owned()
    };
    let query = [("user", request.to_string()), ("lines", lines.to_string()), ("coupon", coupon)];
    let start = Instant::now();
    let response = client
        .get(format!("{frontend}/checkout"))
        .query(&query)
        .send()
        .await
        .ok()?
        .error_for_status()
        .ok()?;
    let trace_id = response.headers().get(service::TRACE_ID_HEADER)?.to_str().ok()?.to_owned();
    response.bytes().await.ok()?;
    Some(Record {
        trace_id,
        plant,
        latency_ms: start.elapsed().as_millis() as u64,
    })
}

async fn one_user(client: reqwest::Client, frontend: String, next: Arc<AtomicU64>, records: mpsc::Sender<Record>) {
    loop {
        match check_out(&client, &frontend, next.fetch_add(1, Ordering::Relaxed)).await {
            Some(record) => {
                if records.send(record).await.is_err() {
                    return;
                }
            }
            None => tokio::time::sleep(FAILURE_PAUSE).await,
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::from_env();
    let frontend = flags.require("--frontend")?.to_owned();
    let in_flight: usize = flags.get("--in-flight").unwrap_or("10").parse()?;
    let mut file = File::create(flags.require("--record")?)?;
    let (records, mut received) = mpsc::channel(1024);
    let next = Arc::new(AtomicU64::new(0));
    let client = reqwest::Client::new();
    for _ in 0..in_flight {
        tokio::spawn(one_user(client.clone(), frontend.clone(), Arc::clone(&next), records.clone()));
    }
    drop(records);
    while let Some(record) = received.recv().await {
        writeln!(file, "{}", serde_json::to_string(&record)?)?;
    }
    Ok(())
}
