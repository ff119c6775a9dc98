//! The rules of OTLP traces, in protobuf and JSON.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1 as wire;
use prost::Message;
use spanflame_formats::{Decoded, ErrorKind, Limits, Reason, Subject, otlp::traces};
use spanflame_model::{SpanKind, StatusCode, Value};

fn span() -> wire::Span {
    wire::Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "GET /".to_owned(),
        start_time_unix_nano: 100,
        end_time_unix_nano: 350,
        ..wire::Span::default()
    }
}

fn request(spans: Vec<wire::Span>) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest {
        resource_spans: vec![wire::ResourceSpans {
            scope_spans: vec![wire::ScopeSpans {
                spans,
                ..wire::ScopeSpans::default()
            }],
            ..wire::ResourceSpans::default()
        }],
    }
}

fn decode(spans: Vec<wire::Span>) -> Decoded {
    traces::decode_protobuf(&request(spans).encode_to_vec(), &Limits::default()).expect("usable")
}

fn decode_json(json: &str) -> Decoded {
    traces::decode_json(json.as_bytes(), &Limits::default()).expect("usable")
}

/// What becomes of a good span and a bad one: the good one stays.
fn check_rejected(bad: wire::Span, reason: Reason) {
    let decoded = decode(vec![span(), bad]);
    assert_eq!(decoded.batch.spans.len(), 1);
    assert_eq!(decoded.rejects.count_of(Subject::Span, reason), 1, "{:?}", decoded.rejects);
}

fn fixture(name: &str) -> String {
    let path = format!("{}/../../testdata/otlp-traces/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the file is in testdata")
}

#[test]
fn a_bad_span_costs_itself_only() {
    let ids = |trace_id: Vec<u8>, span_id: Vec<u8>| wire::Span {
        trace_id,
        span_id,
        ..span()
    };
    check_rejected(ids(vec![], vec![2; 8]), Reason::InvalidTraceId);
    check_rejected(ids(vec![0; 16], vec![2; 8]), Reason::InvalidTraceId);
    check_rejected(ids(vec![1; 15], vec![2; 8]), Reason::InvalidTraceId);
    check_rejected(ids(vec![1; 16], vec![2; 9]), Reason::InvalidSpanId);
    check_rejected(ids(vec![1; 16], vec![0; 8]), Reason::InvalidSpanId);
    let late = wire::Span {
        start_time_unix_nano: u64::MAX,
        ..span()
    };
    check_rejected(late, Reason::TimeOutOfRange);
}

#[test]
fn a_span_that_ends_before_it_starts_has_no_duration() {
    let decoded = decode(vec![wire::Span {
        end_time_unix_nano: 50,
        ..span()
    }]);
    assert_eq!((decoded.batch.spans[0].duration_ns, decoded.rejects.message()), (0, None));
}

#[test]
fn parents_are_absent_where_empty_or_zero_and_counted_where_broken() {
    let parent = |parent_span_id: Vec<u8>| {
        let decoded = decode(vec![wire::Span { parent_span_id, ..span() }]);
        (decoded.batch.spans[0].parent_span_id.is_some(), decoded.rejects.links())
    };
    assert_eq!(parent(vec![]), (false, 0));
    assert_eq!(parent(vec![0; 8]), (false, 0));
    assert_eq!(parent(vec![3; 8]), (true, 0));
    assert_eq!(parent(vec![3; 7]), (false, 1));
}

#[test]
fn broken_links_and_events_cost_themselves_and_are_counted_as_dropped() {
    let decoded = decode(vec![wire::Span {
        links: vec![wire::span::Link {
            trace_id: vec![1; 16],
            ..Default::default()
        }],
        events: vec![
            wire::span::Event {
                time_unix_nano: u64::MAX,
                ..Default::default()
            },
            wire::span::Event::default(),
        ],
        dropped_events_count: 4,
        ..span()
    }]);
    let span = &decoded.batch.spans[0];
    assert_eq!((span.links.len(), span.events.len(), span.dropped), (0, 1, [0, 5, 1]));
    assert_eq!((decoded.rejects.links(), decoded.rejects.count(Subject::Detail)), (1, 1));
}

