//! Others read the tables as they are: Delta Lake's own reader and DuckDB.
//!
//! `tests/python/setup.sh` makes their environment below the build folder, once; it needs `python3` with
//! `venv` and a package index.

#[allow(dead_code, reason = "shared by test files that each use a part")]
mod workload;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use spanflame_model::Tenant;
use spanflame_store::{Store, StoreOptions};
use workload::batch;

/// Runs a command and returns its output; its own words are the failure.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn read_with_python(data: &Path) -> Value {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let environment = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = output(Command::new(scripts.join("setup.sh")).arg(environment));
    let text = output(Command::new(python.trim()).arg(scripts.join("read.py")).arg(data));
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn delta_lake_and_duckdb_read_what_was_written_and_merged() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let options = StoreOptions {
        data: dir.path().display().to_string(),
        ..StoreOptions::default()
    };
    let store = Store::open(options).await.expect("opened");
    let tenants: [Tenant; 2] = ["anonymous", "team-a.(1)*"].map(|name| name.parse().expect("valid"));
    for seed in 1..=4 {
        for tenant in &tenants {
            store.append(tenant, batch(seed, 10)).await.expect("appended");
        }
        store.flush().await.expect("flushed");
        if seed == 3 {
            store.maintain().await.expect("maintained");
        }
    }
    store.close().await.expect("closed");
    let found = read_with_python(dir.path());
    // The rollup holds what was there when it ran: one row for each of 7 span names and each tenant.
    for (table, rows) in [("spans", 80), ("samples", 80), ("stacks", 2), ("frames", 4), ("profiles", 14)] {
        assert_eq!(found[table]["rows"], rows, "{table}");
        assert_eq!(found[table]["rows_by_log"], rows, "{table}");
    }
    assert_eq!(found["spans"]["tenants"], serde_json::json!(["anonymous", "team-a.(1)*"]));
    assert_eq!(found["spans"]["columns"][0], "tenant");
    // 2 tenants, 4 batches, values 1 to 10.
    assert_eq!(found["functions"], serde_json::json!([["leaf", 2 * 4 * 55]]));
}
