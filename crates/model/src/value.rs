//! Attribute values and sorted attribute sets.

use std::collections::BTreeMap;

/// A value of an attribute, as OpenTelemetry's `AnyValue` has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// UTF-8 text.
    Str(String),
    /// A signed integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A boolean.
    Bool(bool),
    /// Raw bytes.
    Bytes(Vec<u8>),
    /// Values in the sender's order.
    Array(Vec<Value>),
    /// Named values in the sender's order.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The text of a string value; `None` for every other kind.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The number of an integer value, or of a string that is one in decimal.
    pub fn to_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Str(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Str(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Str(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Double(number)
    }
}

/// Attributes sorted by key, each key once.
///
/// Where a sender repeats a key, the last value wins, as OpenTelemetry's SDKs do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(Vec<(String, Value)>);

impl Attributes {
    /// No attributes.
    pub const fn new() -> Attributes {
        Attributes(Vec::new())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let at = self.0.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// The text of `key`, if it is a string.
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }

    /// Sets `key`, replacing what it had.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        let (key, value) = (key.into(), value.into());
        match self.0.binary_search_by(|(k, _)| k.as_str().cmp(&key)) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Takes `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Pairs in order of key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }
}

impl From<Vec<(String, Value)>> for Attributes {
    fn from(mut pairs: Vec<(String, Value)>) -> Attributes {
        if pairs.is_sorted_by(|a, b| a.0 < b.0) {
            return Attributes(pairs);
        }
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        if pairs.is_sorted_by(|a, b| a.0 < b.0) {
            return Attributes(pairs);
        }
        // The sort is stable, so of equal keys the last one sent is the last one here.
        let mut unique: Vec<(String, Value)> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            match unique.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => unique.push(pair),
            }
        }
        Attributes(unique)
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Attributes {
        Attributes::from(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect::<Vec<_>>())
    }
}

impl IntoIterator for Attributes {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<BTreeMap<String, Value>> for Attributes {
    fn from(map: BTreeMap<String, Value>) -> Attributes {
        Attributes(map.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_keys_wins() {
        let attributes: Attributes = [("b", 1), ("a", 2), ("b", 3)].map(|(k, v)| (k, i64::from(v))).into_iter().collect();
        assert_eq!(attributes.len(), 2);
        assert_eq!(attributes.get("b"), Some(&Value::Int(3)));
        assert_eq!(attributes.iter().map(|(k, _)| k).collect::<Vec<_>>(), ["a", "b"]);
    }
}
