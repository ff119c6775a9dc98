//! Commands that need no server: help, settings, completions.

use crate::program::{command, run};

#[test]
fn every_command_has_help_with_examples() {
    for name in [
        "serve",
        "why",
        "spans",
        "profile",
        "convert",
        "upload",
        "inspect",
        "repair",
        "config",
        "completions",
    ] {
        let help = run(&[name, "--help"]).expect(0).stdout;
        assert!(help.contains("Usage: spanflame ") && help.contains("Examples:"), "{name}: {help}");
    }
    assert!(run(&["--version"]).expect(0).stdout.starts_with("spanflame "));
}

#[test]
fn the_settings_that_are_printed_can_be_read_again() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("spanflame.toml");
    let printed = run(&["config", "--retention-raw", "3d"]).expect(0).stdout;
    assert!(
        printed.contains("\nretention_raw = ") && printed.contains("# flush_interval = "),
        "{printed}"
    );
    std::fs::write(&file, &printed).expect("the file can be written");
    let again = run(&["config", "--config", &file.display().to_string()]).expect(0).stdout;
    assert_eq!(printed, again);
}

#[test]
fn a_variable_is_a_setting_and_a_wrong_one_a_mistake() {
    let set = command(&["config", "--json"])
        .env("SPANFLAME_FLUSH_INTERVAL", "7s")
        .output()
        .expect("the binary runs");
    let settings: serde_json::Value = serde_json::from_slice(&set.stdout).expect("JSON");
    let flush = settings["settings"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["name"] == "flush_interval"));
    assert_eq!(flush.map(|flush| flush["value"].clone()), Some("7s".into()));
    let wrong = command(&["config"])
        .env("SPANFLAME_FLUSH_INTERVAL", "soon")
        .output()
        .expect("the binary runs");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("SPANFLAME_FLUSH_INTERVAL is \"soon\""));
}

#[test]
fn completions_know_the_flags_of_the_settings() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("retention-raw"), "{shell}");
    }
}
