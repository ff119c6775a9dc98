//! Measures the sampler: how well observations match the CPU clock, how many name the right span, what one costs.
//!
//! `cargo run --release --example accuracy -p spanflame-sdk -- 100 20` samples at 100 Hz for 20 s of CPU time per
//! thread and prints one JSON object. `docs/sdk.md` quotes it.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry::trace::TraceContextExt;
use spanflame_model::{Batch, SpanId};
use spanflame_sdk::Sdk;
use tracing::{Instrument, Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::prelude::*;

const WORKERS: usize = 2;
const TASKS: usize = 16;

fn clock(id: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec and a clock that every Linux has.
    unsafe { libc::clock_gettime(id, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn burn(time: Duration) -> u64 {
    let end = clock(libc::CLOCK_THREAD_CPUTIME_ID) + time;
    let mut word = 1_u64;
    while clock(libc::CLOCK_THREAD_CPUTIME_ID) < end {
        word = std::hint::black_box(word.rotate_left(5) ^ 77);
    }
    word
}

/// Its depth makes stacks as deep as those of a service.
#[inline(never)]
fn hot_even(depth: u32, time: Duration) -> u64 {
    if depth > 0 {
        return std::hint::black_box(hot_even(depth - 1, time)) + 1;
    }
    burn(time)
}

#[inline(never)]
fn hot_odd(depth: u32, time: Duration) -> u64 {
    if depth > 0 {
        return std::hint::black_box(hot_odd(depth - 1, time)) + 2;
    }
    burn(time)
}

fn id(span: &Span) -> Option<SpanId> {
    SpanId::from_bytes(span.context().span().span_context().span_id().to_bytes())
}

struct Attribution {
    right: u64,
    wrong: u64,
    unlinked: u64,
    frames: usize,
    rooted: u64,
}

fn judge(batches: &[Batch], evens: &[SpanId], odds: &[SpanId]) -> Attribution {
    let mut sum = Attribution {
        right: 0,
        wrong: 0,
        unlinked: 0,
        frames: 0,
        rooted: 0,
    };
    for (batch, sample) in batches
        .iter()
        .flat_map(|b| b.profiles.iter().flat_map(move |p| p.samples.iter().map(move |s| (b, s))))
    {
        let stack = batch.stacks.stack(sample.stack).expect("complete");
        let names: Vec<String> = stack
            .iter()
            .map(|id| batch.stacks.frame(*id).expect("complete").display_name())
            .collect();
        let owners = match () {
            () if names.iter().any(|name| name.ends_with("hot_even")) => evens,
            () if names.iter().any(|name| name.ends_with("hot_odd")) => odds,
            () => continue,
        };
        let count = sample.times.len() as u64;
        match sample.link.span_id() {
            Some(span) if owners.contains(&span) => sum.right += count,
            Some(_) => sum.wrong += count,
            None => sum.unlinked += count,
        }
        sum.frames += names.len() * sample.times.len();
        sum.rooted += if names.iter().any(|name| name.contains("thread_start")) {
            count
        } else {
            0
        };
    }
    sum
}

async fn task(number: usize, bursts: u32) -> Duration {
    let mut used = Duration::ZERO;
    for _ in 0..bursts {
        let before = clock(libc::CLOCK_THREAD_CPUTIME_ID);
        let hot = if number.is_multiple_of(2) { hot_even } else { hot_odd };
        std::hint::black_box(hot(12, Duration::from_millis(1)));
        used += clock(libc::CLOCK_THREAD_CPUTIME_ID) - before;
        tokio::task::yield_now().await;
    }
    used
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rate_hz: u32 = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(20), |text| text.parse())?;

    let batches: Arc<Mutex<Vec<Batch>>> = Arc::default();
    let sink = batches.clone();
    let take = move |batch| sink.lock().expect("no panic").push(batch);
    let sdk = Sdk::builder("accuracy").rate_hz(rate_hz).exporter(Box::new(take)).start()?;
    tracing_subscriber::registry().with(sdk.layer()).init();
    std::thread::sleep(Duration::from_secs(1));
    let before = clock(libc::CLOCK_PROCESS_CPUTIME_ID);
    std::thread::sleep(Duration::from_secs(10));
    let idle_share = (clock(libc::CLOCK_PROCESS_CPUTIME_ID) - before).as_secs_f64() / 10.0;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .on_thread_start(sdk.thread_hook())
        .build()?;
    let spans: Vec<Span> = (0..TASKS).map(|number| info_span!("task", number)).collect();
    let ids: Vec<SpanId> = spans.iter().filter_map(id).collect();
    let bursts = (seconds * 1000 * WORKERS as u64 / TASKS as u64) as u32;
    let used = runtime.block_on(async {
        let tasks: Vec<_> = spans
            .iter()
            .enumerate()
            .map(|(n, span)| tokio::spawn(task(n, bursts).instrument(span.clone())))
            .collect();
        let mut used = Duration::ZERO;
        for task in tasks {
            used += task.await.unwrap_or_default();
        }
        used
    });
    let stats = sdk.shutdown();

    let parity = |wanted: usize| {
        ids.iter()
            .enumerate()
            .filter(|(n, _)| n % 2 == wanted)
            .map(|(_, id)| *id)
            .collect::<Vec<_>>()
    };
    let batches = batches.lock().expect("no panic");
    let found = judge(&batches, &parity(0), &parity(1));
    let observed = found.right + found.wrong + found.unlinked;
    let expected = used.as_secs_f64() * f64::from(rate_hz);
    let threads: HashMap<i64, u64> =
        batches
            .iter()
            .flat_map(|b| &b.profiles)
            .flat_map(|p| &p.samples)
            .fold(HashMap::new(), |mut sum, s| {
                *sum.entry(s.thread_id.unwrap_or_default()).or_default() += s.times.len() as u64;
                sum
            });
    println!(
        "{{\"rate_hz\": {rate_hz}, \"cpu_s\": {:.2}, \"expected\": {expected:.0}, \"observed\": {observed}, \"error\": {:.4}, \
         \"right\": {}, \"wrong\": {}, \"unlinked\": {}, \"frames_mean\": {:.1}, \"rooted\": {:.4}, \"threads\": {}, \
         \"handler_us_mean\": {:.2}, \"idle_share\": {idle_share:.5}, \"dropped\": {}}}",
        used.as_secs_f64(),
        observed as f64 / expected - 1.0,
        found.right,
        found.wrong,
        found.unlinked,
        found.frames as f64 / observed as f64,
        found.rooted as f64 / observed as f64,
        threads.len(),
        stats.handler_ns as f64 / stats.observations as f64 / 1e3,
        stats.dropped_ring + stats.dropped_window + stats.dropped_export,
    );
    Ok(())
}
