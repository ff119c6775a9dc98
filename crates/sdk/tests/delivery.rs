//! What arrives at a server, and what is counted when none is there. Each test is a process of its own SDK, so
//! they take turns.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_server::{ProfilesService, ProfilesServiceServer};
use opentelemetry_proto::tonic::collector::profiles::v1development::{ExportProfilesServiceRequest, ExportProfilesServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use prost::Message;
use spanflame_formats::{Limits, otlp};
use spanflame_model::{Batch, Claim, Link};
use spanflame_sdk::{Builder, Sdk, Stats};
use tonic::{Request, Response, Status};
use tracing::info_span;
use tracing_subscriber::prelude::*;

static ALONE: Mutex<()> = Mutex::new(());

/// Takes everything and remembers it, or refuses everything.
#[derive(Clone, Default)]
struct Collector {
    profiles: Arc<Mutex<Vec<Batch>>>,
    spans: Arc<Mutex<Vec<Batch>>>,
    refuses: bool,
}

#[tonic::async_trait]
impl ProfilesService for Collector {
    async fn export(&self, request: Request<ExportProfilesServiceRequest>) -> Result<Response<ExportProfilesServiceResponse>, Status> {
        if self.refuses {
            return Err(Status::invalid_argument("not today"));
        }
        let bytes = request.into_inner().encode_to_vec();
        let decoded = otlp::profiles::decode_protobuf(&bytes, &Limits::default()).expect("our own profiles decode");
        assert!(decoded.rejects.is_empty(), "{:?}", decoded.rejects.message());
        self.profiles.lock().expect("no panic").push(decoded.batch);
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(&self, request: Request<ExportTraceServiceRequest>) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let decoded = otlp::traces::from_message(request.into_inner(), &Limits::default());
        self.spans.lock().expect("no panic").push(decoded.batch);
        Ok(Response::new(Default::default()))
    }
}

/// A server on a port of its own, until the runtime is dropped.
fn serve(collector: &Collector) -> (tokio::runtime::Runtime, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("threads");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let server = tonic::transport::Server::builder()
        .add_service(ProfilesServiceServer::new(collector.clone()))
        .add_service(TraceServiceServer::new(collector.clone()))
        .serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener));
    runtime.spawn(server);
    (runtime, format!("http://{address}"))
}

fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec and a clock that every thread has.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[inline(never)]
fn hot() -> u64 {
    let end = thread_cpu() + Duration::from_millis(500);
    let mut word = 1_u64;
    while thread_cpu() < end {
        word = std::hint::black_box(word.rotate_left(5) ^ 77);
    }
    word
}

/// Runs `hot` in a span under an SDK, and returns the final counts.
fn work(builder: Builder) -> Stats {
    let sdk = builder
        .rate_hz(100)
        .interval(Duration::from_millis(200))
        .start()
        .expect("no other profiler");
    let subscriber = tracing_subscriber::registry().with(sdk.layer());
    tracing::subscriber::with_default(subscriber, || info_span!("checkout").in_scope(|| std::hint::black_box(hot())));
    sdk.shutdown()
}

#[test]
fn spans_and_the_profiles_that_name_them_arrive_at_a_server() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let collector = Collector::default();
    let (_runtime, endpoint) = serve(&collector);
    let stats = work(Sdk::builder("cart").endpoint(endpoint).with_traces());

    let spans = collector.spans.lock().expect("no panic");
    let span = spans.iter().flat_map(|batch| &batch.spans).next().expect("one span");
    assert_eq!((span.name.as_str(), span.resource.service()), ("checkout", "cart"));
    let expected = Link::One {
        trace_id: Some(span.trace_id),
        span_id: Some(span.span_id),
        claim: Claim::Active,
    };

    let (mut received, mut linked) = (0, 0);
    for batch in collector.profiles.lock().expect("no panic").iter() {
        for profile in &batch.profiles {
            assert_eq!(profile.info.resource.service(), "cart");
            assert_eq!(
                profile.info.profile_type(0).to_string(),
                "process_cpu:samples:count:cpu:nanoseconds"
            );
            for sample in &profile.samples {
                assert_eq!(sample.pid, Some(std::process::id().into()));
                assert!(sample.thread_id.is_some() && sample.thread_name.is_some());
                received += sample.times.len() as u64;
                let stack = batch.stacks.stack(sample.stack).expect("complete");
                let is_hot = stack
                    .iter()
                    .any(|id| batch.stacks.frame(*id).expect("complete").function.ends_with("hot"));
                if is_hot {
                    assert_eq!(sample.link, expected);
                    linked += sample.times.len();
                }
            }
        }
    }
    assert!(linked >= 25, "{linked} linked observations");
    assert_eq!((stats.observations, stats.delivered), (received, received), "{stats:?}");
}

#[test]
fn without_a_server_everything_is_counted_as_dropped() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port");
    let stats = work(Sdk::builder("cart").endpoint(format!("http://{address}")).with_traces());
    assert!(stats.failed_requests >= 1 && stats.observations >= 25, "{stats:?}");
    assert_eq!(
        (stats.delivered, stats.dropped_export, stats.dropped_spans),
        (0, stats.observations, 1),
        "{stats:?}"
    );
}

#[test]
fn what_a_server_refuses_is_not_sent_again() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let collector = Collector {
        refuses: true,
        ..Collector::default()
    };
    let (_runtime, endpoint) = serve(&collector);
    let stats = work(Sdk::builder("cart").endpoint(endpoint));
    assert_eq!((stats.delivered, stats.dropped_export), (0, stats.observations), "{stats:?}");
}

#[test]
fn a_function_receives_spans_and_profiles_instead_of_a_server() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let batches: Arc<Mutex<Vec<Batch>>> = Arc::default();
    let sink = batches.clone();
    let stats = work(
        Sdk::builder("self")
            .with_traces()
            .exporter(Box::new(move |batch| sink.lock().expect("no panic").push(batch))),
    );
    let batches = batches.lock().expect("no panic");
    let span = batches.iter().flat_map(|batch| &batch.spans).next().expect("one span");
    assert_eq!(span.resource.service(), "self");
    let samples = || {
        batches
            .iter()
            .flat_map(|batch| &batch.profiles)
            .flat_map(|profile| &profile.samples)
    };
    assert!(samples().any(|sample| sample.link.span_id() == Some(span.span_id)));
    assert_eq!(samples().map(|sample| sample.times.len() as u64).sum::<u64>(), stats.delivered);
}

#[test]
fn starting_and_stopping_inside_async_code_does_not_panic() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let refused = runtime.block_on(async {
        let sdk = Sdk::builder("first").start().expect("no other profiler");
        let refused = Sdk::builder("second").start().err().expect("one at a time");
        sdk.shutdown();
        refused
    });
    assert_eq!(
        refused.to_string(),
        "spanflame already runs in this process, expected one at a time"
    );
}

#[test]
fn a_server_that_never_answers_does_not_keep_the_process() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("bound");
    let stats = work(Sdk::builder("cart").endpoint(format!("http://{address}")));
    assert_eq!((stats.delivered, stats.dropped_export), (0, stats.observations), "{stats:?}");
}
