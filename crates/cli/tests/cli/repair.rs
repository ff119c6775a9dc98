//! A directory whose medium changed a file: what the commands say and mend.

use std::path::{Path, PathBuf};

use crate::program::{Server, run, scratch};
use crate::recording::{SLOW_TRACE, send};

/// A file of a table.
fn table_file(data: &Path, table: &str) -> PathBuf {
    let mut folder = data.join(table).join("tenant=anonymous");
    while folder.is_dir() {
        let mut entries = std::fs::read_dir(&folder).expect("listed");
        folder = entries.next().expect("not empty").expect("listed").path();
    }
    folder
}

#[test]
fn damage_is_named_and_repaired_only_with_yes() {
    let (_folder, data) = scratch();
    let server = Server::start(&data);
    send(&server);
    assert_eq!(server.stop(), 0);
    let directory = data.display().to_string();
    let whole = run(&["inspect", "--verify", "--data", &directory]).expect(0).stdout;
    assert!(whole.ends_with("all is as it was written\n"), "{whole}");
    run(&["repair", "--data", &directory]).expect(1);

    let harmed = table_file(&data, "samples");
    let name = harmed.file_name().expect("a file").to_string_lossy().into_owned();
    let bytes = std::fs::read(&harmed).expect("read");
    std::fs::write(&harmed, &bytes[..bytes.len() / 2]).expect("written");
    let found = run(&["inspect", "--verify", "--data", &directory]).expect(2);
    assert!(
        found.stdout.contains("damaged_file") && found.stdout.contains(&name),
        "{}",
        found.stdout
    );
    assert!(found.stderr.contains("spanflame repair --data"), "{}", found.stderr);
    let server = Server::start(&data);
    server.ask(&["why", SLOW_TRACE]).expect(0);
    let held = run(&["repair", "--data", &directory]).expect(2).stderr;
    assert!(held.contains("in use by process"), "{held}");
    assert_eq!(server.stop(), 0);

    let plan = run(&["repair", "--data", &directory]).expect(0);
    assert!(plan.stderr.contains("nothing was changed"), "{}", plan.stderr);
    assert!(harmed.exists());
    let done = run(&["repair", "--data", &directory, "--yes", "--json"]).expect(0).json();
    assert_eq!(done["found"]["findings"][0]["kind"], "damaged_file");
    assert!(done["rows_lost"].as_u64() > Some(0), "{done}");
    assert!(data.join("quarantine/samples").is_dir());
    run(&["inspect", "--verify", "--data", &directory]).expect(0);
    run(&["why", SLOW_TRACE, "--data", &directory]).expect(0);
}

#[test]
fn what_is_no_directory_is_said_so() {
    for words in [
        ["inspect", "--verify", "--data", "no-such"],
        ["repair", "--yes", "--data", "no-such"],
    ] {
        let refused = run(&words).expect(2).stderr;
        assert!(
            refused.contains("--data is \"no-such\", expected an existing directory"),
            "{refused}"
        );
    }
}
