//! One address: accepts connections and serves HTTP/1.1 and HTTP/2 on them, without TLS; or takes datagrams.
//!
//! Every wait on a client is bounded, so that clients that stall cannot use up what others need: connections by
//! number, heads of requests and silent peers by time. Told to stop, it accepts no more, tells its connections
//! so (`Connection: close`, `GOAWAY`), and returns when the last request is answered.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// Connections of one address; the next ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 10_000;

/// How long the head of an HTTP/1.1 request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// An HTTP/2 peer that is silent for so long is asked whether it is there, and then has as long to answer.
const SILENCE: Duration = Duration::from_secs(60);

/// Bytes in flight on one HTTP/2 connection before the sender waits: exporters send requests of megabytes.
const WINDOW_BYTES: u32 = 4 << 20;

/// Pause after the system had no descriptor or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Largest datagram that UDP carries.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Hands one datagram after another to `take` until `stopped`. What arrives meanwhile waits in the kernel's buffer.
pub(crate) async fn receive(socket: UdpSocket, take: impl AsyncFn(Bytes), mut stopped: watch::Receiver<bool>) {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let received = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            received = socket.recv_from(&mut buffer) => received,
        };
        match received {
            Ok((bytes, _)) => take(Bytes::copy_from_slice(&buffer[..bytes])).await,
            Err(error) => {
                tracing::warn!(%error, "cannot receive a datagram");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves until `stopped`, then until the last request is answered.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stopped: watch::Receiver<bool>) {
    let builder = builder();
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, permit) = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        connections.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %error, "connection ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(SILENCE)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    builder
}

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let permit = room.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Small answers must not wait for the acknowledgement of earlier ones.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                return (stream, permit);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
