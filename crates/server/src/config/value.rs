//! Settings as text: how each kind of value is read and shown.
//!
//! Errors are the expectation only; who reads adds key and value.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use spanflame_store::Ack;

use super::LogFormat;

/// Longest duration a setting may have: 200 years, so that sums with present times stay in range.
const DURATION_MAX: Duration = Duration::from_secs(200 * 366 * 86_400);

const BYTE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

const DURATION_UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

/// The word for an optional setting that is absent.
const OFF: &str = "off";

pub(super) fn read_address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric
        .parse()
        .map_err(|_| "IP:PORT such as 127.0.0.1:4040 (port 0 takes a free one)".to_owned())
}

pub(super) fn show_address(address: SocketAddr) -> String {
    address.to_string()
}

pub(super) fn read_path(text: &str) -> Result<PathBuf, String> {
    match text {
        "" => Err("a path".to_owned()),
        path => Ok(PathBuf::from(path)),
    }
}

pub(super) fn read_text(text: &str) -> Result<String, String> {
    match text {
        "" => Err("some text".to_owned()),
        text => Ok(text.to_owned()),
    }
}

pub(super) fn read_count(text: &str) -> Result<u64, String> {
    text.replace('_', "").parse().map_err(|_| "a whole number".to_owned())
}

pub(super) fn read_bytes(text: &str) -> Result<u64, String> {
    let expected = || "a number with B, KiB, MiB, GiB or TiB, such as 64MiB".to_owned();
    let (number, factor) = BYTE_UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .unwrap_or((text, 1));
    let number: u64 = number.trim().replace('_', "").parse().map_err(|_| expected())?;
    number.checked_mul(factor).ok_or_else(expected)
}

pub(super) fn show_bytes(bytes: u64) -> String {
    let (unit, factor) = BYTE_UNITS
        .into_iter()
        .find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor))
        .unwrap_or(("B", 1));
    format!("{}{unit}", bytes / factor)
}

pub(super) fn read_duration(text: &str) -> Result<Duration, String> {
    let expected = || "a number with ns, us, ms, s, m, h or d, such as 10s".to_owned();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(at);
    let factor = DURATION_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(expected)?.1;
    let number: u64 = number.trim().parse().map_err(|_| expected())?;
    let duration = Duration::from_nanos(number.checked_mul(factor).ok_or_else(expected)?);
    if duration > DURATION_MAX {
        return Err("at most 200 years".to_owned());
    }
    Ok(duration)
}

pub(super) fn show_duration(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let (unit, factor) = ["d", "h", "m", "s", "ms", "us", "ns"]
        .into_iter()
        .filter_map(|unit| DURATION_UNITS.into_iter().find(|(name, _)| *name == unit))
        .find(|(_, factor)| nanos > 0 && nanos.is_multiple_of(*factor))
        .unwrap_or(("s", 1_000_000_000));
    format!("{}{unit}", nanos / factor)
}

pub(super) fn read_bool(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "true or false".to_owned())
}

pub(super) fn read_ack(text: &str) -> Result<Ack, String> {
    match text {
        "wal" => Ok(Ack::Wal),
        "flush" => Ok(Ack::Flush),
        _ => Err("wal or flush".to_owned()),
    }
}

pub(super) fn show_ack(ack: Ack) -> String {
    match ack {
        Ack::Wal => "wal",
        Ack::Flush => "flush",
    }
    .to_owned()
}

pub(super) fn read_log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("text or json".to_owned()),
    }
}

pub(super) fn show_log_format(format: LogFormat) -> String {
    match format {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    }
    .to_owned()
}

pub(super) fn read_origins(text: &str) -> Result<Vec<String>, String> {
    let origins: Vec<String> = text
        .split(',')
        .map(str::trim)
        .filter(|o| !o.is_empty())
        .map(str::to_owned)
        .collect();
    let valid = |origin: &String| origin == "*" || (origin.contains("://") && origin.is_ascii() && !origin.ends_with('/'));
    if origins.iter().all(valid) {
        Ok(origins)
    } else {
        Err("origins such as https://app.example.com, separated by commas, or *".to_owned())
    }
}

/// Reads `off` as `None`, everything else with `read`.
pub(super) fn read_optional<T>(text: &str, read: fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    match text {
        OFF => Ok(None),
        text => read(text).map(Some).map_err(|expected| format!("off or {expected}")),
    }
}

/// Shows `None` as `off`.
pub(super) fn show_optional<T>(value: Option<T>, show: fn(T) -> String) -> String {
    value.map_or_else(|| OFF.to_owned(), show)
}

pub(super) fn show_path(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_shown_as_they_are_read() {
        for text in ["14d", "90m", "36h", "1500ms", "10s", "7ns", "0s"] {
            assert_eq!(show_duration(read_duration(text).expect(text)), text);
        }
        for text in ["64MiB", "1B", "5GB", "0B", "1TiB"] {
            assert_eq!(show_bytes(read_bytes(text).expect(text)), text);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for text in ["", "s", "10", "10x", "-1s", "1.5s", "99999999999999999999s", "80000d"] {
            assert!(read_duration(text).is_err(), "{text:?}");
        }
        for text in ["", "MiB", "1 TB1", "-1", "99999999999999999TiB"] {
            assert!(read_bytes(text).is_err(), "{text:?}");
        }
    }
}
