//! Where things are: the checkout, its files, the folder that cargo builds into.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Failure;

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// What `cargo run` tells us about our own package. Build scripts watch some of these (ring's does), so cargo would build half the
/// workspace again whenever it is started by us after it was started by hand, and the other way round.
const OWN_PACKAGE_VARIABLES: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Cargo, run in the root of the checkout.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    for (name, _) in std::env::vars_os() {
        if OWN_PACKAGE_VARIABLES
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command
}

/// What `cargo metadata` says about the packages of this workspace; fails if `Cargo.lock` would have to change.
pub(crate) fn metadata() -> Result<Value, Failure> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]).output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata --locked failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The folder that cargo builds into; respects `CARGO_TARGET_DIR`.
pub(crate) fn target_dir() -> Result<PathBuf, Failure> {
    match metadata()?["target_directory"].as_str() {
        Some(path) => Ok(PathBuf::from(path)),
        None => Err("cargo metadata names no target_directory".into()),
    }
}

/// The files of the checkout, relative to its root, tracked or new, without those that git ignores or that were deleted.
pub(crate) fn files() -> Result<Vec<PathBuf>, Failure> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()?;
    if !output.status.success() {
        return Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let names = String::from_utf8(output.stdout)?;
    Ok(names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect())
}
