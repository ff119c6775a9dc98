//! The life of a server: bind, open, serve, drain, close.
//!
//! ```text
//! bind the addresses -> serve /healthz, refuse the rest -> open the store -> ready
//! stop: not ready -> accept nothing new -> wait for what is in flight -> close the store (flush, lock)
//! ```
//!
//! A request that was acknowledged is in the log of the store, so a shutdown that is cut off by its timeout
//! loses nothing either; it only leaves a longer log to replay.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use spanflame_store::Store;
use tokio::net::{TcpListener, UdpSocket};
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
    /// Tempo's API at the root, where it is on.
    pub tempo_http: Option<SocketAddr>,
    /// Jaeger's query API at the root, where it is on.
    pub jaeger_http: Option<SocketAddr>,
    /// Zipkin's collector, where it is on.
    pub zipkin_http: Option<SocketAddr>,
    /// Jaeger's collector over gRPC, where it is on.
    pub jaeger_grpc: Option<SocketAddr>,
    /// Jaeger's collector for Thrift over HTTP, where it is on.
    pub jaeger_thrift_http: Option<SocketAddr>,
    /// Jaeger's agent over UDP, where it is on.
    pub jaeger_thrift_udp: Option<SocketAddr>,
}

impl Addresses {
    /// Every address that is on, under its key in the settings.
    pub fn named(&self) -> Vec<(&'static str, SocketAddr)> {
        let all = [
            ("http", Some(self.http)),
            ("otlp_grpc", Some(self.otlp_grpc)),
            ("otlp_http", Some(self.otlp_http)),
            ("tempo_http", self.tempo_http),
            ("jaeger_http", self.jaeger_http),
            ("zipkin_http", self.zipkin_http),
            ("jaeger_grpc", self.jaeger_grpc),
            ("jaeger_thrift_http", self.jaeger_thrift_http),
            ("jaeger_thrift_udp", self.jaeger_thrift_udp),
        ];
        all.into_iter().filter_map(|(key, address)| Some((key, address?))).collect()
    }

    /// The text of a ready file.
    pub fn to_json(&self) -> String {
        let named = self
            .named()
            .into_iter()
            .map(|(key, address)| (key.to_owned(), address.to_string().into()));
        serde_json::Value::Object(named.collect()).to_string()
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
        let bound = Bound::new(&config).await?;
        let addresses = bound.addresses;
        let ready_file = config.ready_file.clone();
        let app = Arc::new(App::new(config));
        let (stop, stopped) = watch::channel(false);
        let listeners = bound.serve(&app, &stopped);

        let store = open(&app.config).await?;
        if app.config.own_telemetry {
            app.telemetry.start(store.clone(), app.metrics.clone());
        }
        app.open(store.clone());
        if let Some(path) = &ready_file {
            write_ready_file(path, &addresses)?;
        }
        for (key, address) in addresses.named() {
            tracing::info!(key, %address, "serving");
        }
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

/// What is served at an address.
type Routes = fn(&Arc<App>) -> Router;

/// Every address, bound and not yet served.
struct Bound {
    tcp: Vec<(TcpListener, Routes)>,
    udp: Option<UdpSocket>,
    addresses: Addresses,
}

impl Bound {
    async fn new(config: &Config) -> Result<Bound, Error> {
        let mut tcp = Vec::new();
        let (udp, jaeger_thrift_udp) = bind_udp("jaeger_thrift_udp", config.jaeger_thrift_udp).await?.unzip();
        let addresses = Addresses {
            http: listen(&mut tcp, "http", config.http, routes::http).await?,
            otlp_grpc: listen(&mut tcp, "otlp_grpc", config.otlp_grpc, routes::otlp_grpc).await?,
            otlp_http: listen(&mut tcp, "otlp_http", config.otlp_http, routes::otlp_http).await?,
            tempo_http: listen_if(&mut tcp, "tempo_http", config.tempo_http, routes::tempo_http).await?,
            jaeger_http: listen_if(&mut tcp, "jaeger_http", config.jaeger_http, routes::jaeger_http).await?,
            zipkin_http: listen_if(&mut tcp, "zipkin_http", config.zipkin_http, routes::zipkin_http).await?,
            jaeger_grpc: listen_if(&mut tcp, "jaeger_grpc", config.jaeger_grpc, routes::jaeger_grpc).await?,
            jaeger_thrift_http: listen_if(
                &mut tcp,
                "jaeger_thrift_http",
                config.jaeger_thrift_http,
                routes::jaeger_thrift_http,
            )
            .await?,
            jaeger_thrift_udp,
        };
        Ok(Bound { tcp, udp, addresses })
    }

    fn serve(self, app: &Arc<App>, stopped: &watch::Receiver<bool>) -> JoinSet<()> {
        let mut listeners = JoinSet::new();
        for (listener, routes) in self.tcp {
            listeners.spawn(listener::serve(listener, routes(app), stopped.clone()));
        }
        if let Some(socket) = self.udp {
            let app = app.clone();
            let take = async move |datagram| routes::jaeger_thrift_udp(&app, datagram).await;
            listeners.spawn(listener::receive(socket, take, stopped.clone()));
        }
        listeners
    }
}

async fn listen_if(
    tcp: &mut Vec<(TcpListener, Routes)>,
    key: &'static str,
    address: Option<SocketAddr>,
    routes: Routes,
) -> Result<Option<SocketAddr>, Error> {
    match address {
        Some(address) => listen(tcp, key, address, routes).await.map(Some),
        None => Ok(None),
    }
}

async fn listen(tcp: &mut Vec<(TcpListener, Routes)>, key: &'static str, address: SocketAddr, routes: Routes) -> Result<SocketAddr, Error> {
    let (listener, bound) = bind(key, address).await?;
    tcp.push((listener, routes));
    Ok(bound)
}

async fn bind_udp(key: &'static str, address: Option<SocketAddr>) -> Result<Option<(UdpSocket, SocketAddr)>, Error> {
    let Some(address) = address else {
        return Ok(None);
    };
    let failed = |source| Error::Bind { key, address, source };
    let socket = UdpSocket::bind(address).await.map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    Ok(Some((socket, bound)))
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
