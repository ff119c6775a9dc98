//! The labels that belong to a recording of the Pyroscope agent: what the numbers in its events mean.
//!
//! ```text
//! Snapshot { contexts = 1 map<context id, Context { labels = 1 map<string id, string id> }>, strings = 2 map<string id, string> }
//! ```

use std::collections::HashMap;

use spanflame_model::Label;

use crate::compression::{Encoding, decompress};
use crate::rejects::cut;
use crate::wire::{Reader, Wire, WireError};
use crate::{Error, Limits};

/// Most labels of one context, contexts, and strings; longest string in bytes.
const LABELS_MAX: usize = 128;
const CONTEXTS_MAX: usize = 1 << 18;
const STRINGS_MAX: usize = 1 << 18;
const STRING_BYTES_MAX: usize = 4096;

/// What numbers in events mean.
#[derive(Debug, Default)]
pub(super) struct Labels {
    contexts: HashMap<i64, Vec<(i64, i64)>>,
    strings: HashMap<i64, String>,
}

impl Labels {
    /// Reads the file, compressed or not; an empty one says nothing.
    pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Labels, Error> {
        let bytes = decompress(Encoding::detect(bytes), bytes, limits.decoded_bytes_max)?;
        Labels::parse(&bytes).map_err(|error| Error::malformed("file of labels", error))
    }

    fn parse(bytes: &[u8]) -> Result<Labels, WireError> {
        let mut labels = Labels::default();
        let mut fields = Reader::new(bytes);
        while let Some((field, wire)) = fields.next()? {
            match field {
                1 if labels.contexts.len() < CONTEXTS_MAX => {
                    let (id, context) = entry(wire.bytes(field)?)?;
                    labels.contexts.insert(id, pairs(context)?);
                }
                2 if labels.strings.len() < STRINGS_MAX => {
                    let (id, text) = entry(wire.bytes(field)?)?;
                    let mut text = String::from_utf8_lossy(&text[..text.len().min(STRING_BYTES_MAX)]).into_owned();
                    cut(&mut text, STRING_BYTES_MAX);
                    labels.strings.insert(id, text);
                }
                _ => {}
            }
        }
        Ok(labels)
    }

    /// The text of a number.
    pub(super) fn string(&self, id: i64) -> Option<&str> {
        self.strings.get(&id).map(String::as_str)
    }

    /// The labels of a context, in no order.
    pub(super) fn context(&self, id: i64) -> impl Iterator<Item = Label> {
        let pairs = self.contexts.get(&id).into_iter().flatten();
        pairs.filter_map(|(key, value)| {
            let (key, value) = (self.string(*key)?, self.string(*value)?);
            (!key.is_empty()).then(|| Label {
                key: key.to_owned(),
                value: value.into(),
                unit: String::new(),
            })
        })
    }
}

/// Key and value of an entry of a map whose values are bytes.
fn entry(bytes: &[u8]) -> Result<(i64, &[u8]), WireError> {
    let (mut key, mut value) = (0, &[][..]);
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        match field {
            1 => key = wire.number(field)? as i64,
            2 => value = wire.bytes(field)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// The entries of a context's map of numbers.
fn pairs(bytes: &[u8]) -> Result<Vec<(i64, i64)>, WireError> {
    let mut pairs = Vec::new();
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        if field != 1 || pairs.len() == LABELS_MAX {
            continue;
        }
        let (mut key, mut value) = (0, 0);
        let mut entry = Reader::new(wire.bytes(field)?);
        while let Some((field, wire)) = entry.next()? {
            match (field, wire) {
                (1, Wire::Varint(number)) => key = number as i64,
                (2, Wire::Varint(number)) => value = number as i64,
                _ => {}
            }
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_name_strings_by_number() {
        let strings = [&b"\x12\x07\x08\x01\x12\x03key"[..], b"\x12\x09\x08\x02\x12\x05value"].concat();
        let context = b"\x0a\x0a\x08\x07\x12\x06\x0a\x04\x08\x01\x10\x02";
        let labels = Labels::read(&[&strings[..], context].concat(), &Limits::default()).expect("valid");
        assert_eq!(labels.string(2), Some("value"));
        let found: Vec<Label> = labels.context(7).collect();
        assert_eq!(
            (found.len(), found[0].key.as_str(), found[0].value.as_str()),
            (1, "key", Some("value"))
        );
        assert_eq!(labels.context(8).count(), 0);
    }
}
