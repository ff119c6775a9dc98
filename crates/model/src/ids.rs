//! Trace and span ids: W3C byte order, never all zero.

use std::fmt;
use std::str::FromStr;

macro_rules! id {
    ($name:ident, $bytes:literal, $what:literal, $doc:literal) => {
        #[doc = $doc]
        ///
        /// All zero means "none" on every wire format, so such a value cannot be built: absence is `None`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Length in bytes.
            pub const LEN: usize = $bytes;

            /// `None` if `bytes` has another length or is all zero.
            pub fn from_slice(bytes: &[u8]) -> Option<$name> {
                <[u8; $bytes]>::try_from(bytes).ok().and_then($name::from_bytes)
            }

            /// `None` if `bytes` is all zero.
            pub fn from_bytes(bytes: [u8; $bytes]) -> Option<$name> {
                (bytes != [0; $bytes]).then_some($name(bytes))
            }

            /// The id in W3C byte order.
            pub fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Reads hex of either case, with leading zeros left out or not.
            fn from_str(text: &str) -> Result<$name, InvalidId> {
                let invalid = || InvalidId {
                    what: $what,
                    value: text.chars().take(80).collect(),
                    digits: $bytes * 2,
                };
                if text.is_empty() || text.len() > $bytes * 2 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return Err(invalid());
                }
                let number = u128::from_str_radix(text, 16).map_err(|_| invalid())?;
                let wide = number.to_be_bytes();
                $name::from_slice(&wide[16 - $bytes..]).ok_or_else(invalid)
            }
        }
    };
}

id!(TraceId, 16, "trace id", "The id of a trace.");
id!(SpanId, 8, "span id", "The id of a span, unique within its trace.");

impl SpanId {
    /// The id whose big-endian value is `number`; `None` for 0. Datadog and the JFR forks write span ids as numbers.
    pub fn from_u64(number: u64) -> Option<SpanId> {
        SpanId::from_bytes(number.to_be_bytes())
    }
}

/// Text that is no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {value:?}, expected 1 to {digits} hex digits that are not all zero")]
pub struct InvalidId {
    what: &'static str,
    value: String,
    digits: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_trace_ids_are_padded_on_the_left() {
        let id: TraceId = "1f".parse().expect("valid");
        assert_eq!(id.to_string(), "0000000000000000000000000000001f");
    }

    #[test]
    fn zero_is_no_id() {
        assert_eq!(SpanId::from_u64(0), None);
        assert_eq!(TraceId::from_slice(&[0; 16]), None);
        let error = "0000".parse::<SpanId>().expect_err("zero");
        assert_eq!(
            error.to_string(),
            "span id is \"0000\", expected 1 to 16 hex digits that are not all zero"
        );
    }

    #[test]
    fn a_sign_is_no_hex_digit() {
        assert!("+12".parse::<SpanId>().is_err());
        assert!("00000000000000001".parse::<SpanId>().is_err());
    }
}
