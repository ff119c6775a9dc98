//! What decoding alone can say about the requests of real clients (`testdata/recorded/`): which stacks
//! belong to which request is known from `truth.tsv`, which the recorded programs wrote themselves.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use spanflame_formats::compression::{Encoding, decompress};
use spanflame_formats::{Decoded, Export, Limits, Subject, Upload, collapsed, otlp, pprof};
use spanflame_model::{Batch, Claim, FrameId, Link, Profile, Sample, SpanId, StackSet, Tenant};

/// Runs only in slow requests.
const HOT: &str = "planted_hot_path";
/// Runs only in fast requests.
const ORDINARY: &str = "ordinary_work";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// The body, without the frame that gRPC puts around it, decompressed.
fn body(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(path(name)).expect("the file is in testdata");
    let bytes = match bytes[..] {
        [0 | 1, 0, 0, ..] => &bytes[5..],
        _ => &bytes[..],
    };
    let plain = decompress(Encoding::detect(bytes), bytes, 64 << 20).expect("valid");
    plain.into_owned()
}

fn profiles(name: &str) -> Decoded {
    otlp::profiles::decode_protobuf(&body(name), &Limits::default()).expect("usable")
}

fn traces(name: &str) -> Decoded {
    otlp::traces::decode_protobuf(&body(name), &Limits::default()).expect("usable")
}

/// A pprof, of which nothing may be lost.
fn read_pprof(name: &str) -> Decoded {
    let decoded = pprof::decode(&body(name), &Upload::default(), &Limits::default()).expect("usable");
    assert_eq!(decoded.rejects.message(), None, "{name}");
    decoded
}

/// How many samples have no link, a trace and a span, a span only, a trace only, several.
fn link_counts(batch: &Batch) -> [usize; 5] {
    let mut counts = [0; 5];
    for sample in batch.profiles.iter().flat_map(|p| &p.samples) {
        let kind = match &sample.link {
            Link::None => 0,
            Link::One {
                trace_id: Some(_),
                span_id: Some(_),
                ..
            } => 1,
            Link::One { trace_id: None, .. } => 2,
            Link::One { span_id: None, .. } => 3,
            Link::Candidates { .. } => 4,
        };
        counts[kind] += 1;
    }
    counts
}

fn check_links(name: &str, expected: [usize; 5]) {
    assert_eq!(link_counts(&read_pprof(name).batch), expected, "{name}");
}

fn totals(profile: &Profile) -> Vec<i64> {
    let add = |mut sums: Vec<i64>, sample: &Sample| {
        sums.iter_mut().zip(&sample.values).for_each(|(sum, value)| *sum += value);
        sums
    };
    profile.samples.iter().fold(vec![0; profile.info.types.len()], add)
}

fn runs(stacks: &StackSet, sample: &Sample, function: &str) -> bool {
    let frames = stacks.stack(sample.stack).expect("every stack is in the batch");
    let name = |id: &FrameId| &stacks.frame(*id).expect("every frame is in the batch").function;
    frames.iter().any(|id| name(id).contains(function))
}

/// By root span: whether the request was slow.
fn truth(folder: &str) -> HashMap<SpanId, bool> {
    let text = std::fs::read_to_string(path(&format!("recorded/{folder}/truth.tsv"))).expect("the file is in testdata");
    let read = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        (columns[2].parse().expect("a span id"), columns[0] == "slow")
    };
    text.lines().skip(1).map(read).collect()
}

/// Checks that hot samples name slow requests only, and ordinary ones fast requests only. Answers how many of each do.
fn check_owners(folder: &str, batches: &[Batch]) -> (usize, usize) {
    let truth = truth(folder);
    let (mut hot, mut ordinary) = (0, 0);
    for batch in batches {
        for sample in batch.profiles.iter().flat_map(|p| &p.samples) {
            let Some(span) = sample.link.span_id() else { continue };
            let slow = *truth.get(&span).unwrap_or_else(|| panic!("{span} is no root span of {folder}"));
            if runs(&batch.stacks, sample, HOT) {
                assert!(slow, "{folder}: a hot sample names the fast request {span}");
                hot += 1;
            }
            if runs(&batch.stacks, sample, ORDINARY) {
                assert!(!slow, "{folder}: an ordinary sample names the slow request {span}");
                ordinary += 1;
            }
        }
    }
    (hot, ordinary)
}

fn batches(names: &[&str]) -> Vec<Batch> {
    names.iter().map(|name| read_pprof(name).batch).collect()
}

