//! The dialects of other products: the tables of their pages say what is served.

use std::collections::{BTreeMap, BTreeSet};

use spanflame_server::{Dialect, dialects};
use tempfile::TempDir;

use crate::harness::{TestServer, config, reply};
use crate::scenario;

/// Endpoint and status of every row of the page's table.
fn documented(dialect: &Dialect) -> BTreeMap<(String, String), String> {
    let path = format!("{}/../../docs/{}.md", env!("CARGO_MANIFEST_DIR"), dialect.name);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut rows = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some((method, path)) = cells[1].trim_matches('`').split_once(' ').filter(|(_, path)| path.starts_with('/')) else {
            continue;
        };
        let status = cells[2].to_owned();
        assert!(["served", "differs", "refused"].contains(&status.as_str()), "{line}");
        assert!(status == "served" || !cells[3].is_empty(), "a note is missing: {line}");
        let earlier = rows.insert((method.to_owned(), path.to_owned()), status);
        assert_eq!(earlier, None, "listed twice: {line}");
    }
    rows
}

#[test]
fn every_endpoint_that_is_mounted_is_documented_and_the_other_way_round() {
    for dialect in dialects() {
        let rows = documented(&dialect);
        let mounted: BTreeSet<(String, String)> = dialect.endpoints.iter().map(|(m, p)| ((*m).to_owned(), (*p).to_owned())).collect();
        let refused = |row: &&(String, String)| rows[*row] == "refused";
        let listed: BTreeSet<(String, String)> = rows.keys().filter(|row| !refused(row) || mounted.contains(*row)).cloned().collect();
        assert_eq!(listed, mounted, "docs/{}.md", dialect.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_pages_call_refused_is_answered_with_an_error() {
    let directory = TempDir::new().expect("a directory");
    let server = TestServer::start(config(directory.path())).await;
    for dialect in dialects() {
        for ((method, path), status) in documented(&dialect) {
            if status == "refused" && method != "gRPC" {
                let path = format!("{}{}", dialect.prefix, path.replace(['{', '}'], ""));
                let reply = reply(server.request_to(&method, &path)).await;
                assert!(reply.status >= 400, "{method} {path}: {}", reply.status);
            }
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tempo_answers_what_its_clients_ask() {
    scenario::check("tempo").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jaeger_answers_what_its_clients_ask() {
    scenario::check("jaeger").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyroscope_answers_what_its_clients_ask() {
    scenario::check("pyroscope").await;
}
