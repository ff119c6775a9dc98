//! Whose data it is.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A tenant's name: the value of the header `X-Scope-OrgID`.
///
/// Letters, digits and `-_.!*'()`, 1 to 150 bytes; never `.` or `..`, because names become folders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// Longest name in bytes.
    pub const LEN_MAX: usize = 150;

    /// The tenant of requests that name none.
    pub fn anonymous() -> Tenant {
        Tenant("anonymous".into())
    }

    /// The reserved tenant that holds the server's own traces and profiles.
    pub fn own() -> Tenant {
        Tenant("spanflame".into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Tenant {
    type Err = InvalidTenant;

    fn from_str(text: &str) -> Result<Tenant, InvalidTenant> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.!*'()".contains(&b);
        let valid = (1..=Tenant::LEN_MAX).contains(&text.len()) && text != "." && text != ".." && text.bytes().all(allowed);
        if valid {
            Ok(Tenant(text.into()))
        } else {
            Err(InvalidTenant {
                value: text.chars().take(160).collect(),
            })
        }
    }
}

/// Text that is no tenant name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tenant is {value:?}, expected 1 to 150 letters, digits or -_.!*'(), and not . or ..")]
pub struct InvalidTenant {
    value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_paths_are_refused() {
        for bad in ["", ".", "..", "a/b", "a b", "\u{e9}", &"x".repeat(151)] {
            assert!(bad.parse::<Tenant>().is_err(), "{bad:?}");
        }
        assert_eq!("team-a.(1)".parse::<Tenant>().expect("valid").as_str(), "team-a.(1)");
    }
}
