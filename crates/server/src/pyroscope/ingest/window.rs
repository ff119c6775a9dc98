//! When a profile was taken, from `from` and `until` and from the file.
//!
//! Clients differ in what they write into a pprof: Go its beginning for CPU and its end, without a duration, for
//! everything else; Node its end with a duration. The query is right in all of them, but often in whole seconds. So
//! the query decides what the file's time means, and the file gives the nanoseconds.

use spanflame_model::Timestamp;

use crate::failure::Failure;

/// Times of a file that are this early are none: clients that know no time write 0, or nanoseconds since they started.
const EARLIEST_NS: i64 = 366 * 86_400 * NS;

/// What a file says is believed if it lies this close to the window of the query.
const SLACK_NS: u64 = 2 * NS as u64;

const NS: i64 = 1_000_000_000;

/// The window that a query names. May be empty: some clients send equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    from: Timestamp,
    until: Timestamp,
}

/// Whether a file has no time of its own.
pub(super) fn is_no_time(time: Timestamp) -> bool {
    time.unix_nanos() < EARLIEST_NS
}

impl Window {
    /// An instant.
    pub(super) fn instant(at: Timestamp) -> Window {
        Window { from: at, until: at }
    }

    /// Reads the two parameters; `None` if both are absent. One that is absent is `now`.
    pub(super) fn parse(from: Option<&str>, until: Option<&str>, now: Timestamp) -> Result<Option<Window>, Failure> {
        if from.is_none() && until.is_none() {
            return Ok(None);
        }
        let read = |name: &str, text: Option<&str>| match text {
            None => Ok(now),
            Some(text) => time(text, now).ok_or_else(|| {
                let text: String = text.chars().take(80).collect();
                Failure::invalid(name, format!("{name} is {text:?}, expected {SPELLINGS}"))
            }),
        };
        let (from, until) = (read("from", from)?, read("until", until)?);
        Ok(Some(Window {
            from,
            until: until.max(from),
        }))
    }

    pub(super) fn start(self) -> Timestamp {
        self.from
    }

    pub(super) fn duration_ns(self) -> u64 {
        self.until.nanos_since(self.from)
    }

    /// Start and duration of a file that says `time` and `duration_ns` about itself.
    pub(super) fn of_file(self, time: Timestamp, duration_ns: u64) -> (Timestamp, u64) {
        let own_start = [time, time.saturating_sub(duration_ns)]
            .into_iter()
            .min_by_key(|start| self.from.unix_nanos().abs_diff(start.unix_nanos()));
        let close = |start: &Timestamp| {
            let end = start.saturating_add(duration_ns);
            start.saturating_add(SLACK_NS) >= self.from && end <= self.until.saturating_add(SLACK_NS)
        };
        match own_start.filter(close) {
            Some(start) if duration_ns > 0 && !is_no_time(time) => (start, duration_ns),
            _ => (self.from, self.duration_ns()),
        }
    }
}

/// The spellings of a time, for who expected one.
pub(in crate::pyroscope) const SPELLINGS: &str = "unix seconds, milliseconds, microseconds or nanoseconds, YYYYMMDD, or now-1h";

/// A time in any of Pyroscope's spellings.
pub(in crate::pyroscope) fn time(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Some(offset) = text.strip_prefix("now") {
        return match offset {
            "" => Some(now),
            offset => Some(now.saturating_sub(duration_ns(offset.strip_prefix('-')?)?)),
        };
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = text.parse().ok()?;
    let factor = match text.len() {
        8 => return day(number),
        13 => 1_000_000,
        16 => 1000,
        19 => 1,
        _ => NS as u64,
    };
    Timestamp::from_unix_nanos(number.checked_mul(factor)?)
}

/// A number and a unit.
fn duration_ns(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().ok()?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "M" => 30 * 86_400,
        "y" => 365 * 86_400,
        _ => return None,
    };
    number.checked_mul(seconds)?.checked_mul(NS as u64)
}

/// Midnight UTC of `YYYYMMDD`.
fn day(number: u64) -> Option<Timestamp> {
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since the epoch by Hinnant's algorithm: years begin in March, so that leap days come last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Timestamp::from_unix_nanos(days.checked_sub(719_468)?.checked_mul(86_400 * NS as u64)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_796_077_200 * NS;

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_unix_nanos_signed(nanos).expect("positive")
    }

    fn check_time(text: &str, expected_ns: Option<i64>) {
        assert_eq!(time(text, at(NOW)), expected_ns.map(at), "{text}");
    }

    #[test]
    fn digits_tell_the_unit() {
        check_time("1796077103", Some(1_796_077_103 * NS));
        check_time("1796077103001", Some(1_796_077_103_001_000_000));
        check_time("1796077103001002", Some(1_796_077_103_001_002_000));
        check_time("1796077103001002003", Some(1_796_077_103_001_002_003));
        check_time("20261130", Some(1_795_996_800 * NS));
        check_time("20240229", Some(1_709_164_800 * NS));
        check_time("now", Some(NOW));
        check_time("now-1h", Some(NOW - 3600 * NS));
        for bad in ["now-1h-1m", "now+1h", "-5", "yesterday", "20261399", "99999999999999999999"] {
            check_time(bad, None);
        }
    }

    fn check_file(window: (i64, i64), file: (i64, u64), expected: (i64, u64)) {
        let window = Window {
            from: at(window.0),
            until: at(window.1),
        };
        let (start, duration_ns) = window.of_file(at(file.0), file.1);
        assert_eq!((start.unix_nanos(), duration_ns), expected);
    }

    #[test]
    fn the_query_says_what_the_time_of_a_file_means() {
        let (from, until) = (NOW, NOW + 6 * NS);
        let exact = NOW + NS / 3;
        let duration = 5 * NS as u64;
        // Go's CPU profile: the time is the beginning. Node's: it is the end.
        check_file((from, until), (exact, duration), (exact, duration));
        check_file((from, until), (exact + 5 * NS, duration), (exact, duration));
        // Go's other profiles: the end, and no duration.
        check_file((from, until), (until, 0), (from, 6 * NS as u64));
        // No time, or that of another day.
        check_file((from, until), (17, duration), (from, 6 * NS as u64));
        check_file((from, until), (NOW - 86_400 * NS, duration), (from, 6 * NS as u64));
    }

    #[test]
    fn a_missing_end_is_now_and_a_reversed_window_is_empty() {
        let window = Window::parse(Some("1796077103"), None, at(NOW)).expect("valid").expect("given");
        assert_eq!(window.until, at(NOW));
        let window = Window::parse(Some("1796077103"), Some("1796077000"), at(NOW))
            .expect("valid")
            .expect("given");
        assert_eq!(window.duration_ns(), 0);
        assert_eq!(Window::parse(None, None, at(NOW)).expect("valid"), None);
    }
}
