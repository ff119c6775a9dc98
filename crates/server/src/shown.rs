//! Spans as other products' viewers need them.
//!
//! Their viewers group spans by resource, drop resources without attributes, and show a link to a profile on a span
//! with the attribute `pyroscope.profile.id`, whether or not there is one. Here spans are grouped, every resource has
//! `service.name`, and the attribute is on exactly the spans that were profiled. They also expect that an id names one span,
//! so the server's half of a span that Zipkin's clients share gets an id of its own, below the client's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use spanflame_formats::zipkin;
use spanflame_model::{Resource, Span, SpanId, Value};
use spanflame_query::TraceSpan;

/// Where Grafana looks for the id of a span profile.
const PROFILE_ID: &str = "pyroscope.profile.id";

/// Spans of a trace in groups by resource and scope. A span whose profile in scope `subtree` has samples carries its
/// own id as the id of its profile; what a client put there on any other span is dropped.
pub(crate) fn with_profile_ids(spans: Vec<TraceSpan>) -> Vec<Span> {
    let marked = spans.into_iter().map(|shown| {
        let mut span = shown.stored.span;
        match shown.subtree_profiled {
            true => span.attributes.insert(PROFILE_ID, span.span_id.to_string()),
            false => drop(span.attributes.remove(PROFILE_ID)),
        }
        span
    });
    grouped(marked)
}

/// The client's span whose request a server's span answers: its parent, or the other half of a shared span.
pub(crate) fn call_of(span: &Span) -> Option<SpanId> {
    match is_shared(span) {
        true => Some(span.span_id),
        false => span.parent_span_id,
    }
}

fn is_shared(span: &Span) -> bool {
    span.attributes.get(zipkin::SHARED) == Some(&Value::Bool(true))
}

/// Gives the server's half of a shared span an id of its own, if the client's half is there too. What its own service
/// did below it follows it.
fn with_ids_apart(spans: &mut [Span]) {
    let servers: HashMap<SpanId, Arc<Resource>> = spans
        .iter()
        .filter(|span| is_shared(span))
        .map(|span| (span.span_id, span.resource.clone()))
        .collect();
    let shared: HashSet<SpanId> = spans
        .iter()
        .filter(|span| !is_shared(span) && servers.contains_key(&span.span_id))
        .map(|span| span.span_id)
        .collect();
    for span in spans {
        if is_shared(span) && shared.contains(&span.span_id) {
            span.parent_span_id = Some(span.span_id);
            span.span_id = apart(span.span_id);
        } else if let Some(parent) = span.parent_span_id.filter(|parent| shared.contains(parent))
            && servers[&parent].service() == span.resource.service()
        {
            span.parent_span_id = Some(apart(parent));
        }
    }
}

/// Another id that follows from `id`.
fn apart(id: SpanId) -> SpanId {
    SpanId::from_u64(!u64::from_be_bytes(*id.as_bytes())).unwrap_or(id)
}

/// Spans in groups by resource and scope, groups in order of their first span. Every resource has `service.name`.
pub(crate) fn grouped(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
    let mut spans: Vec<Span> = spans.into_iter().collect();
    with_ids_apart(&mut spans);
    let mut resources = Resources::default();
    let mut groups: Vec<(usize, usize, Span)> = Vec::new();
    let mut scopes = Vec::new();
    for mut span in spans {
        let (number, resource) = resources.number(&span.resource);
        span.resource = resource;
        let scope = scopes.iter().position(|known| *known == span.scope).unwrap_or(scopes.len());
        if scope == scopes.len() {
            scopes.push(span.scope.clone());
        }
        groups.push((number, scope, span));
    }
    // The sort is stable: within a group the order is the caller's.
    groups.sort_by_key(|(resource, scope, _)| (*resource, *scope));
    groups.into_iter().map(|(_, _, span)| span).collect()
}

/// Resources that were seen, each with `service.name`.
#[derive(Default)]
struct Resources {
    /// By the address of what was seen, which `kept` keeps alive.
    numbers: HashMap<*const Resource, usize>,
    kept: Vec<Arc<Resource>>,
    named: Vec<Arc<Resource>>,
}

impl Resources {
    fn number(&mut self, resource: &Arc<Resource>) -> (usize, Arc<Resource>) {
        let address = Arc::as_ptr(resource);
        if let Some(number) = self.numbers.get(&address) {
            return (*number, self.named[*number].clone());
        }
        let named = with_service_name(resource);
        let number = self.named.iter().position(|known| *known == named).unwrap_or(self.named.len());
        if number == self.named.len() {
            self.named.push(named);
        }
        self.numbers.insert(address, number);
        self.kept.push(resource.clone());
        (number, self.named[number].clone())
    }
}

fn with_service_name(resource: &Arc<Resource>) -> Arc<Resource> {
    if resource.attributes().get_str("service.name") == Some(resource.service()) {
        return resource.clone();
    }
    let mut attributes = resource.attributes().clone();
    attributes.insert("service.name", resource.service());
    Arc::new(Resource::new(attributes))
}
