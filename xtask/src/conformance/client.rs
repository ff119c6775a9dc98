//! The clients: what each needs, and how it is run.

use std::path::Path;
use std::process::Command;

use super::Linked;
use crate::{Failure, machine, process, workspace};

/// A program in `examples/clients`.
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) linked: Linked,
    language: Language,
    /// What the program takes after the server, the file of truth and the seconds.
    arguments: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Language {
    Go,
    Java,
    Python,
    Node,
}

const CLIENTS: [Client; 5] = [
    Client {
        name: "go-root",
        linked: Linked::Root,
        language: Language::Go,
        arguments: &["root"],
    },
    Client {
        name: "go-all",
        linked: Linked::Child,
        language: Language::Go,
        arguments: &["all"],
    },
    Client {
        name: "java",
        linked: Linked::Root,
        language: Language::Java,
        arguments: &[],
    },
    Client {
        name: "python",
        linked: Linked::Root,
        language: Language::Python,
        arguments: &[],
    },
    Client {
        name: "node",
        linked: Linked::Root,
        language: Language::Node,
        arguments: &[],
    },
];

impl Client {
    /// The clients of these names, among which may be `other` that is none; all if there are no names.
    pub(super) fn chosen(names: &[String], other: &'static str) -> Result<Vec<Client>, Failure> {
        let mut known: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        known.push(other);
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("unknown client {unknown}, expected some of {}", known.join(", ")).into());
        }
        let chosen = CLIENTS
            .into_iter()
            .filter(|client| names.is_empty() || names.iter().any(|name| name == client.name));
        Ok(chosen.collect())
    }

    /// Installs what the program needs below `folder`, unless an earlier run did.
    pub(super) fn set_up(&self, folder: &Path) -> Result<(), Failure> {
        match self.language {
            Language::Go => {
                let mut build = Command::new("go");
                build
                    .args(["build", "-o"])
                    .arg(folder.join("go"))
                    .arg(".")
                    .current_dir(source("go"));
                process::run(build)
            }
            Language::Java => {
                machine::provide(machine::TO_RUN_JAVA)?;
                let (jars, classes) = (folder.join("java/jars"), folder.join("java/classes"));
                std::fs::create_dir_all(&classes)?;
                let mut fetch = Command::new("mvn");
                fetch
                    .args(["--quiet", "--batch-mode", "dependency:copy-dependencies"])
                    .arg(format!("-DoutputDirectory={}", jars.display()))
                    .current_dir(source("java"));
                process::run(fetch)?;
                let mut compile = Command::new("javac");
                compile
                    .arg("-classpath")
                    .arg(jars.join("*"))
                    .arg("-d")
                    .arg(&classes)
                    .arg(source("java").join("Main.java"));
                process::run(compile)
            }
            Language::Python => {
                let (venv, wanted) = (folder.join("python"), source("python").join("requirements.txt"));
                if !venv.join("bin/pip").exists() {
                    let mut create = Command::new("python3");
                    create.args(["-m", "venv"]).arg(&venv);
                    process::run(create)?;
                }
                let mut install = Command::new(venv.join("bin/pip"));
                install
                    .args(["install", "--quiet", "--disable-pip-version-check", "-r"])
                    .arg(wanted);
                process::run(install)
            }
            Language::Node => {
                let modules = folder.join("node");
                std::fs::create_dir_all(&modules)?;
                for file in ["package.json", "main.js"] {
                    std::fs::copy(source("node").join(file), modules.join(file))?;
                }
                let mut install = Command::new("npm");
                install.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--prefer-offline"]);
                process::run(with_dir(install, &modules))
            }
        }
    }

    /// The program, set up, on its way.
    pub(super) fn command(&self, folder: &Path, http: &str, truth: &Path, seconds: u32) -> Command {
        let mut command = match self.language {
            Language::Go => Command::new(folder.join("go")),
            Language::Java => java(&folder.join("java"), http),
            Language::Python => {
                let mut command = Command::new(folder.join("python/bin/python"));
                command.arg(source("python").join("main.py"));
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.arg(folder.join("node/main.js"));
                command
            }
        };
        command.arg(http).arg(truth).arg(seconds.to_string()).args(self.arguments);
        command
    }
}

/// A Java program under both agents, as their documentation has it.
fn java(folder: &Path, http: &str) -> Command {
    let (jars, service) = (folder.join("jars"), "conformance-java");
    let agent = |name: &str| format!("-javaagent:{}", jars.join(name).display());
    // The application brings the API, and the OpenTelemetry agent stands behind it.
    let api = ["api", "common", "context"].map(|part| jars.join(format!("opentelemetry-{part}.jar")));
    let classpath: Vec<String> = std::iter::once(&folder.join("classes"))
        .chain(&api)
        .map(|path| path.display().to_string())
        .collect();
    let mut command = Command::new("java");
    command
        .args([agent("agent.jar"), agent("opentelemetry-javaagent.jar")])
        .args(["-classpath", &classpath.join(":")])
        .arg("Main")
        .env("OTEL_JAVAAGENT_EXTENSIONS", jars.join("otel.jar"))
        .env("OTEL_PYROSCOPE_START_PROFILING", "false")
        .envs([("OTEL_SERVICE_NAME", service), ("PYROSCOPE_APPLICATION_NAME", service)])
        .envs([("OTEL_EXPORTER_OTLP_ENDPOINT", http), ("PYROSCOPE_SERVER_ADDRESS", http)])
        .envs([("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), ("PYROSCOPE_FORMAT", "jfr")])
        .envs([("OTEL_METRICS_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "none")])
        .envs([("PYROSCOPE_PROFILER_EVENT", "itimer"), ("PYROSCOPE_PROFILING_INTERVAL", "10ms")])
        .env("PYROSCOPE_UPLOAD_INTERVAL", "3s");
    command
}

fn source(language: &str) -> std::path::PathBuf {
    workspace::root().join("examples/clients").join(language)
}

fn with_dir(mut command: Command, folder: &Path) -> Command {
    command.current_dir(folder);
    command
}
