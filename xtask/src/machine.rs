//! What a fresh Debian machine lacks beside Rust and its linker.

use std::process::{Command, Stdio};

use crate::{Failure, process};

/// Something a step needs: a command that succeeds where it is there, and the Debian package that brings it.
pub(crate) struct Need {
    probe: &'static [&'static str],
    package: &'static str,
}

/// To build: zstd, ring and aws-lc compile C, jemalloc is built by make.
pub(crate) const TO_BUILD: &[Need] = &[
    Need {
        probe: &["cc", "--version"],
        package: "gcc",
    },
    Need {
        probe: &["g++", "--version"],
        package: "g++",
    },
    Need {
        probe: &["make", "--version"],
        package: "make",
    },
];

/// To bring in Python packages that read our tables.
pub(crate) const TO_READ_TABLES: &[Need] = &[
    Need {
        probe: &["python3", "--version"],
        package: "python3",
    },
    Need {
        probe: &["python3", "-c", "import ensurepip, venv"],
        package: "python3-venv",
    },
];

/// To run a Java service with what Maven brings.
pub(crate) const TO_RUN_JAVA: &[Need] = &[
    Need {
        probe: &["javac", "-version"],
        package: "openjdk-17-jdk-headless",
    },
    Need {
        probe: &["mvn", "--version"],
        package: "maven",
    },
];

/// To look at the page: the browser of its tests.
pub(crate) const TO_BROWSE: &[Need] = &[Need {
    probe: &["chromium", "--version"],
    package: "chromium",
}];

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

fn is_there(probe: &[&str]) -> bool {
    let [program, arguments @ ..] = probe else { return false };
    let quiet = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
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
        assert!(is_there(&["true"]));
        assert!(!is_there(&["false"]));
        assert!(!is_there(&["no-such-command-here"]));
    }
}