#[test]
fn limits_cut_and_count() {
    let limits = Limits {
        attribute_count_max: 2,
        attribute_bytes_max: 4,
        recursion_max: 1,
        ..Limits::default()
    };
    let attribute = |key: &str, value| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        key_strindex: 0,
    };
    let text = any_value::Value::StringValue("12345".to_owned());
    let array = |value| {
        any_value::Value::ArrayValue(ArrayValue {
            values: vec![AnyValue { value: Some(value) }],
        })
    };
    let nested = array(array(array(text.clone())));
    let bad = wire::Span {
        attributes: vec![attribute("a", text.clone()), attribute("b", nested), attribute("c", text)],
        ..span()
    };
    let decoded = traces::from_message(request(vec![bad]), &limits);
    let span = &decoded.batch.spans[0];
    assert_eq!(span.attributes.get_str("a"), Some("1234"));
    assert_eq!(span.dropped[0], 1);
    for reason in [Reason::AttributeTooLong, Reason::NestedTooDeep, Reason::TooManyAttributes] {
        assert_eq!(decoded.rejects.count_of(Subject::Detail, reason), 1, "{reason}");
    }
    let small = Limits {
        decoded_bytes_max: 10,
        ..limits
    };
    let error = traces::decode_protobuf(&request(vec![wire::Span::default(); 20]).encode_to_vec(), &small).expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn requests_that_unfold_past_the_limit_are_refused_before_they_are_decoded() {
    let limits = Limits {
        expanded_bytes_max: 1 << 20,
        ..Limits::default()
    };
    let spans = request(vec![wire::Span::default(); 10_000]).encode_to_vec();
    let attributes = vec![KeyValue::default(); 20_000];
    let attributes = request(vec![wire::Span { attributes, ..span() }]).encode_to_vec();
    let few = request(vec![span(); 100]).encode_to_vec();
    for (bytes, refused) in [(spans, true), (attributes, true), (few, false)] {
        let kind = traces::decode_protobuf(&bytes, &limits).err().map(|error| error.kind());
        assert_eq!(kind, refused.then_some(ErrorKind::TooLarge));
        assert!(traces::decode_protobuf(&bytes, &Limits::default()).is_ok());
    }
    let json = |spans: usize| {
        let spans = vec!["{}"; spans].join(",");
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#)
    };
    let error = traces::decode_json(json(10_000).as_bytes(), &limits).expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(traces::decode_json(json(1_000).as_bytes(), &limits).is_ok());
}

#[test]
fn no_setting_lets_values_nest_deeper_than_the_store_takes() {
    let limits = Limits {
        recursion_max: usize::MAX,
        ..Limits::default()
    };
    let nested = |levels: usize| {
        let text = any_value::Value::StringValue("x".to_owned());
        (0..levels).fold(text, |value, _| {
            any_value::Value::ArrayValue(ArrayValue {
                values: vec![AnyValue { value: Some(value) }],
            })
        })
    };
    for (levels, too_deep) in [(Limits::RECURSION_CEILING, 0), (Limits::RECURSION_CEILING + 1, 1)] {
        let attribute = KeyValue {
            key: "deep".to_owned(),
            value: Some(AnyValue {
                value: Some(nested(levels)),
            }),
            key_strindex: 0,
        };
        let attributes = vec![attribute];
        let decoded = traces::from_message(request(vec![wire::Span { attributes, ..span() }]), &limits);
        assert_eq!(
            decoded.rejects.count_of(Subject::Detail, Reason::NestedTooDeep),
            too_deep,
            "{levels}"
        );
    }
}

