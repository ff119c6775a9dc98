//! Input that was cut off or damaged never panics, and never makes more of itself than the limits allow.

use std::path::{Path, PathBuf};

use spanflame_formats::compression::{Encoding, decompress};
use spanflame_formats::{Format, Limits, Upload, collapsed, otlp, pprof};
use spanflame_model::{Batch, Tenant};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn fixture(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(path(name)).expect("the file is in testdata");
    let bytes = match bytes[..] {
        [0 | 1, 0, 0, ..] => &bytes[5..],
        _ => &bytes[..],
    };
    decompress(Encoding::detect(bytes), bytes, 64 << 20).expect("valid").into_owned()
}

const INPUTS: [(&str, Format); 13] = [
    ("recorded/async-profiler/cpu.jfr", Format::Jfr),
    ("jfr/parser-samples/FastSlow_2024_01_16_180855.jfr.gz", Format::Jfr),
    ("jfr/parser-samples/cpool-uint64-constant-index.jfr.gz", Format::Jfr),
    ("pprof/simple/simple.prof", Format::Pprof),
    ("recorded/python-asyncio/push-3.process_cpu.pprof.gz", Format::Pprof),
    ("recorded/java-agent-otlp/profiles-3.body", Format::OtlpProfiles),
    ("recorded/otelcol-relay/profiles-3.body", Format::OtlpProfiles),
    ("otlp-profiles/layout-1.8/profile-v1.8.otlp", Format::OtlpProfiles),
    ("recorded/go-rootspan/traces-9.body", Format::OtlpTraces),
    ("otlp-traces/example/otlp-trace.json", Format::OtlpTracesJson),
    ("otlp-traces/jaeger/otlp-traces-01.json", Format::OtlpTracesJson),
    ("collapsed/speedscope-samples/collapsed-simple-with-invalids.txt", Format::Collapsed),
    ("perf-script/speedscope-samples/perf-script-rust.txt", Format::PerfScript),
];

/// Deterministic noise.
struct Noise(u64);

