//! The life of a server: bind, open, serve, drain, close.
//!
//! ```text
//! bind three addresses -> serve /healthz, refuse the rest -> open the store -> ready
//! stop: not ready -> accept nothing new -> wait for what is in flight -> close the store (flush, lock)
//! ```
//!
//! A request that was acknowledged is in the log of the store, so a shutdown that is cut off by its timeout
//! loses nothing either; it only leaves a longer log to replay.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spanflame_store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::app::App;
use crate::{Config, Error, listener, routes};

/// Where a server listens, with the ports that were really taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The API, OTLP over HTTP, OTLP over gRPC.
    pub http: SocketAddr,
    /// OTLP over gRPC.
    pub otlp_grpc: SocketAddr,
    /// OTLP over HTTP.
    pub otlp_http: SocketAddr,
}

impl Addresses {
    /// The text of a ready file.
    pub fn to_json(&self) -> String {
        serde_json::json!({
            "http": self.http.to_string(),
            "otlp_grpc": self.otlp_grpc.to_string(),
            "otlp_http": self.otlp_http.to_string(),
        })
        .to_string()
    }
}

/// Serves until `shutdown` resolves, then shuts down. `ready` is told the addresses once everything is served.
pub async fn run(config: Config, ready: impl FnOnce(&Addresses), shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let mut shutdown = std::pin::pin!(shutdown);
    let running = tokio::select! {
        // A signal while the log is replayed ends the replay: nothing was acknowledged yet.
        () = &mut shutdown => return Ok(()),
        started = Server::start(config) => started?,
    };
    ready(&running.addresses());
    shutdown.await;
    running.shutdown().await
}

/// Starts servers; see [`Server::start`].
#[derive(Debug)]
pub struct Server;

/// A server that serves. Dropped without [`Running::shutdown`] it stops at once, like a process that is killed.
pub struct Running {
    app: Arc<App>,
    store: Store,
    addresses: Addresses,
    stop: watch::Sender<bool>,
    listeners: JoinSet<()>,
    ready_file: Option<PathBuf>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Binds, opens the store and serves. Returns when everything is served and the ready file is written.
    pub async fn start(config: Config) -> Result<Running, Error> {
        for warning in config.warnings() {
            tracing::warn!(warning, "settings");
        }
        let (http, http_at) = bind("http", config.http).await?;
        let (grpc, grpc_at) = bind("otlp_grpc", config.otlp_grpc).await?;
        let (otlp, otlp_at) = bind("otlp_http", config.otlp_http).await?;
        let addresses = Addresses {
            http: http_at,
            otlp_grpc: grpc_at,
            otlp_http: otlp_at,
        };
        let ready_file = config.ready_file.clone();
        let app = Arc::new(App::new(config));
        let (stop, stopped) = watch::channel(false);
        let mut listeners = JoinSet::new();
        listeners.spawn(listener::serve(http, routes::http(&app), stopped.clone()));
        listeners.spawn(listener::serve(grpc, routes::otlp_grpc(&app), stopped.clone()));
        listeners.spawn(listener::serve(otlp, routes::otlp_http(&app), stopped));

        let store = open(&app.config).await?;
        if app.config.own_telemetry {
            app.telemetry.start(store.clone(), app.metrics.clone());
        }
        app.open(store.clone());
        if let Some(path) = &ready_file {
            write_ready_file(path, &addresses)?;
        }
        tracing::info!(http = %addresses.http, otlp_grpc = %addresses.otlp_grpc, otlp_http = %addresses.otlp_http, "serving");
        Ok(Running {
            app,
            store,
            addresses,
            stop,
            listeners,
            ready_file,
        })
    }
}

impl Running {
    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Stops accepting, waits for what is in flight, closes the store; at most for `shutdown_timeout`.
    pub async fn shutdown(mut self) -> Result<(), Error> {
        let timeout = self.app.config.shutdown_timeout;
        let deadline = Instant::now() + timeout;
        if let Some(path) = &self.ready_file {
            // Whoever removed it before us wanted the same.
            let _ = std::fs::remove_file(path);
        }
        self.app.stop();
        let _ = self.stop.send(true);
        // The flush at the end needs its share of the time, whoever is still connected.
        let drained = timeout_at(deadline - timeout / 4, async {
            while self.listeners.join_next().await.is_some() {}
        })
        .await;
        if drained.is_err() {
            tracing::warn!("requests were still in flight at the end of shutdown_timeout and are cut off");
            self.listeners.abort_all();
        }
        let _ = timeout_at(deadline, self.app.telemetry.stop()).await;
        let data = self.app.config.data.clone();
        match timeout_at(deadline, self.store.close()).await {
            Ok(closed) => closed.map_err(|source| Error::Store {
                action: "close",
                data,
                source,
            }),
            Err(_) => Err(Error::ShutdownTimeout { timeout }),
        }
    }
}

async fn bind(key: &'static str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Bind { key, address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

async fn open(config: &Config) -> Result<Store, Error> {
    Store::open(config.store_options()).await.map_err(|source| Error::Store {
        action: "open",
        data: config.data.clone(),
        source,
    })
}

/// Written beside and renamed, so that who waits for it never reads half of it.
fn write_ready_file(path: &Path, addresses: &Addresses) -> Result<(), Error> {
    let failed = |source| Error::ReadyFile {
        path: path.to_owned(),
        source,
    };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    std::fs::write(&beside, addresses.to_json() + "\n").map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)
}