#[test]
fn what_is_written_is_what_was_read() {
    let first = decode_json(&fixture("example/otlp-trace.json")).batch;
    let second = traces::from_message(traces::encode(&first.spans), &Limits::default());
    assert_eq!(second.batch.spans, first.spans);
    let first = decode_json(&fixture("jaeger/otlp-traces-01.json")).batch;
    assert!(!first.spans.is_empty());
    let second = traces::from_message(traces::encode(&first.spans), &Limits::default());
    assert_eq!(second.batch.spans, first.spans);
}

#[test]
fn the_example_of_the_specification_is_read() {
    let decoded = decode_json(&fixture("example/otlp-trace.json"));
    assert_eq!(decoded.rejects.message(), None);
    let span = &decoded.batch.spans[0];
    assert_eq!(span.trace_id.to_string(), "5b8efff798038103d269b633813fc60c");
    assert_eq!(span.span_id.to_string(), "eee19b7ec3c1b174");
    assert_eq!(span.parent_span_id.map(|id| id.to_string()).as_deref(), Some("eee19b7ec3c1b173"));
    assert_eq!((span.name.as_str(), span.kind), ("I'm a server span", SpanKind::Server));
    assert_eq!(span.start.unix_nanos(), 1_544_712_660_000_000_000);
    assert_eq!(span.resource.service(), "my.service");
    assert_eq!(span.scope.name, "my.library");
}

/// A JSON span with good ids and the given further fields.
fn json_span(fields: &str) -> String {
    format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"0AF7651916CD43DD8448EB211C80319C","spanId":"b7ad6b7169203331"{fields}}}]}}]}}]}}"#
    )
}

#[test]
fn json_numbers_may_be_strings_and_defaults_may_be_missing_or_null() {
    let plain = decode_json(&json_span("")).batch.spans.remove(0);
    assert_eq!((plain.name.as_str(), plain.duration_ns, plain.status), ("", 0, StatusCode::Unset));
    let nulls = r#","name":null,"attributes":null,"events":null,"status":null,"kind":null,"parentSpanId":null,"startTimeUnixNano":null"#;
    assert_eq!(decode_json(&json_span(nulls)).batch.spans[0], plain);
    for times in [
        r#","startTimeUnixNano":"1","endTimeUnixNano":"18446744073709551""#,
        r#","startTimeUnixNano":1,"endTimeUnixNano":18446744073709551"#,
        r#","start_time_unix_nano":1,"end_time_unix_nano":"18446744073709551","somethingNew":{"deep":[1,2]}"#,
    ] {
        let span = decode_json(&json_span(times)).batch.spans.remove(0);
        assert_eq!((span.start.unix_nanos(), span.duration_ns), (1, 18_446_744_073_709_550));
    }
}

#[test]
fn json_values_of_every_kind_are_read() {
    let attributes = r#","attributes":[
        {"key":"text","value":{"stringValue":"x"}}, {"key":"int","value":{"intValue":"-5"}}, {"key":"number","value":{"intValue":7}},
        {"key":"double","value":{"doubleValue":0.5}}, {"key":"nan","value":{"doubleValue":"NaN"}}, {"key":"bool","value":{"boolValue":false}},
        {"key":"bytes","value":{"bytesValue":"AAH/"}}, {"key":"list","value":{"arrayValue":{"values":[{"intValue":1},{"stringValue":"y"}]}}},
        {"key":"map","value":{"kvlistValue":{"values":[{"key":"k","value":{"boolValue":true}}]}}}, {"key":"null","value":{}}]"#;
    let span = decode_json(&json_span(attributes)).batch.spans.remove(0);
    let get = |key| span.attributes.get(key).cloned();
    assert_eq!(get("text"), Some(Value::from("x")));
    assert_eq!((get("int"), get("number")), (Some(Value::Int(-5)), Some(Value::Int(7))));
    assert_eq!((get("double"), get("bool")), (Some(Value::Double(0.5)), Some(Value::Bool(false))));
    assert!(matches!(get("nan"), Some(Value::Double(number)) if number.is_nan()));
    assert_eq!(get("bytes"), Some(Value::Bytes(vec![0, 1, 255])));
    assert_eq!(get("list"), Some(Value::Array(vec![Value::Int(1), Value::from("y")])));
    assert_eq!(get("map"), Some(Value::Map(vec![("k".to_owned(), Value::Bool(true))])));
    assert_eq!(get("null"), None);
}

