//! The server under measurement: a process of its own, asked over its public API, measured by what the kernel says of it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failure;

/// A running server.
pub(crate) struct Server {
    process: Process,
    http: String,
    ready: Duration,
    client: reqwest::Client,
}

/// Killed when dropped, so that no failure leaves it behind.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Fails where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const READY_PATIENCE: Duration = Duration::from_secs(120);
const QUIET_PATIENCE: Duration = Duration::from_secs(900);
const STOP_PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

/// Quiet is: the process uses less CPU than this share of one core.
const QUIET_CPU_SHARE: f64 = 0.02;
const QUIET_STEP: Duration = Duration::from_secs(1);

impl Server {
    /// Starts the binary with an empty or used data directory and waits until it is ready.
    pub(crate) async fn start(binary: &Path, data: &Path, work_dir: &Path) -> Result<Server, Failure> {
        Server::start_with(binary, data, work_dir, &[], &[]).await
    }

    /// The same with more flags, and variables of its environment.
    pub(crate) async fn start_with(
        binary: &Path,
        data: &Path,
        work_dir: &Path,
        flags: &[&str],
        environment: &[(&str, String)],
    ) -> Result<Server, Failure> {
        Server::start_at(binary, &data.display().to_string(), work_dir, flags, environment).await
    }

    /// The same with the tables at a directory or URL.
    pub(crate) async fn start_at(
        binary: &Path,
        data: &str,
        work_dir: &Path,
        flags: &[&str],
        environment: &[(&str, String)],
    ) -> Result<Server, Failure> {
        let ready_file = work_dir.join("server.ready");
        let _ = std::fs::remove_file(&ready_file);
        let log = std::fs::File::create(work_dir.join("server.log"))?;
        let mut command = Command::new(binary);
        command
            .arg("serve")
            .arg("--data")
            .arg(data)
            .arg("--ready-file")
            .arg(&ready_file)
            .args(["--own-telemetry", "false"])
            .args(flags)
            .envs(environment.iter().map(|(name, value)| (name, value)));
        for flag in ["--http", "--otlp-grpc", "--otlp-http"] {
            command.args([flag, "127.0.0.1:0"]);
        }
        let start = Instant::now();
        let mut process = Process(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?);
        let http = wait_ready(&mut process.0, &ready_file, work_dir).await?;
        Ok(Server {
            process,
            http,
            ready: start.elapsed(),
            client: reqwest::Client::new(),
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http)
    }

    pub(crate) fn client(&self) -> reqwest::Client {
        self.client.clone()
    }

    pub(crate) fn ready_ms(&self) -> u128 {
        self.ready.as_millis()
    }

    /// CPU time of the process so far, user and system.
    pub(crate) fn cpu_s(&self) -> Result<f64, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.0.id()))?;
        // The name in parentheses may hold spaces; fields are counted behind it, the state being the third of all.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |field: usize| {
            fields
                .get(field - 3)
                .and_then(|text| text.parse::<u64>().ok())
                .ok_or("/proc/PID/stat is too short")
        };
        // SAFETY: asks for a constant.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        Ok((ticks(14)? + ticks(15)?) as f64 / ticks_per_s)
    }

    pub(crate) fn rss_bytes(&self) -> Result<u64, Failure> {
        self.status_bytes("VmRSS:")
    }

    pub(crate) fn peak_rss_bytes(&self) -> Result<u64, Failure> {
        self.status_bytes("VmHWM:")
    }

    /// Files and sockets that it holds open.
    pub(crate) fn open_files(&self) -> Result<usize, Failure> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.process.0.id()))?.count())
    }

    fn status_bytes(&self, name: &str) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.0.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .ok_or_else(|| format!("/proc/PID/status has no {name}"))?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse::<u64>()? * 1024)
    }

    /// Waits until log, flush and compaction have rested for `quiet`; returns when after the call the rest began, in seconds.
    pub(crate) async fn wait_until_quiet(&self, quiet: Duration) -> Result<f64, Failure> {
        let start = Instant::now();
        let mut rest_began = start;
        while rest_began.elapsed() < quiet {
            let before = self.cpu_s()?;
            tokio::time::sleep(QUIET_STEP).await;
            if self.cpu_s()? - before > QUIET_CPU_SHARE * QUIET_STEP.as_secs_f64() {
                rest_began = Instant::now();
            }
            if start.elapsed() > QUIET_PATIENCE {
                return Err(format!("the server is not quiet after {} s", QUIET_PATIENCE.as_secs()).into());
            }
        }
        Ok((rest_began - start).as_secs_f64())
    }

    /// Whether the process is no more.
    pub(crate) fn has_ended(&mut self) -> Result<bool, Failure> {
        Ok(self.process.0.try_wait()?.is_some())
    }

    /// Ends the process at once, without any clean-up.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.process.0.kill()?;
        self.process.0.wait()?;
        Ok(())
    }

    /// Asks the server to end and returns how long it took, in milliseconds.
    pub(crate) async fn stop(mut self) -> Result<u128, Failure> {
        let start = Instant::now();
        // SAFETY: a plain system call. The process is ours and not yet reaped, so its id cannot belong to another.
        unsafe { libc::kill(self.process.0.id() as libc::pid_t, libc::SIGTERM) };
        while start.elapsed() < STOP_PATIENCE {
            if let Some(status) = self.process.0.try_wait()? {
                return if status.success() {
                    Ok(start.elapsed().as_millis())
                } else {
                    Err(format!("the server ended with {status}").into())
                };
            }
            tokio::time::sleep(POLL).await;
        }
        Err(format!("the server did not end within {} s of SIGTERM", STOP_PATIENCE.as_secs()).into())
    }
}

