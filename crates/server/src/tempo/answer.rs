//! Answers on the wire: one message for each question, written as JSON, as protobuf, or as gRPC frames.
//!
//! JSON is protobuf's mapping as Tempo writes it: 64-bit numbers are strings, defaults are left out, and there is no
//! field that Tempo does not have, because Grafana's decoder refuses unknown ones.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use prost::Message;
use serde_json::{Map, Value as Json, json};
use spanflame_model::Value;
use spanflame_proto::tempo as wire;

use crate::grpc;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Json,
    Protobuf,
    Grpc,
}

/// Frames of a stream stay below this, well under the 4 MiB that gRPC clients take by default.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// What every question has in common.
pub(super) trait Answer: Message + Default + Sized {
    /// The answer as protobuf's JSON.
    fn json(&self) -> Json;

    /// The answer in parts that a client adds up, each below [`FRAME_BYTES_MAX`] where it can be split.
    fn parts(self) -> Vec<Self> {
        vec![self]
    }
}

impl Wire {
    /// What the client accepts; JSON unless it asks for protobuf.
    pub(super) fn of(headers: &HeaderMap) -> Wire {
        let accept = headers.get(header::ACCEPT).map_or(&b""[..], HeaderValue::as_bytes);
        let names = |name: &str| accept.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name.as_bytes()));
        match names("application/protobuf") || names("application/x-protobuf") {
            true => Wire::Protobuf,
            false => Wire::Json,
        }
    }

    /// The response that carries an answer.
    pub(super) fn write(self, answer: impl Answer) -> Response {
        match self {
            Wire::Json => json_response(answer.json().to_string()),
            Wire::Protobuf => protobuf(answer.encode_to_vec()),
            Wire::Grpc => grpc::success(answer.parts().iter().map(Message::encode_to_vec)),
        }
    }
}

/// Text that is JSON already.
pub(super) fn json_response(text: String) -> Response {
    typed(text, HeaderValue::from_static("application/json"))
}

/// An encoded message.
pub(super) fn protobuf(bytes: Vec<u8>) -> Response {
    typed(bytes, HeaderValue::from_static("application/protobuf"))
}

fn typed(body: impl Into<Body>, content_type: HeaderValue) -> Response {
    ([(header::CONTENT_TYPE, content_type)], body.into()).into_response()
}

/// An attribute as Tempo writes it.
pub(super) fn attribute(key: &str, value: &Value) -> wire::KeyValue {
    wire::KeyValue {
        key: key.to_owned(),
        value: Some(any_value(value)),
    }
}

fn any_value(value: &Value) -> wire::AnyValue {
    use wire::any_value::Value as Any;
    let value = match value {
        Value::Str(text) => Any::StringValue(text.clone()),
        Value::Bool(value) => Any::BoolValue(*value),
        Value::Int(number) => Any::IntValue(*number),
        Value::Double(number) => Any::DoubleValue(*number),
        Value::Bytes(bytes) => Any::BytesValue(bytes.clone()),
        Value::Array(values) => Any::ArrayValue(wire::ArrayValue {
            values: values.iter().map(any_value).collect(),
        }),
        Value::Map(pairs) => Any::KvlistValue(wire::KeyValueList {
            values: pairs.iter().map(|(key, value)| attribute(key, value)).collect(),
        }),
    };
    wire::AnyValue { value: Some(value) }
}

/// A JSON object without what is default.
pub(super) struct Object(Map<String, Json>);

impl Object {
    pub(super) fn new() -> Object {
        Object(Map::new())
    }

    /// Adds a field unless its value is the default: zero, "", an empty list or object.
    pub(super) fn with(mut self, name: &str, value: impl Into<Json>) -> Object {
        let value = value.into();
        let is_default = match &value {
            Json::Null => true,
            Json::Bool(value) => !value,
            Json::Number(number) => number.as_f64() == Some(0.0),
            Json::String(text) => text.is_empty(),
            Json::Array(values) => values.is_empty(),
            Json::Object(fields) => fields.is_empty(),
        };
        if !is_default {
            self.0.insert(name.to_owned(), value);
        }
        self
    }

    /// Adds a field whatever its value.
    pub(super) fn always(mut self, name: &str, value: impl Into<Json>) -> Object {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a 64-bit number as a string, unless it is zero.
    pub(super) fn long(self, name: &str, number: u64) -> Object {
        match number {
            0 => self,
            number => self.with(name, number.to_string()),
        }
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Json {
        Json::Object(object.0)
    }
}

/// A list of messages.
pub(super) fn list<T>(items: &[T], one: impl Fn(&T) -> Json) -> Json {
    Json::Array(items.iter().map(one).collect())
}

/// Attributes or labels.
pub(super) fn key_values(pairs: &[wire::KeyValue]) -> Json {
    list(pairs, |pair| {
        let value = pair.value.as_ref().map_or(json!({}), any_json);
        json!({ "key": pair.key, "value": value })
    })
}

fn any_json(value: &wire::AnyValue) -> Json {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use wire::any_value::Value as Any;
    match &value.value {
        None => json!({}),
        Some(Any::StringValue(text)) => json!({ "stringValue": text }),
        Some(Any::BoolValue(value)) => json!({ "boolValue": value }),
        Some(Any::IntValue(number)) => json!({ "intValue": number.to_string() }),
        Some(Any::DoubleValue(number)) => json!({ "doubleValue": double(*number) }),
        Some(Any::ArrayValue(array)) => json!({ "arrayValue": { "values": list(&array.values, any_json) } }),
        Some(Any::KvlistValue(pairs)) => json!({ "kvlistValue": { "values": key_values(&pairs.values) } }),
        Some(Any::BytesValue(bytes)) => json!({ "bytesValue": STANDARD.encode(bytes) }),
    }
}

/// A double; what JSON has no number for is a word.
pub(super) fn double(number: f64) -> Json {
    match number {
        number if number.is_finite() => json!(number),
        number if number.is_nan() => json!("NaN"),
        number if number > 0.0 => json!("Infinity"),
        _ => json!("-Infinity"),
    }
}

/// What is read for an answer, in Tempo's words.
pub(super) fn search_metrics(metrics: &Option<wire::SearchMetrics>) -> Json {
    let Some(metrics) = metrics else {
        return json!({});
    };
    Object::new()
        .with("inspectedTraces", metrics.inspected_traces)
        .long("inspectedBytes", metrics.inspected_bytes)
        .with("totalBlocks", metrics.total_blocks)
        .with("completedJobs", metrics.completed_jobs)
        .with("totalJobs", metrics.total_jobs)
        .long("totalBlockBytes", metrics.total_block_bytes)
        .into()
}

/// Cuts a list into runs whose messages stay below [`FRAME_BYTES_MAX`]; one that is larger is a run of its own.
pub(super) fn runs<T: Message>(items: Vec<T>) -> Vec<Vec<T>> {
    let mut runs: Vec<Vec<T>> = Vec::new();
    let mut bytes = FRAME_BYTES_MAX;
    for item in items {
        let size = item.encoded_len();
        if bytes + size >= FRAME_BYTES_MAX {
            runs.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(run) = runs.last_mut() {
            run.push(item);
        }
    }
    runs
}
