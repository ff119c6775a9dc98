//! Parts of a span that a hostile text could make endless, and numbers and texts as clients really write them.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Items of a list, entries of a map; what comes after these is passed over. One more than spans may keep, so that their
/// decoder counts the excess.
const ITEMS_MAX: usize = 1025;

/// A list, up to its limit.
pub(super) struct List<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<T>, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<List<T>, A::Error> {
                let mut kept = Vec::new();
                while kept.len() < ITEMS_MAX {
                    match items.next_element()? {
                        Some(item) => kept.push(item),
                        None => return Ok(List(kept)),
                    }
                }
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(List(kept))
            }
        }

        deserializer.deserialize_seq(Items(PhantomData))
    }
}

/// Tags, up to their limit. Zipkin has texts only; numbers and booleans are taken as such, everything else is not.
pub(super) struct Tags(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tags, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Tags;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tags, A::Error> {
                let mut kept = Vec::new();
                while kept.len() < ITEMS_MAX {
                    match entries.next_entry::<String, Scalar>()? {
                        Some((key, Scalar(Some(value)))) => kept.push((key, value)),
                        Some(_) => {}
                        None => return Ok(Tags(kept)),
                    }
                }
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Tags(kept))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// The text of a text, number or boolean.
struct Scalar(Option<String>);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(Some(text.to_owned())))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(Some(value.to_string())))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(Some(number.to_string())))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(Some(number.to_string())))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(Some(number.to_string())))
            }

            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Scalar, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Scalar, A::Error> {
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar(None))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// Microseconds, written as a whole number, a fraction, or a text of one.
pub(super) struct Micros(f64, Option<u64>);

impl Micros {
    /// Too many, fewer than none and no number are the latest time there is, which is then refused.
    pub(super) fn nanos(&self) -> u64 {
        match self.1 {
            Some(whole) => whole.saturating_mul(1000),
            None if self.0 >= 0.0 => (self.0 * 1000.0) as u64,
            None => u64::MAX,
        }
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Micros, D::Error> {
        let Scalar(text) = Scalar::deserialize(deserializer)?;
        let text = text.unwrap_or_default();
        match (text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(whole), _) => Ok(Micros(0.0, Some(whole))),
            (_, Ok(fraction)) => Ok(Micros(fraction, None)),
            _ => Err(serde::de::Error::custom("a time is no number of microseconds")),
        }
    }
}
