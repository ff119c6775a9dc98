//! Fetching for lists of attributes.

use std::collections::HashMap;
use std::ops::ControlFlow;

use spanflame_model::{Span, Tenant, TimeRange, TraceId};
use spanflame_store::{SpanFields, SpanScan};

use super::Engine;
use super::fetch::check_tenants;
use crate::Error;
use crate::attributes::{
    AttributeName, AttributeScope, AttributeValue, AttributesComparison, AttributesComparisonRequest, AttributesRequest, ComparisonCounter,
    Listed, NameCounter, SpanSet, ValueCounter, ValuesRequest,
};
use crate::selected::SpanSelection;
use crate::traceql::TraceFacts;

impl Engine {
    /// The attributes of spans, with how many spans have each.
    pub async fn attributes(&self, request: &AttributesRequest) -> Result<Listed<AttributeName>, Error> {
        let mut counter = NameCounter::default();
        self.visit_matching(request, SpanFields::ALL, |span| counter.add(span)).await?;
        Ok(counter.finish())
    }

    /// The values of one attribute, most frequent first, at most `limit`.
    pub async fn attribute_values(
        &self,
        request: &AttributesRequest,
        values: &ValuesRequest,
        limit: usize,
    ) -> Result<Listed<AttributeValue>, Error> {
        let mut counter = ValueCounter::new(values.clone());
        self.visit_matching(request, fields_of(values), |span| counter.add(span)).await?;
        Ok(counter.finish(limit))
    }

    /// Which attribute values are more frequent in the target than in the base.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a limit that is out of bounds.
    pub async fn compare_attributes(&self, request: &AttributesComparisonRequest) -> Result<AttributesComparison, Error> {
        check_tenants(&request.tenants)?;
        if !(1..=AttributesComparisonRequest::LIMIT_MAX).contains(&request.limit) {
            return Err(Error::Invalid {
                field: "limit",
                message: format!(
                    "limit is {}, expected 1 to {}",
                    request.limit,
                    AttributesComparisonRequest::LIMIT_MAX
                ),
            });
        }
        let (tenants, base, target) = (&request.tenants, &request.base, &request.target);
        let target_scan = comparison_scan(tenants, target, [target, base]);
        let base_scan = comparison_scan(tenants, base, [target, base]);
        let target_facts = self.facts_of_set(target, &target_scan).await?;
        let base_facts = self.facts_of_set(base, &base_scan).await?;
        let mut counter = ComparisonCounter::new();
        self.visit_set(target, &target_scan, |span| {
            if target.holds(span, &target_facts) {
                counter.add(span);
            }
        })
        .await?;
        counter.turn_to_base();
        self.visit_set(base, &base_scan, |span| {
            if base.holds(span, &base_facts) && !target.holds(span, &target_facts) {
                counter.add(span);
            }
        })
        .await?;
        Ok(counter.finish(request.limit))
    }

    async fn facts_of_set(&self, set: &SpanSet, scan: &SpanScan) -> Result<HashMap<TraceId, TraceFacts>, Error> {
        match set {
            SpanSet::Matching(selection) if selection.query.needs_trace() => {
                self.facts_of_candidates(&scan.tenants, &selection.query, scan).await
            }
            _ => Ok(HashMap::new()),
        }
    }

    /// Visits every span of a set, and maybe others.
    async fn visit_set(&self, set: &SpanSet, scan: &SpanScan, mut visit: impl FnMut(&Span) + Send) -> Result<(), Error> {
        if let SpanSet::OfTrace { trace_id, .. } = set {
            let spans = self.snapshot.trace_spans_with(&scan.tenants, *trace_id, scan.fields).await?;
            spans.iter().for_each(|stored| visit(&stored.span));
            return Ok(());
        }
        self.visit_spans(scan, |stored| {
            visit(&stored.span);
            ControlFlow::Continue(())
        })
        .await
    }

    async fn visit_matching(
        &self,
        request: &AttributesRequest,
        wanted: SpanFields,
        mut visit: impl FnMut(&Span) + Send,
    ) -> Result<(), Error> {
        check_tenants(&request.tenants)?;
        let query = request.query.as_ref();
        let asked = query.map_or(SpanFields::default(), |query| query.fields());
        let scan = SpanScan {
            tenants: request.tenants.clone(),
            range: request.range,
            conditions: query.map_or(Vec::new(), |query| query.conditions()),
            fields: SpanFields {
                attributes: wanted.attributes || asked.attributes,
                resource: wanted.resource || asked.resource,
                events: wanted.events || asked.events,
            },
            received_before: None,
        };
        let facts = match query {
            Some(query) if query.needs_trace() => self.facts_of_candidates(&request.tenants, query, &scan).await?,
            _ => HashMap::new(),
        };
        self.visit_spans(&scan, |stored| {
            let span = &stored.span;
            if request.rule.holds(request.range, span)
                && query.is_none_or(|query| query.test(span, facts.get(&span.trace_id)) == Some(true))
            {
                visit(span);
            }
            ControlFlow::Continue(())
        })
        .await
    }
}

/// Reads the spans of a set with all that is counted of them and what the queries of both sets read.
fn comparison_scan(tenants: &[Tenant], set: &SpanSet, both: [&SpanSet; 2]) -> SpanScan {
    let reads_events = |set: &&SpanSet| matches!(set, SpanSet::Matching(selection) if selection.query.fields().events);
    let (range, conditions) = match set {
        SpanSet::Matching(SpanSelection { query, range, .. }) => (*range, query.conditions()),
        SpanSet::OfTrace { .. } => (TimeRange::ALL, Vec::new()),
    };
    SpanScan {
        tenants: tenants.to_vec(),
        range,
        conditions,
        fields: SpanFields {
            attributes: true,
            resource: true,
            events: both.iter().any(reads_events),
        },
        received_before: None,
    }
}

/// The parts of a span where the values are.
fn fields_of(values: &ValuesRequest) -> SpanFields {
    let (attributes, resource, events) = match values.scope {
        None => (true, true, false),
        Some(AttributeScope::Span) => (true, false, false),
        // The service is always there.
        Some(AttributeScope::Resource) => (false, true, false),
        Some(AttributeScope::Instrumentation) => (false, true, false),
        Some(AttributeScope::Event | AttributeScope::Link) => (false, false, true),
        Some(AttributeScope::Intrinsic) => match values.key.as_str() {
            "statusMessage" => (true, false, false),
            "instrumentation:name" | "instrumentation:version" => (false, true, false),
            "event:name" => (false, false, true),
            _ => (false, false, false),
        },
    };
    SpanFields {
        attributes,
        resource,
        events,
    }
}