impl Noise {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// Decodes, and checks what must hold of whatever came out.
fn check(bytes: &[u8], format: Format) {
    let limits = Limits::default();
    // An error is a fine answer here; what is decoded has to be whole.
    let Ok(decoded) = format.decode(bytes, &Upload::default(), &limits) else {
        return;
    };
    for profile in &decoded.batch.profiles {
        assert!(profile.is_complete(&decoded.batch.stacks));
        for sample in &profile.samples {
            assert!(sample.times.is_sorted());
            let types = profile.info.types.len();
            let fits = match sample.times.len() {
                0 => sample.values.len() == types,
                _ if types > 1 => sample.values.len() == types,
                times => matches!(sample.values.len(), 0) || sample.values.len() == times,
            };
            assert!(fits, "{sample:?}");
        }
    }
}

#[test]
fn input_cut_off_anywhere_is_survived() {
    for (name, format) in INPUTS {
        let bytes = fixture(name);
        // Every length of small files, and every seventh of larger ones, so that all residues are met.
        let step = match bytes.len() {
            0..=4000 => 1,
            4001..=40_000 => 97,
            _ => 20_011,
        };
        for len in (0..bytes.len()).step_by(step) {
            check(&bytes[..len], format);
        }
    }
}

#[test]
fn flipped_bits_are_survived() {
    for (name, format) in INPUTS {
        let bytes = fixture(name);
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        for _ in 0..if bytes.len() > 100_000 { 10 } else { 150 } {
            let mut damaged = bytes.clone();
            for _ in 0..=noise.next(8) {
                let at = noise.next(damaged.len());
                damaged[at] ^= 1 << noise.next(8);
            }
            check(&damaged, format);
        }
    }
}

#[test]
fn any_format_may_be_handed_any_file() {
    for (name, _) in INPUTS {
        let bytes = fixture(name);
        for format in Format::ALL {
            check(&bytes, format);
        }
    }
}

#[test]
fn formats_are_told_by_their_content() {
    for (name, format) in INPUTS {
        let found = Format::detect(&fixture(name), name).expect("known");
        assert_eq!(found, format, "{name}");
    }
    assert!(Format::detect(b"\x00\x01\x02", "x").is_err());
    let legacy = path("pprof/legacy-gperftools/legacy-gperftools.cpu");
    let legacy = std::fs::read(legacy).expect("the file is in testdata");
    assert_eq!(Format::detect(&legacy, "cpu.prof.0001").expect("named"), Format::Pprof);
    let error = pprof::decode(&legacy, &Upload::default(), &Limits::default()).expect_err("not protobuf");
    assert!(error.to_string().contains("gperftools"), "{error}");
}

fn fingerprints(batch: &Batch) -> Vec<u128> {
    let tenant: Tenant = "t".parse().expect("valid");
    batch.profiles.iter().map(|p| p.fingerprint(&tenant).0).collect()
}

#[test]
fn a_profile_is_the_same_however_it_was_packed() {
    let plain = fixture("recorded/python-asyncio/push-3.process_cpu.pprof.gz");
    let decode = |bytes: &[u8]| pprof::decode(bytes, &Upload::default(), &Limits::default()).expect("usable").batch;
    let expected = fingerprints(&decode(&plain));
    assert_eq!(fingerprints(&decode(&spanflame_formats::compression::gzip(&plain))), expected);
    assert_eq!(
        fingerprints(&decode(&zstd::encode_all(&plain[..], 3).expect("compresses"))),
        expected
    );
    // Writing it anew orders every table differently.
    let batch = decode(&plain);
    let export = spanflame_formats::Export::of_batch(&batch).remove(0);
    assert_eq!(fingerprints(&decode(&pprof::encode(&export))), expected);
}

#[test]
fn every_sample_file_of_others_is_read() {
    for (name, stacks, total) in [
        ("collapsed-simple.txt", 5, 14),
        ("collapsed-simple-crlf.txt", 5, 14),
        ("collapsed-tall.txt", 1, 1),
        ("collapsed-recursion.txt", 10, 10),
    ] {
        let bytes = fixture(&format!("collapsed/speedscope-samples/{name}"));
        let decoded = collapsed::decode(&bytes, &Upload::default(), &Limits::default()).expect("usable");
        let samples = &decoded.batch.profiles[0].samples;
        let sum: i64 = samples.iter().map(|s| s.values[0]).sum();
        assert_eq!((samples.len(), sum, decoded.rejects.message()), (stacks, total, None), "{name}");
    }
    for (name, observations) in [("perf-script-forks.txt", 561), ("perf-script-rust.txt", 96)] {
        let bytes = fixture(&format!("perf-script/speedscope-samples/{name}"));
        let decoded = Format::PerfScript
            .decode(&bytes, &Upload::default(), &Limits::default())
            .expect("usable");
        let samples = decoded.batch.profiles.iter().flat_map(|p| &p.samples);
        let times: usize = samples.map(|s| s.times.len()).sum();
        assert_eq!((times, decoded.rejects.message()), (observations, None), "{name}");
        assert_eq!(
            decoded.batch.profiles[0].info.profile_type(0).to_string(),
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        );
    }
}

#[test]
fn otlp_comes_back_as_it_was_sent() {
    for (name, format) in INPUTS.into_iter().filter(|(_, format)| *format == Format::OtlpProfiles) {
        let first = format
            .decode(&fixture(name), &Upload::default(), &Limits::default())
            .expect("usable")
            .batch;
        let bytes = prost::Message::encode_to_vec(&otlp::profiles::encode(&first));
        let second = otlp::profiles::decode_protobuf(&bytes, &Limits::default()).expect("usable");
        assert_eq!(second.rejects.message(), None, "{name}");
        assert_eq!(second.batch.profiles, first.profiles, "{name}");
    }
}
