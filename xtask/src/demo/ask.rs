//! Questions to the server by its own command line, as a user asks them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Failure, process};

/// The binary and the server it asks.
pub(super) struct Ask {
    binary: PathBuf,
    server: String,
}

/// The function at the top of a profile, by its own samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hottest {
    pub(super) function: String,
    pub(super) samples: u64,
    pub(super) of_samples: u64,
}

impl Ask {
    pub(super) fn new(binaries: &Path, server: &str) -> Ask {
        Ask {
            binary: binaries.join("spanflame"),
            server: server.to_owned(),
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).args(["--server", &self.server]);
        command
    }

    /// Shows the command and its answer on the terminal.
    pub(super) fn show(&self, words: &[&str]) -> Result<(), Failure> {
        println!(
            "\n$ spanflame {}",
            words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
        );
        process::run(self.command(words))
    }

    /// The command's answer as JSON; `None` if it found nothing (exit code 1).
    pub(super) fn json(&self, words: &[&str]) -> Result<Option<Value>, Failure> {
        process::check_interrupt()?;
        let mut command = self.command(words);
        command.arg("--json");
        let output = command.output()?;
        match output.status.code() {
            Some(0) => Ok(Some(serde_json::from_slice(&output.stdout)?)),
            Some(1) => Ok(None),
            _ => Err(format!(
                "{} failed: {}",
                process::describe(&command),
                String::from_utf8_lossy(&output.stderr).trim()
            )
            .into()),
        }
    }
}

fn quoted(word: &str) -> String {
    if word.contains([' ', '{', '"']) {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

/// Own samples of each function of a profile answer, most first.
pub(super) fn own_samples(profile: &Value) -> Vec<(String, u64)> {
    let tree = &profile["tree"];
    let column = |name: &str| tree[name].as_array().cloned().unwrap_or_default();
    let (frames, parents, samples) = (column("frame"), column("parent"), column("samples"));
    // A node's samples include its children's: what is left after taking those away is its own.
    let mut own: Vec<i64> = samples.iter().map(|count| count.as_i64().unwrap_or_default()).collect();
    for (node, parent) in parents.iter().enumerate().skip(1) {
        let parent = parent.as_u64().unwrap_or_default() as usize;
        if parent < node && node < own.len() {
            own[parent] -= samples[node].as_i64().unwrap_or_default();
        }
    }
    let mut by_function = std::collections::BTreeMap::<String, u64>::new();
    for (node, count) in own.iter().enumerate().skip(1).filter(|(_, count)| **count > 0) {
        let frame = frames.get(node).and_then(Value::as_u64).unwrap_or_default() as usize;
        let function = profile["frames"][frame]["function"].as_str().unwrap_or("(unresolved)");
        *by_function.entry(function.to_owned()).or_default() += *count as u64;
    }
    let mut functions: Vec<(String, u64)> = by_function.into_iter().collect();
    functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    functions
}

/// The hottest function of a profile answer; `None` if the profile is empty.
pub(super) fn hottest(profile: &Value) -> Option<Hottest> {
    let functions = own_samples(profile);
    let of_samples = functions.iter().map(|(_, samples)| samples).sum();
    let (function, samples) = functions.into_iter().next()?;
    Some(Hottest {
        function,
        samples,
        of_samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hottest_function_is_counted_over_all_its_nodes() {
        let profile = json!({
            "frames": [{"function": "root"}, {"function": "serve"}, {"function": "match"}],
            "tree": { "frame": [0, 1, 2, 2], "parent": [0, 0, 1, 2], "samples": [10, 10, 7, 4] }
        });
        assert_eq!(
            hottest(&profile),
            Some(Hottest {
                function: "match".into(),
                samples: 7,
                of_samples: 10
            })
        );
    }

    #[test]
    fn an_empty_profile_has_no_hottest_function() {
        assert_eq!(
            hottest(&json!({ "frames": [], "tree": { "frame": [], "parent": [], "samples": [] } })),
            None
        );
    }
}
