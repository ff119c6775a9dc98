//! What the asking commands print about a recording whose truth is known.

use crate::program::{Server, run, scratch};
use crate::recording::{FAST_TRACE, RECORDED, SLOW_CHILD, SLOW_ROOT, SLOW_TRACE, send, upload};

fn started() -> (tempfile::TempDir, Server) {
    let (folder, data) = scratch();
    let server = Server::start(&data);
    send(&server);
    (folder, server)
}

fn asked_in_the_recording(server: &Server, words: &[&str]) -> crate::program::Ran {
    server.ask(&[words, &RECORDED].concat())
}

#[test]
fn a_slow_request_is_explained_by_what_was_planted() {
    let (_folder, server) = started();
    let why = server.ask(&["why", SLOW_TRACE]).expect(0).stdout;
    for expected in [
        "GET /slow",
        "child.compute",
        "planted_hot_path",
        "evidence: ",
        &format!("page: {}/trace/{SLOW_TRACE}?span={SLOW_ROOT}", server.http),
    ] {
        assert!(why.contains(expected), "{expected}: {why}");
    }
    assert!(!why.contains("ordinary_work") && !why.contains('\u{1b}'), "{why}");
    let fast = server.ask(&["why", FAST_TRACE]).expect(0).stdout;
    assert!(!fast.contains("planted_hot_path"), "{fast}");
}

#[test]
fn a_child_without_samples_of_its_own_says_why() {
    let (_folder, server) = started();
    let why = server
        .ask(&["why", &format!("{SLOW_TRACE}/{SLOW_CHILD}"), "--scope", "span"])
        .expect(0)
        .stdout;
    assert!(why.contains("no CPU samples of the span itself\nwhy: "), "{why}");
    assert!(why.contains(SLOW_ROOT), "the reason names the root: {why}");
}

#[test]
fn json_passes_on_the_answers() {
    let (_folder, server) = started();
    let why = server.ask(&["why", SLOW_TRACE, "--json"]).expect(0).json();
    assert_eq!(why["trace"]["trace_id"], SLOW_TRACE);
    assert_eq!(why["span_id"], SLOW_ROOT);
    assert!(why["profiles"][0]["samples"].as_u64() > Some(0), "{why}");
    let spans = asked_in_the_recording(&server, &["spans", "{ }", "--json", "--limit", "3"])
        .expect(0)
        .json();
    assert_eq!(spans["spans"].as_array().map(Vec::len), Some(3));
    let inspect = asked_in_the_recording(&server, &["inspect", "--json"]).expect(0).json();
    assert_eq!(inspect["services"]["services"][0]["name"], "zoo-go");
}

#[test]
fn spans_are_sorted_counted_and_paged() {
    let (_folder, server) = started();
    let table = asked_in_the_recording(&server, &["spans", "{ name = \"GET /slow\" }", "--limit", "2"])
        .expect(0)
        .stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("start") && lines[1].contains("GET /slow"), "{table}");
    assert!(lines[3].starts_with("2 of 22 spans; more: the same with --page "), "{table}");
    let page = lines[3].rsplit(' ').next().expect("a page");
    let next = asked_in_the_recording(&server, &["spans", "{ name = \"GET /slow\" }", "--limit", "100", "--page", page])
        .expect(0)
        .stdout;
    assert_eq!(next.lines().filter(|line| line.contains("GET /slow")).count(), 20, "{next}");
}

#[test]
fn nothing_found_is_code_1_and_a_mistake_code_2() {
    let (_folder, server) = started();
    let nothing = server.ask(&["why", "11111111111111111111111111111111"]).expect(1);
    assert!(
        nothing.stderr.starts_with("nothing found: ") && nothing.stdout.is_empty(),
        "{}",
        nothing.stderr
    );
    asked_in_the_recording(&server, &["spans", "{ name = \"no such\" }"]).expect(1);
    asked_in_the_recording(&server, &["profile", "--service", "no-such"]).expect(1);
    let query = server.ask(&["spans", "{ duration > }"]).expect(2);
    assert!(
        query.stderr.contains("answers 400: ")
            && query.stderr.contains("line 1")
            && query.stderr.ends_with("\n  { duration > }\n               ^\n"),
        "{}",
        query.stderr
    );
    server.ask(&["why", "no-id"]).expect(2);
    server.ask(&["spans", "{ }", "--start", "yesterday"]).expect(2);
    server.ask(&["spans", "{ }", "--tenant", "a/b"]).expect(2);
    run(&["no-such-command"]).expect(2);
    run(&["why", SLOW_TRACE, "--server", &server.http, "--data", "x"]).expect(2);
}

#[test]
fn a_server_that_is_not_there_says_how_to_start_one() {
    let ran = run(&["spans", "--server", "http://127.0.0.1:1"]).expect(2);
    assert!(
        ran.stderr
            .starts_with("error: no answer from http://127.0.0.1:1; start a server with `spanflame serve`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn another_tenant_sees_nothing() {
    let (_folder, server) = started();
    server.ask(&["why", SLOW_TRACE, "--tenant", "other"]).expect(1);
    server.ask(&["why", SLOW_TRACE, "--tenant", "other|anonymous"]).expect(0);
}

#[test]
fn an_upload_sent_twice_is_kept_once() {
    let (_folder, server) = started();
    let again = upload(&server).expect(1);
    assert!(again.stdout.ends_with("0 profiles stored, 1 known before\n"), "{}", again.stdout);
}

#[test]
fn a_profile_comes_in_every_format() {
    let (folder, server) = started();
    let of = format!("{SLOW_TRACE}/{SLOW_ROOT}");
    let top = server.ask(&["profile", "--span", &of]).expect(0).stdout;
    assert!(top.contains("planted_hot_path") && top.contains("evidence: "), "{top}");
    let tree = server.ask(&["profile", "--span", &of, "--format", "tree"]).expect(0).stdout;
    assert!(tree.contains("planted_hot_path"), "{tree}");
    let collapsed = server.ask(&["profile", "--span", &of, "--format", "collapsed"]).expect(0).stdout;
    assert!(
        collapsed
            .lines()
            .all(|line| line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<i64>().is_ok())),
        "{collapsed}"
    );
    let file = folder.path().join("out.pb.gz").display().to_string();
    server.ask(&["profile", "--span", &of, "--format", "pprof", "-o", &file]).expect(0);
    let again = run(&["convert", &file, "-", "--to", "collapsed"]).expect(0).stdout;
    assert!(again.contains("planted_hot_path"), "{again}");
    let services = asked_in_the_recording(&server, &["profile", "--service", "zoo-go"])
        .expect(0)
        .stdout;
    assert!(
        services.contains("ordinary_work") && services.contains("planted_hot_path"),
        "{services}"
    );
}

#[test]
fn a_file_that_is_no_profile_does_not_stop_the_others() {
    let (folder, server) = started();
    let [bad, good] = ["bad.bin", "good.collapsed"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&bad, [0xff, 0xfe, 0]).expect("the file can be written");
    std::fs::write(&good, "main;work 3\n").expect("the file can be written");
    let ran = server
        .ask(&["upload", &bad, &good, "--service", "batch", "--time", "now"])
        .expect(2);
    assert!(ran.stdout.contains("good.collapsed: 1 profile stored"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("bad.bin cannot be read as a profile") && ran.stderr.contains("1 of 2 files were not stored"),
        "{}",
        ran.stderr
    );
}
