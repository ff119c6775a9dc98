//! A data directory read in this process: a server over it on a free loopback port, as long as the command runs.
//!
//! So a directory answers by the same routes as a server, and there is one way to ask. Nothing is created that
//! was not there, and nobody else can open the directory meanwhile.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use spanflame_server::{Config, Running, Server};
use spanflame_store::{Store, StoreOptions, StoreStats};

use crate::error::Error;

/// An opened data directory.
pub(super) struct Directory {
    data: String,
    stats: StoreStats,
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
        let stats = stats(data).await?;
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let config = Config {
            data: data.to_owned(),
            http: free,
            otlp_grpc: free,
            otlp_http: free,
            own_telemetry: false,
            ..Config::default()
        };
        let running = Server::start(config).await?;
        Ok(Directory {
            data: data.to_owned(),
            stats,
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

    /// What its tables held when it was opened.
    pub(super) fn stats(&self) -> &StoreStats {
        &self.stats
    }

    /// Closes it and releases its lock.
    pub(super) async fn close(self) -> Result<(), Error> {
        self.running.shutdown().await.map_err(Error::Serve)
    }
}

async fn stats(data: &str) -> Result<StoreStats, Error> {
    let failed = |source: spanflame_store::Error| Error::Store {
        data: data.to_owned(),
        hint: matches!(source, spanflame_store::Error::Locked { .. })
            .then_some("; a server holds it: ask that one with --server URL, or stop it first"),
        source,
    };
    let options = StoreOptions {
        data: data.to_owned(),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.map_err(failed)?;
    let stats = store.stats();
    store.close().await.map_err(failed)?;
    Ok(stats)
}
