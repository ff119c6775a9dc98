//! Who this process is, for its spans, its profiles and readers outside alike.

use spanflame_model::{Attributes, Value};

/// Attributes that identify this process, then those of the environment, then `own`, which win.
pub(crate) fn describe(service: &str, own: &Attributes) -> Attributes {
    let mut all = Attributes::new();
    all.insert("service.instance.id", instance_id());
    all.insert("process.pid", i64::from(std::process::id()));
    all.insert("telemetry.sdk.name", "spanflame");
    all.insert("telemetry.sdk.language", "rust");
    all.insert("telemetry.sdk.version", env!("CARGO_PKG_VERSION"));
    if let Ok(exe) = std::env::current_exe() {
        all.insert("process.executable.path", exe.to_string_lossy().into_owned());
        all.insert(
            "process.executable.name",
            exe.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        );
    }
    if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        all.insert("host.name", host.trim_end());
    }
    let environment = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for (key, value) in environment.split(',').filter_map(|pair| pair.split_once('=')) {
        all.insert(key.trim(), value.trim());
    }
    all.insert("service.name", service);
    for (key, value) in own.iter() {
        all.insert(key, value.clone());
    }
    all
}

/// The same attributes for OpenTelemetry's SDK; those of a kind that it does not know as resource are left out.
pub(crate) fn to_opentelemetry(attributes: &Attributes) -> opentelemetry_sdk::Resource {
    let pairs = attributes.iter().filter_map(|(key, value)| {
        let value: opentelemetry::Value = match value {
            Value::Str(text) => text.clone().into(),
            Value::Int(number) => (*number).into(),
            Value::Double(number) => (*number).into(),
            Value::Bool(value) => (*value).into(),
            Value::Bytes(_) | Value::Array(_) | Value::Map(_) => return None,
        };
        Some(opentelemetry::KeyValue::new(key.to_owned(), value))
    });
    opentelemetry_sdk::Resource::builder_empty().with_attributes(pairs).build()
}

/// A random UUID of the kernel, or one that only the process id and the time make unlikely to repeat.
fn instance_id() -> String {
    match std::fs::read_to_string("/proc/sys/kernel/random/uuid") {
        Ok(uuid) => uuid.trim_end().to_owned(),
        Err(_) => format!("{}-{}", std::process::id(), crate::sampler::now()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_application_says_wins() {
        let own: Attributes = [("deployment.environment.name", "test"), ("host.name", "mine")]
            .into_iter()
            .collect();
        let all = describe("cart", &own);
        assert_eq!(all.get_str("service.name"), Some("cart"));
        assert_eq!(all.get_str("host.name"), Some("mine"));
        assert_eq!(all.get_str("deployment.environment.name"), Some("test"));
        assert_eq!(all.get("process.pid"), Some(&Value::Int(std::process::id().into())));
    }

    #[test]
    fn two_starts_are_two_instances() {
        let id = |all: Attributes| all.get_str("service.instance.id").map(str::to_owned);
        let none = Attributes::new();
        assert_ne!(id(describe("a", &none)), id(describe("a", &none)));
    }
}
