//! `cargo xtask conformance`: published clients, unchanged, against a server of this checkout.
//!
//! ```text
//! build -> server ready -> for each client: set up once, run, read its truth -> ask for every request's flame graph
//! ```
//!
//! Each program in `examples/clients` handles slow and fast requests at the same time, each in a root span with a child. It writes
//! down which span was which. `planted_hot_path` runs in slow requests only, so the flame graph of a slow root must name it and that of
//! a fast one must not. What a client needs is set up below the target folder and kept there for the next run.

mod client;
pub(crate) mod collector;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::process::{self, Child};
use crate::{Failure, demo, workspace};
use client::Client;

const HOT: &str = "planted_hot_path";
const ORDINARY: &str = "ordinary_work";

/// How long a program handles requests.
const LOAD_SECONDS: u32 = 12;

const READY_PATIENCE: Duration = Duration::from_secs(60);
const CLIENT_PATIENCE: Duration = Duration::from_secs(120);

/// Of the slow requests so many in a hundred must have the function in their flame graph: the profilers lose the first and the last
/// of a run, and on a busy machine a request that counts time gets little of the processor.
const SLOW_PERCENT_MIN: usize = 60;

/// Not a client of its own: the demo's services send through it.
const COLLECTOR: &str = "collector";

/// How many flame graphs are asked for at a time.
const JUDGES: usize = 4;

/// Runs the clients of these names, or all.
pub(crate) fn run(names: &[String]) -> Result<(), Failure> {
    let clients = Client::chosen(names, COLLECTOR)?;
    process::run(workspace::cargo(&["build", "--locked", "--bin", "spanflame"]))?;
    let folder = workspace::target_dir()?.join("conformance");
    let run = folder.join(format!("run-{}", std::process::id()));
    std::fs::create_dir_all(&run)?;
    if names.is_empty() || names.iter().any(|name| name == COLLECTOR) {
        println!("{COLLECTOR}: setting up");
        demo::run(&demo::Options {
            check: true,
            data: None,
            port_base: None,
            browse: None,
            relay: Some(collector::set_up(&folder)?),
        })?;
    }
    let (mut server, http) = start_server(&run)?;
    for client in clients {
        println!("{}: setting up", client.name);
        client.set_up(&folder)?;
        let truth = run.join(format!("{}.json", client.name));
        let command = client.command(&folder, &http, &truth, LOAD_SECONDS);
        println!("{}: {}", client.name, process::describe(&command));
        let mut program = Child::start(client.name, command, &run.join(format!("{}.log", client.name)))?;
        program.finish(CLIENT_PATIENCE)?;
        server.check_alive()?;
        let requests: Vec<Value> = serde_json::from_slice(&std::fs::read(&truth)?)?;
        let seen = judge(&http, client.linked, &requests)?;
        println!("{}: {seen}", client.name);
    }
    drop(server);
    std::fs::remove_dir_all(&run)?;
    Ok(())
}

fn start_server(run: &std::path::Path) -> Result<(Child, String), Failure> {
    let ready = run.join("ready.json");
    let mut command = Command::new(binary()?);
    command
        .arg("serve")
        .arg("--data")
        .arg(run.join("data"))
        .arg("--ready-file")
        .arg(&ready);
    command.args(["--http", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0"]);
    let mut server = Child::start("the server", command, &run.join("server.log"))?;
    process::wait_until("readiness of the server", READY_PATIENCE, || {
        server.check_alive()?;
        Ok(std::fs::metadata(&ready).is_ok_and(|file| file.len() > 0))
    })?;
    let bound: Value = serde_json::from_slice(&std::fs::read(&ready)?)?;
    let http = bound["http"].as_str().ok_or("the server's ready file names no http")?;
    Ok((server, format!("http://{http}")))
}

fn binary() -> Result<PathBuf, Failure> {
    Ok(workspace::target_dir()?.join("debug").join("spanflame"))
}

/// Which span of a request its samples name.
#[derive(Clone, Copy)]
enum Linked {
    Root,
    Child,
}

/// Looks at the flame graph of every request; fails on the first that names what did not run in it.
fn judge(http: &str, linked: Linked, requests: &[Value]) -> Result<String, Failure> {
    let mut seen = Seen::default();
    // Each question is a process that waits for the server and then the other way round.
    let parts: Vec<&[Value]> = requests.chunks(requests.len().div_ceil(JUDGES).max(1)).collect();
    let judged = std::thread::scope(|scope| {
        let judges: Vec<_> = parts
            .iter()
            .map(|part| scope.spawn(|| Seen::of(http, linked, part).map_err(|failure| failure.to_string())))
            .collect();
        judges
            .into_iter()
            .map(|judge| judge.join().expect("a judge does not panic"))
            .collect::<Vec<_>>()
    });
    for part in judged {
        seen.add(&part?);
    }
    let Seen { slow, hot, fast, ordinary } = seen;
    let summary = format!("{hot} of {slow} slow requests name {HOT}, {ordinary} of {fast} fast ones {ORDINARY}, none the other's");
    match slow > 0 && ordinary > 0 && hot * 100 >= slow * SLOW_PERCENT_MIN {
        true => Ok(summary),
        false => Err(format!("{summary}; expected {SLOW_PERCENT_MIN} % of the slow ones, and some fast ones").into()),
    }
}

/// How many requests there were, and how many name their own function.
#[derive(Default)]
struct Seen {
    slow: usize,
    hot: usize,
    fast: usize,
    ordinary: usize,
}

impl Seen {
    fn of(http: &str, linked: Linked, requests: &[Value]) -> Result<Seen, Failure> {
        let mut seen = Seen::default();
        for request in requests {
            process::check_interrupt()?;
            let text = |key: &str| request[key].as_str().ok_or_else(|| format!("a request without {key}: {request}"));
            let span = match linked {
                Linked::Root => text("root")?,
                Linked::Child => text("child")?,
            };
            let is_slow = request["slow"] == true;
            let stacks = stacks(http, text("trace")?, span)?;
            let (own, other) = if is_slow { (HOT, ORDINARY) } else { (ORDINARY, HOT) };
            if stacks.contains(other) {
                return Err(format!("the flame graph of {request} names {other}:\n{stacks}").into());
            }
            let found = usize::from(stacks.contains(own));
            match is_slow {
                true => (seen.slow, seen.hot) = (seen.slow + 1, seen.hot + found),
                false => (seen.fast, seen.ordinary) = (seen.fast + 1, seen.ordinary + found),
            }
        }
        Ok(seen)
    }

    fn add(&mut self, other: &Seen) {
        self.slow += other.slow;
        self.hot += other.hot;
        self.fast += other.fast;
        self.ordinary += other.ordinary;
    }
}

/// The stacks of a span and all below it; none for a span that was never heard of.
fn stacks(http: &str, trace: &str, span: &str) -> Result<String, Failure> {
    let mut command = Command::new(binary()?);
    let of = format!("{trace}/{span}");
    command.args([
        "profile",
        "--server",
        http,
        "--span",
        &of,
        "--scope",
        "subtree",
        "--format",
        "collapsed",
    ]);
    let output = command.output()?;
    match output.status.code() {
        Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(format!(
            "{} failed: {}",
            process::describe(&command),
            String::from_utf8_lossy(&output.stderr)
        )
        .into()),
    }
}
