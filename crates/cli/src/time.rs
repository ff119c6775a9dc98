//! Points in time as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;

use crate::client::Query;
use crate::error::Error;

const EXPECTED: &str = "expected a time such as 2026-11-30T22:05:00Z, nanoseconds since 1970, `now`, or a time ago such as 15m";

/// The stretch of time a question is about.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "When")]
pub(crate) struct TimeWindow {
    /// From this long ago until now, such as 15m, 6h or 14d [default: 1h]
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["start", "end"])]
    since: Option<String>,
    /// From this time on: 2026-11-30T22:05:00Z, nanoseconds since 1970, or a time ago such as 15m
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// Until before this time, written like --start [default: now]
    #[arg(long, value_name = "TIME")]
    end: Option<String>,
}

impl TimeWindow {
    /// `start` and `end` as the API takes them, as far as they were given.
    pub(crate) fn query(&self, now: SystemTime) -> Result<Query, Error> {
        let mut query = Vec::new();
        if let Some(text) = &self.since {
            let start = ago(text).and_then(|ago| now.checked_sub(ago)).and_then(nanos_of);
            let start = start.ok_or_else(|| Error::Usage(format!("--since is {text:?}, expected a duration such as 15m, 6h or 14d")))?;
            query.push(("start", start.to_string()));
        }
        for (parameter, text) in [("start", &self.start), ("end", &self.end)] {
            if let Some(text) = text {
                let nanos = unix_nanos(&format!("--{parameter}"), text, now)?;
                query.push((parameter, nanos.to_string()));
            }
        }
        Ok(query)
    }
}

/// A number of fewer digits is more likely a mistake in the unit than a time in 1970.
const NANOS_DIGITS_MIN: usize = 16;

/// Reads the point in time that `what` is, such as `--start`. Times before 1970 and after 2262 are refused.
pub(crate) fn unix_nanos(what: &str, text: &str, now: SystemTime) -> Result<i64, Error> {
    let refused = |expected: &str| Error::Usage(format!("{what} is {text:?}, {expected}"));
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let nanos: i64 = text.parse().map_err(|_| refused(EXPECTED))?;
        if nanos != 0 && text.len() < NANOS_DIGITS_MIN {
            let expected = format!("expected nanoseconds since 1970, which have 19 digits today, not {}", text.len());
            return Err(refused(&expected));
        }
        return Ok(nanos);
    }
    let at = match text {
        "now" => Some(now),
        _ => humantime::parse_rfc3339_weak(text).ok().or_else(|| now.checked_sub(ago(text)?)),
    };
    at.and_then(nanos_of).ok_or_else(|| refused(EXPECTED))
}

fn nanos_of(at: SystemTime) -> Option<i64> {
    i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

fn ago(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim_start_matches('-').trim_end_matches("ago").trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<i64>) {
        let now = UNIX_EPOCH + Duration::from_secs(10_000);
        assert_eq!(unix_nanos("--start", text, now).ok(), expected, "{text:?}");
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        check("1970-01-01T00:00:01Z", Some(1_000_000_000));
        check("1970-01-01 00:00:01", Some(1_000_000_000));
        check("1796076315462194529", Some(1_796_076_315_462_194_529));
        check("now", Some(10_000_000_000_000));
        check("15m", Some(9_100_000_000_000));
        check("-1h 30m", Some(4_600_000_000_000));
        check("5 s ago", Some(9_995_000_000_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "yesterday", "15", "1796076315", "99999999999999999999", "10d"] {
            check(text, None);
        }
        let error = unix_nanos("--start", "1796076315", UNIX_EPOCH).expect_err("seconds").to_string();
        let expected = "--start is \"1796076315\", expected nanoseconds since 1970, which have 19 digits today, not 10";
        assert_eq!(error, expected);
    }
}