#[test]
fn go_labels_are_links_to_the_local_root() {
    let cpu = [1, 2, 3].map(|n| format!("recorded/go-rootspan/cpu-{n}.pprof.gz"));
    check_links(&cpu[0], [2, 356, 0, 0, 0]);
    check_links(&cpu[1], [0, 692, 0, 0, 0]);
    check_links(&cpu[2], [0, 77, 0, 0, 0]);
    check_links("recorded/go-rootspan/goroutine-1.pprof.gz", [9, 4, 0, 0, 0]);
    for unlinked in ["mem", "mutex", "block"] {
        let [_, linked @ ..] = link_counts(&read_pprof(&format!("recorded/go-rootspan/{unlinked}-1.pprof.gz")).batch);
        assert_eq!(linked, [0; 4], "{unlinked}");
    }
    let batches = batches(&cpu.each_ref().map(String::as_str));
    assert_eq!(check_owners("go-rootspan", &batches), (527, 596));
    assert_eq!(totals(&batches[0].profiles[0]), [549, 5_490_000_000]);
}

#[test]
fn rust_samples_with_one_of_two_ids_are_kept() {
    let pushes = [1, 2, 3, 4].map(|n| format!("recorded/rust-pyroscope/push-{n}.process_cpu.pprof.gz"));
    check_links(&pushes[0], [0, 183, 0, 0, 0]);
    check_links(&pushes[1], [1, 258, 0, 0, 0]);
    check_links(&pushes[2], [0, 241, 0, 1, 0]);
    check_links(&pushes[3], [0, 130, 0, 2, 0]);
    let (hot, ordinary) = check_owners("rust-pyroscope", &batches(&pushes.each_ref().map(String::as_str)));
    assert!(hot > 0 && ordinary > 0);
}

#[test]
fn node_profiles_decode_and_take_their_time_from_the_upload() {
    let wall = [1, 3, 5, 7].map(|n| format!("recorded/node-pyroscope/ingest-{n}.body"));
    let (hot, ordinary) = check_owners("node-pyroscope", &batches(&wall.each_ref().map(String::as_str)));
    assert!(hot > 0 && ordinary > 0);
    let upload = Upload {
        time: spanflame_model::Timestamp::from_unix_nanos(7),
        duration_ns: Some(9),
        ..Upload::default()
    };
    let decoded = pprof::decode(&body(&wall[0]), &upload, &Limits::default()).expect("usable");
    let info = &decoded.batch.profiles[0].info;
    assert_eq!((info.start.unix_nanos(), info.duration_ns), (7, 9));
}

#[test]
fn datadog_names_a_span_beside_its_local_root() {
    let batch = read_pprof("recorded/node-datadog-pprof/ingest-1.body").batch;
    assert_eq!(link_counts(&batch), [11, 975, 0, 0, 0]);
    for sample in &batch.profiles[0].samples {
        if let Link::One { claim, .. } = &sample.link {
            assert_eq!(*claim, Claim::Active);
            assert!(sample.labels.iter().any(|label| label.key == "local root span id"));
        }
    }
    let (hot, ordinary) = check_owners("node-datadog-pprof", &[batch]);
    assert!(hot > 0 && ordinary > 0);
}

#[test]
fn asyncio_samples_that_name_several_spans_belong_to_none() {
    let pushes = [1, 2, 3].map(|n| format!("recorded/python-asyncio/push-{n}.process_cpu.pprof.gz"));
    check_links(&pushes[0], [5, 0, 0, 0, 90]);
    check_links(&pushes[1], [0, 0, 0, 0, 89]);
    check_links(&pushes[2], [0, 0, 0, 0, 33]);
    for sample in &read_pprof(&pushes[0]).batch.profiles[0].samples {
        if let Link::Candidates { trace_ids, span_ids } = &sample.link {
            assert!((2..=4).contains(&span_ids.len()) && (2..=4).contains(&trace_ids.len()));
        }
    }
}

#[test]
fn python_memory_has_no_links_and_its_cpu_series_has() {
    check_links("recorded/python-memory/push-1.memory.pprof.gz", [234, 0, 0, 0, 0]);
    let cpu = [1, 2, 3].map(|n| format!("recorded/python-memory/push-{n}.process_cpu.pprof.gz"));
    check_links(&cpu[0], [5, 168, 1, 0, 0]);
    let (hot, ordinary) = check_owners("python-memory", &batches(&cpu.each_ref().map(String::as_str)));
    assert!(hot > 0 && ordinary > 0);
}

