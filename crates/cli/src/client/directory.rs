//! A data directory read in this process: a server over it on free loopback ports, as long as the command runs.
//!
//! So a directory answers by the same routes as a server, and there is one way to ask. No directory is made,
//! and nobody else can open this one meanwhile. It ends as a process that is killed would: whoever asks does not
//! wait for a flush, and what the log holds is there for the next one.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use spanflame_server::{Config, Running, Server};

use crate::error::Error;

/// An opened data directory.
pub(super) struct Directory {
    data: String,
    running: Running,
}

impl Directory {
    /// Opens what is there; creates nothing.
    pub(super) async fn open(data: &str) -> Result<Directory, Error> {
        if !data.contains("://") && !Path::new(data).is_dir() {
            return Err(Error::Usage(format!(
                "--data is {data:?}, expected an existing directory or a URL such as s3://bucket/path"
            )));
        }
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let config = Config {
            data: data.to_owned(),
            http: free,
            otlp_grpc: free,
            otlp_http: free,
            own_telemetry: false,
            // Reading drops nothing: how long data is kept is for the server's own settings to say.
            retention_raw: Duration::MAX,
            retention_rollup: Duration::MAX,
            ..Config::default()
        };
        let running = Server::start(config).await.map_err(with_hint)?;
        Ok(Directory {
            data: data.to_owned(),
            running,
        })
    }

    /// As the user wrote it.
    pub(super) fn name(&self) -> &str {
        &self.data
    }

    /// Where its routes answer.
    pub(super) fn server(&self) -> String {
        format!("http://{}", self.running.addresses().http)
    }
}

fn with_hint(error: spanflame_server::Error) -> Error {
    match error {
        spanflame_server::Error::Store {
            data,
            source: source @ spanflame_store::Error::Locked { .. },
            ..
        } => Error::Held { data, source },
        error => Error::Serve(error),
    }
}
