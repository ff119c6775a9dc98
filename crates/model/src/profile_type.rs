//! What a profile measures, and how to read CPU time out of it.

use std::fmt;
use std::str::FromStr;

/// A measured kind and its unit, e.g. `cpu` in `nanoseconds`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueType {
    /// What is measured, e.g. `cpu`, `samples`, `inuse_space`.
    pub kind: String,
    /// In which unit, e.g. `nanoseconds`, `count`, `bytes`.
    pub unit: String,
}

impl ValueType {
    /// A type from its two parts.
    pub fn new(kind: impl Into<String>, unit: impl Into<String>) -> ValueType {
        ValueType {
            kind: kind.into(),
            unit: unit.into(),
        }
    }

    /// Whether the unit is nanoseconds, in any spelling in use.
    pub fn is_nanoseconds(&self) -> bool {
        matches!(self.unit.as_str(), "nanoseconds" | "ns" | "nanosecond")
    }
}

/// The full name of a profile type: `name:sample_type:sample_unit:period_type:period_unit`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileType {
    /// What the sender calls the profile, else [`default_name`].
    pub name: String,
    /// What is measured.
    pub sample: ValueType,
    /// Between what two samples lie.
    pub period: ValueType,
}

impl ProfileType {
    /// The type whose values are CPU nanoseconds, under which [`cpu_rule`] answers.
    pub fn cpu() -> ProfileType {
        let cpu = ValueType::new("cpu", "nanoseconds");
        ProfileType {
            name: "process_cpu".to_owned(),
            sample: cpu.clone(),
            period: cpu,
        }
    }

    /// Whether values are states at an instant, averaged over time, rather than flows, which add up.
    pub fn is_gauge(&self) -> bool {
        self.sample.kind.starts_with("inuse_") || matches!(self.sample.kind.as_str(), "goroutine" | "goroutines")
    }
}

impl fmt::Display for ProfileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProfileType { name, sample, period } = self;
        write!(f, "{name}:{}:{}:{}:{}", sample.kind, sample.unit, period.kind, period.unit)
    }
}

impl FromStr for ProfileType {
    type Err = InvalidProfileType;

    /// Reads five parts; a sixth part `delta` is tolerated, as Pyroscope does.
    fn from_str(text: &str) -> Result<ProfileType, InvalidProfileType> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            [name, kind, unit, period_kind, period_unit] | [name, kind, unit, period_kind, period_unit, "delta"] => Ok(ProfileType {
                name: name.to_owned(),
                sample: ValueType::new(kind, unit),
                period: ValueType::new(period_kind, period_unit),
            }),
            _ => Err(InvalidProfileType {
                value: text.chars().take(200).collect(),
            }),
        }
    }
}

/// Text that names no profile type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("profile type is {value:?}, expected name:sample_type:sample_unit:period_type:period_unit")]
pub struct InvalidProfileType {
    value: String,
}

fn is_cpu_period(period: &ValueType) -> bool {
    matches!(period.kind.as_str(), "cpu" | "itimer" | "perf_events") && period.is_nanoseconds()
}

fn is_count(sample: &ValueType) -> bool {
    sample.unit == "count" && matches!(sample.kind.as_str(), "samples" | "sample" | "itimer" | "perf_events" | "cpu")
}

/// The name of a profile whose sender gives none.
///
/// `mutex` and `block` profiles of Go have equal types; only the sender's display name tells them apart,
/// so a decoder that knows it passes it as the name instead.
pub fn default_name(sample: &ValueType, period: &ValueType) -> String {
    match sample.kind.as_str() {
        "cpu" => "process_cpu",
        _ if is_cpu_period(sample) => "process_cpu",
        _ if is_count(sample) && is_cpu_period(period) => "process_cpu",
        "wall" => "wall",
        kind if kind.starts_with("inuse_") || kind.starts_with("alloc_") => "memory",
        "contentions" | "delay" => "mutex",
        "goroutine" | "goroutines" => "goroutine",
        "off_cpu" => "off_cpu",
        kind => kind,
    }
    .to_owned()
}

/// How to read CPU nanoseconds out of a sample's values: the value at `index`, times `factor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRule {
    /// Position among the profile's types.
    pub index: usize,
    /// 1 for a value in nanoseconds, else the period in nanoseconds.
    pub factor: i64,
}

/// The one CPU value of a profile: cpu/nanoseconds where it has that (itimer/ns is the Java agent's word for
/// it), else counts with a CPU period times the period. `None` for a profile that measures something else.
pub fn cpu_rule(types: &[ValueType], period_type: &ValueType, period: i64) -> Option<CpuRule> {
    let is_cpu = |t: &ValueType| t.kind == "cpu" && t.is_nanoseconds();
    if let Some(index) = types.iter().position(is_cpu).or_else(|| types.iter().position(is_cpu_period)) {
        return Some(CpuRule { index, factor: 1 });
    }
    let index = types
        .iter()
        .position(is_count)
        .filter(|_| is_cpu_period(period_type) && period > 0)?;
    Some(CpuRule { index, factor: period })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(texts: &[&str]) -> Vec<ValueType> {
        let split = |t: &&str| t.split_once('/').map(|(kind, unit)| ValueType::new(kind, unit)).expect("kind/unit");
        texts.iter().map(split).collect()
    }

    fn check_cpu(sample_types: &[&str], period: &str, value: i64, expected: Option<(usize, i64)>) {
        let period_type = types(&[period]).remove(0);
        let rule = cpu_rule(&types(sample_types), &period_type, value);
        assert_eq!(rule.map(|r| (r.index, r.factor)), expected);
    }

    #[test]
    fn cpu_is_one_value_per_sample() {
        check_cpu(&["samples/count", "cpu/nanoseconds"], "cpu/nanoseconds", 10, Some((1, 1)));
        check_cpu(&["samples/count"], "cpu/nanoseconds", 50, Some((0, 50)));
        check_cpu(&["itimer/count"], "itimer/ns", 50, Some((0, 50)));
        check_cpu(&["itimer/ns"], "itimer/ns", 50, Some((0, 1)));
        check_cpu(&["perf_events/count"], "perf_events/ns", 7, Some((0, 7)));
        check_cpu(&["wall/count"], "wall/ns", 7, None);
        check_cpu(&["samples/count", "wall/nanoseconds"], "wall/nanoseconds", 7, None);
    }

    #[test]
    fn a_sixth_part_is_tolerated_if_it_is_delta() {
        let plain = "memory:inuse_space:bytes:space:bytes";
        let parsed: ProfileType = format!("{plain}:delta").parse().expect("valid");
        assert_eq!(parsed.to_string(), plain);
        assert!(format!("{plain}:x").parse::<ProfileType>().is_err());
    }
}
