//! Fetching for metrics of spans.

use std::collections::HashMap;
use std::ops::ControlFlow;

use spanflame_store::SpanScan;

use super::Engine;
use super::fetch::check_tenants;
use crate::Error;
use crate::metrics::{Meter, MetricsAnswer, MetricsRequest};

impl Engine {
    /// Metrics of the spans that began in a range.
    pub async fn metrics(&self, request: &MetricsRequest) -> Result<MetricsAnswer, Error> {
        check_tenants(&request.tenants)?;
        let query = request.query.selection();
        let scan = SpanScan {
            tenants: request.tenants.clone(),
            range: request.range,
            conditions: query.conditions(),
            fields: request.query.fields(),
            received_before: None,
        };
        let facts = match query.needs_trace() {
            true => self.facts_of_candidates(&request.tenants, query, &scan).await?,
            false => HashMap::new(),
        };
        let mut meter = Meter::new(request)?;
        self.visit_spans(&scan, |stored| {
            if query.test(&stored.span, facts.get(&stored.span.trace_id)) == Some(true) {
                meter.add(&stored.span);
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(meter.finish())
    }
}
