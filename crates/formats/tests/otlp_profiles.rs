//! The rules of OTLP profiles, each on the smallest request that shows it.

mod request;

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::profiles::v1development as wire;
use prost::Message;
use request::*;
use spanflame_formats::{Decoded, ErrorKind, Limits, Reason, Subject, otlp::profiles};
use spanflame_model::{Batch, Claim, Frame, Link, Sample, SpanId, Tenant, Timestamp, TraceId, Value};

fn decode(request: &impl Message) -> Decoded {
    profiles::decode_protobuf(&request.encode_to_vec(), &Limits::default()).expect("usable")
}

/// The only sample of a request, of which nothing may be lost.
fn only(sample: wire::Sample) -> Sample {
    let decoded = decode(&request(vec![sample]));
    assert_eq!(decoded.rejects.message(), None);
    decoded.batch.profiles[0].samples[0].clone()
}

/// What becomes of a good sample and a bad one: the good one stays.
fn check_rejected(bad: wire::Sample, reason: Reason) {
    let decoded = decode(&request(vec![sample(), bad]));
    assert_eq!(decoded.batch.profiles[0].samples.len(), 1);
    assert_eq!(decoded.rejects.count_of(Subject::Sample, reason), 1, "{:?}", decoded.rejects);
}

fn fingerprints(batch: &Batch) -> Vec<u128> {
    let tenant: Tenant = "t".parse().expect("valid");
    batch.profiles.iter().map(|p| p.fingerprint(&tenant).0).collect()
}

fn frames(batch: &Batch, sample: &Sample) -> Vec<Frame> {
    let frames = batch.stacks.stack(sample.stack).expect("there");
    frames
        .iter()
        .map(|id| Frame::clone(batch.stacks.frame(*id).expect("there")))
        .collect()
}

fn time(nanos: u64) -> Timestamp {
    Timestamp::from_unix_nanos(nanos).expect("fits")
}

#[test]
fn all_four_shapes_are_read() {
    let shape = |values: &[i64], times: &[u64]| {
        let times = times.iter().map(|t| START + t).collect();
        let read = only(wire::Sample {
            values: values.to_vec(),
            timestamps_unix_nano: times,
            ..sample()
        });
        let times: Vec<u64> = read.times.iter().map(|t| t.unix_nanos() as u64 - START).collect();
        (read.values, times)
    };
    assert_eq!(shape(&[], &[3, 1]), (vec![], vec![1, 3]));
    assert_eq!(shape(&[7], &[]), (vec![7], vec![]));
    assert_eq!(shape(&[7, 8], &[3, 1]), (vec![8, 7], vec![1, 3]));
    assert_eq!(shape(&[7], &[1, 2, 3]), (vec![7, 7, 7], vec![1, 2, 3]));
}

#[test]
fn other_shapes_are_rejected_alone() {
    check_rejected(
        wire::Sample {
            values: vec![],
            ..sample()
        },
        Reason::NoObservation,
    );
    check_rejected(
        wire::Sample {
            values: vec![1, 2],
            ..sample()
        },
        Reason::ValueCount,
    );
    check_rejected(
        wire::Sample {
            values: vec![1, 2],
            timestamps_unix_nano: vec![START; 3],
            ..sample()
        },
        Reason::ValueCount,
    );
}

#[test]
fn indices_outside_their_table_reject_the_sample_only() {
    for index in [99, -1, i32::MIN, i32::MAX] {
        check_rejected(
            wire::Sample {
                stack_index: index,
                ..sample()
            },
            Reason::IndexOutOfRange,
        );
        check_rejected(
            wire::Sample {
                link_index: index,
                ..sample()
            },
            Reason::IndexOutOfRange,
        );
        check_rejected(
            wire::Sample {
                attribute_indices: vec![index],
                ..sample()
            },
            Reason::IndexOutOfRange,
        );
    }
    let mut broken = request(vec![
        sample(),
        wire::Sample {
            stack_index: 2,
            ..sample()
        },
    ]);
    dictionary(&mut broken).stack_table[2].location_indices = vec![3, 77];
    let decoded = decode(&broken);
    assert_eq!((decoded.batch.profiles[0].samples.len(), decoded.rejects.samples()), (1, 1));
}

