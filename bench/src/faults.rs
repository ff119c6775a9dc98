//! Servers that die: what clients were told is kept is there, exactly once.
//!
//! ```text
//! faults --server PATH [--deaths 10] [--seed 1] [--work-dir DIR]
//! ```
//!
//! Clients send traces and linked profiles over HTTP and send again what was not acknowledged, as exporters do. The server
//! is killed after a random time, or dies by itself at a named point of the store (debug builds: `SPANFLAME_CRASH_AT`), and is
//! started again over the same directory. At the end every request was acknowledged, and each of its spans and samples must be
//! there once: in a walk over all spans, by trace, and in the totals of services. The same seed gives the same schedule of deaths.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use spanflame_testkit::Random;

use crate::Failure;
use crate::server::Server;

/// Where the store may be told to die, and how often it may have to pass there first.
const POINTS: [(&str, u64); 7] = [
    ("after-wal", 60),
    ("during-flush", 4),
    ("between-file-and-commit", 8),
    ("between-commits", 8),
    ("before-retirement", 4),
    ("during-compaction", 1),
    ("after-compaction", 1),
];
/// A server that did not die by itself until then is killed.
const LIFE_MAX_MS: u64 = 1_500;
const CLIENTS: usize = 4;
const SERVICES: u64 = 3;
const SPANS: u64 = 5;
/// CPU time of each of a request's samples, times its number among the service's values.
const SAMPLE_NS: u64 = 10_000_000;
/// So many requests are asked for by trace, evenly spread.
const TRACES_MAX: u64 = 300;
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

struct Options {
    server: PathBuf,
    work_dir: PathBuf,
    deaths: u64,
    seed: u64,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, Failure> {
        let mut options = Options {
            server: PathBuf::new(),
            work_dir: std::env::temp_dir().join("spanflame-faults"),
            deaths: 10,
            seed: 1,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{flag} is missing its value"));
            match flag.as_str() {
                "--server" => options.server = PathBuf::from(value()?),
                "--work-dir" => options.work_dir = PathBuf::from(value()?),
                "--deaths" => options.deaths = crate::options::number(flag, value()?)?,
                "--seed" => options.seed = crate::options::number(flag, value()?)?,
                other => return Err(format!("unexpected argument {other}, see bench/README.md").into()),
            }
        }
        if !options.server.is_file() {
            return Err(format!("--server is {:?}, expected the path of the binary spanflame", options.server).into());
        }
        Ok(options)
    }
}

/// What clients have sent and what came of it.
struct Sent {
    begin_unix_nano: u64,
    next: AtomicU64,
    acknowledged: AtomicU64,
    repeated: AtomicU64,
}

/// A client with the request that it has to send again; `None` if the last one was acknowledged.
type Pending = Arc<tokio::sync::Mutex<Option<u64>>>;

/// What outlives a server.
struct Scene {
    options: Options,
    data: PathBuf,
    sent: Arc<Sent>,
    clients: Vec<Pending>,
}

/// Lets servers die; answers what happened. Fails if anything is missing or there twice.
pub(crate) async fn run(arguments: &[String]) -> Result<Value, Failure> {
    let options = Options::parse(arguments)?;
    let data = options.work_dir.join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    std::fs::create_dir_all(&options.work_dir)?;
    let sent = Sent {
        begin_unix_nano: SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64,
        next: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
        repeated: AtomicU64::new(0),
    };
    let (seed, deaths) = (options.seed, options.deaths);
    let scene = Scene {
        options,
        data,
        sent: Arc::new(sent),
        clients: (0..CLIENTS).map(|_| Pending::default()).collect(),
    };
    let mut random = Random::new(seed);
    let mut died: BTreeMap<&str, u64> = BTreeMap::new();
    for death in 0..deaths {
        let point = random.percent(60).then(|| POINTS[random.below(POINTS.len() as u64) as usize]);
        let passes = 1 + random.below(point.map_or(1, |(_, passes)| passes));
        let life = Duration::from_millis(20 + random.below(LIFE_MAX_MS));
        let crash_at = point.map(|(name, _)| format!("{name}:{passes}"));
        let how = match scene.live(crash_at, life).await {
            Ok(true) => point.map_or("killed", |(name, _)| name),
            Ok(false) => "killed",
            Err(failure) => return Err(format!("death {death} of seed {seed}: {failure}").into()),
        };
        *died.entry(how).or_default() += 1;
        if (death + 1) % 100 == 0 {
            eprintln!(
                "{} deaths, {} requests acknowledged",
                death + 1,
                scene.sent.acknowledged.load(Ordering::SeqCst)
            );
        }
    }
    let requests = scene.finish().await?;
    Ok(json!({
        "seed": seed,
        "deaths": deaths,
        "died": died,
        "requests": requests,
        "sent_again": scene.sent.repeated.load(Ordering::SeqCst),
        "spans": requests * SPANS,
        "samples": requests * SPANS,
    }))
}

