//! The same load and questions with the tables in a local directory and in S3, with the requests and bytes of each question.
//!
//! S3 is `s3s-fs` in this process, on loopback: what the requests cost is not what they cost on a network, their number is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

use super::{Options, SENDERS, SPANS_PER_REQUEST, TRUTHS, at_once, clear, corpus, now_unix_nano, shape_until_now, truths};
use crate::Failure;
use crate::corpus::{Corpus, Signal};
use crate::load::{self, Body};
use crate::questions;
use crate::server::Server;
use crate::shape::SPANS_PER_TRACE;

const BUCKET: &str = "spanflame";
const KEY: &str = "key";
const SECRET: &str = "secret";

/// Once with a directory, once with S3.
pub(super) async fn run(options: &Options) -> Result<Value, Failure> {
    let local = measure(options, None).await?;
    let s3 = S3::start(options).await?;
    let remote = measure(options, Some(&s3)).await?;
    Ok(json!({ "local": local, "s3": remote }))
}

async fn measure(options: &Options, s3: Option<&S3>) -> Result<Value, Failure> {
    let mut shape = shape_until_now(options.spans)?;
    let begin = shape.now_unix_nano();
    let spans = shape.spans(options.spans / SPANS_PER_TRACE);
    let traces = spans
        .chunks(SPANS_PER_REQUEST as usize)
        .map(|spans| Body::Made(shape.trace_request(spans)));
    let traces = at_once(Signal::Traces, traces.collect());
    let profiles = at_once(
        Signal::Profiles,
        shape.profile_requests(&spans).into_iter().map(Body::Made).collect(),
    );
    let corpus = corpus(begin, now_unix_nano()?, options.spans, truths(&shape, &spans, TRUTHS));
    drop(spans);
    let data = options.work_dir.join("data-study");
    clear(&data)?;
    let start = || async {
        match s3 {
            None => Server::start(&options.server, &data, &options.work_dir).await,
            Some(s3) => {
                let wal = data.display().to_string();
                Server::start_at(
                    &options.server,
                    &format!("s3://{BUCKET}/data"),
                    &options.work_dir,
                    &["--wal", &wal],
                    &s3.environment(),
                )
                .await
            }
        }
    };
    let server = start().await?;
    let sent = load::send(&server, traces, SENDERS).await?;
    let sent_profiles = load::send(&server, profiles, SENDERS).await?;
    server.wait_until_quiet(options.quiet).await?;
    let cpu_s_all_in = server.cpu_s()?;
    let written = s3.map(S3::figures);
    server.stop().await?;
    // Started again, so that the first questions find nothing in memory.
    let server = start().await?;
    let ready_again_ms = server.ready_ms();
    let cold = ask(&server, &corpus, s3).await?;
    let warm = ask(&server, &corpus, s3).await?;
    server.stop().await?;
    clear(&data)?;
    Ok(json!({
        "cpu_s_all_in": cpu_s_all_in,
        "ack_traces": sent.figures(),
        "ack_profiles": sent_profiles.figures(),
        "requests_of_ingest": written,
        "ready_again_ms": ready_again_ms,
        "questions_after_start": cold,
        "questions_again": warm,
    }))
}

/// All questions, and what they asked of the medium.
async fn ask(server: &Server, corpus: &Corpus, s3: Option<&S3>) -> Result<Value, Failure> {
    let mut figures = json!({});
    for signal in [Signal::Traces, Signal::Profiles] {
        let before = s3.map(S3::read);
        let asked = questions::ask(server, corpus, signal).await?;
        if asked.differences > 0 {
            return Err(format!("{} answers about {} differ from the truth", asked.differences, signal.name()).into());
        }
        figures[signal.name()] = asked.figures;
        if let (Some(before), Some(after)) = (before, s3.map(S3::read)) {
            let questions: u64 = figures[signal.name()]
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(_, figures)| figures["count"].as_u64())
                .sum();
            let each = |figure: u64| (figure as f64 / questions.max(1) as f64 * 10.0).round() / 10.0;
            figures[signal.name()]["of_the_medium"] = json!({
                "questions": questions,
                "requests_each": each(after.0 - before.0),
                "bytes_each": each(after.1 - before.1),
            });
        }
    }
    Ok(figures)
}

/// An S3 service of this process.
struct S3 {
    address: std::net::SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    bytes_read: AtomicU64,
    writes: AtomicU64,
}

impl S3 {
    async fn start(options: &Options) -> Result<S3, Failure> {
        let root = options.work_dir.join("s3");
        clear(&root)?;
        std::fs::create_dir_all(root.join(BUCKET))?;
        let files = s3s_fs::FileSystem::new(&root).map_err(|error| format!("s3s-fs: {error:?}"))?;
        let mut service = s3s::service::S3ServiceBuilder::new(files);
        service.set_auth(s3s::auth::SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let counted = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (service, counts) = (service.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    let counting = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                        let (service, counts) = (service.clone(), Arc::clone(&counts));
                        async move {
                            let reads = request.method() == http::Method::GET || request.method() == http::Method::HEAD;
                            let response = hyper::service::Service::call(&service, request).await?;
                            match reads {
                                true => {
                                    counts.reads.fetch_add(1, Ordering::Relaxed);
                                    let length = response
                                        .headers()
                                        .get("content-length")
                                        .and_then(|length| length.to_str().ok()?.parse().ok());
                                    counts.bytes_read.fetch_add(length.unwrap_or(0), Ordering::Relaxed);
                                }
                                false => {
                                    counts.writes.fetch_add(1, Ordering::Relaxed);
                                }
                            }
                            Ok::<_, s3s::HttpError>(response)
                        }
                    });
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    // A client that goes away is no failure.
                    let _ = builder.serve_connection(TokioIo::new(socket), counting).await;
                });
            }
        });
        Ok(S3 { address, counts })
    }

    /// How the server finds it.
    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    }

    /// Reading requests and their bytes so far.
    fn read(&self) -> (u64, u64) {
        (
            self.counts.reads.load(Ordering::Relaxed),
            self.counts.bytes_read.load(Ordering::Relaxed),
        )
    }

    fn figures(&self) -> Value {
        let (reads, bytes_read) = self.read();
        json!({ "reads": reads, "bytes_read": bytes_read, "writes": self.counts.writes.load(Ordering::Relaxed) })
    }
}