/// The HTTP address from the ready file, once it is there.
async fn wait_ready(process: &mut Child, ready_file: &Path, work_dir: &Path) -> Result<String, Failure> {
    let start = Instant::now();
    while start.elapsed() < READY_PATIENCE {
        if let Some(status) = process.try_wait()? {
            let log = std::fs::read_to_string(work_dir.join("server.log")).unwrap_or_default();
            return Err(format!("the server ended before it was ready ({status})\n{log}").into());
        }
        if let Ok(ready) = std::fs::read(ready_file)
            && let Ok(ready) = serde_json::from_slice::<Value>(&ready)
            && let Some(http) = ready["http"].as_str()
        {
            return Ok(http.to_owned());
        }
        tokio::time::sleep(POLL).await;
    }
    Err(format!("the server is not ready after {} s", READY_PATIENCE.as_secs()).into())
}

/// What a data directory holds when no server runs.
pub(crate) struct Sizes {
    tables: Value,
    directory_bytes: u64,
}

/// Asks the binary for the tables' current versions and the file system for everything.
pub(crate) fn sizes(binary: &Path, data: &Path) -> Result<Sizes, Failure> {
    let output = Command::new(binary).args(["inspect", "--json", "--data"]).arg(data).output()?;
    if !output.status.success() {
        return Err(format!("spanflame inspect failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(Sizes {
        tables: serde_json::from_slice(&output.stdout)?,
        directory_bytes: folder_bytes(data)?,
    })
}

impl Sizes {
    /// Bytes by table, those that count (all but the rollup), and per item.
    pub(crate) fn figures(&self, items: f64) -> Value {
        let tables = self.tables["tables"].as_array().map(Vec::as_slice).unwrap_or_default();
        let bytes = |table: &Value| table["size_bytes"].as_u64().unwrap_or_default();
        let counted: u64 = tables.iter().filter(|table| table["table"] != "profiles").map(bytes).sum();
        json!({
            "tables": tables,
            "bytes": counted,
            "bytes_per_item": (counted as f64 / items * 100.0).round() / 100.0,
            "directory_bytes": self.directory_bytes,
        })
    }
}

fn folder_bytes(folder: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        bytes += if kind.is_dir() { folder_bytes(&entry.path())? } else { kind.len() };
    }
    Ok(bytes)
}