impl Scene {
    /// One life of a server; whether it died by itself. A panic is not the death that was asked for.
    async fn live(&self, crash_at: Option<String>, life: Duration) -> Result<bool, Failure> {
        let by_itself = self.live_and_die(crash_at, life).await?;
        match self.server_log() {
            log if log.contains("panicked at") => Err(format!("the server panicked\n{log}").into()),
            _ => Ok(by_itself),
        }
    }

    async fn live_and_die(&self, crash_at: Option<String>, life: Duration) -> Result<bool, Failure> {
        let may_die = crash_at.is_some();
        let environment: Vec<(&str, String)> = crash_at.into_iter().map(|point| ("SPANFLAME_CRASH_AT", point)).collect();
        let started = Server::start_with(
            &self.options.server,
            &self.data,
            &self.options.work_dir,
            &["--flush-interval", "100ms"],
            &environment,
        )
        .await;
        let mut server = match started {
            Ok(server) => server,
            // It recovers what the one before left, and passes the same points on the way.
            Err(_) if may_die => return Ok(true),
            Err(failure) => return Err(failure),
        };
        let tasks: Vec<_> = self
            .clients
            .iter()
            .map(|client| {
                tokio::spawn(send_all(
                    server.client(),
                    server.url(""),
                    Arc::clone(&self.sent),
                    Arc::clone(client),
                ))
            })
            .collect();
        let end = Instant::now() + life;
        let mut by_itself = false;
        while Instant::now() < end && !by_itself {
            tokio::time::sleep(Duration::from_millis(5)).await;
            by_itself = server.has_ended()?;
        }
        server.kill()?;
        tasks.iter().for_each(|task| task.abort());
        match by_itself && !may_die {
            true => Err(format!("the server ended by itself\n{}", self.server_log()).into()),
            false => Ok(by_itself),
        }
    }

    fn server_log(&self) -> String {
        std::fs::read_to_string(self.options.work_dir.join("server.log")).unwrap_or_default()
    }

    /// A server that lives: takes what is still pending, then everything is looked at. How many requests there were.
    async fn finish(&self) -> Result<u64, Failure> {
        let sent = &*self.sent;
        let server = Server::start(&self.options.server, &self.data, &self.options.work_dir).await?;
        let (client, address) = (server.client(), server.url(""));
        let end = Instant::now() + PATIENCE;
        for pending in &self.clients {
            let mut pending = pending.lock().await;
            while let Some(number) = *pending {
                if send(&client, &address, sent, number).await {
                    *pending = None;
                } else if Instant::now() > end {
                    return Err(format!("request {number} is not taken by a healthy server").into());
                }
            }
        }
        let requests = sent.next.load(Ordering::SeqCst);
        let api = Api { client, address };
        let range = format!(
            "start={}&end={}",
            sent.begin_unix_nano - 1,
            sent.begin_unix_nano + (requests + 100) * 1_000_000
        );
        api.check_spans(&range, requests).await?;
        for number in (0..requests).step_by((requests / TRACES_MAX + 1) as usize) {
            api.check_trace(number).await?;
        }
        let services = api.get(&format!("/services?{range}")).await?;
        for service in 0..SERVICES {
            let name = format!("service-{service}");
            let count = (requests + SERVICES - 1 - service) / SERVICES;
            let found = services["services"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|one| one["name"] == name.as_str());
            let figure = |key: &str| found.and_then(|found| found[key].as_u64()).unwrap_or_default();
            let seen = (figure("spans"), figure("samples"), figure("cpu_ns"));
            let expected = (count * SPANS, count * SPANS, count * SPANS * SAMPLE_NS);
            if seen != expected {
                return Err(format!("{name} has (spans, samples, cpu_ns) {seen:?}, expected {expected:?}").into());
            }
        }
        server.stop().await?;
        Ok(requests)
    }
}

/// The native API of a running server.
struct Api {
    client: reqwest::Client,
    address: String,
}

