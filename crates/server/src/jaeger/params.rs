//! Query parameters as Jaeger reads them: several names for one thing, unknown ones passed over.

use spanflame_model::{TimeRange, Timestamp};
use url::form_urlencoded;

use crate::failure::Failure;
use crate::notation;

/// How far back a search looks that does not say, as Jaeger does.
const LOOKBACK_NS: u64 = 2 * 86_400 * 1_000_000_000;

/// Longest query string in bytes.
const QUERY_BYTES_MAX: usize = 256 << 10;

/// The parameters of one request.
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// Decodes a query string. Empty values count as absent.
    pub(super) fn parse(query: Option<&str>) -> Result<Params, Failure> {
        let query = query.unwrap_or_default();
        if query.len() > QUERY_BYTES_MAX {
            let message = format!("the query string has {} bytes, expected at most {QUERY_BYTES_MAX}", query.len());
            return Err(Failure::invalid("query", message));
        }
        let pairs = form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty());
        Ok(Params(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()))
    }

    /// The first value of any of these names, with the name that was used.
    pub(super) fn named(&self, names: &[&str]) -> Option<(&str, &str)> {
        let is_named = |name: &str| names.contains(&name);
        let found = self.0.iter().find(|(name, _)| is_named(name));
        found.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of any of these names.
    pub(super) fn text(&self, names: &[&str]) -> Option<&str> {
        self.named(names).map(|(_, value)| value)
    }

    /// Every value of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// A whole number of at least 1.
    pub(super) fn count(&self, names: &[&str]) -> Result<Option<usize>, Failure> {
        self.read(names, "a whole number from 1 on", |text| {
            text.parse().ok().filter(|count| *count > 0)
        })
    }

    /// A duration in nanoseconds.
    pub(super) fn duration_ns(&self, names: &[&str]) -> Result<Option<u64>, Failure> {
        self.read(names, "a duration such as 1.2s or 100ms", notation::duration_ns)
    }

    /// A time by its magnitude or in RFC 3339.
    pub(super) fn time(&self, names: &[&str]) -> Result<Option<Timestamp>, Failure> {
        self.read(names, "microseconds since the Unix epoch or RFC 3339", notation::time)
    }

    /// The time between two parameters, by default the last two days.
    pub(super) fn range(&self, start: &[&str], end: &[&str], now: Timestamp) -> Result<TimeRange, Failure> {
        let end = self.time(end)?.unwrap_or(now);
        let start = self.time(start)?.unwrap_or_else(|| end.saturating_sub(LOOKBACK_NS));
        // Both ends are inside, and the end may be rounded down to a microsecond.
        let range = TimeRange::new(start, end.saturating_add(1_000));
        range.ok_or_else(|| Failure::invalid("start", format!("start is {start} and end {end}, expected start before end")))
    }

    pub(super) fn read<T>(&self, names: &[&str], expected: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Failure> {
        let Some((name, text)) = self.named(names) else {
            return Ok(None);
        };
        read(text).map(Some).ok_or_else(|| {
            let text: String = text.chars().take(200).collect();
            Failure::invalid(name, format!("{name} is {text:?}, expected {expected}"))
        })
    }
}
