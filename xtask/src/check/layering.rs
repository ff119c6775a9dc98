//! Arrows between our crates run one way.
//!
//! ```text
//! model, proto, context -> formats, symbols, store -> query -> server -> cli
//! agent and sdk see context, formats, model (the agent also symbols); the server uses the sdk to watch itself
//! ```
//!
//! `testkit` is for tests only. What is no library of the product (bench, examples, xtask) is held to a list too.

use serde_json::Value;

/// Package, and the packages of ours that it may use outside tests.
const ALLOWED: &[(&str, &[&str])] = &[
    ("spanflame-model", &[]),
    ("spanflame-proto", &[]),
    ("spanflame-context", &["model"]),
    ("spanflame-formats", &["model", "proto", "context"]),
    ("spanflame-symbols", &["model", "proto", "context"]),
    ("spanflame-store", &["model", "proto", "context"]),
    ("spanflame-query", &["model", "proto", "context", "formats", "symbols", "store"]),
    ("spanflame-sdk", &["model", "context", "formats"]),
    ("spanflame-agent", &["model", "context", "formats", "symbols"]),
    (
        "spanflame-server",
        &["model", "proto", "context", "formats", "symbols", "store", "query", "sdk"],
    ),
    (
        "spanflame-cli",
        &[
            "model", "proto", "context", "formats", "symbols", "store", "query", "server", "sdk", "agent",
        ],
    ),
    ("spanflame-testkit", &["model", "proto", "context", "formats"]),
    ("spanflame-bench", &["model", "proto", "formats", "testkit"]),
    ("spanflame-shop", &["sdk"]),
    ("xtask", &[]),
];

/// What tests may use in addition: `query` is tested over a store, clients over a server.
const ALLOWED_IN_TESTS: &[&str] = &["testkit", "formats", "store", "server", "sdk", "model"];

/// Dependencies that run against the arrows, and packages that the list does not know.
pub(super) fn findings(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    packages.iter().flat_map(package_findings).collect()
}

fn package_findings(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![format!(
            "package {name} has no place in the layering, give it one in xtask/src/check/layering.rs"
        )];
    };
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    dependencies
        .iter()
        .filter_map(|dependency| against_the_arrows(name, allowed, dependency))
        .collect()
}

fn against_the_arrows(name: &str, allowed: &[&str], dependency: &Value) -> Option<String> {
    let target = dependency["name"].as_str()?.strip_prefix("spanflame-")?;
    let in_tests = dependency["kind"].as_str() == Some("dev");
    if allowed.contains(&target) || in_tests && ALLOWED_IN_TESTS.contains(&target) {
        return None;
    }
    let kind = if in_tests { "in tests " } else { "" };
    Some(format!(
        "{name} must not use spanflame-{target} {kind}(it may use: {})",
        allowed.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(package: &str, dependency: &str, kind: Option<&str>, expected_findings: usize) {
        let metadata = json!({ "packages": [{ "name": package, "dependencies": [{ "name": dependency, "kind": kind }] }] });
        let found = findings(&metadata);
        assert_eq!(found.len(), expected_findings, "{found:?}");
    }

    #[test]
    fn the_server_may_use_the_store_and_not_the_other_way_round() {
        check("spanflame-server", "spanflame-store", None, 0);
        check("spanflame-store", "spanflame-server", None, 1);
    }

    #[test]
    fn the_sdk_brings_no_store_into_an_application() {
        check("spanflame-sdk", "spanflame-store", None, 1);
        check("spanflame-sdk", "spanflame-server", None, 1);
    }

    #[test]
    fn testkit_is_for_tests_only() {
        check("spanflame-query", "spanflame-testkit", Some("dev"), 0);
        check("spanflame-query", "spanflame-testkit", None, 1);
    }

    #[test]
    fn a_build_script_obeys_the_arrows() {
        check("spanflame-model", "spanflame-proto", Some("build"), 1);
    }

    #[test]
    fn foreign_crates_are_no_concern_of_the_layering() {
        check("spanflame-model", "serde", None, 0);
    }

    #[test]
    fn a_package_without_a_place_is_found() {
        check("spanflame-novelty", "serde", None, 1);
    }
}
