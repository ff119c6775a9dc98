//! HTTP and gRPC: what the outside sees of the store.

pub mod config;

pub use config::Config;
