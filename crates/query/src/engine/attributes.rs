//! Fetching for lists of attributes.

use std::collections::HashMap;
use std::ops::ControlFlow;

use spanflame_model::Span;
use spanflame_store::{SpanFields, SpanScan};

use super::Engine;
use super::fetch::check_tenants;
use crate::Error;
use crate::attributes::{
    AttributeName, AttributeScope, AttributeValue, AttributesRequest, Listed, NameCounter, ValueCounter, ValuesRequest,
};

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
            if query.is_none_or(|query| query.test(span, facts.get(&span.trace_id)) == Some(true)) {
                visit(span);
            }
            ControlFlow::Continue(())
        })
        .await
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
