//! What is measured, where the file does not say: from the application's name, the units, and a form's configuration.

use std::collections::HashMap;

use serde::Deserialize;
use spanflame_formats::Upload;
use spanflame_model::{ProfileInfo, ProfileType, ValueType};

use crate::failure::Failure;

/// Suffix of the application, what it is called, the type, and its unit.
const SUFFIXES: [(&str, &str, &str, &str); 20] = [
    ("cpu", "process_cpu", "samples", "count"),
    ("itimer", "process_cpu", "samples", "count"),
    ("wall", "wall", "wall", "nanoseconds"),
    ("inuse_objects", "memory", "inuse_objects", "count"),
    ("inuse_space", "memory", "inuse_space", "bytes"),
    ("alloc_objects", "memory", "alloc_objects", "count"),
    ("alloc_space", "memory", "alloc_space", "bytes"),
    ("alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count"),
    ("alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes"),
    ("alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count"),
    ("alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes"),
    ("live", "memory", "live", "count"),
    ("goroutines", "goroutine", "goroutine", "count"),
    ("mutex_count", "mutex", "contentions", "count"),
    ("mutex_duration", "mutex", "delay", "nanoseconds"),
    ("block_count", "block", "contentions", "count"),
    ("block_duration", "block", "delay", "nanoseconds"),
    ("lock_count", "mutex", "contentions", "count"),
    ("lock_duration", "mutex", "delay", "nanoseconds"),
    ("exceptions", "exceptions", "exceptions", "count"),
];

/// The application and the profile type that `app.suffix` asks for, as samples of such profiles are known; without a
/// suffix it is CPU time. `None` for an unknown suffix, or no application.
pub(in crate::pyroscope) fn application(text: &str) -> Option<(&str, ProfileType)> {
    let (app, suffix) = match text.rsplit_once('.') {
        Some((app, suffix)) => (app, suffix),
        None => (text, "cpu"),
    };
    let (_, name, kind, unit) = SUFFIXES.into_iter().find(|row| row.0 == suffix)?;
    let mut profile_type = ProfileType::cpu();
    if name != "process_cpu" {
        profile_type = ProfileType {
            name: name.to_owned(),
            sample: ValueType::new(kind, unit),
            period: match name {
                "memory" => ValueType::new("space", "bytes"),
                "mutex" | "block" => ValueType::new("contentions", "count"),
                _ => ValueType::new(kind, unit),
            },
        };
    }
    (!app.is_empty()).then_some((app, profile_type))
}

/// What stacks without a type of their own measure.
#[derive(Debug)]
pub(super) struct Measured {
    /// The application without its suffix.
    pub(super) app: String,
    name: &'static str,
    value_type: ValueType,
    period_type: ValueType,
    period: i64,
}

impl Measured {
    /// `app.suffix` says what is measured; without a suffix it is CPU time. `units` tells samples from nanoseconds.
    pub(super) fn of(app: &str, units: &str, sample_rate: u64) -> Result<Measured, Failure> {
        let (app, suffix) = match app.rsplit_once('.') {
            Some((app, suffix)) if !app.is_empty() => (app, suffix),
            _ => (app, "cpu"),
        };
        let row = SUFFIXES.into_iter().find(|row| row.0 == suffix);
        let (_, name, kind, unit) = row.ok_or_else(|| {
            let known = SUFFIXES.map(|row| row.0).join(", ");
            let suffix: String = suffix.chars().take(80).collect();
            Failure::invalid("name", format!("name ends in .{suffix}, expected one of {known}"))
        })?;
        let period_ns = (1_000_000_000 / sample_rate.max(1)) as i64;
        let is_samples = matches!(units, "" | "samples");
        let nanoseconds = |kind: &str| ValueType::new(kind, "nanoseconds");
        let (value_type, period_type, period) = match name {
            "process_cpu" if is_samples => (ValueType::new(kind, unit), nanoseconds("cpu"), period_ns),
            "process_cpu" => (nanoseconds("cpu"), nanoseconds("cpu"), period_ns),
            "wall" if is_samples => (ValueType::new("samples", "count"), nanoseconds("wall"), period_ns),
            "wall" => (nanoseconds("wall"), nanoseconds("wall"), period_ns),
            _ => (ValueType::new(kind, unit), ValueType::default(), 0),
        };
        Ok(Measured {
            app: app.to_owned(),
            name,
            value_type,
            period_type,
            period,
        })
    }

