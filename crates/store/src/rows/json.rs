//! Attribute values as JSON, without loss.
//!
//! Text, integers, booleans, arrays and maps are what they look like; doubles always carry a point or an
//! exponent. What JSON cannot say is an object with one key that begins with `$`: `{"$bytes": base64}`,
//! `{"$double": bits in hex}` for infinities and NaN. A map whose first key begins with `$` is written as
//! `{"$map": [key, value, key, value, ...]}`. Maps keep the order and the repeated keys of their sender.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use spanflame_model::{Attributes, Value};

use super::Unreadable;
use crate::Error;

/// How deeply values may nest: the JSON reader stops at 128, and a map may take two levels.
const VALUE_DEPTH_MAX: usize = 56;

/// Writes a document whose values were not checked yet.
pub(super) fn write(document: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(document).map_err(|error| Error::Invalid {
        message: error.to_string(),
    })
}

/// Reads what [`write`] wrote.
pub(super) fn read<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|error| Unreadable::new(format!("column {column} holds unexpected JSON: {error}")))
}

/// Attributes as a JSON object, written.
pub(super) struct JsonAttributes<'a>(pub(super) &'a Attributes);

impl Serialize for JsonAttributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0.iter() {
            map.serialize_entry(key, &JsonValue { value, depth: 0 })?;
        }
        map.end()
    }
}

/// Attributes as a JSON object, read.
#[derive(Default)]
pub(super) struct OwnedAttributes(pub(super) Attributes);

impl<'de> Deserialize<'de> for OwnedAttributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OwnedAttributes, D::Error> {
        struct AttributesVisitor;
        impl<'de> Visitor<'de> for AttributesVisitor {
            type Value = OwnedAttributes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of attributes")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OwnedAttributes, A::Error> {
                let mut pairs: Vec<(String, Value)> = Vec::new();
                while let Some((key, OwnedValue(value))) = map.next_entry()? {
                    pairs.push((key, value));
                }
                Ok(OwnedAttributes(Attributes::from(pairs)))
            }
        }
        deserializer.deserialize_map(AttributesVisitor)
    }
}

/// A value, written.
pub(super) struct JsonValue<'a> {
    pub(super) value: &'a Value,
    /// How many values hold this one.
    pub(super) depth: usize,
}

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.depth > VALUE_DEPTH_MAX {
            return Err(S::Error::custom(format!(
                "an attribute value nests deeper than {VALUE_DEPTH_MAX} levels"
            )));
        }
        let depth = self.depth + 1;
        match self.value {
            Value::Str(text) => serializer.serialize_str(text),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Double(number) if number.is_finite() => serializer.serialize_f64(*number),
            Value::Double(number) => tagged(serializer, "$double", &format!("{:x}", number.to_bits())),
            Value::Bytes(bytes) => tagged(serializer, "$bytes", &STANDARD.encode(bytes)),
            Value::Array(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&JsonValue { value, depth })?;
                }
                list.end()
            }
            Value::Map(pairs) if pairs.first().is_some_and(|(key, _)| key.starts_with('$')) => {
                tagged(serializer, "$map", &FlatPairs { pairs, depth })
            }
            Value::Map(pairs) => {
                let mut map = serializer.serialize_map(Some(pairs.len()))?;
                for (key, value) in pairs {
                    map.serialize_entry(key, &JsonValue { value, depth })?;
                }
                map.end()
            }
        }
    }
}

fn tagged<S: Serializer>(serializer: S, tag: &str, content: &impl Serialize) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(tag, content)?;
    map.end()
}

struct FlatPairs<'a> {
    pairs: &'a [(String, Value)],
    depth: usize,
}

impl Serialize for FlatPairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.pairs.len() * 2))?;
        for (key, value) in self.pairs {
            let depth = self.depth;
            list.serialize_element(key)?;
            list.serialize_element(&JsonValue { value, depth })?;
        }
        list.end()
    }
}

/// A value, read.
pub(super) struct OwnedValue(pub(super) Value);

