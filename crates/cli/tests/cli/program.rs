//! Runs the binary, and servers that end with their test.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A server that is not ready by then has failed; debug builds replay logs slowly.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// What a run of the binary left behind.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    fn new(output: Output) -> Ran {
        Ran {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Expects an exit code; shows both outputs if it was another.
    pub(crate) fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr);
        self
    }

    /// The output as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// The binary without any setting of whoever runs the tests.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spanflame"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SPANFLAME_") {
            command.env_remove(name);
        }
    }
    command.args(words);
    command
}

/// Runs the binary.
pub(crate) fn run(words: &[&str]) -> Ran {
    Ran::new(command(words).stdin(Stdio::null()).output().expect("the binary runs"))
}

/// Runs the binary with `input` on its standard input.
pub(crate) fn run_with_input(words: &[&str], input: &[u8]) -> Ran {
    let mut child = command(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("piped");
    // A command that fails early closes its input; its exit code is what the test looks at.
    let _ = stdin.write_all(input);
    drop(stdin);
    Ran::new(child.wait_with_output().expect("the binary ends"))
}

/// A server over a data directory; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) http: String,
}

impl Server {
    /// Starts on free ports and waits for the ready file.
    pub(crate) fn start(data: &Path) -> Server {
        let ready = data.with_extension("ready.json");
        // A server that was killed leaves its file behind.
        let _ = std::fs::remove_file(&ready);
        let data = data.display().to_string();
        let ready_file = ready.display().to_string();
        let words = [
            "serve",
            "--data",
            &data,
            "--ready-file",
            &ready_file,
            "--own-telemetry",
            "false",
            "--http",
            "127.0.0.1:0",
            "--otlp-grpc",
            "127.0.0.1:0",
            "--otlp-http",
            "127.0.0.1:0",
        ];
        let mut child = command(&words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let addresses = wait_until_ready(&mut child, &ready);
        let http = addresses["http"].as_str().expect("an address").to_owned();
        Server {
            child,
            http: format!("http://{http}"),
        }
    }

    /// Runs a command that asks this server.
    pub(crate) fn ask(&self, words: &[&str]) -> Ran {
        run(&[words, &["--server", &self.http]].concat())
    }

    /// Ends it like a power cut.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was started by us");
    }

    /// Asks it to end and waits until it has.
    pub(crate) fn stop(mut self) -> i32 {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(sent.success());
        self.child.wait().expect("it ends").code().expect("ended by itself")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until_ready(child: &mut Child, ready: &Path) -> serde_json::Value {
    let started = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(ready) {
            return serde_json::from_str(&text).expect("the ready file is JSON");
        }
        if let Some(status) = child.try_wait().expect("it was started by us") {
            panic!("the server ended before it was ready: {status}");
        }
        assert!(started.elapsed() < READY_TIMEOUT, "the server is not ready after {READY_TIMEOUT:?}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A directory and the path of the data in it.
pub(crate) fn scratch() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    (folder, data)
}