#[test]
fn a_link_is_the_span_that_ran() {
    let read = only(wire::Sample {
        link_index: LINK,
        ..sample()
    });
    let link = Link::One {
        trace_id: TraceId::from_bytes(TRACE),
        span_id: SpanId::from_bytes(SPAN),
        claim: Claim::Active,
    };
    assert_eq!(read.link, link);
    assert_eq!(only(sample()).link, Link::None);
    // A label beside it may name the local root and stays a label.
    let read = only(wire::Sample {
        link_index: LINK,
        attribute_indices: vec![SPAN_ID_LABEL],
        ..sample()
    });
    assert_eq!(read.link, link);
    assert_eq!(read.labels[0].value, Value::from("00000000000000cc"));
}

#[test]
fn zero_links_are_none_in_every_form() {
    for zero in [
        wire::Link::default(),
        wire::Link {
            trace_id: vec![0; 16],
            span_id: vec![0; 8],
        },
    ] {
        let mut request = request(vec![wire::Sample { link_index: 1, ..sample() }]);
        dictionary(&mut request).link_table = vec![zero.clone(), zero];
        let decoded = decode(&request);
        assert_eq!(decoded.rejects.message(), None);
        assert_eq!(decoded.batch.profiles[0].samples[0].link, Link::None);
    }
}

#[test]
fn ids_of_the_wrong_length_cost_the_link_only() {
    let decoded = decode(&request(vec![wire::Sample { link_index: 2, ..sample() }]));
    assert_eq!(decoded.batch.profiles[0].samples[0].link, Link::None);
    assert_eq!(decoded.rejects.count_of(Subject::Link, Reason::InvalidTraceId), 1);
    assert_eq!(decoded.rejects.samples(), 0);
}

#[test]
fn attributes_become_places_links_and_labels() {
    let read = only(wire::Sample {
        attribute_indices: vec![SPAN_ID_LABEL, COLOR, THREAD_ID],
        ..sample()
    });
    assert_eq!(read.thread_id, Some(42));
    assert_eq!(read.link.span_id(), SpanId::from_u64(0xcc));
    let labels: Vec<_> = read.labels.iter().map(|l| (l.key.as_str(), l.value.clone())).collect();
    assert_eq!(labels, [("color", Value::from("red"))]);
}

#[test]
fn inline_and_reference_attributes_may_be_mixed() {
    let mut request = request(vec![sample()]);
    let text = |text: &str| {
        Some(AnyValue {
            value: Some(any_value::Value::StringValue(text.to_owned())),
        })
    };
    let resource = request.resource_profiles[0].resource.get_or_insert_default();
    resource.attributes.push(KeyValue {
        key: "host.name".to_owned(),
        key_strindex: 0,
        value: text("h1"),
    });
    resource.attributes.push(KeyValue {
        key: "process.pid".to_owned(),
        key_strindex: 0,
        value: Some(AnyValue {
            value: Some(any_value::Value::IntValue(9)),
        }),
    });
    let decoded = decode(&request);
    let resource = &decoded.batch.profiles[0].info.resource;
    let attributes: Vec<_> = resource.attributes().iter().map(|(k, v)| (k, v.clone())).collect();
    assert_eq!(
        attributes,
        [("host.name", Value::from("h1")), ("service.name", Value::from("cart"))]
    );
    assert_eq!(decoded.batch.profiles[0].samples[0].pid, Some(9));
}

#[test]
fn missing_zero_entries_are_counted_and_entry_0_is_still_none() {
    let mut request = request(vec![sample()]);
    let dictionary = dictionary(&mut request);
    dictionary.string_table[0] = "shifted".to_owned();
    dictionary.link_table[0] = wire::Link {
        trace_id: TRACE.to_vec(),
        span_id: SPAN.to_vec(),
    };
    let decoded = decode(&request);
    assert_eq!(decoded.rejects.count_of(Subject::Detail, Reason::MissingZeroEntry), 2);
    let sample = &decoded.batch.profiles[0].samples[0];
    assert_eq!(sample.link, Link::None);
    assert!(frames(&decoded.batch, sample).iter().all(|f| f.system_name.is_empty()));
}

#[test]
fn observations_outside_the_window_widen_it() {
    let times = vec![START - 5, START + 10_000_000_007];
    let decoded = decode(&request(vec![wire::Sample {
        values: vec![],
        timestamps_unix_nano: times,
        ..sample()
    }]));
    let range = decoded.batch.profiles[0].info.range();
    assert_eq!((range.start(), range.end()), (time(START - 5), time(START + 10_000_000_008)));
    assert_eq!(decoded.rejects.message(), None);
}

#[test]
fn a_time_that_does_not_fit_costs_its_observation() {
    let times = vec![START, u64::MAX];
    let decoded = decode(&request(vec![wire::Sample {
        values: vec![],
        timestamps_unix_nano: times,
        ..sample()
    }]));
    assert_eq!(decoded.batch.profiles[0].samples[0].times, [time(START)]);
    assert_eq!(decoded.rejects.count_of(Subject::Detail, Reason::TimeOutOfRange), 1);
}

