//! `cargo xtask bench`: builds a release server and the driver, and lets the driver measure.

use std::process::Command;

use crate::{Failure, machine, process, ui, workspace};

/// Arguments go to the driver unread; `bench/README.md` names them.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    machine::provide(machine::TO_BUILD)?;
    ui::build()?;
    process::run(workspace::cargo(&[
        "build",
        "--locked",
        "--release",
        "--bins",
        "-p",
        "spanflame-cli",
        "-p",
        "spanflame-bench",
    ]))?;
    let release = workspace::target_dir()?.join("release");
    let mut driver = Command::new(release.join("spanflame-bench"));
    driver
        .current_dir(workspace::root())
        .args(arguments)
        .arg("--server")
        .arg(release.join("spanflame"));
    process::run(driver)
}
