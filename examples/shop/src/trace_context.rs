//! W3C trace context on HTTP headers: what makes one trace of three processes.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::global;
use opentelemetry::propagation::{Extractor, Injector};
use opentelemetry::trace::TraceContextExt;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct HeadersMut<'a>(&'a mut HeaderMap);

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

/// Makes `span` a child of the span that sent the request.
pub fn adopt_parent(span: &Span, headers: &HeaderMap) {
    let parent = global::get_text_map_propagator(|propagator| propagator.extract(&Headers(headers)));
    // Fails where no layer exports spans; the service then runs untraced.
    let _ = span.set_parent(parent);
}

/// The headers that make the receiver's span a child of `span`.
pub fn headers_of(span: &Span) -> HeaderMap {
    let mut headers = HeaderMap::new();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&span.context(), &mut HeadersMut(&mut headers)));
    headers
}

/// The trace that `span` belongs to, in hex.
pub fn trace_id_of(span: &Span) -> String {
    span.context().span().span_context().trace_id().to_string()
}
