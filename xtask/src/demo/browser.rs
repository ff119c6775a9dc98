//! The page in a browser, on what the demo has stored: its tests, and pictures of its screens.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::record::{Plant, Record};
use super::stage::Stage;
use crate::machine::{self, TO_BROWSE};
use crate::{Failure, process, ui, workspace};

/// Runs the browser tests.
pub(super) fn test(stage: &Stage, records: &[Record]) -> Result<(), Failure> {
    prepare()?;
    let planted = write_planted(stage, records)?;
    process::run(node("e2e/run.mjs", stage, &[&planted]))
}

/// Takes pictures of every screen into `folder`.
pub(super) fn picture(stage: &Stage, records: &[Record], folder: &Path) -> Result<(), Failure> {
    prepare()?;
    let planted = write_planted(stage, records)?;
    process::run(node("e2e/screenshots.mjs", stage, &[&planted, folder]))?;
    println!("pictures of the screens are in {}", folder.display());
    Ok(())
}

fn prepare() -> Result<(), Failure> {
    machine::provide(TO_BROWSE)?;
    ui::install()
}

/// A script of the page's folder, told the server and some files.
fn node(script: &str, stage: &Stage, files: &[&Path]) -> Command {
    let mut command = Command::new("node");
    command
        .arg(script)
        .arg(stage.http())
        .args(files)
        .current_dir(workspace::root().join("ui"));
    command
}

/// Tells the tests where the large carts are.
fn write_planted(stage: &Stage, records: &[Record]) -> Result<PathBuf, Failure> {
    let planted = records.iter().filter(|record| record.plant == Plant::LargeCart).map(|record| {
        serde_json::json!({
            "trace_id": record.trace_id,
            "service": "cart",
            "span": "render cart",
            "function": "serialize_lines_again",
        })
    });
    let path = stage.file("planted.json");
    std::fs::write(&path, serde_json::Value::from(planted.collect::<Vec<_>>()).to_string())?;
    Ok(path)
}