impl<'de> Deserialize<'de> for OwnedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OwnedValue, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(OwnedValue)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an attribute value")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Str(text.to_owned()))
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::Str(text))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        i64::try_from(number).map(Value::Int).map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Double(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(OwnedValue(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut pairs: Vec<(String, Value)> = Vec::new();
        while let Some((key, OwnedValue(value))) = map.next_entry::<String, OwnedValue>()? {
            pairs.push((key, value));
        }
        match &mut pairs[..] {
            [(tag, content)] if tag.starts_with('$') => {
                let content = std::mem::replace(content, Value::Bool(false));
                untagged(tag, content).ok_or_else(|| A::Error::custom(format!("unexpected tag {tag:?}")))
            }
            _ => Ok(Value::Map(pairs)),
        }
    }
}

fn untagged(tag: &str, content: Value) -> Option<Value> {
    match (tag, content) {
        ("$bytes", Value::Str(text)) => STANDARD.decode(text).ok().map(Value::Bytes),
        ("$double", Value::Str(text)) => u64::from_str_radix(&text, 16).ok().map(|bits| Value::Double(f64::from_bits(bits))),
        ("$map", Value::Array(flat)) => {
            let mut pairs = Vec::with_capacity(flat.len() / 2);
            let mut flat = flat.into_iter();
            while let Some(key) = flat.next() {
                match (key, flat.next()) {
                    (Value::Str(key), Some(value)) => pairs.push((key, value)),
                    _ => return None,
                }
            }
            Some(Value::Map(pairs))
        }
        _ => None,
    }
}

/// A span attribute as plain text for the map column, with the letter of its kind: `s`tring, `i`nteger,
/// `d`ouble, `b`oolean, b`y`tes in base64, `j`SON for arrays and maps.
pub(crate) fn attribute_text(value: &Value) -> Result<(std::borrow::Cow<'_, str>, u8), Error> {
    use std::borrow::Cow::{Borrowed, Owned};
    Ok(match value {
        Value::Str(text) => (Borrowed(text.as_str()), b's'),
        Value::Int(number) => (Owned(number.to_string()), b'i'),
        Value::Double(number) => (Owned(format!("{number:?}")), b'd'),
        Value::Bool(value) => (Borrowed(if *value { "true" } else { "false" }), b'b'),
        Value::Bytes(bytes) => (Owned(STANDARD.encode(bytes)), b'y'),
        Value::Array(_) | Value::Map(_) => (Owned(write(&JsonValue { value, depth: 0 })?), b'j'),
    })
}

/// What [`attribute_text`] wrote; `None` if it did not.
pub(super) fn attribute_value(text: &str, letter: u8) -> Option<Value> {
    match letter {
        b's' => Some(Value::Str(text.to_owned())),
        b'i' => text.parse().ok().map(Value::Int),
        b'd' => text.parse().ok().map(Value::Double),
        b'b' => text.parse().ok().map(Value::Bool),
        b'y' => STANDARD.decode(text).ok().map(Value::Bytes),
        b'j' => serde_json::from_str(text).ok().map(|OwnedValue(value)| value),
        _ => None,
    }
}

/// Which texts of the map column may be the value that a condition asks for. Numbers compare across integers
/// and doubles, and a list may hold the value; text that reads the same is left to the caller to tell apart.
pub(crate) struct WantedText {
    text: String,
    number: Option<f64>,
}

impl WantedText {
    /// Texts that may be `value`.
    pub(crate) fn of(value: &Value) -> WantedText {
        WantedText {
            // A value that has no text is in no row.
            text: attribute_text(value).map(|(text, _)| text.into_owned()).unwrap_or_default(),
            number: match value {
                Value::Int(number) => Some(*number as f64),
                Value::Double(number) => Some(*number),
                _ => None,
            },
        }
    }

    /// Whether a value with this text may be it.
    pub(crate) fn may_be(&self, text: &str) -> bool {
        text == self.text || text.starts_with('[') || self.number.is_some_and(|number| text.parse() == Ok(number))
    }
}

/// The text of one attribute of a resource in JSON, as the map column of a span would hold it.
pub(crate) fn resource_attribute(json: &str, key: &str) -> Result<Option<String>, Unreadable> {
    let OwnedAttributes(attributes) = read("resource", json)?;
    let text = |value| attribute_text(value).map(|(text, _)| text.into_owned());
    attributes
        .get(key)
        .map(text)
        .transpose()
        .map_err(|error| Unreadable::new(error.to_string()))
}
