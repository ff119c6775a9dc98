//! How single values are spelled.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use opentelemetry_proto::tonic::common::v1 as wire;
use opentelemetry_proto::tonic::resource::v1::Resource as WireResource;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// Absent or null is the default.
pub(super) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(d: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(d)?.unwrap_or_default())
}

/// A number that may be spelled as a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number<T>(pub(super) T);

struct NumberVisitor<T>(PhantomData<T>);

impl<'de, T: FromStr + TryFrom<i64> + TryFrom<u64>> Visitor<'de> for NumberVisitor<T> {
    type Value = Number<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer that fits {} bits, as number or string", 8 * size_of::<T>())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number<T>, E> {
        let wrong = || E::invalid_value(Unexpected::Signed(number), &self);
        T::try_from(number).map(Number).map_err(|_| wrong())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number<T>, E> {
        let wrong = || E::invalid_value(Unexpected::Unsigned(number), &self);
        T::try_from(number).map(Number).map_err(|_| wrong())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Number<T>, E> {
        // Protobuf's mapping allows 1.0 and 1e9 for integers; beyond 2^53 a double no longer names one integer.
        match number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 {
            true => self.visit_i64(number as i64),
            false => Err(E::invalid_value(Unexpected::Float(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number<T>, E> {
        text.trim()
            .parse()
            .map(Number)
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_unit<E: Error>(self) -> Result<Number<T>, E> {
        self.visit_u64(0)
    }
}

impl<'de, T: FromStr + TryFrom<i64> + TryFrom<u64>> Deserialize<'de> for Number<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Number<T>, D::Error> {
        d.deserialize_any(NumberVisitor(PhantomData))
    }
}

/// A double, which may be spelled as a string: `NaN` and the infinities have no other spelling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Double(pub(super) f64);

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Double, D::Error> {
        struct DoubleVisitor;

        impl Visitor<'_> for DoubleVisitor {
            type Value = Double;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, as number or string")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Double, E> {
                Ok(Double(number))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Double, E> {
                Ok(Double(number as f64))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Double, E> {
                Ok(Double(number as f64))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Double, E> {
                let wrong = |_| E::invalid_value(Unexpected::Str(text), &self);
                text.parse().map(Double).map_err(wrong)
            }
        }

        d.deserialize_any(DoubleVisitor)
    }
}

/// A trace or span id in hex.
///
/// Text that is no hex becomes bytes that are no id, so that only the item at fault is refused, not the request.
#[derive(Clone, Debug, Default)]
pub(super) struct HexId(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for HexId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<HexId, D::Error> {
        struct IdVisitor;

        impl<'de> Visitor<'de> for IdVisitor {
            type Value = HexId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id in hex")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<HexId, E> {
                Ok(HexId(hex::decode(text).unwrap_or_else(|_| not_hex(text.to_owned()))))
            }

            fn visit_unit<E: Error>(self) -> Result<HexId, E> {
                Ok(HexId::default())
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<HexId, E> {
                Ok(HexId(not_hex(number.to_string())))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<HexId, E> {
                Ok(HexId(not_hex(number.to_string())))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<HexId, E> {
                Ok(HexId(not_hex(number.to_string())))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<HexId, E> {
                Ok(HexId(not_hex(value.to_string())))
            }
        }

        d.deserialize_any(IdVisitor)
    }
}

/// An enum of a few names, which may be spelled by its number or, against OTLP's rules for JSON but as some senders do,
/// by its name. A name that is not known is the default, like a number that is not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Named<N>(pub(super) i32, PhantomData<N>);

/// The names of an enum, by number.
pub(super) trait Names: Default {
    const NAMES: &'static [&'static str];
}

impl<'de, N: Names> Deserialize<'de> for Named<N> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Named<N>, D::Error> {
        struct NameVisitor<N>(PhantomData<N>);

        impl<'de, N: Names> Visitor<'de> for NameVisitor<N> {
            type Value = Named<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number or one of {}", N::NAMES.join(", "))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Named<N>, E> {
                Ok(Named(i32::try_from(number).unwrap_or(0), PhantomData))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Named<N>, E> {
                Ok(Named(i32::try_from(number).unwrap_or(0), PhantomData))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Named<N>, E> {
                Ok(Named(number as i32, PhantomData))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Named<N>, E> {
                let known = N::NAMES.iter().position(|name| *name == text);
                let number = known.map(|at| at as i32).or_else(|| text.trim().parse().ok());
                Ok(Named(number.unwrap_or(0), PhantomData))
            }

            fn visit_unit<E: Error>(self) -> Result<Named<N>, E> {
                Ok(Named::default())
            }
        }

        d.deserialize_any(NameVisitor(PhantomData))
    }
}

/// Of a length that no id has, whatever the length of the text.
fn not_hex(text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    if matches!(bytes.len(), 8 | 16) {
        bytes.push(b'?');
    }
    bytes
}

/// Bytes in base64, of either alphabet, padded or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Base64(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Base64, D::Error> {
        let text: Option<String> = Option::deserialize(d)?;
        let text = text.unwrap_or_default();
        let decoded = base64(&text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"base64"))?;
        Ok(Base64(decoded))
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let engines = [STANDARD, URL_SAFE, STANDARD_NO_PAD, URL_SAFE_NO_PAD];
    engines.iter().find_map(|engine| engine.decode(text).ok())
}

/// A profile id: base64 by the specification, hex by the Collector. 32 hex digits would be 24 bytes in
/// base64, which no profile id has, so the two cannot be mistaken for each other.
#[derive(Clone, Debug, Default)]
pub(super) struct ProfileId(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for ProfileId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<ProfileId, D::Error> {
        let text: Option<String> = Option::deserialize(d)?;
        let text = text.unwrap_or_default();
        let id = match text.len() {
            32 => hex::decode(&text).ok(),
            _ => base64(&text),
        };
        Ok(ProfileId(id.unwrap_or_default()))
    }
}

/// A value of an attribute: of the fields, at most one is set.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JsonValue {
    #[serde(alias = "string_value")]
    string_value: Option<String>,
    #[serde(alias = "bool_value")]
    bool_value: Option<bool>,
    #[serde(alias = "int_value")]
    int_value: Option<Number<i64>>,
    #[serde(alias = "double_value")]
    double_value: Option<Double>,
    #[serde(alias = "array_value")]
    array_value: Option<JsonArray>,
    #[serde(alias = "kvlist_value")]
    kvlist_value: Option<JsonMap>,
    #[serde(alias = "bytes_value")]
    bytes_value: Option<Base64>,
    #[serde(alias = "string_value_strindex")]
    string_value_strindex: Option<Number<i32>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct JsonArray {
    #[serde(deserialize_with = "nullable")]
    values: Vec<AnyValue>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct JsonMap {
    #[serde(deserialize_with = "nullable")]
    values: Vec<KeyValue>,
}

/// A value as the protobuf message.
#[derive(Debug, Default)]
pub(super) struct AnyValue(pub(super) wire::AnyValue);

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<AnyValue, D::Error> {
        use wire::any_value::Value;

        let json: Option<JsonValue> = Option::deserialize(d)?;
        let json = json.unwrap_or_default();
        let array = |a: JsonArray| wire::ArrayValue {
            values: a.values.into_iter().map(|v| v.0).collect(),
        };
        let map = |m: JsonMap| wire::KeyValueList {
            values: into_wire(m.values),
        };
        let value = json
            .string_value
            .map(Value::StringValue)
            .or(json.bool_value.map(Value::BoolValue))
            .or(json.int_value.map(|n| Value::IntValue(n.0)))
            .or(json.double_value.map(|n| Value::DoubleValue(n.0)))
            .or(json.array_value.map(|a| Value::ArrayValue(array(a))))
            .or(json.kvlist_value.map(|m| Value::KvlistValue(map(m))))
            .or(json.bytes_value.map(|b| Value::BytesValue(b.0)))
            .or(json.string_value_strindex.map(|n| Value::StringValueStrindex(n.0)));
        Ok(AnyValue(wire::AnyValue { value }))
    }
}

/// An attribute.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct KeyValue {
    #[serde(deserialize_with = "nullable")]
    key: String,
    value: Option<AnyValue>,
    #[serde(alias = "key_strindex", deserialize_with = "nullable")]
    key_strindex: Number<i32>,
}

/// Attributes as protobuf messages.
pub(super) fn into_wire(pairs: Vec<KeyValue>) -> Vec<wire::KeyValue> {
    let pairs = pairs.into_iter().map(|pair| wire::KeyValue {
        key: pair.key,
        value: pair.value.map(|v| v.0),
        key_strindex: pair.key_strindex.0,
    });
    pairs.collect()
}

/// A resource.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Resource {
    #[serde(deserialize_with = "nullable")]
    attributes: Vec<KeyValue>,
}

impl From<Resource> for WireResource {
    fn from(resource: Resource) -> WireResource {
        WireResource {
            attributes: into_wire(resource.attributes),
            ..WireResource::default()
        }
    }
}

/// A scope.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Scope {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    version: String,
    #[serde(deserialize_with = "nullable")]
    attributes: Vec<KeyValue>,
}

impl From<Scope> for wire::InstrumentationScope {
    fn from(scope: Scope) -> wire::InstrumentationScope {
        wire::InstrumentationScope {
            name: scope.name,
            version: scope.version,
            attributes: into_wire(scope.attributes),
            dropped_attributes_count: 0,
        }
    }
}
