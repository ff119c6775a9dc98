//! The payload: OpenTelemetry's `ProcessContext` message.

use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use spanflame_model::{Attributes, Value};

use super::ProcessContext;
use crate::Error;

/// No published crate carries it: `opentelemetry-proto` 0.33 has every message but this one.
#[derive(Clone, PartialEq, Message)]
struct ProcessContextMessage {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    attributes: Vec<KeyValue>,
}

pub(super) fn encode(context: &ProcessContext) -> Vec<u8> {
    let resource = Resource {
        attributes: key_values(&context.resource),
        ..Resource::default()
    };
    let message = ProcessContextMessage {
        resource: Some(resource),
        attributes: key_values(&context.attributes),
    };
    message.encode_to_vec()
}

/// Nesting is bounded by prost's own limit of 100 messages.
pub(super) fn decode(payload: &[u8]) -> Result<ProcessContext, Error> {
    let message = ProcessContextMessage::decode(payload).map_err(|source| Error::Payload { source })?;
    Ok(ProcessContext {
        resource: attributes(message.resource.unwrap_or_default().attributes),
        attributes: attributes(message.attributes),
    })
}

fn key_values(attributes: &Attributes) -> Vec<KeyValue> {
    attributes.iter().map(|(key, value)| key_value(key, value)).collect()
}

fn key_value(key: &str, value: &Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(any_value(value)),
        ..KeyValue::default()
    }
}

fn any_value(value: &Value) -> AnyValue {
    use any_value::Value as Wire;
    let wire = match value {
        Value::Str(text) => Wire::StringValue(text.clone()),
        Value::Int(number) => Wire::IntValue(*number),
        Value::Double(number) => Wire::DoubleValue(*number),
        Value::Bool(value) => Wire::BoolValue(*value),
        Value::Bytes(bytes) => Wire::BytesValue(bytes.clone()),
        Value::Array(values) => Wire::ArrayValue(ArrayValue {
            values: values.iter().map(any_value).collect(),
        }),
        Value::Map(pairs) => Wire::KvlistValue(KeyValueList {
            values: pairs.iter().map(|(key, value)| key_value(key, value)).collect(),
        }),
    };
    AnyValue { value: Some(wire) }
}

fn attributes(pairs: Vec<KeyValue>) -> Attributes {
    pairs.into_iter().filter_map(|pair| Some((pair.key, value(pair.value?)?))).collect()
}

/// `None` for an empty value, and for a reference into a table that this message does not have.
fn value(any: AnyValue) -> Option<Value> {
    use any_value::Value as Wire;
    Some(match any.value? {
        Wire::StringValue(text) => Value::Str(text),
        Wire::IntValue(number) => Value::Int(number),
        Wire::DoubleValue(number) => Value::Double(number),
        Wire::BoolValue(value) => Value::Bool(value),
        Wire::BytesValue(bytes) => Value::Bytes(bytes),
        Wire::ArrayValue(array) => Value::Array(array.values.into_iter().filter_map(value).collect()),
        Wire::KvlistValue(list) => Value::Map(list.values.into_iter().filter_map(|kv| Some((kv.key, value(kv.value?)?))).collect()),
        Wire::StringValueStrindex(_) => return None,
    })
}
