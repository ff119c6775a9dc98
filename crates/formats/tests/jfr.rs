//! Recordings of the JDK, async-profiler, the Pyroscope agent and Datadog's tracer. The expected counts are those that the
//! JDK's `jfr summary` and `jfr print` give for the same files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use spanflame_formats::compression::gzip;
use spanflame_formats::{Decoded, Format, Limits, Upload, jfr, otlp};
use spanflame_model::{Batch, Claim, Link, Profile, Sample, SpanId};

const HOT: &str = "ZooApp.planted_hot_path";
const ORDINARY: &str = "ZooApp.ordinary_work";

fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn decode(bytes: &[u8]) -> Decoded {
    Format::Jfr.decode(bytes, &Upload::default(), &Limits::default()).expect("usable")
}

/// Full type of the first value, period, observations, and the sums of the values.
fn summary(decoded: &Decoded) -> Vec<String> {
    let of_profile = |profile: &Profile| {
        let observations: usize = profile.samples.iter().map(|sample| sample.times.len()).sum();
        let types = profile.info.types.len();
        let mut sums = vec![0i64; types];
        for sample in &profile.samples {
            sample.values.iter().enumerate().for_each(|(at, value)| sums[at % types] += value);
        }
        format!(
            "{} period {} observations {observations} sums {sums:?}",
            profile.info.profile_type(0),
            profile.info.period
        )
    };
    decoded.batch.profiles.iter().map(of_profile).collect()
}

fn check(name: &str, expected: &[&str]) {
    let decoded = decode(&read(name));
    assert_eq!(summary(&decoded), expected, "{name}");
    assert_eq!(decoded.rejects.message(), None, "{name}");
    for profile in &decoded.batch.profiles {
        assert!(profile.is_complete(&decoded.batch.stacks));
        let window = profile.info.range();
        let mut times = profile.samples.iter().flat_map(|sample| &sample.times);
        assert!(times.all(|time| window.contains(*time)), "{name}");
        assert!(
            profile
                .samples
                .iter()
                .any(|sample| sample.thread_id.is_some() && sample.thread_name.is_some()),
            "{name}"
        );
    }
}

#[test]
fn a_recording_of_several_chunks_in_wall_mode_is_wall_clock_time() {
    check(
        "jfr/parser-samples/FastSlow_2024_01_16_180855.jfr.gz",
        &[
            "wall:wall:nanoseconds:wall:nanoseconds period 10000000 observations 1012 sums [10120000000]",
            "memory:alloc_sample_objects:count:space:bytes period 0 observations 6 sums [6, 4689568]",
        ],
    );
}

#[test]
fn async_profiler_without_an_interval_samples_every_10_ms() {
    check(
        "jfr/parser-samples/cortex-dev-01__kafka-0__cpu_lock_alloc__0.jfr.gz",
        &[
            "process_cpu:samples:count:cpu:nanoseconds period 10000000 observations 554 sums [0]",
            "memory:alloc_in_new_tlab_objects:count:space:bytes period 2097152 observations 766 sums [766, 1606418432]",
        ],
    );
}

#[test]
fn events_of_the_jdk_are_those_that_it_counts() {
    check(
        "jfr/parser-samples/dd-trace-java.jfr.gz",
        &[
            "process_cpu:samples:count:cpu:nanoseconds period 9000000 observations 113 sums [0]",
            "memory:alloc_in_new_tlab_objects:count:space:bytes period 0 observations 3725 sums [3725, 1263800208]",
            "memory:alloc_outside_tlab_objects:count:space:bytes period 0 observations 93 sums [93, 4040232]",
            "block:contentions:count:block:count period 0 observations 122 sums [122, 53239880942]",
        ],
    );
    check(
        "jfr/parser-samples/cpool-uint64-constant-index.jfr.gz",
        &[
            "process_cpu:samples:count:cpu:nanoseconds period 9000000 observations 88 sums [0]",
            "memory:alloc_in_new_tlab_objects:count:space:bytes period 0 observations 817 sums [817, 1100879832]",
            "memory:alloc_outside_tlab_objects:count:space:bytes period 0 observations 25 sums [25, 626856]",
            "memory:alloc_sample_objects:count:space:bytes period 0 observations 786 sums [786, 1075719696]",
            "block:contentions:count:block:count period 0 observations 75 sums [75, 177637786168]",
        ],
    );
}