    pub(super) fn describe(self, about: &mut Upload) {
        about.name = self.name.to_owned();
        about.value_type = Some(self.value_type);
        about.period_type = Some(self.period_type);
        about.period = self.period;
    }
}

/// The part `sample_type_config` of a form. Types it does not list are kept all the same.
#[derive(Debug, Default)]
pub(super) struct SampleTypes(HashMap<String, SampleType>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SampleType {
    #[serde(rename = "display-name")]
    display_name: String,
}

impl SampleTypes {
    pub(super) fn parse(json: &[u8]) -> Result<SampleTypes, Failure> {
        if json.is_empty() {
            return Ok(SampleTypes::default());
        }
        let types = serde_json::from_slice(json);
        types.map(SampleTypes).map_err(|error| {
            Failure::invalid(
                "sample_type_config",
                format!("sample_type_config is no JSON of sample types: {error}"),
            )
        })
    }

    /// Names a profile that its types leave open: Go's mutex and block profiles differ in their display name only, and
    /// the name of a wall profile holds for the CPU time in it.
    pub(super) fn name(&self, info: &mut ProfileInfo) {
        if !info.name.is_empty() {
            return;
        }
        let displayed = info.types.iter().filter_map(|value_type| self.0.get(&value_type.kind));
        for display_name in displayed.map(|config| config.display_name.as_str()) {
            let name = match display_name.split('_').next() {
                Some("mutex") => "mutex",
                Some("block") => "block",
                _ => continue,
            };
            info.name = name.to_owned();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spanflame_model::{Attributes, Resource, Scope, Timestamp};

    use super::*;

    fn check(app: &str, units: &str, expected: &str) {
        let measured = Measured::of(app, units, 100).expect("known");
        let (value, period) = (&measured.value_type, &measured.period_type);
        let found = format!(
            "{} {}:{}:{}:{}:{} {}",
            measured.app, measured.name, value.kind, value.unit, period.kind, period.unit, measured.period
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn the_suffix_says_what_is_measured() {
        check("shop", "", "shop process_cpu:samples:count:cpu:nanoseconds 10000000");
        check(
            "a.shop.cpu",
            "nanoseconds",
            "a.shop process_cpu:cpu:nanoseconds:cpu:nanoseconds 10000000",
        );
        check("shop.alloc_space", "bytes", "shop memory:alloc_space:bytes:: 0");
        check("shop.block_duration", "lock_nanoseconds", "shop block:delay:nanoseconds:: 0");
        let error = Measured::of("shop.x", "", 100).expect_err("unknown");
        assert!(
            error.message.starts_with("name ends in .x, expected one of cpu, "),
            "{}",
            error.message
        );
    }

    #[test]
    fn display_names_tell_mutex_and_block_apart() {
        let json = br#"{"contentions":{"units":"lock_samples","display-name":"block_count"},"delay":{"units":"lock_nanoseconds"}}"#;
        let types = SampleTypes::parse(json).expect("valid");
        let mut info = ProfileInfo {
            profile_id: None,
            name: String::new(),
            types: vec![ValueType::new("contentions", "count"), ValueType::new("delay", "nanoseconds")],
            period_type: ValueType::default(),
            period: 0,
            start: Timestamp::ZERO,
            duration_ns: 0,
            resource: Arc::new(Resource::new(Attributes::new())),
            scope: Arc::new(Scope::default()),
            attributes: Attributes::new(),
        };
        types.name(&mut info);
        assert_eq!(info.name, "block");
        assert!(SampleTypes::parse(b"[").is_err());
    }
}
