//! `cargo xtask ui`: the web page, built where the server's build script picks it up.
//!
//! Node is asked for only when a file of `ui/` changed since the last time: a stamp beside the result holds a hash of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, process, workspace};

/// Where `crates/server/build.rs` looks.
const BUILT: &str = "crates/server/page/built";
/// Version of Node that the page's tools need, at least.
const NODE_MIN: (u32, u32) = (20, 19);

/// Builds the page if it changed.
pub(crate) fn build() -> Result<(), Failure> {
    let root = workspace::root();
    let built = root.join(BUILT);
    let stamp = stamp(&root)?;
    if std::fs::read_to_string(built.join(".stamp")).is_ok_and(|known| known == stamp) {
        println!("the page is up to date");
        return Ok(());
    }
    install()?;
    process::run(npm(&["run", "build"]))?;
    let _ = std::fs::remove_dir_all(&built);
    copy(&root.join("ui/dist"), &built)?;
    std::fs::write(built.join(".stamp"), stamp)?;
    Ok(())
}

/// Lints, types, budget and unit tests of the page.
pub(crate) fn check() -> Result<(), Failure> {
    install()?;
    process::run(npm(&["run", "check"]))?;
    process::run(npm(&["test"]))
}

/// The page's packages, exactly as locked; nothing to do while the lock file stays the same.
pub(crate) fn install() -> Result<(), Failure> {
    check_node()?;
    let ui = workspace::root().join("ui");
    let lock = std::fs::read_to_string(ui.join("package-lock.json"))?;
    let note = ui.join("node_modules/.spanflame-lock");
    if std::fs::read_to_string(&note).is_ok_and(|known| known == lock) {
        return Ok(());
    }
    process::run(npm(&["ci", "--no-audit", "--no-fund"]))?;
    Ok(std::fs::write(note, lock)?)
}

/// npm in `ui/`.
pub(crate) fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(workspace::root().join("ui"));
    command
}

fn check_node() -> Result<(), Failure> {
    let wanted = format!("{}.{} or later", NODE_MIN.0, NODE_MIN.1);
    let output = Command::new("node").arg("--version").output();
    let output = output
        .map_err(|error| format!("the page is built by Node {wanted}, and `node --version` fails: {error}; see https://nodejs.org"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut numbers = text.trim_start_matches('v').split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match version >= NODE_MIN {
        true => Ok(()),
        false => Err(format!("node is {text}, the page is built by {wanted}; see https://nodejs.org").into()),
    }
}

/// Tells one state of `ui/` from another.
fn stamp(root: &Path) -> Result<String, Failure> {
    let mut files: Vec<PathBuf> = workspace::files()?.into_iter().filter(|file| file.starts_with("ui")).collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        std::fs::read(root.join(&file))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
