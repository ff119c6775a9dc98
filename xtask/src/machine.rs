//! What a fresh Debian machine lacks beside Rust and its linker.

use std::path::Path;
use std::process::Command;

use crate::{Failure, process};

/// Something a step needs: how to see that it is there, and the Debian package that brings it.
pub(crate) struct Need {
    /// A command on the path, or an absolute path.
    probe: &'static str,
    package: &'static str,
}

/// To build: zstd, ring and aws-lc compile C, jemalloc is built by make.
pub(crate) const TO_BUILD: &[Need] = &[
    Need {
        probe: "cc",
        package: "gcc",
    },
    Need {
        probe: "g++",
        package: "g++",
    },
    Need {
        probe: "make",
        package: "make",
    },
];

/// To bring in Python packages that read our tables.
pub(crate) const TO_READ_TABLES: &[Need] = &[
    Need {
        probe: "python3",
        package: "python3",
    },
    Need {
        probe: "/usr/share/doc/python3-venv",
        package: "python3-venv",
    },
];

/// Installs what is missing; says so before it does. Does nothing, and needs no rights, if nothing is missing.
pub(crate) fn provide(needs: &[Need]) -> Result<(), Failure> {
    let missing: Vec<&str> = needs.iter().filter(|need| !is_there(need.probe)).map(|need| need.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {} by apt-get", missing.join(", "));
    process::run(as_root(&["apt-get", "update", "-q"]))?;
    let mut install = vec!["apt-get", "install", "-y", "-q", "--no-install-recommends"];
    install.extend(missing);
    process::run(as_root(&install))
}

fn is_there(probe: &str) -> bool {
    if probe.starts_with('/') {
        return Path::new(probe).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(probe).is_file())
}

fn as_root(words: &[&str]) -> Command {
    // SAFETY: a plain system call that cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let mut command = Command::new(if is_root { words[0] } else { "sudo" });
    command
        .args(if is_root { &words[1..] } else { words })
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_seen_and_what_is_not_is_missed() {
        assert!(is_there("sh"));
        assert!(is_there("/proc"));
        assert!(!is_there("no-such-command-here"));
    }
}