#[test]
fn the_stack_profiler_of_python_names_no_span() {
    for n in 1..=3 {
        let batch = read_pprof(&format!("recorded/python-stackprofiler/push-{n}.process_cpu.pprof.gz")).batch;
        let [unlinked, linked @ ..] = link_counts(&batch);
        assert!(unlinked > 0);
        assert_eq!(linked, [0; 4]);
        assert!(batch.profiles[0].samples.iter().any(|s| runs(&batch.stacks, s, HOT)));
    }
}

#[test]
fn layout_1_10_with_unpacked_values_is_not_taken_for_1_9() {
    for (n, samples, total) in [(1, 619, 10_070_000_000), (2, 44, 8_700_000_000), (3, 17, 4_390_000_000)] {
        let decoded = profiles(&format!("recorded/java-agent-otlp/profiles-{n}.body"));
        assert_eq!(decoded.rejects.message(), None);
        let profile = &decoded.batch.profiles[0];
        assert_eq!((profile.samples.len(), totals(profile)), (samples, vec![total]));
        assert_eq!(profile.info.resource.service(), "unknown_service");
        assert_eq!(profile.info.profile_type(0).to_string(), "process_cpu:itimer:ns:itimer:ns");
        assert_eq!(link_counts(&decoded.batch), [samples, 0, 0, 0, 0]);
    }
}

#[test]
fn attributes_of_the_ebpf_profiler_are_links_of_the_go_program_only() {
    let mut linked = Vec::new();
    for n in 1..=6 {
        let Decoded { mut batch, rejects } = profiles(&format!("recorded/ebpf-profiler/profiles-{n}.body"));
        assert_eq!(rejects.message(), None);
        for profile in &batch.profiles {
            let info = &profile.info;
            assert_eq!(info.profile_type(0).to_string(), "process_cpu:samples:count:cpu:nanoseconds");
            assert!(
                profile
                    .samples
                    .iter()
                    .all(|s| s.pid.is_some() && s.thread_id.is_some() && s.values.is_empty())
            );
            assert_eq!(info.resource.attributes().get("process.pid"), None, "the pid makes no series");
        }
        batch.profiles.retain(|p| p.info.resource.service() != "zoo-go");
        assert_eq!(link_counts(&batch)[1..], [0; 4]);
        let Decoded { mut batch, .. } = profiles(&format!("recorded/ebpf-profiler/profiles-{n}.body"));
        batch.profiles.retain(|p| p.info.resource.service() == "zoo-go");
        linked.push(batch);
    }
    let (hot, ordinary) = check_owners("ebpf-profiler", &linked);
    assert!(hot > 0 && ordinary > 0);
}

#[test]
fn addresses_of_the_ebpf_profiler_are_not_shifted_again() {
    let batch = profiles("recorded/ebpf-profiler/profiles-1.body").batch;
    let unresolved = || batch.stacks.frames().filter(|(_, frame)| frame.is_unresolved());
    assert!(unresolved().count() > 0);
    for (_, frame) in unresolved() {
        assert!(frame.address.is_some() && !frame.build_id.is_empty(), "{frame:?}");
    }
}

/// Whether two batches hold the same, whatever their order.
fn check_same(before: Batch, after: Batch) {
    let fingerprints = |batch: &Batch| {
        let tenant: Tenant = "t".parse().expect("valid");
        let profiles = batch.profiles.iter().map(|p| p.fingerprint(&tenant).0);
        let mut all: Vec<u128> = profiles.chain(batch.spans.iter().map(|s| s.fingerprint(&tenant).0)).collect();
        all.sort_unstable();
        all
    };
    assert!(!before.is_empty());
    assert_eq!(fingerprints(&before), fingerprints(&after));
    assert_eq!(before.stacks.stacks().len(), after.stacks.stacks().len());
    assert_eq!(before.stacks.frames().len(), after.stacks.frames().len());
}

#[test]
fn the_collector_changes_nothing() {
    for (before, after) in [("ebpf-profiler/profiles-3", [1, 2]), ("java-agent-otlp/profiles-2", [3, 4])] {
        for n in after {
            let relayed = profiles(&format!("recorded/otelcol-relay/profiles-{n}.body"));
            assert_eq!(relayed.rejects.message(), None);
            check_same(profiles(&format!("recorded/{before}.body")).batch, relayed.batch);
        }
    }
    for n in 1..=2 {
        let relayed = traces(&format!("recorded/otelcol-relay/traces-{n}.body"));
        assert_eq!(relayed.rejects.message(), None);
        check_same(traces("recorded/go-rootspan/traces-1.body").batch, relayed.batch);
    }
}

