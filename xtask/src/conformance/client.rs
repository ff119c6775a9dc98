//! The clients: what each needs, and how it is run.

use std::path::Path;
use std::process::Command;

use super::Linked;
use crate::{Failure, process, workspace};

/// A program in `examples/clients`.
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) linked: Linked,
    language: Language,
    /// What the program takes after the server, the file of truth and the seconds.
    arguments: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Language {
    Go,
    Python,
    Node,
}

const CLIENTS: [Client; 4] = [
    Client {
        name: "go-root",
        linked: Linked::Root,
        language: Language::Go,
        arguments: &["root"],
    },
    Client {
        name: "go-all",
        linked: Linked::Child,
        language: Language::Go,
        arguments: &["all"],
    },
    Client {
        name: "python",
        linked: Linked::Root,
        language: Language::Python,
        arguments: &[],
    },
    Client {
        name: "node",
        linked: Linked::Root,
        language: Language::Node,
        arguments: &[],
    },
];

impl Client {
    /// The clients of these names; all if there are none.
    pub(super) fn chosen(names: &[String]) -> Result<Vec<Client>, Failure> {
        let known = CLIENTS.map(|client| client.name);
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("unknown client {unknown}, expected some of {}", known.join(", ")).into());
        }
        let chosen = CLIENTS
            .into_iter()
            .filter(|client| names.is_empty() || names.iter().any(|name| name == client.name));
        Ok(chosen.collect())
    }

    /// Installs what the program needs below `folder`, unless an earlier run did.
    pub(super) fn set_up(&self, folder: &Path) -> Result<(), Failure> {
        match self.language {
            Language::Go => {
                let mut build = Command::new("go");
                build
                    .args(["build", "-o"])
                    .arg(folder.join("go"))
                    .arg(".")
                    .current_dir(source("go"));
                process::run(build)
            }
            Language::Python => {
                let (venv, wanted) = (folder.join("python"), source("python").join("requirements.txt"));
                if !venv.join("bin/pip").exists() {
                    let mut create = Command::new("python3");
                    create.args(["-m", "venv"]).arg(&venv);
                    process::run(create)?;
                }
                let mut install = Command::new(venv.join("bin/pip"));
                install
                    .args(["install", "--quiet", "--disable-pip-version-check", "-r"])
                    .arg(wanted);
                process::run(install)
            }
            Language::Node => {
                let modules = folder.join("node");
                std::fs::create_dir_all(&modules)?;
                for file in ["package.json", "main.js"] {
                    std::fs::copy(source("node").join(file), modules.join(file))?;
                }
                let mut install = Command::new("npm");
                install.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--prefer-offline"]);
                process::run(with_dir(install, &modules))
            }
        }
    }

    /// The program, set up, on its way.
    pub(super) fn command(&self, folder: &Path, http: &str, truth: &Path, seconds: u32) -> Command {
        let mut command = match self.language {
            Language::Go => Command::new(folder.join("go")),
            Language::Python => {
                let mut command = Command::new(folder.join("python/bin/python"));
                command.arg(source("python").join("main.py"));
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.arg(folder.join("node/main.js"));
                command
            }
        };
        command.arg(http).arg(truth).arg(seconds.to_string()).args(self.arguments);
        command
    }
}

fn source(language: &str) -> std::path::PathBuf {
    workspace::root().join("examples/clients").join(language)
}

fn with_dir(mut command: Command, folder: &Path) -> Command {
    command.current_dir(folder);
    command
}