#[test]
fn unresolved_frames_have_the_address_in_their_module() {
    let request_of = |scope: &str| {
        let mut request = request(vec![wire::Sample {
            stack_index: 2,
            ..sample()
        }]);
        request.resource_profiles[0].scope_profiles[0].scope.get_or_insert_default().name = scope.to_owned();
        request
    };
    let frame_of = |scope| {
        let decoded = decode(&request_of(scope));
        frames(&decoded.batch, &decoded.batch.profiles[0].samples[0]).remove(0)
    };
    let process = frame_of("");
    assert_eq!(process.address, Some(0x1030 - 0x1000 + 0x200));
    assert_eq!(
        (process.module.as_str(), process.build_id.as_str()),
        ("/bin/app", "abcd"),
        "the GNU id is preferred"
    );
    assert_eq!(frame_of("go.opentelemetry.io/ebpf-profiler").address, Some(0x1030));
}

#[test]
fn inlined_lines_are_frames_that_say_so() {
    let mut request = request(vec![sample()]);
    let line = |function_index| wire::Line {
        function_index,
        line: 1,
        column: 2,
    };
    dictionary(&mut request).location_table[1].lines = vec![line(2), line(1)];
    let decoded = decode(&request);
    let frames = frames(&decoded.batch, &decoded.batch.profiles[0].samples[0]);
    let texts: Vec<_> = frames.iter().map(|f| (f.function.as_str(), f.inlined)).collect();
    assert_eq!(texts, [("b", true), ("a", false), ("b", false)]);
}

#[test]
fn old_layouts_are_read_as_the_new_one() {
    let samples = vec![
        wire::Sample {
            link_index: LINK,
            attribute_indices: vec![THREAD_ID, COLOR],
            ..sample()
        },
        wire::Sample {
            values: vec![],
            timestamps_unix_nano: vec![START + 1],
            ..sample()
        },
        wire::Sample {
            values: vec![1_000_000],
            ..sample()
        },
    ];
    let mut new = request(samples);
    profile(&mut new).attribute_indices = vec![COLOR];
    let expected = decode(&new);
    assert_eq!(expected.rejects.message(), None);
    for is_1_8 in [false, true] {
        let bytes = in_old_layout(&new, is_1_8);
        let decoded = profiles::decode_protobuf(&bytes, &Limits::default()).expect("usable");
        assert_eq!(decoded.batch.profiles, expected.batch.profiles, "1.8: {is_1_8}");
        assert_eq!(decoded.rejects.count_of(Subject::Detail, Reason::OldLayout), 1);
    }
}

#[test]
fn the_whole_request_decides_the_layout() {
    // Alone, this sample fits both layouts: its value 1 is also the index of an attribute.
    let ambiguous = wire::Sample {
        values: vec![1],
        timestamps_unix_nano: vec![START],
        ..sample()
    };
    let clear = wire::Sample {
        values: vec![1_000_000],
        ..sample()
    };
    let request = request(vec![ambiguous, clear.clone(), clear]);
    let decoded = profiles::decode_protobuf(&in_old_layout(&request, false), &Limits::default()).expect("usable");
    assert_eq!(decoded.batch.profiles, decode(&request).batch.profiles);
}

#[test]
fn a_bad_sample_does_not_turn_the_layout_over() {
    let bad = wire::Sample {
        link_index: 50,
        attribute_indices: vec![50],
        ..sample()
    };
    let decoded = decode(&request(vec![bad, sample(), sample()]));
    assert_eq!((decoded.batch.profiles[0].samples.len(), decoded.rejects.samples()), (2, 1));
}

#[test]
fn layouts_before_1_8_are_refused_by_their_version() {
    let check = |bytes: &[u8], version: &str| {
        let error = profiles::decode_protobuf(bytes, &Limits::default()).expect_err("too old");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(version), "{error}");
    };
    // 1.7: the attribute table has its keys as text.
    let mut bytes = request(vec![sample()]).encode_to_vec();
    bytes.extend([0x12, 7, 0x32, 5, 0x0a, 3, b'k', b'e', b'y']);
    check(&bytes, "1.7");
    // 1.6: tables in the request itself, here a string table.
    check(&[0x0a, 0, 0x2a, 1, b'x'], "1.6");
    // 1.5: tables inside the profile, its period type in field 13.
    check(&[0x0a, 6, 0x12, 4, 0x12, 2, 0x6a, 0], "1.5");
}

