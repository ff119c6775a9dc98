//! Times and durations as Go programs, and so Tempo, Jaeger and Grafana, write them.
//!
//! Pure text to numbers; the native API and the configuration have their own, stricter notation.

use std::time::UNIX_EPOCH;

use spanflame_model::Timestamp;

/// Numbers below this are seconds: the year 5138.
const SECONDS_BELOW: f64 = 1e11;
/// Numbers below this are milliseconds.
const MILLIS_BELOW: f64 = 1e14;
/// Numbers below this are microseconds.
const MICROS_BELOW: f64 = 1e17;

/// A time as seconds, milliseconds, microseconds or nanoseconds since the epoch, told apart by their magnitude, or as
/// RFC 3339. `None` if it is neither or lies before 1970 or after 2262.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(number) = text.parse::<u64>() {
        let factor = match number as f64 {
            n if n < SECONDS_BELOW => 1_000_000_000,
            n if n < MILLIS_BELOW => 1_000_000,
            n if n < MICROS_BELOW => 1_000,
            _ => 1,
        };
        return number.checked_mul(factor).and_then(Timestamp::from_unix_nanos);
    }
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..SECONDS_BELOW).contains(&seconds) => Timestamp::from_unix_nanos((seconds * 1e9) as u64),
        Ok(_) => None,
        Err(_) => rfc3339(text),
    }
}

/// A time as RFC 3339, with any offset and up to nanoseconds.
pub(crate) fn rfc3339(text: &str) -> Option<Timestamp> {
    let at = text
        .rfind(['Z', 'z', '+', '-'])
        .filter(|at| text[*at..].len() == 1 || *at > "2006-01-02".len())?;
    let (local, offset) = text.split_at(at);
    let local = humantime::parse_rfc3339_weak(&format!("{local}Z")).ok()?;
    let nanos = i128::try_from(local.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()?;
    let utc = nanos - i128::from(offset_minutes(offset)?) * 60_000_000_000;
    Timestamp::from_unix_nanos(u64::try_from(utc).ok()?)
}

/// Minutes east of UTC.
fn offset_minutes(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let number = |text: &str, below: i64| text.parse::<i64>().ok().filter(|n| text.len() == 2 && (0..below).contains(n));
    let minutes = number(hours, 24)? * 60 + number(minutes, 60)?;
    Some(if text.starts_with('-') { -minutes } else { minutes })
}

/// A duration in Go's syntax (`1h2m3.5s`, `100ms`, `1.5us`, `0`), and also in days, in nanoseconds. `None` if it is none,
/// is negative, or does not fit 63 bits.
pub(crate) fn duration_ns(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        total += number * unit_ns(&rest[..end])?;
        rest = &rest[end..];
    }
    (total < i64::MAX as f64).then_some(total.round() as u64)
}

fn unit_ns(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        _ => return None,
    })
}

/// A string literal of TraceQL, which knows two escapes.
pub(crate) fn traceql_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_time(text: &str, expected_ns: Option<i64>) {
        assert_eq!(time(text).map(Timestamp::unix_nanos), expected_ns, "{text:?}");
    }

    #[test]
    fn numbers_are_told_apart_by_magnitude() {
        check_time("1790000000", Some(1_790_000_000_000_000_000));
        check_time("1790000000.5", Some(1_790_000_000_500_000_000));
        check_time("1790000000123", Some(1_790_000_000_123_000_000));
        check_time("1790000000123456", Some(1_790_000_000_123_456_000));
        check_time("1790000000123456789", Some(1_790_000_000_123_456_789));
        check_time("0", Some(0));
        for wrong in ["", "-1", "1e30", "nan", "99999999999999999999", "yesterday"] {
            check_time(wrong, None);
        }
    }

    #[test]
    fn rfc_3339_has_fractions_and_offsets() {
        check_time("2026-09-21T14:13:20Z", Some(1_790_000_000_000_000_000));
        check_time("2026-09-21T14:13:20.000000007Z", Some(1_790_000_000_000_000_007));
        check_time("2026-09-21T16:13:20.5+02:00", Some(1_790_000_000_500_000_000));
        check_time("2026-09-21T04:43:20-09:30", Some(1_790_000_000_000_000_000));
        for wrong in [
            "2026-09-21",
            "2026-09-21T14:13:20+2:00",
            "2026-09-21T14:13:20+25:00",
            "1960-01-01T00:00:00Z",
            "Z",
            "-",
        ] {
            check_time(wrong, None);
        }
    }

    #[test]
    fn durations_are_go_s() {
        for (text, expected) in [
            ("1h2m3.5s", Some(3_723_500_000_000)),
            ("100ms", Some(100_000_000)),
            ("1.5us", Some(1_500)),
            ("7\u{b5}s", Some(7_000)),
            ("7ns", Some(7)),
            ("0", Some(0)),
            ("2d", Some(172_800_000_000_000)),
            ("", None),
            ("5", None),
            ("-1s", None),
            ("1x", None),
            ("s", None),
            ("1.2.3s", None),
            ("9999999999h", None),
        ] {
            assert_eq!(duration_ns(text), expected, "{text:?}");
        }
    }
}
