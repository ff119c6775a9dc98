//! `spanflame convert` between files and pipes.

use crate::program::{run, run_with_input};
use crate::recording::file;

/// Stacks and values of collapsed text, in an order of their own.
fn stacks(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn every_format_that_is_written_reads_back_to_the_same_stacks() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let pprof = file("cpu-1.pb.gz").display().to_string();
    let collapsed = run(&["convert", &pprof, "-", "--to", "collapsed", "--value", "cpu"])
        .expect(0)
        .stdout;
    assert!(collapsed.contains(";main.planted_hot_path"), "{collapsed}");
    for name in ["again.pb.gz", "again.otlp"] {
        let path = folder.path().join(name).display().to_string();
        run(&["convert", &pprof, &path]).expect(0);
        let again = run(&["convert", &path, "-", "--to", "collapsed", "--value", "cpu"])
            .expect(0)
            .stdout;
        assert_eq!(stacks(&again), stacks(&collapsed), "{name}");
    }
    let path = folder.path().join("again.folded").display().to_string();
    run(&["convert", &pprof, &path, "--value", "cpu"]).expect(0);
    assert_eq!(run(&["convert", &path, "-", "--to", "collapsed"]).expect(0).stdout, collapsed);
}

#[test]
fn speedscope_is_written_and_read() {
    let pprof = file("cpu-1.pb.gz").display().to_string();
    let json = run(&["convert", &pprof, "-", "--to", "speedscope"]).expect(0);
    assert_eq!(json.json()["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let again = run_with_input(
        &["convert", "-", "-", "--to", "collapsed", "--profile", "1"],
        json.stdout.as_bytes(),
    )
    .expect(0)
    .stdout;
    assert!(again.contains(";main.planted_hot_path"), "{again}");
}

#[test]
fn what_holds_every_type_as_a_profile_gives_cpu_time_by_default() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let pprof = file("cpu-1.pb.gz").display().to_string();
    let expected = run(&["convert", &pprof, "-", "--to", "collapsed", "--value", "cpu"])
        .expect(0)
        .stdout;
    for name in ["cpu.otlp", "cpu.speedscope"] {
        let path = folder.path().join(name).display().to_string();
        run(&["convert", &pprof, &path]).expect(0);
        let ran = run(&["convert", &path, "-", "--to", "collapsed"]).expect(0);
        assert_eq!(stacks(&ran.stdout), stacks(&expected), "{name}");
    }
}

/// Samples that only count, 10 ms apart: the server knows their time, and so does the command.
#[test]
fn counts_with_a_cpu_period_are_cpu_time() {
    let profile = |value: &str| {
        format!(
            r#"{{"sampleType":{{"typeStrindex":1,"unitStrindex":2}},"periodType":{{"typeStrindex":3,"unitStrindex":4}},"period":"10000000",
            "timeUnixNano":"1000000000","durationNano":"1000000000","samples":[{{"stackIndex":1,"values":["{value}"]}}]}}"#
        )
    };
    let request = format!(
        r#"{{"resourceProfiles":[{{"scopeProfiles":[{{"profiles":[{},{}]}}]}}],"dictionary":{{
        "stringTable":["","samples","count","cpu","nanoseconds","work"],"functionTable":[{{}},{{"nameStrindex":5}}],
        "mappingTable":[{{}}],"linkTable":[{{}}],"attributeTable":[{{}}],
        "locationTable":[{{}},{{"lines":[{{"functionIndex":1}}]}}],"stackTable":[{{}},{{"locationIndices":[1]}}]}}}}"#,
        profile("3"),
        profile("4").replace("10000000", "20000000"),
    );
    for value in [&["--value", "cpu"][..], &[]] {
        let args = [&["convert", "-", "-", "--to", "collapsed"][..], value].concat();
        let ran = run_with_input(&args, request.as_bytes()).expect(0);
        assert_eq!(ran.stdout, "work 110000000\n", "{}", ran.stderr);
    }
    let counts = run_with_input(
        &["convert", "-", "-", "--to", "collapsed", "--value", "samples"],
        request.as_bytes(),
    )
    .expect(0);
    assert_eq!(counts.stdout, "work 7\n");
    let none = run_with_input(&["convert", "-", "-", "--to", "pprof", "--value", "wall"], request.as_bytes()).expect(2);
    assert!(
        none.stderr.contains("--value is \"wall\", expected one of samples/count"),
        "{}",
        none.stderr
    );
}

#[test]
fn pipes_are_read_and_written() {
    let ran = run_with_input(&["convert", "-", "-", "--to", "collapsed"], b"main;work 3\nmain 1\n").expect(0);
    assert_eq!(ran.stdout, "main;work 3\nmain 1\n");
}

#[test]
fn mistakes_say_what_was_expected() {
    let unknown = run_with_input(&["convert", "-", "-", "--to", "collapsed"], b"\xff\xfe\x00").expect(2);
    assert!(unknown.stderr.contains("expected one of pprof, collapsed"), "{}", unknown.stderr);
    let no_name = run(&["convert", "x", "-"]).expect(2);
    assert!(
        no_name
            .stderr
            .contains("expected --to pprof, collapsed, speedscope or otlp-profiles"),
        "{}",
        no_name.stderr
    );
    let missing = run(&["convert", "/no/such/file", "-", "--to", "pprof"]).expect(2);
    assert!(missing.stderr.contains("cannot read /no/such/file"), "{}", missing.stderr);
    let kind = run_with_input(&["convert", "-", "-", "--to", "collapsed", "--value", "cpu"], b"main 1\n").expect(2);
    assert!(
        kind.stderr.contains("--value is \"cpu\", expected one of samples/count"),
        "{}",
        kind.stderr
    );
}