/// Names of the functions of samples.
fn functions<'b>(batch: &'b Batch, samples: impl IntoIterator<Item = &'b Sample>) -> BTreeSet<&'b str> {
    let stacks = samples.into_iter().filter_map(|sample| batch.stacks.stack(sample.stack));
    let frames = stacks.flat_map(|stack| stack.iter().filter_map(|id| batch.stacks.frame(*id)));
    frames.map(|frame| frame.function.as_str()).collect()
}

#[test]
fn async_profiler_names_the_same_functions_in_jfr_and_otlp() {
    let recording = decode(&read("recorded/async-profiler/cpu.jfr"));
    assert_eq!(
        summary(&recording),
        ["process_cpu:samples:count:cpu:nanoseconds period 10000000 observations 484 sums [0]"]
    );
    let request = otlp::profiles::decode_protobuf(&read("recorded/async-profiler/cpu.otlp"), &Limits::default()).expect("usable");
    let of_jfr = functions(&recording.batch, &recording.batch.profiles[0].samples);
    let of_otlp = functions(&request.batch, &request.batch.profiles[0].samples);
    // Two runs of one program: its own functions and those of the JDK are spelled alike, and nothing links to a span.
    for function in [
        HOT,
        ORDINARY,
        "ZooApp.handle",
        "java/lang/Thread.run",
        "start_thread",
        "thread_native_entry",
    ] {
        assert!(of_jfr.contains(function) && of_otlp.contains(function), "{function}");
    }
    assert!(recording.batch.profiles[0].samples.iter().all(|sample| sample.link == Link::None));
}

/// The parts of a recorded form, decompressed or not as they were sent.
fn parts(body: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let boundary = &body[..body.windows(2).position(|two| two == b"\r\n").expect("a line")];
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|window| window == what);
    let mut parts = BTreeMap::new();
    let mut rest = &body[boundary.len()..];
    while let Some(end) = find(rest, boundary) {
        let head = find(rest, b"\r\n\r\n").expect("a header");
        let about = String::from_utf8_lossy(&rest[..head]).into_owned();
        let name = about
            .split("name=\"")
            .nth(1)
            .and_then(|text| text.split('"').next())
            .expect("a name");
        parts.insert(name.to_owned(), rest[head + 4..end - 2].to_vec());
        rest = &rest[end + boundary.len()..];
    }
    parts
}

fn java(n: u8) -> Decoded {
    let parts = parts(&read(&format!("recorded/java-agent-otel/ingest-{n}.body")));
    jfr::decode_with_labels(&parts["jfr"], &parts["labels"], &Upload::default(), &Limits::default()).expect("usable")
}

#[test]
fn the_agent_of_pyroscope_links_samples_by_span_id_and_labels_them() {
    let truth = String::from_utf8(read("recorded/java-agent-otel/truth.tsv")).expect("UTF-8");
    let slow_roots: HashSet<SpanId> = truth
        .lines()
        .filter(|line| line.starts_with("slow"))
        .map(|line| line.split('\t').nth(2).expect("a root").parse().expect("an id"))
        .collect();
    let mut hot = 0;
    for (n, cpu, alloc) in [(1, 789, 1045), (2, 910, 252), (3, 737, 191)] {
        let decoded = java(n);
        assert_eq!(decoded.rejects.message(), None);
        let found = summary(&decoded);
        assert_eq!(
            found[0],
            format!("process_cpu:samples:count:cpu:nanoseconds period 10000000 observations {cpu} sums [0]")
        );
        assert!(found[1].starts_with(&format!(
            "memory:alloc_in_new_tlab_objects:count:space:bytes period 524288 observations {alloc} "
        )));
        for sample in &decoded.batch.profiles[0].samples {
            let functions = functions(&decoded.batch, [sample]);
            let name = sample
                .labels
                .iter()
                .find(|label| label.key == "span_name")
                .and_then(|label| label.value.as_str());
            if functions.contains(HOT) {
                let Link::One {
                    trace_id: None,
                    span_id: Some(span),
                    claim: Claim::Label,
                } = sample.link
                else {
                    panic!("{:?}", sample.link);
                };
                assert!(slow_roots.contains(&span), "{span}");
                assert_eq!(name, Some("GET /slow"));
                hot += sample.times.len();
            }
            assert!(!(functions.contains(ORDINARY) && name == Some("GET /slow")));
        }
    }
    assert_eq!(hot, 910);
}

