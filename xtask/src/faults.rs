//! `cargo xtask faults`: servers that die under clients that send again.

use std::process::Command;

use crate::{Failure, machine, process, workspace};

/// Builds the debug server, which can be told to die at named points, and the driver; arguments go to it unread.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    machine::provide(machine::TO_BUILD)?;
    process::run(workspace::cargo(&[
        "build",
        "--locked",
        "--bins",
        "-p",
        "spanflame-cli",
        "-p",
        "spanflame-bench",
    ]))?;
    let folder = workspace::target_dir()?;
    let (debug, work_dir) = (folder.join("debug"), folder.join(format!("faults-{}", std::process::id())));
    let mut driver = Command::new(debug.join("spanflame-bench"));
    driver
        .arg("faults")
        .arg("--server")
        .arg(debug.join("spanflame"))
        .arg("--work-dir")
        .arg(&work_dir)
        .args(arguments);
    // What a failure left behind is worth looking at.
    process::run(driver)?;
    Ok(std::fs::remove_dir_all(work_dir)?)
}
