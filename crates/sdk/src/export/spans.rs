//! The end of OpenTelemetry's span pipeline: finished spans go into the queue of the exporting thread.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use super::Outgoing;
use crate::stats::{Counters, add};

/// A span exporter that never blocks: a full queue drops and counts.
pub(crate) struct SpanQueue {
    queue: SyncSender<Outgoing>,
    resource: ResourceAttributesWithSchema,
    counters: Arc<Counters>,
}

impl SpanQueue {
    pub(crate) fn new(queue: SyncSender<Outgoing>, counters: Arc<Counters>) -> SpanQueue {
        SpanQueue {
            queue,
            resource: ResourceAttributesWithSchema::default(),
            counters,
        }
    }
}

impl std::fmt::Debug for SpanQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SpanQueue")
    }
}

impl SpanExporter for SpanQueue {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let request = ExportTraceServiceRequest {
            resource_spans: group_spans_by_resource_and_scope(batch, &self.resource),
        };
        self.queue.try_send(Outgoing::Spans(request)).map_err(|_| {
            add(&self.counters.dropped_spans, spans);
            OTelSdkError::InternalFailure(format!("{spans} spans do not fit the queue"))
        })
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}

pub(super) fn count(request: &ExportTraceServiceRequest) -> u64 {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    scopes.map(|scope| scope.spans.len() as u64).sum()
}
