//! Metrics and logs: counted and refused, with one sentence on how to stop sending them.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message;
use serde_json::Value;

use super::{Answer, Wire};
use crate::app::App;
use crate::failure::Failure;
use crate::ingest::Upload;
use crate::metrics::Signal;

/// Refuses every data point or log record of a request. A body that is none of them is still an error.
pub(super) async fn refuse(app: &App, upload: Upload, wire: Wire) -> Result<Answer, Failure> {
    let signal = upload.signal;
    let count = move |bytes: &[u8]| match (signal, wire) {
        (Signal::Metrics, Wire::Protobuf) => points_protobuf(bytes),
        (_, Wire::Protobuf) => records_protobuf(bytes),
        (Signal::Metrics, Wire::Json) => points_json(bytes),
        (_, Wire::Json) => records_json(bytes),
    };
    let (rejected, _load) = app.ingest.work(upload, move |bytes, _| count(bytes)).await?;
    app.metrics.unsupported(signal, rejected);
    let (name, variable) = match signal {
        Signal::Metrics => ("metrics", "OTEL_METRICS_EXPORTER"),
        _ => ("logs", "OTEL_LOGS_EXPORTER"),
    };
    let message = format!(
        "spanflame keeps traces and profiles, not {name}: set {variable}=none in the SDK or take this exporter out of the Collector's {name} pipeline"
    );
    Ok(Answer::new(signal, rejected, message))
}

fn invalid(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::invalid("body", format!("the body is no {what}: {error}"))
}

fn points_protobuf(bytes: &[u8]) -> Result<u64, Failure> {
    let request = ExportMetricsServiceRequest::decode(bytes).map_err(|error| invalid("ExportMetricsServiceRequest", &error))?;
    let scopes = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    let points = scopes.flat_map(|scope| &scope.metrics).map(|metric| match &metric.data {
        Some(Data::Gauge(data)) => data.data_points.len(),
        Some(Data::Sum(data)) => data.data_points.len(),
        Some(Data::Histogram(data)) => data.data_points.len(),
        Some(Data::ExponentialHistogram(data)) => data.data_points.len(),
        Some(Data::Summary(data)) => data.data_points.len(),
        None => 0,
    });
    Ok(points.sum::<usize>() as u64)
}

fn records_protobuf(bytes: &[u8]) -> Result<u64, Failure> {
    let request = ExportLogsServiceRequest::decode(bytes).map_err(|error| invalid("ExportLogsServiceRequest", &error))?;
    let scopes = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
    Ok(scopes.map(|scope| scope.log_records.len()).sum::<usize>() as u64)
}

fn points_json(bytes: &[u8]) -> Result<u64, Failure> {
    const SHAPES: [&str; 5] = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"];
    let request: Value = serde_json::from_slice(bytes).map_err(|error| invalid("JSON", &error))?;
    let metrics = items(&request, "resourceMetrics")
        .flat_map(|resource| items(resource, "scopeMetrics"))
        .flat_map(|scope| items(scope, "metrics"));
    let points = metrics.flat_map(|metric| SHAPES.iter().filter_map(move |shape| metric.get(shape)));
    Ok(points.flat_map(|data| items(data, "dataPoints")).count() as u64)
}

fn records_json(bytes: &[u8]) -> Result<u64, Failure> {
    let request: Value = serde_json::from_slice(bytes).map_err(|error| invalid("JSON", &error))?;
    let scopes = items(&request, "resourceLogs").flat_map(|resource| items(resource, "scopeLogs"));
    Ok(scopes.flat_map(|scope| items(scope, "logRecords")).count() as u64)
}

fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_points_of_every_shape_are_counted() {
        let body = br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
            {"name":"a","gauge":{"dataPoints":[{},{}]}},{"name":"b","sum":{"dataPoints":[{}]}},{"name":"c"}]}]}]}"#;
        assert_eq!(points_json(body), Ok(3));
        assert_eq!(points_json(b"{}"), Ok(0));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        assert!(records_json(b"[").is_err());
        assert!(records_protobuf(&[0xff]).is_err());
    }
}