#[test]
fn compression_and_a_missing_file_of_labels_change_only_what_they_must() {
    let parts = parts(&read("recorded/java-agent-otel/ingest-3.body"));
    let plain = spanflame_formats::compression::decompress(spanflame_formats::compression::Encoding::Gzip, &parts["jfr"], 64 << 20);
    let plain = plain.expect("gzip").into_owned();
    let without = decode(&plain);
    assert_eq!(summary(&without), summary(&java(3)));
    assert!(without.batch.profiles[0].samples.iter().all(|sample| sample.labels.is_empty()));
    assert_eq!(summary(&decode(&gzip(&plain))), summary(&without));
    assert_eq!(Format::detect(&gzip(&plain), "x").expect("known"), Format::Jfr);
    let damaged = jfr::decode_with_labels(&plain, b"\xff", &Upload::default(), &Limits::default()).expect("usable");
    assert_eq!(summary(&damaged), summary(&without));
    assert!(damaged.rejects.message().expect("counted").contains("file of labels"));
}

#[test]
fn a_file_that_breaks_off_keeps_its_whole_chunks() {
    let file = read("jfr/parser-samples/FastSlow_2024_01_16_180855.jfr.gz");
    let plain = spanflame_formats::compression::decompress(spanflame_formats::compression::Encoding::Gzip, &file, 64 << 20).expect("gzip");
    let cut = decode(&plain[..plain.len() - 1]);
    assert!(cut.rejects.message().expect("counted").contains("cut off or never finished"));
    assert!(!cut.batch.profiles.is_empty());
    let error = jfr::decode(&plain[..100], &Upload::default(), &Limits::default()).expect_err("no chunk is whole");
    assert!(error.to_string().contains("cut off or never finished"), "{error}");
    let error = jfr::decode(b"FLR\0\0\x01\0\0", &Upload::default(), &Limits::default()).expect_err("an old version");
    assert!(error.to_string().contains("version 1.0"), "{error}");
}

/// A chunk of these metadata strings, elements, constants and events, all of which are handed in encoded.
fn chunk(metadata: &[u8], pools: &[u8], delta: &[u8]) -> Vec<u8> {
    let event = |body: Vec<u8>| {
        let size = body.len() + 2;
        [vec![(size & 0x7f) as u8 | 0x80, (size >> 7) as u8], body].concat()
    };
    let metadata = event([&[0, 0, 0, 0], metadata].concat());
    let pools = event([&[1, 0, 0], delta, &[0], pools].concat());
    let (metadata_at, pools_at) = (68, 68 + metadata.len());
    let size = pools_at + pools.len();
    let longs = [size, pools_at, metadata_at, 1_000_000_000, 1, 0, 1_000_000_000].map(|long| (long as u64).to_be_bytes());
    [&b"FLR\0\0\x02\0\0"[..], &longs.concat(), &[0, 0, 0, 1], &metadata, &pools].concat()
}

#[test]
fn types_without_bytes_and_tables_that_name_each_other_end() {
    // class A (id 7) { a: A[] }: its values nest for ever; class E (id 8) has no fields and its values no bytes.
    let strings = ["root", "class", "id", "7", "name", "A", "field", "a", "dimension", "1", "8", "E"];
    let mut metadata = vec![strings.len() as u8];
    strings
        .iter()
        .for_each(|text| metadata.extend([&[3, text.len() as u8], text.as_bytes()].concat()));
    // root, no attributes, two classes
    metadata.extend([0, 0, 2]);
    // class id=7 name=A, one field name=a class=7, then class id=8 name=E without fields
    metadata.extend([1, 2, 2, 3, 4, 5, 1, 6, 2, 4, 7, 1, 3, 0]);
    metadata.extend([1, 2, 2, 10, 4, 11, 0]);
    let refused = |bytes: Vec<u8>| {
        jfr::decode(&bytes, &Upload::default(), &Limits::default())
            .expect_err("hostile")
            .to_string()
    };
    let huge = [1, 8, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(
        refused(chunk(&metadata, &huge, &[0])).contains("a count is"),
        "{}",
        refused(chunk(&metadata, &huge, &[0]))
    );
    assert!(refused(chunk(&metadata, &[1, 9, 1], &[0])).contains("does not describe"));
    // A table that names itself as the one before it is read once.
    let empty = chunk(&metadata, &[0], &[0]);
    assert!(
        jfr::decode(&empty, &Upload::default(), &Limits::default())
            .expect("usable")
            .batch
            .is_empty()
    );
    let backwards = [0xff; 9];
    assert!(!refused(chunk(&metadata, &[0], &backwards)).is_empty());
}
