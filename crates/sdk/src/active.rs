//! Keeps the thread context record on the active span.
//!
//! OpenTelemetry tells one observer per process about every context that a thread enters or leaves.
//! `tracing-opentelemetry` enters the context of a span whenever the span itself is entered, so on every poll
//! of an instrumented future, and plain OpenTelemetry users do the same through `with_context`. One hook thus
//! follows both, across await points and worker threads.

use std::sync::{Arc, OnceLock};

use opentelemetry::Context;
use opentelemetry::context::{ContextObserver, GlobalContextObserver};
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceFlags, TraceState};
use spanflame_context::{ThreadContext, thread};
use spanflame_model::{SpanId, TraceId};

/// Begins to publish, once per process; it goes on after the SDK stops, which costs some nanoseconds per
/// span and keeps readers outside right. Returns whether it works: it does not if another observer was first.
pub(crate) fn install() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        GlobalContextObserver::set(Arc::new(Publisher));
        is_called()
    })
}

struct Publisher;

impl ContextObserver for Publisher {
    fn on_context_enter(&self, _from: &Context, to: &Context) {
        publish(to);
    }

    fn on_context_exit(&self, _from: &Context, to: &Context) {
        publish(to);
    }
}

fn publish(context: &Context) {
    if !context.has_active_span() {
        return thread::set(None);
    }
    let span = context.span();
    thread::set(record(span.span_context()));
}

fn record(span: &SpanContext) -> Option<ThreadContext> {
    Some(ThreadContext {
        trace_id: TraceId::from_bytes(span.trace_id().to_bytes())?,
        span_id: SpanId::from_bytes(span.span_id().to_bytes())?,
        trace_flags: span.trace_flags().to_u8(),
    })
}

/// Whether entering a context reaches our observer: OpenTelemetry only logs that another one was first.
fn is_called() -> bool {
    let probe = SpanContext::new(
        opentelemetry::trace::TraceId::from(u128::MAX),
        opentelemetry::trace::SpanId::from(u64::MAX),
        TraceFlags::NOT_SAMPLED,
        false,
        TraceState::NONE,
    );
    let expected = record(&probe);
    let _entered = Context::new().with_remote_span_context(probe).attach();
    thread::current() == expected
}
