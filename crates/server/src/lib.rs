//! HTTP and gRPC: what the outside sees of the store.
//!
//! A dialect folder translates only: request in, one call of `query` or `store`, answer out.
//!
//! | module | owns |
//! |---|---|
//! | [`config`] | every setting: file, environment, flags |
//! | `server` | the life of a server: bind, open, serve, drain, close |
//! | `listener` | one address: accept, serve, drain |
//! | `routes` | which paths are served where |
//! | `admission` | who may send how much |
//! | `question` | asking the engine on a thread of its own |
//! | `grpc` | the framing of gRPC |
//! | `connect` | unary calls as Connect, gRPC or gRPC-Web |
//! | `ingest` | from a body to the store |
//! | `spanmetrics` | span metrics and the service graph for Prometheus |
//! | `shown` | spans as other products' viewers need them |
//! | `text` | values of the model as JSON |
//! | `notation` | times and durations as Go programs write them |
//! | `rejections` | what clients and the log are told of parts that were refused |
//! | `failure` | error kind -> HTTP status and gRPC code |
//! | `metrics` | what `/metrics` says |
//! | `telemetry` | the server's own traces and profiles |
//! | `otlp` | dialect: OTLP traces and profiles |
//! | `native` | dialect: the JSON API of `docs/api.md` |
//! | `tempo` | dialect: Grafana Tempo's queries, `docs/tempo.md` |
//! | `jaeger` | dialect: Jaeger's queries, `docs/jaeger.md` |
//! | `zipkin` | dialect: Zipkin's collector, `docs/zipkin.md` |
//! | `pyroscope` | dialect: Grafana Pyroscope, `docs/pyroscope.md` |
//!
//! No authentication yet: whoever reaches a port reads and writes everything, so it binds loopback unless told
//! otherwise, and then warns.

pub mod config;

mod admission;
mod app;
mod body;
mod connect;
mod error;
mod failure;
mod grpc;
mod ingest;
mod jaeger;
mod listener;
mod metrics;
mod native;
mod notation;
mod otlp;
mod page;
mod pyroscope;
mod question;
mod rejections;
mod routes;
mod server;
mod shown;
mod spanmetrics;
mod telemetry;
mod tempo;
mod text;
mod zipkin;

pub use config::Config;
pub use error::{Error, ErrorKind};
pub use routes::{Dialect, dialects, paths};
pub use server::{Addresses, Running, Server, run};
