//! Values of the model as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use spanflame_model::{Attributes, Timestamp, Value};

/// Integers beyond this lose digits in JavaScript, so they are written as strings.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// A time as a string of nanoseconds since the epoch.
pub(crate) fn time(time: Timestamp) -> String {
    time.unix_nanos().to_string()
}

/// `None` for empty text, which means unknown.
pub(crate) fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Attributes as an object in order of key.
pub(crate) struct Object<'a>(pub(crate) &'a Attributes);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0.iter() {
            map.serialize_entry(key, &Plain(value))?;
        }
        map.end()
    }
}

/// A value as JSON text.
pub(crate) fn json_of(value: &Value) -> String {
    // Keys are strings and there are no floats that JSON lacks.
    serde_json::to_string(&Plain(value)).unwrap_or_default()
}

/// A value: bytes as base64, integers that JavaScript cannot hold and numbers that JSON lacks as strings.
struct Plain<'a>(&'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Str(text) => serializer.serialize_str(text),
            Value::Int(number) if number.unsigned_abs() > SAFE_INTEGER_MAX => serializer.collect_str(number),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Double(number) if !number.is_finite() => serializer.collect_str(number),
            Value::Double(number) => serializer.serialize_f64(*number),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Bytes(bytes) => serializer.serialize_str(&STANDARD.encode(bytes)),
            Value::Array(values) => serializer.collect_seq(values.iter().map(Plain)),
            Value::Map(pairs) => serializer.collect_map(pairs.iter().map(|(key, value)| (key, Plain(value)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_json() {
        let attributes = Attributes::from(vec![
            ("a".to_owned(), Value::Int(1 << 53)),
            ("b".to_owned(), Value::Int(-5)),
            ("c".to_owned(), Value::Double(f64::NAN)),
            ("d".to_owned(), Value::Bytes(vec![1, 2])),
            (
                "e".to_owned(),
                Value::Array(vec![Value::Bool(true), Value::Map(vec![("k".to_owned(), Value::Double(0.5))])]),
            ),
        ]);
        let text = serde_json::to_string(&Object(&attributes)).expect("JSON");
        assert_eq!(text, r#"{"a":"9007199254740992","b":-5,"c":"NaN","d":"AQI=","e":[true,{"k":0.5}]}"#);
    }
}
