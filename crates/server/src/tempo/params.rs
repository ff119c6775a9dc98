//! Query parameters as Tempo reads them: unknown ones are passed over, times come in three notations.

use spanflame_model::{TimeRange, Timestamp};
use url::form_urlencoded;

use crate::failure::Failure;
use crate::notation;

/// The range of a question that names none.
const RANGE_DEFAULT_NS: u64 = 3600 * 1_000_000_000;

/// Longest query string in bytes; TraceQL texts are the long part of it.
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

    /// The text of a parameter; of one that is repeated, the first.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The text of the first of these parameters that is there.
    pub(super) fn named(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.text(name))
    }

    /// A whole number from `min` on.
    pub(super) fn count(&self, name: &str, min: u64) -> Result<Option<u64>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| *number >= min);
        number
            .map(Some)
            .ok_or_else(|| wrong(name, text, &format!("a whole number from {min} on")))
    }

    /// A duration in nanoseconds.
    pub(super) fn duration_ns(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let duration = notation::duration_ns(text);
        duration.map(Some).ok_or_else(|| wrong(name, text, "a duration such as 100ms"))
    }

    /// `start` and `end`, or the time `since` ago until now, where any of them is given.
    pub(super) fn given_range(&self, now: Timestamp) -> Result<Option<TimeRange>, Failure> {
        let (start, end) = (self.time("start")?, self.time("end")?);
        match (start, end, self.duration_ns("since")?) {
            (None, None, None) => Ok(None),
            (start, end, since) => range(start, end, since, now).map(Some),
        }
    }

    /// The range given, by default the last hour.
    pub(super) fn range(&self, now: Timestamp) -> Result<TimeRange, Failure> {
        Ok(self.given_range(now)?.unwrap_or_else(|| last_hour(now)))
    }

    fn time(&self, name: &str) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let time = notation::time(text);
        time.map(Some)
            .ok_or_else(|| wrong(name, text, "seconds or nanoseconds since the Unix epoch or RFC 3339"))
    }
}

/// The last hour before `now`.
pub(super) fn last_hour(now: Timestamp) -> TimeRange {
    TimeRange::lasting(now.saturating_sub(RANGE_DEFAULT_NS), RANGE_DEFAULT_NS)
}

/// A range of which only a part may be given. Its last second is inside: clients round down to seconds.
pub(super) fn range(start: Option<Timestamp>, end: Option<Timestamp>, since_ns: Option<u64>, now: Timestamp) -> Result<TimeRange, Failure> {
    let end = end.unwrap_or(now);
    let start = start.unwrap_or_else(|| end.saturating_sub(since_ns.unwrap_or(RANGE_DEFAULT_NS)));
    let range = TimeRange::new(start, end)
        .ok_or_else(|| Failure::invalid("start", format!("start is {start} and end {end}, expected start before end")))?;
    let is_whole_second = end.unix_nanos() % 1_000_000_000 == 0;
    let last_second = TimeRange::lasting(end, 1_000_000_000);
    Ok(if is_whole_second { range.cover(last_second) } else { range })
}

fn wrong(name: &str, value: &str, expected: &str) -> Failure {
    let value: String = value.chars().take(200).collect();
    Failure::invalid(name, format!("{name} is {value:?}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000_500_000_000;

    fn check(query: &str, expected: Result<(u64, u64), &str>) {
        let now = Timestamp::from_unix_nanos(NOW).expect("in range");
        let range = Params::parse(Some(query)).and_then(|params| params.range(now));
        let range = range.map(|range| (range.start().unix_nanos() as u64, range.end().unix_nanos() as u64));
        assert_eq!(range.map_err(|failure| failure.message), expected.map_err(str::to_owned), "{query}");
    }

    #[test]
    fn a_range_is_given_in_three_notations_or_by_its_length() {
        let second = 1_000_000_000;
        check(
            "start=1789999990&end=1790000000",
            Ok((1_789_999_990 * second, 1_790_000_001 * second)),
        );
        check(
            "start=1789999990000000000&end=1790000000000000007",
            Ok((1_789_999_990 * second, 1_790_000_000_000_000_007)),
        );
        check(
            "start=2026-09-21T14:13:10Z&end=2026-09-21T14:13:20.5Z",
            Ok((1_789_999_990 * second, NOW)),
        );
        check("since=10s", Ok((NOW - 10 * second, NOW)));
        check("unknown=1", Ok((NOW - 3600 * second, NOW)));
    }

    #[test]
    fn mistakes_name_value_and_expectation() {
        check(
            "start=soon",
            Err("start is \"soon\", expected seconds or nanoseconds since the Unix epoch or RFC 3339"),
        );
        check("since=5", Err("since is \"5\", expected a duration such as 100ms"));
        check(
            "start=20&end=10",
            Err("start is 20000000000 and end 10000000000, expected start before end"),
        );
        check(
            "start=10&end=10",
            Err("start is 10000000000 and end 10000000000, expected start before end"),
        );
    }
}
