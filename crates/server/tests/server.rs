//! A whole server on free ports and a temporary directory, asked as clients ask it.

#[path = "server/collectors.rs"]
mod collectors;
#[path = "server/dialects.rs"]
mod dialects;
#[path = "server/harness.rs"]
mod harness;
#[path = "server/jaeger.rs"]
mod jaeger;
#[path = "server/lifecycle.rs"]
mod lifecycle;
#[path = "server/native.rs"]
mod native;
#[path = "server/openapi.rs"]
mod openapi;
#[path = "server/otlp.rs"]
mod otlp;
#[path = "server/page.rs"]
mod page;
#[path = "server/pyroscope_ingest.rs"]
mod pyroscope_ingest;
#[path = "server/pyroscope_query.rs"]
mod pyroscope_query;
#[path = "server/recorded.rs"]
mod recorded;
#[path = "server/scenario.rs"]
mod scenario;
#[path = "server/spanmetrics.rs"]
mod spanmetrics;
#[path = "server/tempo.rs"]
mod tempo;
