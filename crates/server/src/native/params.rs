//! Query parameters, each read once and by name.
//!
//! A parameter that a path does not have is refused and not ignored: `lmit=5` would otherwise look like a
//! working limit.

use std::fmt::Display;
use std::str::FromStr;

use spanflame_model::{TimeRange, Timestamp};
use url::form_urlencoded;

use crate::failure::Failure;

/// The range of a question that names none.
const RANGE_DEFAULT_NS: u64 = 3600 * 1_000_000_000;

/// Longest query string in bytes; TraceQL texts are the long part of it.
const QUERY_BYTES_MAX: usize = 256 << 10;

/// The parameters of one request.
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// Decodes a query string; `known` are the parameters of the path. Empty values count as absent.
    pub(super) fn parse(query: Option<&str>, known: &[&str]) -> Result<Params, Failure> {
        Params::parse_with(query, known, &[])
    }

    /// Likewise; those of `known` that are in `lists` may be given several times.
    pub(super) fn parse_with(query: Option<&str>, known: &[&str], lists: &[&str]) -> Result<Params, Failure> {
        let query = query.unwrap_or_default();
        if query.len() > QUERY_BYTES_MAX {
            let message = format!("the query string has {} bytes, expected at most {QUERY_BYTES_MAX}", query.len());
            return Err(Failure::invalid("query", message));
        }
        let mut params: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let name: String = name.chars().take(80).collect();
            if !known.contains(&name.as_str()) {
                let message = format!("{name} is no parameter of this path, expected one of {}", known.join(", "));
                return Err(Failure::invalid(&name, message));
            }
            if !lists.contains(&name.as_str()) && params.iter().any(|(seen, _)| *seen == name) {
                return Err(Failure::invalid(&name, format!("{name} is given twice, expected once")));
            }
            params.push((name, value.into_owned()));
        }
        params.retain(|(_, value)| !value.is_empty());
        Ok(Params(params))
    }

    /// The text of a parameter.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The parameters whose names begin with `prefix`, without it.
    pub(super) fn beginning_with(&self, prefix: &str) -> Params {
        let rest = |(name, value): &(String, String)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone()));
        Params(self.0.iter().filter_map(rest).collect())
    }

    /// Every text of a parameter that may be given several times, in order.
    pub(super) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// A parameter read by its type, whose error names value and expectation.
    pub(super) fn read<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        text.parse()
            .map(Some)
            .map_err(|error: T::Err| Failure::invalid(name, error.to_string()))
    }

    /// A parameter that is one of a few words.
    pub(super) fn word<T>(&self, name: &str, read: fn(&str) -> Option<T>, expected: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        read(text).map(Some).ok_or_else(|| wrong(name, text, expected))
    }

    /// A whole number between 1 and `max`.
    pub(super) fn count(&self, name: &str, max: usize) -> Result<Option<usize>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| (1..=max).contains(number));
        number
            .map(Some)
            .ok_or_else(|| wrong(name, text, &format!("a whole number from 1 to {max}")))
    }

    /// A time in nanoseconds since the epoch.
    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let time = text.parse::<u64>().ok().and_then(Timestamp::from_unix_nanos);
        time.map(Some)
            .ok_or_else(|| wrong(name, text, "nanoseconds since the Unix epoch, below 2^63"))
    }

    /// `start` and `end`, where one of them is given.
    pub(super) fn given_range(&self, now: Timestamp) -> Result<Option<TimeRange>, Failure> {
        let (start, end) = (self.time("start")?, self.time("end")?);
        if start.is_none() && end.is_none() {
            return Ok(None);
        }
        let end = end.unwrap_or(now);
        let start = start.unwrap_or_else(|| end.saturating_sub(RANGE_DEFAULT_NS));
        let range = TimeRange::new(start, end);
        range
            .map(Some)
            .ok_or_else(|| Failure::invalid("start", format!("start is {start} and end {end}, expected start before end")))
    }

    /// `start` and `end`, by default the last hour.
    pub(super) fn range(&self, now: Timestamp) -> Result<TimeRange, Failure> {
        let last_hour = TimeRange::lasting(now.saturating_sub(RANGE_DEFAULT_NS), RANGE_DEFAULT_NS);
        Ok(self.given_range(now)?.unwrap_or(last_hour))
    }
}

fn wrong(name: &str, value: &str, expected: &str) -> Failure {
    let value: String = value.chars().take(200).collect();
    Failure::invalid(name, format!("{name} is {value:?}, expected {expected}"))
}

/// A trace or span id of a path.
pub(super) fn id<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error: T::Err| Failure::invalid(field, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(query: &str, read: fn(&Params) -> Result<(), Failure>, expected: &str) {
        let failure = Params::parse(Some(query), &["limit", "start", "end"]).and_then(|params| read(&params));
        assert_eq!(failure.expect_err(query).message, expected);
    }

    #[test]
    fn mistakes_name_value_and_expectation() {
        check_error(
            "lmit=5",
            |_| Ok(()),
            "lmit is no parameter of this path, expected one of limit, start, end",
        );
        check_error("limit=1&limit=2", |_| Ok(()), "limit is given twice, expected once");
        let limit = |params: &Params| params.count("limit", 10).map(drop);
        check_error("limit=0", limit, "limit is \"0\", expected a whole number from 1 to 10");
        let start = |params: &Params| params.time("start").map(drop);
        check_error(
            "start=-1",
            start,
            "start is \"-1\", expected nanoseconds since the Unix epoch, below 2^63",
        );
    }

    #[test]
    fn a_range_is_the_last_hour_unless_it_is_given() {
        let now = Timestamp::from_unix_nanos(10 * RANGE_DEFAULT_NS).expect("in range");
        let range = |query| {
            let params = Params::parse(Some(query), &["start", "end"]).expect("known");
            let range = params.range(now).expect("valid");
            (range.start().unix_nanos() as u64, range.end().unix_nanos() as u64)
        };
        assert_eq!(range(""), (9 * RANGE_DEFAULT_NS, 10 * RANGE_DEFAULT_NS));
        assert_eq!(range("start=5"), (5, 10 * RANGE_DEFAULT_NS));
        assert_eq!(range("start=5&end=7"), (5, 7));
    }
}
