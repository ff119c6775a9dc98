//! pprof: what becomes of labels, locations and settings, each on the smallest profile that shows it.

use prost::Message;
use spanflame_formats::{Decoded, ErrorKind, Export, Limits, Reason, Subject, Upload, pprof};
use spanflame_model::{Claim, Frame, Link, Sample, SpanId, Value};
use spanflame_proto::pprof as wire;

/// Builds the string table as it goes.
struct Builder(wire::Profile);

impl Builder {
    /// A profile `samples/count` without samples; location 1 is `a` inlined into `b`, location 2 an address.
    fn new() -> Builder {
        let mut builder = Builder(wire::Profile {
            string_table: vec![String::new()],
            time_nanos: 5,
            duration_nanos: 10,
            ..wire::Profile::default()
        });
        let [samples, count] = ["samples", "count"].map(|s| builder.string(s));
        builder.0.sample_type = vec![wire::ValueType {
            r#type: samples,
            unit: count,
        }];
        for (id, name) in [(1, "a"), (2, "b")] {
            let name = builder.string(name);
            builder.0.function.push(wire::Function {
                id,
                name,
                system_name: name,
                ..wire::Function::default()
            });
        }
        let [filename, build_id] = ["/bin/app", "abcd"].map(|s| builder.string(s));
        builder.0.mapping = vec![wire::Mapping {
            id: 1,
            memory_start: 0x5000,
            memory_limit: 0x9000,
            file_offset: 0x1000,
            filename,
            build_id,
            ..wire::Mapping::default()
        }];
        let line = |function_id| wire::Line {
            function_id,
            line: 10,
            column: 2,
        };
        let location = |id, line| wire::Location {
            id,
            mapping_id: 1,
            address: 0x5010,
            line,
            is_folded: false,
        };
        builder.0.location = vec![location(1, vec![line(1), line(2)]), location(2, vec![])];
        builder
    }

    fn string(&mut self, text: &str) -> i64 {
        self.0.string_table.push(text.to_owned());
        self.0.string_table.len() as i64 - 1
    }

    /// A sample of location 1 with labels `key=value`, a number where the value begins with `#`.
    fn sample(mut self, labels: &[&str]) -> Builder {
        let label = labels.iter().map(|text| {
            let (key, value) = text.split_once('=').expect("key=value");
            let key = self.string(key);
            match value.strip_prefix('#') {
                Some(number) => wire::Label {
                    key,
                    num: number.parse().expect("a number"),
                    num_unit: self.string("bytes"),
                    ..wire::Label::default()
                },
                None => wire::Label {
                    key,
                    str: self.string(value),
                    ..wire::Label::default()
                },
            }
        });
        let label = label.collect();
        self.push(vec![1], vec![1], label);
        self
    }

    fn push(&mut self, location_id: Vec<u64>, value: Vec<i64>, label: Vec<wire::Label>) {
        self.0.sample.push(wire::Sample { location_id, value, label });
    }

    fn decode(&self) -> Decoded {
        pprof::decode(&self.0.encode_to_vec(), &Upload::default(), &Limits::default()).expect("usable")
    }
}

/// The link and the labels left of a sample with these labels, and how many ids could not be read.
fn check_labels(labels: &[&str], link: Link, left: &[&str], bad: u64) {
    let decoded = Builder::new().sample(labels).decode();
    let sample = &decoded.batch.profiles[0].samples[0];
    let text = |value: &Value| match value {
        Value::Str(text) => text.clone(),
        Value::Int(number) => format!("#{number}"),
        other => format!("{other:?}"),
    };
    let found: Vec<String> = sample.labels.iter().map(|l| format!("{}={}", l.key, text(&l.value))).collect();
    assert_eq!(
        (&sample.link, found.as_slice(), decoded.rejects.links()),
        (&link, left.map_owned().as_slice(), bad)
    );
    // Writing it gives the same sample again.
    let written = pprof::encode(&Export::of_batch(&decoded.batch)[0]);
    let again = pprof::decode(&written, &Upload::default(), &Limits::default()).expect("usable");
    assert_eq!(again.batch.profiles[0].samples[0], *sample);
}

trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for [&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|s| (*s).to_owned()).collect()
    }
}