#[test]
fn async_profiler_writes_no_links() {
    for (name, samples, total) in [("cpu", 32, 398), ("wall", 59, 9535)] {
        let decoded = profiles(&format!("recorded/async-profiler/{name}.otlp"));
        assert_eq!(decoded.rejects.message(), None);
        assert_eq!(totals(&decoded.batch.profiles[0]), [total]);
        assert_eq!(link_counts(&decoded.batch), [samples, 0, 0, 0, 0]);
    }
}

#[test]
fn layout_1_8_is_read_whole() {
    let decoded = profiles("otlp-profiles/layout-1.8/profile-v1.8.otlp");
    let batch = &decoded.batch;
    let samples: usize = batch.profiles.iter().map(|p| p.samples.len()).sum();
    assert_eq!((batch.profiles.len(), samples), (4, 49));
    assert_eq!(decoded.rejects.samples() + decoded.rejects.profiles(), 0);
    assert_eq!(decoded.rejects.count(Subject::Detail), 4, "each profile is said to be old");
    assert!(
        batch
            .profiles
            .iter()
            .flat_map(|p| &p.samples)
            .all(|s| !s.times.is_empty() && s.thread_id.is_some())
    );

    let framed = std::fs::read(path("otlp-profiles/layout-1.8/k8s-v1.8.otlp")).expect("the file is in testdata");
    let mut rest = &framed[..];
    let mut samples = 0;
    while let Some((len, tail)) = rest.split_first_chunk::<4>() {
        let (message, tail) = tail.split_at(u32::from_be_bytes(*len) as usize);
        let decoded = otlp::profiles::decode_protobuf(message, &Limits::default()).expect("usable");
        assert_eq!(decoded.rejects.samples() + decoded.rejects.profiles(), 0);
        samples += decoded.batch.profiles.iter().map(|p| p.samples.len()).sum::<usize>();
        rest = tail;
    }
    assert_eq!(samples, 165);
}

#[test]
fn every_trace_request_is_taken_whole() {
    let mut files = 0;
    for folder in std::fs::read_dir(path("recorded")).expect("the folder is in testdata") {
        let folder = folder.expect("readable").path();
        if !folder.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder).expect("readable") {
            let file = file.expect("readable").path();
            let name = file.file_name().and_then(|n| n.to_str()).expect("ASCII");
            if !name.starts_with("traces-") || !name.ends_with(".body") {
                continue;
            }
            let name = file.to_str().expect("ASCII");
            let decoded = match name.contains("json") {
                true => otlp::traces::decode_json(&body(name), &Limits::default()).expect("usable"),
                false => traces(name),
            };
            assert_eq!(decoded.rejects.message(), None, "{name}");
            assert!(!decoded.batch.spans.is_empty(), "{name}");
            files += 1;
        }
    }
    assert!(files > 50, "{files}");
}

#[test]
fn pprof_comes_back_as_it_was_sent() {
    for name in [
        "recorded/go-rootspan/cpu-1.pprof.gz",
        "recorded/go-rootspan/mem-1.pprof.gz",
        "recorded/python-asyncio/push-1.process_cpu.pprof.gz",
        "recorded/python-memory/push-1.memory.pprof.gz",
        "recorded/rust-pyroscope/push-3.process_cpu.pprof.gz",
        "recorded/node-pyroscope/ingest-1.body",
        "recorded/node-datadog-pprof/ingest-1.body",
        "pprof/simple/simple.prof",
    ] {
        let first = read_pprof(name).batch;
        let export = Export::of_batch(&first).remove(0);
        let second = pprof::decode(&pprof::encode(&export), &Upload::default(), &Limits::default())
            .expect("usable")
            .batch;
        let mut info = (*second.profiles[0].info).clone();
        info.name.clone_from(&first.profiles[0].info.name);
        assert_eq!(info, *first.profiles[0].info, "{name}");
        assert_eq!(second.profiles[0].samples.len(), first.profiles[0].samples.len(), "{name}");
        for (a, b) in first.profiles[0].samples.iter().zip(&second.profiles[0].samples) {
            assert_eq!(a, b, "{name}");
        }
        assert!(!collapsed::encode(&export).is_empty());
    }
}
