//! OTLP's values and attributes, inline or by reference into a string table.

use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value};
use opentelemetry_proto::tonic::resource::v1 as wire;
use spanflame_model::{Attributes, Resource, Scope, Value};

use crate::rejects::cut;
use crate::{Limits, Reason, Rejects, Subject};

/// Looks up entries of the request's string table. Requests without a table have no strings.
pub(super) type Strings<'a> = &'a dyn Fn(i32) -> Result<String, Reason>;

/// The table of a request that has none: every reference is out of range.
pub(super) fn no_strings(_: i32) -> Result<String, Reason> {
    Err(Reason::IndexOutOfRange)
}

/// Converts attributes, counting what has to be left out.
pub(super) struct AttributeReader<'a> {
    pub(super) limits: &'a Limits,
    pub(super) strings: Strings<'a>,
}

impl AttributeReader<'_> {
    /// All attributes of one item. Answers also how many were beyond the limit.
    pub(super) fn read(&self, pairs: Vec<KeyValue>, rejects: &mut Rejects) -> (Attributes, u32) {
        let excess = pairs.len().saturating_sub(self.limits.attribute_count_max);
        rejects.add_many(Subject::Detail, Reason::TooManyAttributes, excess as u64, || {
            format!(
                "an item has {} attributes, the limit is {}",
                pairs.len(),
                self.limits.attribute_count_max
            )
        });
        let mut kept = Vec::with_capacity(pairs.len() - excess);
        for pair in pairs.into_iter().take(self.limits.attribute_count_max) {
            if let Some((key, value)) = self.pair(pair, 0, rejects) {
                kept.push((key, value));
            }
        }
        (Attributes::from(kept), excess as u32)
    }

    fn pair(&self, pair: KeyValue, depth: usize, rejects: &mut Rejects) -> Option<(String, Value)> {
        let KeyValue {
            mut key,
            value,
            key_strindex,
        } = pair;
        // Index 0 means unset; some senders set both, and then the inline key is the one that every receiver reads.
        if key.is_empty() && key_strindex != 0 {
            key = self.string(key_strindex, rejects)?;
        }
        if key.is_empty() {
            rejects.add(Subject::Detail, Reason::NoKey, || "an attribute has no key".to_owned());
            return None;
        }
        self.bound(&mut key, rejects);
        // A key without a value is a null, which the model does not have: the key is dropped with it.
        let value = self.value(value?, depth, rejects)?;
        Some((key, value))
    }

    /// One value; `None` if it is null, nested too deep, or refers to a string that is not there.
    pub(super) fn value(&self, value: AnyValue, depth: usize, rejects: &mut Rejects) -> Option<Value> {
        let depth_max = self.limits.recursion_max.min(Limits::RECURSION_CEILING);
        if depth > depth_max {
            rejects.add(Subject::Detail, Reason::NestedTooDeep, || {
                format!("an attribute value nests deeper than {depth_max}")
            });
            return None;
        }
        Some(match value.value? {
            any_value::Value::StringValue(mut text) => {
                self.bound(&mut text, rejects);
                Value::Str(text)
            }
            any_value::Value::StringValueStrindex(index) => {
                let mut text = self.string(index, rejects)?;
                self.bound(&mut text, rejects);
                Value::Str(text)
            }
            any_value::Value::BoolValue(value) => Value::Bool(value),
            any_value::Value::IntValue(number) => Value::Int(number),
            any_value::Value::DoubleValue(number) => Value::Double(number),
            any_value::Value::BytesValue(mut bytes) => {
                if bytes.len() > self.limits.attribute_bytes_max {
                    bytes.truncate(self.limits.attribute_bytes_max);
                    self.too_long(rejects);
                }
                Value::Bytes(bytes)
            }
            any_value::Value::ArrayValue(array) => {
                let values = array.values.into_iter().filter_map(|v| self.value(v, depth + 1, rejects));
                Value::Array(values.collect())
            }
            any_value::Value::KvlistValue(list) => {
                let pairs = list.values.into_iter().filter_map(|p| self.pair(p, depth + 1, rejects));
                Value::Map(pairs.collect())
            }
        })
    }

    /// The resource of a request; one without attributes where it is absent.
    pub(super) fn resource(&self, resource: Option<wire::Resource>, rejects: &mut Rejects) -> Attributes {
        self.read(resource.map(|r| r.attributes).unwrap_or_default(), rejects).0
    }

    /// The scope of a request; an empty one where it is absent.
    pub(super) fn scope(&self, scope: Option<InstrumentationScope>, rejects: &mut Rejects) -> Scope {
        let scope = scope.unwrap_or_default();
        let (name, version) = (scope.name, scope.version);
        let attributes = self.read(scope.attributes, rejects).0;
        Scope { name, version, attributes }
    }

    fn string(&self, index: i32, rejects: &mut Rejects) -> Option<String> {
        let found = (self.strings)(index);
        found
            .inspect_err(|reason| {
                rejects.add(Subject::Detail, *reason, || {
                    format!("an attribute refers to string {index}: {reason}")
                })
            })
            .ok()
    }

    fn bound(&self, text: &mut String, rejects: &mut Rejects) {
        if cut(text, self.limits.attribute_bytes_max) {
            self.too_long(rejects);
        }
    }

    fn too_long(&self, rejects: &mut Rejects) {
        rejects.add(Subject::Detail, Reason::AttributeTooLong, || {
            format!("an attribute is longer than {} bytes", self.limits.attribute_bytes_max)
        });
    }
}

/// A value as OTLP writes it, inline.
pub(super) fn any_value(value: &Value) -> AnyValue {
    let value = match value {
        Value::Str(text) => any_value::Value::StringValue(text.clone()),
        Value::Int(number) => any_value::Value::IntValue(*number),
        Value::Double(number) => any_value::Value::DoubleValue(*number),
        Value::Bool(value) => any_value::Value::BoolValue(*value),
        Value::Bytes(bytes) => any_value::Value::BytesValue(bytes.clone()),
        Value::Array(values) => any_value::Value::ArrayValue(ArrayValue {
            values: values.iter().map(any_value).collect(),
        }),
        Value::Map(pairs) => any_value::Value::KvlistValue(KeyValueList {
            values: pairs.iter().map(|(key, value)| key_value(key, value)).collect(),
        }),
    };
    AnyValue { value: Some(value) }
}

/// An attribute as OTLP writes it, inline.
pub(super) fn key_value(key: &str, value: &Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(any_value(value)),
        key_strindex: 0,
    }
}

/// Attributes as OTLP writes them, inline.
pub(super) fn key_values(attributes: &Attributes) -> Vec<KeyValue> {
    attributes.iter().map(|(key, value)| key_value(key, value)).collect()
}

/// A resource as OTLP writes it.
pub(super) fn wire_resource(resource: &Resource) -> wire::Resource {
    wire::Resource {
        attributes: key_values(resource.attributes()),
        ..wire::Resource::default()
    }
}

/// A scope as OTLP writes it; `None` for an empty one.
pub(super) fn wire_scope(scope: &Scope) -> Option<InstrumentationScope> {
    (*scope != Scope::default()).then(|| InstrumentationScope {
        name: scope.name.clone(),
        version: scope.version.clone(),
        attributes: key_values(&scope.attributes),
        dropped_attributes_count: 0,
    })
}
