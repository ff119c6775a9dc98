//! `cargo xtask check`: what can be judged without running the product.

mod layering;
mod links;
mod sources;

use crate::steps::Steps;
use crate::{Failure, process, workspace};

/// Findings printed per rule before the rest is only counted.
const FINDINGS_MAX: usize = 40;

/// All checks, cheapest first; stops at the first that fails.
pub(crate) fn run() -> Result<(), Failure> {
    let mut steps = Steps::new();
    run_into(&mut steps)?;
    steps.summary();
    Ok(())
}

/// All checks as steps of a longer command.
pub(crate) fn run_into(steps: &mut Steps) -> Result<(), Failure> {
    steps.step("Cargo.lock and layering", || none(layering::findings(&workspace::metadata()?)))?;
    steps.step("sources", || none(sources::findings(&workspace::root(), &workspace::files()?)?))?;
    steps.step("links", || none(links::findings(&workspace::root(), &workspace::files()?)?))?;
    steps.step("format", || process::run(workspace::cargo(&["fmt", "--all", "--check"])))?;
    steps.step("clippy", || {
        process::run(workspace::cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]))
    })?;
    steps.step("docs", || {
        let mut doc = workspace::cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        process::run(doc)
    })
}

fn none(findings: Vec<String>) -> Result<(), Failure> {
    if findings.is_empty() {
        return Ok(());
    }
    for finding in findings.iter().take(FINDINGS_MAX) {
        eprintln!("  {finding}");
    }
    Err(format!("{} findings", findings.len()).into())
}