impl Api {
    async fn get(&self, path: &str) -> Result<Value, Failure> {
        let answer = self.client.get(format!("{}/api/v1{path}", self.address)).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    /// Walks all spans: each of every request is there once, with its one sample.
    async fn check_spans(&self, range: &str, requests: u64) -> Result<(), Failure> {
        let (mut seen, mut page) = (HashSet::new(), String::new());
        loop {
            let answer = self.get(&format!("/spans?{range}&order=start&limit=10000{page}")).await?;
            for span in answer["spans"].as_array().into_iter().flatten() {
                let text = |key: &str| span[key].as_str().unwrap_or_default().to_owned();
                if !seen.insert((text("trace_id"), text("span_id"))) {
                    return Err(format!("this span is there twice: {span}").into());
                }
                if (span["samples"].as_u64(), span["cpu_ns"].as_u64()) != (Some(1), Some(SAMPLE_NS)) {
                    return Err(format!("this span has not one sample of {SAMPLE_NS} ns: {span}").into());
                }
            }
            match answer["next_page"].as_str() {
                Some(next) => page = format!("&page={next}"),
                None => break,
            }
        }
        for number in 0..requests {
            for at in 0..SPANS {
                if !seen.remove(&(trace_id(number), span_id(number, at))) {
                    return Err(format!("span {at} of request {number} was acknowledged and is not there").into());
                }
            }
        }
        match seen.is_empty() {
            true => Ok(()),
            false => Err(format!("{} spans are there that nobody sent", seen.len()).into()),
        }
    }

    /// Asks for one request by its trace.
    async fn check_trace(&self, number: u64) -> Result<(), Failure> {
        let trace = self.get(&format!("/traces/{}", trace_id(number))).await?;
        let spans = trace["spans"].as_array().map_or(0, Vec::len) as u64;
        let profile = self.get(&format!("/traces/{}/profile", trace_id(number))).await?;
        let found = (Some(spans), profile["samples"].as_u64(), profile["total"].as_u64());
        let expected = (Some(SPANS), Some(SPANS), Some(SPANS * SAMPLE_NS));
        match found == expected {
            true => Ok(()),
            false => Err(format!("the trace of request {number} has (spans, samples, ns) {found:?}, expected {expected:?}").into()),
        }
    }
}

/// Sends one request after the other; the one that was under way when the server died is sent again to the next.
async fn send_all(client: reqwest::Client, address: String, sent: Arc<Sent>, pending: Pending) {
    let mut pending = pending.lock().await;
    loop {
        let number = match *pending {
            Some(number) => {
                sent.repeated.fetch_add(1, Ordering::SeqCst);
                number
            }
            None => sent.next.fetch_add(1, Ordering::SeqCst),
        };
        *pending = Some(number);
        while !send(&client, &address, &sent, number).await {
            tokio::time::sleep(PAUSE).await;
        }
        sent.acknowledged.fetch_add(1, Ordering::SeqCst);
        *pending = None;
    }
}

/// Both signals of a request; whether both were acknowledged.
async fn send(client: &reqwest::Client, address: &str, sent: &Sent, number: u64) -> bool {
    let begin = sent.begin_unix_nano + number * 1_000_000;
    for (path, body) in [
        ("/v1/traces", spans(number, begin)),
        ("/v1development/profiles", profile(number, begin)),
    ] {
        let answer = client.post(format!("{address}{path}")).json(&body).send().await;
        if !answer.is_ok_and(|answer| answer.status().is_success()) {
            return false;
        }
    }
    true
}

fn trace_id(number: u64) -> String {
    format!("{:032x}", u128::from(number) + 1)
}

fn span_id(number: u64, at: u64) -> String {
    format!("{:016x}", (number + 1) * 16 + at)
}

fn resource(number: u64) -> Value {
    json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": format!("service-{}", number % SERVICES) } }] })
}

fn spans(number: u64, begin: u64) -> Value {
    let span = |at: u64| {
        let mut span = json!({
            "traceId": trace_id(number), "spanId": span_id(number, at), "name": format!("operation {at}"), "kind": 2,
            "startTimeUnixNano": begin.to_string(), "endTimeUnixNano": (begin + 50_000_000).to_string(),
        });
        if at > 0 {
            span["parentSpanId"] = span_id(number, 0).into();
        }
        span
    };
    let spans: Vec<Value> = (0..SPANS).map(span).collect();
    json!({ "resourceSpans": [{ "resource": resource(number), "scopeSpans": [{ "spans": spans }] }] })
}

/// A sample for each span, of CPU time.
fn profile(number: u64, begin: u64) -> Value {
    let links = (0..SPANS).map(|at| json!({ "traceId": trace_id(number), "spanId": span_id(number, at) }));
    let links: Vec<Value> = std::iter::once(json!({})).chain(links).collect();
    let sample = |at: u64| json!({ "stackIndex": 1, "linkIndex": at + 1, "values": [SAMPLE_NS.to_string()], "timestampsUnixNano": [(begin + at).to_string()] });
    let profile = json!({
        "profileId": trace_id(number), "timeUnixNano": begin.to_string(), "durationNano": "50000000", "period": SAMPLE_NS.to_string(),
        "sampleType": { "typeStrindex": 1, "unitStrindex": 2 }, "periodType": { "typeStrindex": 1, "unitStrindex": 2 },
        "samples": (0..SPANS).map(sample).collect::<Vec<Value>>(),
    });
    json!({
        "resourceProfiles": [{ "resource": resource(number), "scopeProfiles": [{ "profiles": [profile] }] }],
        "dictionary": {
            "stringTable": ["", "cpu", "nanoseconds", "work"], "linkTable": links, "mappingTable": [{}], "attributeTable": [{}],
            "functionTable": [{}, { "nameStrindex": 3 }], "locationTable": [{}, { "lines": [{ "functionIndex": 1 }] }],
            "stackTable": [{}, { "locationIndices": [1] }],
        },
    })
}
