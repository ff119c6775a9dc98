//! Fetching for counts of spans.

use std::collections::HashMap;
use std::ops::ControlFlow;

use spanflame_store::SpanScan;

use super::Engine;
use super::fetch::check_tenants;
use crate::Error;
use crate::histogram::{Histogram, HistogramCount, HistogramRequest};
use crate::selected::SpanSelection;

impl Engine {
    /// Spans by time and duration.
    pub async fn histogram(&self, request: &HistogramRequest) -> Result<Histogram, Error> {
        check_tenants(&request.tenants)?;
        request.check()?;
        let SpanSelection { query, range, rule } = &request.spans;
        let scan = SpanScan {
            tenants: request.tenants.clone(),
            range: *range,
            conditions: query.conditions(),
            fields: query.fields(),
            received_before: None,
        };
        let facts = match query.needs_trace() {
            true => self.facts_of_candidates(&request.tenants, query, &scan).await?,
            false => HashMap::new(),
        };
        let mut count = HistogramCount::new(request);
        let visited = self.snapshot.scan_spans(&scan, |batch| {
            for span in batch.iter().map(|stored| &stored.span) {
                if rule.holds(*range, span) && query.test(span, facts.get(&span.trace_id)) == Some(true) {
                    count.add(span);
                }
            }
            ControlFlow::Continue(())
        });
        let inspected = visited.await?.rows;
        Ok(count.finish(inspected))
    }
}
