//! Content hashes: what makes two spans, profiles, frames or stacks the same.
//!
//! XXH3 with 128 bits for identity and 64 bits for frames and stacks. The values are on disk and on every
//! node, so neither the algorithm nor the order in which fields are fed may change (`docs/adr/0002`).

use xxhash_rust::xxh3::Xxh3;

use crate::{Attributes, Value};

/// 128 bits that identify the content of a span or a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u128);

/// Feeds typed fields into one XXH3 state. Variable-length fields are preceded by their length, so that
/// no two different sequences of fields feed the same bytes.
pub struct Hasher(Xxh3);

impl Default for Hasher {
    fn default() -> Hasher {
        Hasher::new()
    }
}

impl Hasher {
    /// An empty state.
    pub fn new() -> Hasher {
        Hasher(Xxh3::new())
    }

    /// Feeds a number.
    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    /// Feeds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// Feeds text.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Feeds attributes with the kinds of their values.
    pub fn attributes(&mut self, attributes: &Attributes) {
        self.number(attributes.len() as u64);
        for (key, value) in attributes.iter() {
            self.text(key);
            self.value(value);
        }
    }

    /// Feeds a value with its kind.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Str(text) => {
                self.number(1);
                self.text(text);
            }
            Value::Int(number) => {
                self.number(2);
                self.number(*number as u64);
            }
            Value::Double(number) => {
                self.number(3);
                self.number(number.to_bits());
            }
            Value::Bool(value) => self.number(4 + u64::from(*value)),
            Value::Bytes(bytes) => {
                self.number(6);
                self.bytes(bytes);
            }
            Value::Array(values) => {
                self.number(7);
                self.number(values.len() as u64);
                values.iter().for_each(|v| self.value(v));
            }
            Value::Map(pairs) => {
                self.number(8);
                self.number(pairs.len() as u64);
                for (key, value) in pairs {
                    self.text(key);
                    self.value(value);
                }
            }
        }
    }

    /// 128 bits of all that was fed.
    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0.digest128())
    }

    /// 64 bits of all that was fed.
    pub fn finish64(self) -> u64 {
        self.0.digest()
    }
}
