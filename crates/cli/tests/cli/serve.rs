//! The life of a server: killed, stopped, over one directory, with wrong settings.

use crate::program::{Server, run, scratch};
use crate::recording::{SLOW_TRACE, send};

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let (_folder, data) = scratch();
    let server = Server::start(&data);
    send(&server);
    let before = server.ask(&["why", SLOW_TRACE, "--json"]).expect(0).json();
    server.kill();
    let server = Server::start(&data);
    let after = server.ask(&["why", SLOW_TRACE, "--json"]).expect(0).json();
    assert_eq!(before["trace"]["spans"], after["trace"]["spans"]);
    assert_eq!(before["profiles"][0]["tree"], after["profiles"][0]["tree"]);
}

#[test]
fn a_directory_that_a_server_holds_is_refused_and_read_once_it_is_free() {
    let (_folder, data) = scratch();
    let server = Server::start(&data);
    send(&server);
    let by_http = server.ask(&["why", SLOW_TRACE, "--json"]).expect(0).json();
    let data = data.display().to_string();
    let refused = run(&["why", SLOW_TRACE, "--data", &data]).expect(2);
    assert!(
        refused.stderr.contains("is in use by process") && refused.stderr.contains("--server URL"),
        "{}",
        refused.stderr
    );
    assert_eq!(server.stop(), 0);
    let from_data = run(&["why", SLOW_TRACE, "--data", &data, "--json"]).expect(0).json();
    for part in ["trace_id", "services", "spans"] {
        assert_eq!(by_http["trace"][part], from_data["trace"][part]);
    }
    assert_eq!(by_http["profiles"][0]["tree"], from_data["profiles"][0]["tree"]);
    assert_eq!(by_http["profiles"][0]["evidence"], from_data["profiles"][0]["evidence"]);
    let inspected = run(&["inspect", "--data", &data, "--json"]).expect(0);
    assert_eq!(inspected.stderr, "");
    let tables = inspected.json()["tables"].as_array().cloned().unwrap_or_default();
    let rows = |name: &str| {
        tables
            .iter()
            .filter(|part| part["table"] == name)
            .filter_map(|part| part["rows"].as_u64())
            .sum::<u64>()
    };
    assert_eq!((rows("spans"), rows("samples") > 0), (228, true), "{tables:?}");
}

#[test]
fn all_mistakes_in_settings_are_told_at_once() {
    let ran = run(&["serve", "--http", "4040", "--retention-raw", "5", "--flush-bytes", "many"]).expect(2);
    for flag in ["--http", "--retention-raw", "--flush-bytes"] {
        assert!(ran.stderr.contains(flag), "{flag}: {}", ran.stderr);
    }
}

#[test]
fn a_directory_that_is_not_there_is_not_made_by_a_question() {
    let (_folder, data) = scratch();
    let text = data.display().to_string();
    run(&["spans", "--data", &text]).expect(2);
    assert!(!data.exists());
}

#[test]
fn a_server_that_took_nothing_stops_well_each_time() {
    let (_folder, data) = scratch();
    for _ in 0..2 {
        assert_eq!(Server::start(&data).stop(), 0);
    }
}
