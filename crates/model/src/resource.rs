//! Who sent it: the resource and the instrumentation scope.

use crate::{Attributes, Value};

/// What produced spans or samples: OpenTelemetry's resource, or the labels of a Pyroscope series.
///
/// Built by [`Resource::new`], which makes sure that [`Resource::service`] is never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    attributes: Attributes,
    service: String,
}

/// Where to look for a service name, best first, when `service.name` is absent. The first is what the
/// OpenTelemetry eBPF profiler sends with `-env-vars`, the rest name the workload.
const SERVICE_NAME_FALLBACKS: [&str; 6] = [
    "service_name",
    "process.environment_variable.OTEL_SERVICE_NAME",
    "k8s.deployment.name",
    "k8s.statefulset.name",
    "k8s.daemonset.name",
    "container.name",
];

impl Resource {
    /// Attributes may lack a service name: the name is then derived, at worst `unknown_service`.
    pub fn new(attributes: Attributes) -> Resource {
        let service = derive_service(&attributes);
        Resource { attributes, service }
    }

    /// The service: `service.name`, else what names the workload, else `unknown_service:<executable>`.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// What the sender said, unchanged.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }
}

fn derive_service(attributes: &Attributes) -> String {
    let text = |key: &str| attributes.get_str(key).filter(|name| !name.is_empty());
    if let Some(name) = text("service.name") {
        return name.to_owned();
    }
    if let Some(name) = SERVICE_NAME_FALLBACKS.into_iter().find_map(text) {
        return name.to_owned();
    }
    let executable = text("process.executable.name").or_else(|| text("process.executable.path").and_then(|p| p.rsplit('/').next()));
    match executable.or_else(|| attributes.get("process.command").and_then(Value::as_str)) {
        Some(name) => format!("unknown_service:{name}"),
        None => "unknown_service".to_owned(),
    }
}

/// The instrumentation scope: which library made the spans. Empty where the sender says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// Name of the library.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its attributes.
    pub attributes: Attributes,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&str, &str)], expected: &str) {
        let attributes = pairs.iter().copied().collect();
        assert_eq!(Resource::new(attributes).service(), expected);
    }

    #[test]
    fn a_service_always_has_a_name() {
        check(&[("service.name", "cart"), ("container.name", "c1")], "cart");
        check(&[("service.name", ""), ("container.name", "c1")], "c1");
        check(&[("process.environment_variable.OTEL_SERVICE_NAME", "zoo")], "zoo");
        check(&[("process.executable.path", "/usr/bin/java")], "unknown_service:java");
        check(&[], "unknown_service");
    }
}
