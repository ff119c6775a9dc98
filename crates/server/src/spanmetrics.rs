//! `GET /metrics/spans`: span metrics and a service graph for Prometheus, under the names that Grafana expects.
//!
//! Nothing is counted while spans come in. A scrape reads from the store what arrived since the scrape before, so every
//! span counts once however often it was sent, and a server that nobody scrapes pays nothing. Counters begin when the
//! server starts, at most an hour before the first scrape; like all counters of Prometheus they begin again at 0 after
//! a restart.
//!
//! Series are bounded: what is over a limit is counted under `<other>`, and how much that is is a metric of its own.

mod calls;
mod exposition;
mod graph;

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use spanflame_model::{Tenant, Timestamp};
use spanflame_query::Engine;
use spanflame_store::StoredSpan;
use tokio::sync::Mutex as AsyncMutex;

use crate::admission::read_tenants;
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::now;
use crate::question::ask;

use calls::Calls;
use exposition::Exposition;
use graph::Graph;

/// How far before the first scrape counting begins at most.
const BACKLOG_NS: u64 = 3_600 * 1_000_000_000;

/// How much of what arrived one scrape takes in at most, by arrival: after a pause the next scrapes catch up.
const STEP_NS: u64 = 600 * 1_000_000_000;

/// Tenants whose counters are kept.
const TENANTS_MAX: usize = 100;

/// The counters of every tenant that is scraped.
pub(crate) struct SpanMetrics {
    started: Timestamp,
    tenants: Mutex<HashMap<Tenant, Arc<AsyncMutex<Counters>>>>,
}

/// The counters of one tenant.
struct Counters {
    /// What arrived until then is counted.
    until: Timestamp,
    calls: Calls,
    graph: Graph,
}

impl SpanMetrics {
    /// Counts what arrives from now on.
    pub(crate) fn new() -> SpanMetrics {
        SpanMetrics {
            started: now(),
            tenants: Mutex::default(),
        }
    }

    fn of(&self, tenant: &Tenant) -> Result<Arc<AsyncMutex<Counters>>, Failure> {
        let mut tenants = self.tenants.lock();
        if !tenants.contains_key(tenant) && tenants.len() >= TENANTS_MAX {
            let message = format!("span metrics of {TENANTS_MAX} tenants are kept, expected no more to be scraped");
            return Err(Failure::too_large(message));
        }
        let begin = || Counters {
            until: self.started.max(now().saturating_sub(BACKLOG_NS)),
            calls: Calls::default(),
            graph: Graph::default(),
        };
        Ok(tenants
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(AsyncMutex::new(begin())))
            .clone())
    }
}

/// `GET /metrics/spans`
pub(crate) async fn scrape(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failure> {
    let tenants = read_tenants(&headers)?;
    let [tenant] = tenants.as_slice() else {
        let message = format!("{} tenants are named, expected one", tenants.len());
        return Err(Failure::invalid("x-scope-orgid", message));
    };
    let (tenant, counters) = (tenant.clone(), app.span_metrics.of(tenant)?);
    let asked = async move |engine: Engine| {
        let mut counters = counters.lock().await;
        counters.take_in(&engine, &tenant).await?;
        Ok(counters.expose())
    };
    ask(&app, "span_metrics", asked, |text: &String, _| {
        let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        Ok(([(header::CONTENT_TYPE, content_type)], text.clone()).into_response())
    })
    .await
}

impl Counters {
    /// Counts what arrived since.
    async fn take_in(&mut self, engine: &Engine, tenant: &Tenant) -> Result<(), spanflame_query::Error> {
        let last = engine.last_received().map_or(self.until, |last| last.max(self.until));
        let until = last.min(self.until.saturating_add(STEP_NS));
        let (calls, graph) = (&mut self.calls, &mut self.graph);
        // A scrape that fails in the middle has counted some of it: those that follow must not count it again.
        let after = std::mem::replace(&mut self.until, until);
        let counted = |stored: &StoredSpan| {
            calls.add(&stored.span);
            graph.add(&stored.span, stored.received);
        };
        if until > after {
            engine.arrived_spans(tenant, after, until.saturating_add(1), counted).await?;
        }
        let is_all = until == last;
        self.graph.expire(if is_all { now() } else { until });
        Ok(())
    }

    fn expose(&self) -> String {
        let mut text = Exposition::default();
        self.calls.expose(&mut text);
        self.graph.expose(&mut text);
        text.finish()
    }
}
