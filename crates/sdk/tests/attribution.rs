//! Samples against known truth: which function ran under which span, and for how long.
//!
//! Bounds are four standard deviations of a count, and every count is large enough for them to mean something.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use spanflame_context::thread;
use spanflame_model::{Batch, Link, SpanId};
use spanflame_sdk::{Sdk, Stats};
use tracing::{Instrument, Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::prelude::*;

const RATE_HZ: u32 = 100;

/// A process has one SDK, and the tests of this file share a process.
static ALONE: Mutex<()> = Mutex::new(());

struct Recording {
    sdk: Sdk,
    batches: Arc<Mutex<Vec<Batch>>>,
    _alone: MutexGuard<'static, ()>,
}

/// One sample, with names.
struct Sampled {
    functions: Vec<String>,
    span: Option<SpanId>,
    thread: i64,
    count: u64,
}

impl Recording {
    fn start() -> Recording {
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let batches: Arc<Mutex<Vec<Batch>>> = Arc::default();
        let sink = batches.clone();
        let sdk = Sdk::builder("truth")
            .rate_hz(RATE_HZ)
            .exporter(Box::new(move |batch| sink.lock().expect("no panic").push(batch)))
            .start()
            .expect("no other profiler");
        // An application's own layer, which outlives every SDK of these tests.
        static SUBSCRIBER: std::sync::Once = std::sync::Once::new();
        SUBSCRIBER.call_once(|| {
            let tracer = SdkTracerProvider::builder().build().tracer("truth");
            tracing_subscriber::registry()
                .with(tracing_opentelemetry::layer().with_tracer(tracer))
                .init();
        });
        Recording {
            sdk,
            batches,
            _alone: alone,
        }
    }

    fn stop(self) -> (Vec<Sampled>, Stats) {
        let stats = self.sdk.shutdown();
        let batches = self.batches.lock().expect("no panic");
        (batches.iter().flat_map(sampled).collect(), stats)
    }
}

fn sampled(batch: &Batch) -> Vec<Sampled> {
    let name = |id| batch.stacks.frame(id).expect("complete").display_name();
    let samples = batch.profiles.iter().flat_map(|profile| &profile.samples);
    samples
        .map(|sample| Sampled {
            functions: batch
                .stacks
                .stack(sample.stack)
                .expect("complete")
                .iter()
                .map(|id| name(*id))
                .collect(),
            span: sample.link.span_id(),
            thread: sample.thread_id.expect("set by the SDK"),
            count: sample.times.len() as u64,
        })
        .collect()
}

/// Observations by span, of samples in which `function` appears.
fn spans_of(samples: &[Sampled], function: &str) -> BTreeMap<Option<SpanId>, u64> {
    let mut spans = BTreeMap::new();
    for sample in samples.iter().filter(|s| s.functions.iter().any(|f| f.ends_with(function))) {
        *spans.entry(sample.span).or_default() += sample.count;
    }
    spans
}

fn check_only_under(samples: &[Sampled], function: &str, span: SpanId, at_least: u64) {
    let spans = spans_of(samples, function);
    let (right, all) = (spans.get(&Some(span)).copied().unwrap_or(0), spans.values().sum::<u64>());
    assert!(right >= at_least, "{function}: {right} observations, expected {at_least}");
    assert!(right * 100 >= all * 99, "{function} ran under {span}, but {spans:?}");
}

fn id(span: &Span) -> SpanId {
    let context = span.context();
    SpanId::from_bytes(context.span().span_context().span_id().to_bytes()).expect("a live span")
}

/// Takes `time` of the CPU, however long that takes.
fn burn(time: Duration) -> u64 {
    let end = thread_cpu() + time;
    let mut word = 1_u64;
    while thread_cpu() < end {
        for _ in 0..1_000 {
            word = std::hint::black_box(word.wrapping_mul(6_364_136_223_846_793_005).rotate_left(9));
        }
    }
    word
}

#[inline(never)]
fn hot_in_a(time: Duration) -> u64 {
    std::hint::black_box(burn(time)) ^ 1
}

#[inline(never)]
fn hot_in_b(time: Duration) -> u64 {
    std::hint::black_box(burn(time)) ^ 2
}

#[inline(never)]
fn hot_in_both(time: Duration) -> u64 {
    std::hint::black_box(burn(time)) ^ 3
}

/// The clock that samples are judged by.
fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec and a clock that every thread has.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn interleaved_tasks_keep_their_samples_apart() {
    let recording = Recording::start();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("threads");
    let (a, b) = (info_span!("a"), info_span!("b"));
    let (id_a, id_b) = (id(&a), id(&b));
    let task = |hot: fn(Duration) -> u64| async move {
        for _ in 0..150 {
            std::hint::black_box(hot(Duration::from_millis(1)));
            std::hint::black_box(hot_in_both(Duration::from_millis(1)));
            tokio::task::yield_now().await;
        }
    };
    runtime.block_on(async {
        let spawn = |span: &Span, hot| (0..4).map(|_| tokio::spawn(task(hot).instrument(span.clone()))).collect::<Vec<_>>();
        for handle in spawn(&a, hot_in_a as fn(_) -> _)
            .into_iter()
            .chain(spawn(&b, hot_in_b as fn(_) -> _))
        {
            handle.await.expect("no panic");
        }
    });
    let (samples, stats) = recording.stop();
    check_only_under(&samples, "hot_in_a", id_a, 30);
    check_only_under(&samples, "hot_in_b", id_b, 30);
    let both = spans_of(&samples, "hot_in_both");
    assert!(both.get(&Some(id_a)) >= Some(&30) && both.get(&Some(id_b)) >= Some(&30), "{both:?}");
    assert_eq!(stats.dropped_ring + stats.dropped_window + stats.dropped_export, 0, "{stats:?}");
    assert_eq!(stats.delivered, samples.iter().map(|sample| sample.count).sum::<u64>());
}

#[test]
fn a_task_that_changes_threads_takes_its_span_along() {
    let recording = Recording::start();
    let span = info_span!("wanders");
    let id = id(&span);
    let task = async {
        for _ in 0..16 {
            std::hint::black_box(hot_in_a(Duration::from_millis(100)));
            yield_once().await;
        }
    };
    let task = Mutex::new(Box::pin(task.instrument(span)));
    // Two threads take turns, as if each had stolen the task from the other.
    let turn = std::sync::Barrier::new(2);
    let poll_every_other = |mine: usize| {
        for round in 0..16 {
            turn.wait();
            if round % 2 == mine {
                let _ = task
                    .lock()
                    .expect("no panic")
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
                assert_eq!(thread::current(), None, "left at the end of the poll");
            }
        }
    };
    std::thread::scope(|scope| {
        [0, 1]
            .map(|mine| scope.spawn(move || poll_every_other(mine)))
            .map(|t| t.join().expect("no panic"))
    });
    let (samples, _) = recording.stop();
    check_only_under(&samples, "hot_in_a", id, 100);
    let mut threads: Vec<i64> = samples.iter().filter(|s| s.span == Some(id)).map(|s| s.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 2);
}

#[test]
fn observations_add_up_to_the_cpu_clock() {
    let recording = Recording::start();
    let hook = recording.sdk.thread_hook();
    let busy = || {
        hook();
        let before = thread_cpu();
        for _ in 0..40 {
            std::hint::black_box(hot_in_a(Duration::from_millis(50)));
            std::thread::yield_now();
        }
        thread_cpu() - before
    };
    let cpu: Duration = std::thread::scope(|scope| {
        let threads = [0, 1].map(|_| scope.spawn(busy));
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    let (samples, _) = recording.stop();
    let observed = spans_of(&samples, "hot_in_a").values().sum::<u64>() as f64;
    let expected = cpu.as_secs_f64() * f64::from(RATE_HZ);
    assert!(expected >= 100.0, "{expected} periods are too few to judge");
    assert!(
        (observed - expected).abs() <= 4.0 * expected.sqrt(),
        "observed {observed}, expected {expected}"
    );
}

#[test]
fn stacks_reach_the_root_of_their_thread() {
    let recording = Recording::start();
    let spawned = std::thread::spawn(|| std::hint::black_box(hot_in_a(Duration::from_millis(1500))));
    spawned.join().expect("no panic");
    let (samples, _) = recording.stop();
    let is_ours = |s: &&Sampled| s.functions.iter().any(|f| f.ends_with("hot_in_a"));
    let (mut all, mut rooted) = (0, 0);
    for sample in samples.iter().filter(is_ours) {
        all += sample.count;
        rooted += if sample.functions.iter().any(|f| f.contains("thread_start")) {
            sample.count
        } else {
            0
        };
    }
    assert!(all >= 50, "{all} observations are too few to judge");
    assert!(rooted * 100 >= all * 99, "{rooted} of {all} reach the root");
}

#[test]
fn leaving_a_span_returns_to_its_parent_and_then_to_none() {
    let recording = Recording::start();
    let current = || thread::current().map(|context| context.span_id);
    let outer = info_span!("outer");
    outer.in_scope(|| {
        assert_eq!(current(), Some(id(&outer)));
        let inner = info_span!("inner");
        inner.in_scope(|| assert_eq!(current(), Some(id(&inner))));
        assert_eq!(current(), Some(id(&outer)));
    });
    assert_eq!(current(), None);
    drop(recording);
}

#[test]
fn plain_opentelemetry_is_followed_without_tracing() {
    use opentelemetry::trace::FutureExt;
    let recording = Recording::start();
    let tracer = recording.sdk.tracer_provider().tracer("plain");
    let context = opentelemetry::Context::new().with_span(tracer.start("plain"));
    let expected = SpanId::from_bytes(context.span().span_context().span_id().to_bytes());
    let current = || thread::current().map(|context| context.span_id);
    {
        let _attached = context.clone().attach();
        assert_eq!(current(), expected);
    }
    assert_eq!(current(), None);
    let mut polled = pin!(async { current() }.with_context(context));
    let seen = polled.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(seen, Poll::Ready(expected));
    assert_eq!(current(), None);
    drop(recording);
}

#[test]
fn a_sample_outside_of_spans_has_no_link() {
    let recording = Recording::start();
    std::hint::black_box(hot_in_b(Duration::from_millis(1200)));
    let batches = recording.batches.clone();
    let (samples, _) = recording.stop();
    let spans = spans_of(&samples, "hot_in_b");
    assert!(spans.get(&None) >= Some(&50), "{spans:?}");
    assert_eq!(spans.len(), 1);
    let batches = batches.lock().expect("no panic");
    let profile = batches.iter().flat_map(|batch| &batch.profiles).next().expect("there are samples");
    assert_eq!(
        profile.info.profile_type(0).to_string(),
        "process_cpu:samples:count:cpu:nanoseconds"
    );
    assert_eq!(profile.info.period, 10_000_000);
    assert_eq!(profile.info.resource.service(), "truth");
    assert!(profile.samples.iter().any(|sample| sample.link == Link::None));
}

async fn yield_once() {
    let mut first = true;
    std::future::poll_fn(|_| {
        if std::mem::take(&mut first) {
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}
