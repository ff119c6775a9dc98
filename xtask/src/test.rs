//! `cargo xtask test`: all of CI, on a machine that has Rust and nothing else of ours.

use crate::demo::{self, Browse, Options};
use crate::steps::Steps;
use crate::{Failure, check, conformance, faults, fuzz, machine, process, ui, workspace};

/// Sets up, checks, runs the demo with its verdict, the published clients, servers that die, the fuzz targets, and every test.
pub(crate) fn run() -> Result<(), Failure> {
    let mut steps = Steps::new();
    steps.step("what the machine lacks", || {
        machine::provide(machine::TO_BUILD).and_then(|()| machine::provide(machine::TO_READ_TABLES))
    })?;
    steps.step("page", || ui::build().and_then(|()| ui::check()))?;
    check::run_into(&mut steps)?;
    steps.step("demo and page in a browser", || {
        demo::run(&Options {
            check: true,
            data: None,
            port_base: None,
            browse: Some(Browse::Test),
            relay: None,
        })
    })?;
    steps.step("published clients", || conformance::run(&[]))?;
    steps.step("servers that die", || faults::run(&[]))?;
    steps.step("fuzz targets", || fuzz::run(&fuzz::Options::in_ci()))?;
    steps.step("tests", || process::run(workspace::cargo(&["test", "--workspace", "--locked"])))?;
    steps.summary();
    Ok(())
}
