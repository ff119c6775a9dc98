//! Fetching for lists of services and operations, and of who calls whom.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use spanflame_model::{SpanId, SpanKind, Tenant, TimeRange, Timestamp, TraceId};
use spanflame_store::{SpanCondition, SpanFields, SpanScan, StoredSpan};

use super::Engine;
use super::fetch::check_tenants;
use crate::operations::{Call, Operation};
use crate::{CatalogRequest, Error};

/// The most operations of one answer.
const OPERATIONS_MAX: usize = 100_000;
/// The most spans whose parents are looked for.
const SPANS_MAX: usize = 5_000_000;

impl Engine {
    /// Every service that sent spans, by name.
    pub async fn span_services(&self, tenants: &[Tenant]) -> Result<BTreeSet<String>, Error> {
        check_tenants(tenants)?;
        if let Some(services) = self.snapshot.span_services(tenants)? {
            return Ok(services);
        }
        let mut services = BTreeSet::new();
        self.visit_spans(&plain(tenants, TimeRange::ALL, Vec::new()), |stored| {
            let service = stored.span.resource.service();
            if !services.contains(service) {
                services.insert(service.to_owned());
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(services)
    }

    /// The operations of a service, or of all, by name, then kind.
    pub async fn operations(&self, request: &CatalogRequest, service: Option<&str>) -> Result<Vec<Operation>, Error> {
        check_tenants(&request.tenants)?;
        let conditions = service.map(|service| SpanCondition::Service(service.to_owned()));
        let scan = plain(&request.tenants, request.range, conditions.into_iter().collect());
        let mut counts: HashMap<String, BTreeMap<SpanKind, u64>> = HashMap::new();
        let mut found = 0;
        self.visit_spans(&scan, |stored| {
            let kinds = match counts.get_mut(&stored.span.name) {
                Some(kinds) => kinds,
                None => counts.entry(stored.span.name.clone()).or_default(),
            };
            found += usize::from(!kinds.contains_key(&stored.span.kind));
            *kinds.entry(stored.span.kind).or_default() += 1;
            match found > OPERATIONS_MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .await?;
        let mut operations: Vec<Operation> = Vec::new();
        for (name, kinds) in counts {
            operations.extend(kinds.into_iter().map(|(kind, spans)| Operation {
                name: name.clone(),
                kind,
                spans,
            }));
        }
        operations.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
        Ok(operations)
    }

    /// Visits the spans of a tenant that arrived after one time and before another, each once, in no order; with
    /// their attributes.
    pub async fn arrived_spans(
        &self,
        tenant: &Tenant,
        after: Timestamp,
        before: Timestamp,
        mut visit: impl FnMut(&StoredSpan) + Send,
    ) -> Result<(), Error> {
        let scan = SpanScan {
            fields: SpanFields {
                attributes: true,
                ..SpanFields::default()
            },
            received_before: Some(before),
            ..plain(std::slice::from_ref(tenant), TimeRange::ALL, Vec::new())
        };
        let each = |batch: Vec<StoredSpan>| {
            batch.iter().for_each(&mut visit);
            ControlFlow::Continue(())
        };
        self.snapshot.scan_spans_after(&scan, after, each).await?;
        Ok(())
    }

    /// When the latest span or sample arrived; `None` if nothing is stored.
    pub fn last_received(&self) -> Option<Timestamp> {
        self.snapshot.last_received()
    }

    /// Which service called which, by caller, then callee: spans whose parent belongs to another service. A parent
    /// that is not stored calls nobody.
    pub async fn calls(&self, request: &CatalogRequest) -> Result<Vec<Call>, Error> {
        check_tenants(&request.tenants)?;
        let mut names: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut services: HashMap<(TraceId, SpanId), u32> = HashMap::new();
        let mut children: Vec<(TraceId, SpanId, u32)> = Vec::new();
        let scan = plain(&request.tenants, request.range, Vec::new());
        self.visit_spans(&scan, |stored| {
            let span = &stored.span;
            let service = span.resource.service();
            let number = numbers.get(service).copied().unwrap_or_else(|| {
                let number = names.len() as u32;
                names.push(service.to_owned());
                numbers.insert(service.to_owned(), number);
                number
            });
            services.insert((span.trace_id, span.span_id), number);
            children.extend(span.parent_span_id.map(|parent| (span.trace_id, parent, number)));
            match services.len() > SPANS_MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .await?;
        if services.len() > SPANS_MAX {
            let message = format!("the range holds more than {SPANS_MAX} spans, expected a shorter range");
            return Err(Error::TooLarge { message });
        }
        let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (trace, parent, child) in children {
            if let Some(caller) = services.get(&(trace, parent)).filter(|caller| **caller != child) {
                *counts.entry((*caller, child)).or_default() += 1;
            }
        }
        let call = |((caller, callee), count): ((u32, u32), u64)| Call {
            caller: names[caller as usize].clone(),
            callee: names[callee as usize].clone(),
            count,
        };
        let mut calls: Vec<Call> = counts.into_iter().map(call).collect();
        calls.sort_by(|a, b| (&a.caller, &a.callee).cmp(&(&b.caller, &b.callee)));
        Ok(calls)
    }
}

/// All spans of a range with what is always there.
fn plain(tenants: &[Tenant], range: TimeRange, conditions: Vec<SpanCondition>) -> SpanScan {
    SpanScan {
        tenants: tenants.to_vec(),
        range,
        conditions,
        fields: SpanFields::default(),
        received_before: None,
    }
}
