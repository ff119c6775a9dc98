//! The processes of the demo: server, three services, load.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::Options;
use crate::conformance::collector::Relay;
use crate::process::{self, Child};
use crate::{Failure, workspace};

/// HTTP, OTLP by gRPC, OTLP by HTTP.
const CUSTOMARY_PORTS: [u16; 3] = [4040, 4317, 4318];

const READY_PATIENCE: Duration = Duration::from_secs(60);

/// Everything that runs. Fields drop in this order: load first, server last.
pub(super) struct Stage {
    load: Option<Child>,
    services: Vec<Child>,
    relay: Option<Child>,
    server: Child,
    http: String,
    otlp: String,
    data: PathBuf,
    scratch: Scratch,
    since_unix_nano: u128,
}

/// A folder of this run for logs and ready files, removed at the end unless they are worth reading.
struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    fn new() -> Result<Scratch, Failure> {
        let path = workspace::target_dir()?.join(format!("demo-run-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Scratch { path, keep: false })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep && !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

impl Stage {
    /// Starts the server, then the services, then the load.
    pub(super) fn start(binaries: &Path, options: &Options) -> Result<Stage, Failure> {
        let scratch = Scratch::new()?;
        let data = data_dir(options, &scratch);
        let since_unix_nano = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let mut server = start_server(binaries, &data, options, &scratch)?;
        let ready = scratch.file("server.ready");
        wait_for_file("the server", &mut server, &ready)?;
        let bound: Value = serde_json::from_slice(&std::fs::read(&ready)?)?;
        let address = |name: &str| bound[name].as_str().map(|address| format!("http://{address}"));
        let http = address("http").ok_or_else(|| format!("the server's ready file names no http: {bound}"))?;
        let mut otlp = address("otlp_grpc").ok_or_else(|| format!("the server's ready file names no otlp_grpc: {bound}"))?;
        let mut relay = None;
        if let Some(program) = &options.relay {
            let started = Relay::start(program, &otlp, &scratch.path)?;
            (relay, otlp) = (Some(started.child), started.otlp);
            println!("services send through {} at {otlp}", program.display());
        }
        let mut stage = Stage {
            load: None,
            services: Vec::new(),
            relay,
            server,
            http,
            otlp,
            data,
            scratch,
            since_unix_nano,
        };
        stage.start_shop(binaries)?;
        Ok(stage)
    }

    fn start_shop(&mut self, binaries: &Path) -> Result<(), Failure> {
        let cart = self.start_service(binaries, "cart", &[])?;
        let pricing = self.start_service(binaries, "pricing", &[])?;
        let frontend = self.start_service(binaries, "frontend", &["--cart", &cart, "--pricing", &pricing])?;
        let mut command = Command::new(binaries.join("load"));
        command.args(["--frontend", &frontend, "--record"]).arg(self.record_path());
        self.load = Some(Child::start("load", command, &self.scratch.file("load.log"))?);
        println!("services started, load runs");
        Ok(())
    }

    /// Starts a service and returns its address.
    fn start_service(&mut self, binaries: &Path, name: &str, flags: &[&str]) -> Result<String, Failure> {
        let ready = self.scratch.file(&format!("{name}.ready"));
        let mut command = Command::new(binaries.join(name));
        command.args(["--otlp", &self.otlp]).arg("--ready-file").arg(&ready).args(flags);
        let mut service = Child::start(name, command, &self.scratch.file(&format!("{name}.log")))?;
        wait_for_file(name, &mut service, &ready)?;
        self.services.push(service);
        Ok(std::fs::read_to_string(ready)?)
    }

    /// Fails if any process has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), Failure> {
        self.server.check_alive()?;
        let others = self.services.iter_mut().chain(&mut self.relay).chain(&mut self.load);
        others.into_iter().try_for_each(Child::check_alive)
    }

    /// Leaves the logs of this run for whoever looks into its failure.
    pub(super) fn keep_logs(&mut self) {
        self.scratch.keep = true;
        println!("logs are kept in {}", self.scratch.path.display());
    }

    /// The server's address.
    pub(super) fn http(&self) -> &str {
        &self.http
    }

    /// Where the server keeps its data.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// A file of this run, removed with it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.scratch.file(name)
    }

    /// Where the load writes what it did.
    pub(super) fn record_path(&self) -> PathBuf {
        self.scratch.file("requests.jsonl")
    }

    /// When the first process was started: older data is of an earlier run.
    pub(super) fn since_unix_nano(&self) -> u128 {
        self.since_unix_nano
    }
}

/// A run that judges begins with nothing; one that shows keeps what earlier ones left.
fn data_dir(options: &Options, scratch: &Scratch) -> PathBuf {
    match &options.data {
        Some(data) => data.clone(),
        None if options.check => scratch.file("data"),
        None => workspace::root().join("spanflame-data").join("demo"),
    }
}

fn start_server(binaries: &Path, data: &Path, options: &Options, scratch: &Scratch) -> Result<Child, Failure> {
    let ports = ports(options);
    let mut command = Command::new(binaries.join("spanflame"));
    command
        .arg("serve")
        .arg("--data")
        .arg(data)
        .arg("--ready-file")
        .arg(scratch.file("server.ready"));
    for (flag, port) in ["--http", "--otlp-grpc", "--otlp-http"].into_iter().zip(ports) {
        command.args([flag.to_owned(), format!("127.0.0.1:{port}")]);
    }
    println!("starting {}", process::describe(&command));
    Child::start("the server", command, &scratch.file("server.log"))
}

/// The ports to bind: as asked, else the customary ones, and any free one in place of each that is taken.
fn ports(options: &Options) -> [u16; 3] {
    if let Some(base) = options.port_base {
        return [base, base.saturating_add(1), base.saturating_add(2)];
    }
    CUSTOMARY_PORTS.map(|port| {
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            port
        } else {
            0
        }
    })
}

fn wait_for_file(name: &str, child: &mut Child, path: &Path) -> Result<(), Failure> {
    process::wait_until(&format!("readiness of {name}"), READY_PATIENCE, || {
        child.check_alive()?;
        Ok(std::fs::metadata(path).is_ok_and(|file| file.len() > 0))
    })
}
