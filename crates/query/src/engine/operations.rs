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

    /// Which service called which, by caller, then callee: spans whose parent belongs to another service, and spans that
    /// client and server share (one id, in two services). A parent that is not stored calls nobody.
    pub async fn calls(&self, request: &CatalogRequest) -> Result<Vec<Call>, Error> {
        check_tenants(&request.tenants)?;
        let mut names: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut halves: HashMap<(TraceId, SpanId), Halves> = HashMap::new();
        let mut callees: Vec<Callee> = Vec::new();
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
            let is_server = matches!(span.kind, SpanKind::Server | SpanKind::Consumer);
            halves.entry((span.trace_id, span.span_id)).or_default().set(is_server, number);
            callees.push(Callee {
                trace: span.trace_id,
                span: span.span_id,
                parent: span.parent_span_id,
                service: number,
                is_server,
            });
            match callees.len() > SPANS_MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
        .await?;
        if callees.len() > SPANS_MAX {
            let message = format!("the range holds more than {SPANS_MAX} spans, expected a shorter range");
            return Err(Error::TooLarge { message });
        }
        let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for callee in &callees {
            if let Some(caller) = callee.caller(&halves) {
                *counts.entry((caller, callee.service)).or_default() += 1;
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

/// The services that sent a span of one id: one of the two, unless client and server share it.
#[derive(Clone, Copy, Default)]
struct Halves {
    server: Option<u32>,
    other: Option<u32>,
}

impl Halves {
    fn set(&mut self, is_server: bool, service: u32) {
        *(if is_server { &mut self.server } else { &mut self.other }) = Some(service);
    }
}

/// A span that may have been called from another service.
struct Callee {
    trace: TraceId,
    span: SpanId,
    parent: Option<SpanId>,
    service: u32,
    is_server: bool,
}

impl Callee {
    fn caller(&self, halves: &HashMap<(TraceId, SpanId), Halves>) -> Option<u32> {
        let own = halves.get(&(self.trace, self.span)).and_then(|halves| halves.other);
        if let Some(client) = own.filter(|client| self.is_server && *client != self.service) {
            return Some(client);
        }
        let parent = halves.get(&(self.trace, self.parent?))?;
        if [parent.server, parent.other].contains(&Some(self.service)) {
            return None;
        }
        // Of a shared span the server's half is what went on.
        parent.server.or(parent.other)
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
