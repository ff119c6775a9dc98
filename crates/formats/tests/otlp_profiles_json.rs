//! OTLP profiles in JSON are the same profiles.

mod request;

use std::fmt::Write;

use prost::Message;
use request::*;
use spanflame_formats::{Error, Limits, otlp::profiles};

use opentelemetry_proto::tonic::profiles::v1development as wire;

/// The request of [`request()`] with one linked sample, as the protocol spells it.
fn json(names: fn(&str) -> String, profile_id: &str) -> String {
    let mut text = String::new();
    let name = names;
    write!(
        text,
        r#"{{"{resource_profiles}":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"{string_value}":"cart"}}}}]}},
        "{scope_profiles}":[{{"profiles":[{{"{sample_type}":{{"{type_strindex}":1,"{unit_strindex}":2}},
        "samples":[{{"{stack_index}":1,"{attribute_indices}":[1],"{link_index}":1,"values":["7"],"{times}":["{START}"]}}],
        "{time}":"{START}","{duration}":10000000000,"{period_type}":{{"{type_strindex}":3,"{unit_strindex}":4}},"period":"50000000",
        "{id}":"{profile_id}"}}]}}]}}],
        "dictionary":{{"{mapping_table}":[{{}},{{"{memory_start}":"4096","{memory_limit}":36864,"{file_offset}":"512","{filename}":8}}],
        "{location_table}":[{{}},{{"{mapping_index}":1,"address":"4112","lines":[{{"{function_index}":1,"line":"11"}}]}},
                            {{"{mapping_index}":1,"address":4128,"lines":[{{"{function_index}":2,"line":12}}]}}],
        "{function_table}":[{{}},{{"{name_strindex}":5,"{filename}":7}},{{"{name_strindex}":6,"{filename}":7}}],
        "{link_table}":[{{}},{{"{trace_id}":"0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A","{span_id}":"0b0b0b0b0b0b0b0b"}}],
        "{string_table}":["","samples","count","cpu","nanoseconds","a","b","app.rs","/bin/app","thread.id"],
        "{attribute_table}":[{{}},{{"{key_strindex}":9,"value":{{"{int_value}":"42"}}}}],
        "{stack_table}":[{{}},{{"{location_indices}":[1,2]}}]}}}}"#,
        resource_profiles = name("resourceProfiles"),
        string_value = name("stringValue"),
        scope_profiles = name("scopeProfiles"),
        sample_type = name("sampleType"),
        type_strindex = name("typeStrindex"),
        unit_strindex = name("unitStrindex"),
        stack_index = name("stackIndex"),
        attribute_indices = name("attributeIndices"),
        link_index = name("linkIndex"),
        times = name("timestampsUnixNano"),
        time = name("timeUnixNano"),
        duration = name("durationNano"),
        period_type = name("periodType"),
        id = name("profileId"),
        mapping_table = name("mappingTable"),
        memory_start = name("memoryStart"),
        memory_limit = name("memoryLimit"),
        file_offset = name("fileOffset"),
        filename = name("filenameStrindex"),
        location_table = name("locationTable"),
        mapping_index = name("mappingIndex"),
        function_index = name("functionIndex"),
        function_table = name("functionTable"),
        name_strindex = name("nameStrindex"),
        link_table = name("linkTable"),
        trace_id = name("traceId"),
        span_id = name("spanId"),
        string_table = name("stringTable"),
        attribute_table = name("attributeTable"),
        key_strindex = name("keyStrindex"),
        int_value = name("intValue"),
        stack_table = name("stackTable"),
        location_indices = name("locationIndices"),
    )
    .expect("writing to a string does not fail");
    text
}

fn camel(name: &str) -> String {
    name.to_owned()
}

fn snake(name: &str) -> String {
    let lower = |c: char| match c.is_ascii_uppercase() {
        true => format!("_{}", c.to_ascii_lowercase()),
        false => c.to_string(),
    };
    name.chars().map(lower).collect()
}

fn check(json: &str) {
    let sample = wire::Sample {
        link_index: LINK,
        attribute_indices: vec![THREAD_ID],
        values: vec![7],
        timestamps_unix_nano: vec![START],
        ..sample()
    };
    let mut same = request(vec![sample]);
    dictionary(&mut same).mapping_table[1].attribute_indices.clear();
    let expected = profiles::decode_protobuf(&same.encode_to_vec(), &Limits::default()).expect("usable");
    let decoded = profiles::decode_json(json.as_bytes(), &Limits::default()).expect("usable");
    assert_eq!(decoded.rejects.message(), None);
    assert_eq!(decoded.batch.profiles, expected.batch.profiles);
}

#[test]
fn names_may_be_in_either_case() {
    check(&json(camel, "BwcHBwcHBwcHBwcHBwcHBw=="));
    check(&json(snake, "BwcHBwcHBwcHBwcHBwcHBw=="));
}

#[test]
fn a_profile_id_is_base64_or_hex() {
    check(&json(camel, "07070707070707070707070707070707"));
    check(&json(camel, "BwcHBwcHBwcHBwcHBwcHBw"));
}

#[test]
fn layouts_before_1_8_are_refused_by_their_version() {
    let old = json(camel, "").replace("\"stackIndex\":1", "\"locationsStartIndex\":0,\"locationsLength\":2");
    let error = profiles::decode_json(old.as_bytes(), &Limits::default()).expect_err("too old");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("1.7"), "{error}");
}
