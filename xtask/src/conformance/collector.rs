//! The OpenTelemetry Collector between the demo's services and the server.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Child};
use crate::{Failure, workspace};

/// Builds it below `folder` from the published modules; the path of the program.
pub(super) fn set_up(folder: &Path) -> Result<PathBuf, Failure> {
    let program = folder.join("collector");
    let mut build = Command::new("go");
    build
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(workspace::root().join("examples/clients/collector"));
    process::run(build)?;
    Ok(program)
}

/// A running Collector: takes OTLP by gRPC and passes all of it on.
pub(crate) struct Relay {
    /// What keeps it running.
    pub(crate) child: Child,
    /// Where it takes OTLP.
    pub(crate) otlp: String,
}

impl Relay {
    /// Starts `program` before the server at `otlp`; its files lie in `folder`.
    pub(crate) fn start(program: &Path, otlp: &str, folder: &Path) -> Result<Relay, Failure> {
        // Nobody tells which port it bound: one that was free a moment ago will do.
        let own = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = folder.join("collector.json");
        std::fs::write(&config, configuration(&own.to_string(), otlp.trim_start_matches("http://")))?;
        let mut command = Command::new(program);
        command
            .arg("--config")
            .arg(&config)
            .args(["--feature-gates", "service.profilesSupport"]);
        let mut child = Child::start("the collector", command, &folder.join("collector.log"))?;
        process::wait_until("readiness of the collector", super::READY_PATIENCE, || {
            child.check_alive()?;
            Ok(std::net::TcpStream::connect(own).is_ok())
        })?;
        Ok(Relay {
            child,
            otlp: format!("http://{own}"),
        })
    }
}

/// JSON is YAML. The batch processor is what most configurations have; it does not take profiles.
fn configuration(own: &str, server: &str) -> String {
    serde_json::json!({
        "receivers": { "otlp": { "protocols": { "grpc": { "endpoint": own } } } },
        "processors": { "batch": { "timeout": "1s" } },
        "exporters": { "otlp_grpc": { "endpoint": server, "tls": { "insecure": true } } },
        "service": {
            "telemetry": { "metrics": { "level": "none" } },
            "pipelines": {
                "traces": { "receivers": ["otlp"], "processors": ["batch"], "exporters": ["otlp_grpc"] },
                "profiles": { "receivers": ["otlp"], "exporters": ["otlp_grpc"] },
            },
        },
    })
    .to_string()
}