fn one(trace: Option<&str>, span: Option<u64>, claim: Claim) -> Link {
    Link::One {
        trace_id: trace.map(|t| t.parse().expect("hex")),
        span_id: span.and_then(SpanId::from_u64),
        claim,
    }
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
fn labels_that_the_link_says_again_are_taken_out() {
    let trace = format!("trace_id={TRACE}");
    check_labels(
        &["span_id=00000000000000aa", &trace, "span_name=GET /"],
        one(Some(TRACE), Some(0xaa), Claim::Label),
        &["span_name=GET /"],
        0,
    );
    check_labels(&["span_id=00000000000000aa"], one(None, Some(0xaa), Claim::Label), &[], 0);
    check_labels(&[&trace], one(Some(TRACE), None, Claim::Label), &[], 0);
}

#[test]
fn other_spellings_stay_labels_too() {
    check_labels(
        &["profile_id=00000000000000aa"],
        one(None, Some(0xaa), Claim::Label),
        &["profile_id=00000000000000aa"],
        0,
    );
    check_labels(
        &["span_id=00000000000000AA"],
        one(None, Some(0xaa), Claim::Label),
        &["span_id=00000000000000AA"],
        0,
    );
    let datadog = ["local root span id=17", "span id=18", "trace endpoint=GET /"];
    check_labels(&datadog, one(None, Some(18), Claim::Active), &datadog, 0);
    check_labels(
        &["local root span id=#17"],
        one(None, Some(17), Claim::LocalRoot),
        &["local root span id=#17"],
        0,
    );
}

#[test]
fn ids_that_cannot_be_read_are_counted_and_stay_labels() {
    for bad in ["span_id=xyz", "span_id=0000000000000000", "trace_id=abc", "span id=0"] {
        check_labels(&[bad], Link::None, &[bad], 1);
    }
    check_labels(
        &["span_id=00000000000000aa", "trace_id=?"],
        one(None, Some(0xaa), Claim::Label),
        &["trace_id=?"],
        1,
    );
}

#[test]
fn several_ids_are_candidates() {
    let link = Link::Candidates {
        trace_ids: vec![TRACE.parse().expect("hex")],
        span_ids: [0xaa, 0xbb].into_iter().filter_map(SpanId::from_u64).collect(),
    };
    let trace = format!("trace_id={TRACE}");
    check_labels(&["span_id=00000000000000bb", "span_id=00000000000000aa", &trace], link, &[], 0);
}

#[test]
fn threads_are_places_and_their_labels_come_back() {
    let decoded = Builder::new().sample(&["thread_id=#7", "thread name=main"]).decode();
    let sample = &decoded.batch.profiles[0].samples[0];
    assert_eq!(
        (sample.thread_id, sample.thread_name.as_deref(), sample.labels.len()),
        (Some(7), Some("main"), 2)
    );
    check_labels(&["bytes=#512", "thread_id=#7"], Link::None, &["bytes=#512", "thread_id=#7"], 0);
    check_labels(&["thread.id=#7"], Link::None, &[], 0);
}

#[test]
fn numbers_keep_their_unit() {
    let decoded = Builder::new().sample(&["bytes=#512"]).decode();
    let export = &Export::of_batch(&decoded.batch)[0];
    assert_eq!(
        (export.rows[0].labels[0].unit.as_str(), &export.rows[0].labels[0].value),
        ("bytes", &Value::Int(512))
    );
}

fn frames(decoded: &Decoded, sample: &Sample) -> Vec<Frame> {
    let stacks = &decoded.batch.stacks;
    let ids = stacks.stack(sample.stack).expect("there");
    ids.iter().map(|id| Frame::clone(stacks.frame(*id).expect("there"))).collect()
}

#[test]
fn locations_with_inlined_lines_come_back_as_one() {
    let mut builder = Builder::new();
    builder.push(vec![1, 2], vec![3], Vec::new());
    let decoded = builder.decode();
    let frames = frames(&decoded, &decoded.batch.profiles[0].samples[0]);
    let found: Vec<_> = frames.iter().map(|f| (f.display_name(), f.inlined, f.address)).collect();
    let expected = [
        ("a".to_owned(), true, None),
        ("b".to_owned(), false, None),
        ("app+0x1010".to_owned(), false, Some(0x1010)),
    ];
    assert_eq!(found, expected, "addresses are those of the module");

    let written = pprof::encode(&Export::of_batch(&decoded.batch)[0]);
    let plain = spanflame_formats::compression::decompress(spanflame_formats::compression::Encoding::Gzip, &written, 1 << 20);
    let written = wire::Profile::decode(&plain.expect("gzip")[..]).expect("pprof");
    assert_eq!(written.location.iter().map(|l| l.line.len()).collect::<Vec<_>>(), [2, 0]);
    let mapping = &written.mapping[0];
    let text = |index: i64| written.string_table[index as usize].as_str();
    assert_eq!((text(mapping.filename), text(mapping.build_id)), ("/bin/app", "abcd"));
    assert!(mapping.has_functions && mapping.has_inline_frames && mapping.has_line_numbers);
    assert_eq!(written.location[1].address, 0x1010);
}

#[test]
fn settings_of_the_profile_come_back() {
    let mut builder = Builder::new().sample(&[]);
    let comment = builder.string("made by hand");
    let drop_frames = builder.string("malloc.*");
    let default = builder.string("samples");
    let (period_type, period_unit) = (builder.string("cpu"), builder.string("nanoseconds"));
    builder.0.comment = vec![comment];
    builder.0.drop_frames = drop_frames;
    builder.0.default_sample_type = default;
    builder.0.period = 10;
    builder.0.period_type = Some(wire::ValueType {
        r#type: period_type,
        unit: period_unit,
    });
    let first = builder.decode();
    let written = pprof::encode(&Export::of_batch(&first.batch)[0]);
    let second = pprof::decode(&written, &Upload::default(), &Limits::default()).expect("usable");
    assert_eq!(second.batch.profiles, first.batch.profiles);
    let attributes = &first.batch.profiles[0].info.attributes;
    assert_eq!(
        attributes.get("pprof.profile.comment"),
        Some(&Value::Array(vec![Value::from("made by hand")]))
    );
    assert_eq!(attributes.get_str("pprof.profile.drop_frames"), Some("malloc.*"));
}

/// What becomes of a good sample and a bad one: the good one stays.
fn check_rejected(locations: Vec<u64>, values: Vec<i64>, reason: Reason) {
    let mut builder = Builder::new().sample(&[]);
    builder.push(locations, values, Vec::new());
    let decoded = builder.decode();
    assert_eq!(decoded.batch.profiles[0].samples.len(), 1);
    assert_eq!(decoded.rejects.count_of(Subject::Sample, reason), 1, "{:?}", decoded.rejects);
}

#[test]
fn a_bad_sample_costs_itself_only() {
    check_rejected(vec![1], vec![1, 2], Reason::ValueCount);
    check_rejected(vec![1], vec![], Reason::ValueCount);
    check_rejected(vec![9], vec![1], Reason::UnknownReference);
    let mut bytes = Builder::new().sample(&[]).0.encode_to_vec();
    // A sample that breaks off inside: a list of 5 bytes of which none are there.
    bytes.extend([0x12, 2, 0x0a, 5]);
    let decoded = pprof::decode(&bytes, &Upload::default(), &Limits::default()).expect("usable");
    assert_eq!((decoded.batch.profiles[0].samples.len(), decoded.rejects.samples()), (1, 1));
}

#[test]
fn ids_need_not_be_dense() {
    let mut builder = Builder::new();
    builder.0.location[0].id = 1 << 40;
    builder.push(vec![1 << 40], vec![1], Vec::new());
    let decoded = builder.decode();
    assert_eq!(decoded.rejects.message(), None);
    assert_eq!(frames(&decoded, &decoded.batch.profiles[0].samples[0])[0].function, "a");
}

#[test]
fn what_is_no_profile_is_an_error() {
    let check = |bytes: &[u8], limits: &Limits| pprof::decode(bytes, &Upload::default(), limits).expect_err("not usable").kind();
    assert_eq!(check(b"hello", &Limits::default()), ErrorKind::Invalid);
    assert_eq!(check(b"", &Limits::default()), ErrorKind::Invalid);
    let bytes = Builder::new().0.encode_to_vec();
    for limits in [
        Limits {
            strings_max: 2,
            ..Limits::default()
        },
        Limits {
            table_entries_max: 1,
            ..Limits::default()
        },
        Limits {
            decoded_bytes_max: 10,
            ..Limits::default()
        },
    ] {
        assert_eq!(check(&bytes, &limits), ErrorKind::TooLarge);
    }
}
