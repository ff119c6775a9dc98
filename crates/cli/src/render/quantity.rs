//! Numbers with their units: the one place where a value becomes text.
//!
//! Three significant digits, a space, a unit. Nothing is rounded to a unit that hides it: 999.6 us is `1.00 ms`.

use spanflame_model::ValueType;

/// A duration: `85 ns`, `12.3 us`, `484 ms`, `1.92 s`, `2 min 5 s`, `3 h 20 min`, `14 d 0 h`.
pub(crate) fn duration(ns: i64) -> String {
    const MINUTE_NS: u64 = 60_000_000_000;
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let text = match ns {
        0..1_000 => format!("{ns} ns"),
        _ if ns < MINUTE_NS => scaled(ns as f64, 1000.0, &["ns", "us", "ms", "s"]),
        _ => {
            let seconds = ns / 1_000_000_000;
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            match hours {
                0 => format!("{minutes} min {} s", seconds % 60),
                1..48 => format!("{hours} h {minutes} min"),
                _ => format!("{} d {} h", hours / 24, hours % 24),
            }
        }
    };
    format!("{sign}{text}")
}

/// A size: `17 B`, `1.50 KiB`, `3.20 GiB`.
pub(crate) fn bytes(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    let size = bytes.unsigned_abs();
    match size {
        0..1024 => format!("{sign}{size} B"),
        _ => format!(
            "{sign}{}",
            scaled(size as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
        ),
    }
}

/// A number with its thousands apart: `1,204`.
pub(crate) fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if number < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A value of a profile in its unit, as the sender spells it.
pub(crate) fn value(value: i64, unit: &str) -> String {
    match unit {
        "bytes" => bytes(value),
        "count" | "" => count(value),
        _ if ValueType::new("", unit).is_nanoseconds() => duration(value),
        unit => format!("{} {unit}", count(value)),
    }
}

/// `1 sample`, `12 samples`.
pub(crate) fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", count(i64::try_from(number).unwrap_or(i64::MAX)))
}

/// An instant in UTC, to the millisecond.
pub(crate) fn instant(unix_nano: u64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(unix_nano);
    let text = humantime::format_rfc3339_millis(at).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

/// Three significant digits in the largest unit that leaves at least 1.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut at = 0;
    // 999.5 would be printed as 1000, which belongs to the next unit.
    while at + 1 < units.len() && value >= step - 0.5 {
        value /= step;
        at += 1;
    }
    let decimals = match value {
        _ if value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {}", units[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (12_345, "12.3 us"),
            (999_600, "1.00 ms"),
            (484_000_000, "484 ms"),
            (1_920_000_000, "1.92 s"),
            (59_960_000_000, "60.0 s"),
            (125_000_000_000, "2 min 5 s"),
            (12_000_000_000_000, "3 h 20 min"),
            (-1_500, "-1.50 us"),
            (i64::MIN, "-106751 d 23 h"),
        ];
        for (ns, expected) in cases {
            assert_eq!(duration(ns), expected);
        }
    }

    #[test]
    fn sizes_are_of_1024_and_say_so() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(bytes(3 << 30), "3.00 GiB");
        assert_eq!(bytes(i64::MAX), "8.00 EiB");
    }

    #[test]
    fn values_keep_the_unit_of_their_sender() {
        assert_eq!(value(1_204, "count"), "1,204");
        assert_eq!(value(2_000_000, "ns"), "2.00 ms");
        assert_eq!(value(7, "widgets"), "7 widgets");
        assert_eq!(value(-1_000, "count"), "-1,000");
    }

    #[test]
    fn instants_name_their_zone() {
        assert_eq!(instant(1_796_076_315_462_194_529), "2026-11-30 22:05:15.462 UTC");
    }
}