#[test]
fn a_json_id_that_is_no_hex_costs_its_span_only() {
    for bad in [
        "xyz",
        "AAAAAAAAAAAAAAAAAAAAAA==",
        "0123456789abcdeg0123456789abcdef",
        "0123456789abcdef",
    ] {
        let json = json_span("").replace("0AF7651916CD43DD8448EB211C80319C", bad);
        let decoded = decode_json(&json);
        assert_eq!(decoded.rejects.count_of(Subject::Span, Reason::InvalidTraceId), 1, "{bad}");
    }
}

#[test]
fn what_is_no_request_is_an_error() {
    for bad in ["", "[]", "{\"resourceSpans\":5}"] {
        let error = traces::decode_json(bad.as_bytes(), &Limits::default()).expect_err(bad);
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert!(traces::decode_protobuf(b"hello", &Limits::default()).is_err());
}

#[test]
fn enums_may_be_spelled_by_name_and_ids_that_are_numbers_cost_their_span() {
    let decoded = decode_json(
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[
            {"traceId":"01010101010101010101010101010101","spanId":"0202020202020202","name":"a","kind":"SPAN_KIND_SERVER","status":{"code":"STATUS_CODE_ERROR"}},
            {"traceId":12345,"spanId":"0202020202020202","name":"b","kind":"4"},
            {"traceId":"01010101010101010101010101010101","spanId":true,"name":"c"},
            {"traceId":"01010101010101010101010101010101","spanId":"0303030303030303","name":"d","kind":"SPAN_KIND_NEW"}]}]}]}"#,
    );
    let kinds: Vec<(&str, SpanKind, StatusCode)> = decoded.batch.spans.iter().map(|s| (s.name.as_str(), s.kind, s.status)).collect();
    assert_eq!(
        kinds,
        [
            ("a", SpanKind::Server, StatusCode::Error),
            ("d", SpanKind::Unspecified, StatusCode::Unset)
        ]
    );
    assert_eq!(decoded.rejects.count_of(Subject::Span, Reason::InvalidTraceId), 1);
    assert_eq!(decoded.rejects.count_of(Subject::Span, Reason::InvalidSpanId), 1);
}

#[test]
fn an_error_deep_in_a_message_is_told_in_a_line() {
    // An array in an array, forty times, whose innermost value breaks off.
    let mut value = vec![10, 5, b'x'];
    for _ in 0..40 {
        let array = [&[10, value.len() as u8][..], &value].concat();
        value = [&[42, array.len() as u8][..], &array].concat();
        if value.len() > 120 {
            break;
        }
    }
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8 & 0x7f | 0x80, (bytes.len() >> 7) as u8], bytes].concat();
    let attribute = field(9, &[field(1, b"k"), field(2, &value)].concat());
    let request = field(1, &field(2, &field(2, &attribute)));
    let error = traces::decode_protobuf(&request, &Limits::default())
        .expect_err("breaks off")
        .to_string();
    assert!(error.len() < 300, "{} bytes: {error}", error.len());
}

#[test]
fn a_request_of_traces_sent_as_profiles_is_called_by_its_name() {
    let bytes = request(vec![span()]).encode_to_vec();
    let error = spanflame_formats::otlp::profiles::decode_protobuf(&bytes, &Limits::default()).expect_err("no profiles");
    assert_eq!(
        error.to_string(),
        "a request of OTLP traces cannot be read, expected one of profiles: traces go to /v1/traces"
    );
}