#[test]
fn order_and_duplicates_in_the_dictionary_mean_nothing() {
    let samples = vec![
        wire::Sample {
            link_index: LINK,
            attribute_indices: vec![THREAD_ID, COLOR],
            ..sample()
        },
        wire::Sample {
            stack_index: 2,
            ..sample()
        },
    ];
    let first = request(samples);
    let mut second = first.clone();
    let tables = dictionary(&mut second);
    // Orphans and duplicates in front move every index.
    let duplicate = tables.stack_table[1].clone();
    tables.stack_table.insert(1, duplicate);
    let link = tables.link_table[2].clone();
    tables.link_table.insert(1, link);
    let attribute = tables.attribute_table[2].clone();
    tables.attribute_table.push(attribute);
    let duplicate = tables.attribute_table.len() as i32 - 1;
    let samples = &mut profile(&mut second).samples;
    samples[0] = wire::Sample {
        stack_index: 2,
        link_index: 2,
        attribute_indices: vec![duplicate, THREAD_ID],
        ..sample()
    };
    samples[1].stack_index = 3;
    samples.swap(0, 1);
    assert_eq!(fingerprints(&decode(&first).batch), fingerprints(&decode(&second).batch));
}

#[test]
fn what_is_written_is_what_was_read() {
    let samples = vec![
        wire::Sample {
            link_index: LINK,
            attribute_indices: vec![THREAD_ID, COLOR],
            ..sample()
        },
        wire::Sample {
            attribute_indices: vec![SPAN_ID_LABEL],
            values: vec![2, 3],
            timestamps_unix_nano: vec![START, START + 1],
            ..sample()
        },
        wire::Sample {
            stack_index: 2,
            ..sample()
        },
    ];
    let mut request = request(samples);
    let line = |function_index| wire::Line {
        function_index,
        line: 1,
        column: 2,
    };
    dictionary(&mut request).location_table[1].lines = vec![line(2), line(1)];
    let read = decode(&request).batch;
    let again = decode(&profiles::encode(&read));
    assert_eq!(again.rejects.message(), None);
    assert_eq!(again.batch.profiles, read.profiles);
    assert_eq!(again.batch.stacks.frames().len(), read.stacks.frames().len());
}

#[test]
fn one_bad_profile_costs_no_other() {
    let mut request = request(vec![sample()]);
    let scope = &mut request.resource_profiles[0].scope_profiles[0];
    let mut bad = scope.profiles[0].clone();
    bad.sample_type = None;
    scope.profiles.push(bad);
    let mut late = scope.profiles[0].clone();
    late.time_unix_nano = u64::MAX;
    scope.profiles.push(late);
    let decoded = decode(&request);
    assert_eq!((decoded.batch.profiles.len(), decoded.rejects.profiles()), (1, 2));
    assert_eq!(decoded.rejects.count_of(Subject::Profile, Reason::NoSampleType), 1);
}

#[test]
fn deep_stacks_keep_their_leaf_side() {
    let mut request = request(vec![sample()]);
    dictionary(&mut request).stack_table[1].location_indices = [1].into_iter().chain([2; 5000]).collect();
    let decoded = decode(&request);
    let frames = frames(&decoded.batch, &decoded.batch.profiles[0].samples[0]);
    assert_eq!((frames.len(), frames[0].function.as_str()), (1024, "a"));
    assert_eq!(frames[1023].function, "[truncated]");
    assert_eq!(decoded.rejects.count_of(Subject::Detail, Reason::StackTooDeep), 1);
}

#[test]
fn what_tables_unfold_into_is_bounded() {
    let mut request = request(vec![
        wire::Sample {
            attribute_indices: vec![COLOR],
            ..sample()
        };
        100
    ]);
    dictionary(&mut request).string_table[11] = "x".repeat(100_000);
    let limits = Limits {
        expanded_bytes_max: 1 << 20,
        ..Limits::default()
    };
    let decoded = profiles::decode_protobuf(&request.encode_to_vec(), &limits).expect("usable");
    let kept = decoded.batch.profiles[0].samples.len();
    assert!((1..=10).contains(&kept), "{kept}");
    assert_eq!(decoded.rejects.count_of(Subject::Sample, Reason::ExpansionLimit), 100 - kept as u64);
    let limits = Limits {
        table_entries_max: 2,
        ..Limits::default()
    };
    let error = profiles::decode_protobuf(&request.encode_to_vec(), &limits).expect_err("too many entries");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}
