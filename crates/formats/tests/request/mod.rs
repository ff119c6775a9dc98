//! Builds OTLP profile requests for tests, and rewrites them into the layouts of older versions.
#![allow(dead_code, reason = "each test file uses a part")]

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::profiles::v1development as wire;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// 2026-01-01, in nanoseconds.
pub(crate) const START: u64 = 1_767_225_600_000_000_000;

pub(crate) const TRACE: [u8; 16] = [0xa; 16];
pub(crate) const SPAN: [u8; 8] = [0xb; 8];

/// Indices of [`request`]'s tables.
pub(crate) const STACK_AB: i32 = 1;
pub(crate) const LINK: i32 = 1;
pub(crate) const THREAD_ID: i32 = 1;
pub(crate) const COLOR: i32 = 2;
pub(crate) const SPAN_ID_LABEL: i32 = 3;

/// A request of one profile `samples/count` with the given samples. Stack 1 is `a` called by `b` (both in
/// `/bin/app`), stack 2 is an unresolved address.
pub(crate) fn request(samples: Vec<wire::Sample>) -> ExportProfilesServiceRequest {
    let strings = [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "a",
        "b",
        "app.rs",
        "/bin/app",
        "thread.id",
        "color",
        "red",
        "service.name",
        "cart",
        "span_id",
        "process.executable.build_id.gnu",
        "abcd",
        "process.executable.build_id.htlhash",
        "beef",
    ];
    let profile = wire::Profile {
        sample_type: Some(wire::ValueType {
            type_strindex: 1,
            unit_strindex: 2,
        }),
        samples,
        time_unix_nano: START,
        duration_nano: 10_000_000_000,
        period_type: Some(wire::ValueType {
            type_strindex: 3,
            unit_strindex: 4,
        }),
        period: 50_000_000,
        profile_id: vec![7; 16],
        ..wire::Profile::default()
    };
    let dictionary = wire::ProfilesDictionary {
        mapping_table: vec![
            wire::Mapping::default(),
            wire::Mapping {
                memory_start: 0x1000,
                memory_limit: 0x9000,
                file_offset: 0x200,
                filename_strindex: 8,
                attribute_indices: vec![5, 4],
            },
        ],
        location_table: vec![
            wire::Location::default(),
            location(0x1010, &[(1, 11)]),
            location(0x1020, &[(2, 12)]),
            location(0x1030, &[]),
        ],
        function_table: vec![
            wire::Function::default(),
            wire::Function {
                name_strindex: 5,
                filename_strindex: 7,
                ..Default::default()
            },
            wire::Function {
                name_strindex: 6,
                filename_strindex: 7,
                ..Default::default()
            },
        ],
        link_table: vec![
            wire::Link {
                trace_id: vec![0; 16],
                span_id: vec![0; 8],
            },
            wire::Link {
                trace_id: TRACE.to_vec(),
                span_id: SPAN.to_vec(),
            },
            wire::Link {
                trace_id: vec![1; 15],
                span_id: vec![1; 8],
            },
        ],
        string_table: strings.map(str::to_owned).to_vec(),
        attribute_table: vec![
            wire::KeyValueAndUnit::default(),
            attribute(9, any_value::Value::IntValue(42)),
            attribute(10, any_value::Value::StringValueStrindex(11)),
            attribute(14, any_value::Value::StringValue("00000000000000cc".to_owned())),
            attribute(15, any_value::Value::StringValueStrindex(16)),
            attribute(17, any_value::Value::StringValueStrindex(18)),
        ],
        stack_table: vec![
            wire::Stack::default(),
            wire::Stack {
                location_indices: vec![1, 2],
            },
            wire::Stack { location_indices: vec![3] },
        ],
    };
    let resource = Resource {
        attributes: vec![KeyValue {
            key: String::new(),
            key_strindex: 12,
            value: Some(AnyValue {
                value: Some(any_value::Value::StringValueStrindex(13)),
            }),
        }],
        ..Resource::default()
    };
    ExportProfilesServiceRequest {
        resource_profiles: vec![wire::ResourceProfiles {
            resource: Some(resource),
            scope_profiles: vec![wire::ScopeProfiles {
                profiles: vec![profile],
                ..Default::default()
            }],
            ..Default::default()
        }],
        dictionary: Some(dictionary),
    }
}

fn location(address: u64, lines: &[(i32, i64)]) -> wire::Location {
    let line = |(function_index, line): &(i32, i64)| wire::Line {
        function_index: *function_index,
        line: *line,
        column: 0,
    };
    wire::Location {
        mapping_index: 1,
        address,
        lines: lines.iter().map(line).collect(),
        attribute_indices: Vec::new(),
    }
}

fn attribute(key_strindex: i32, value: any_value::Value) -> wire::KeyValueAndUnit {
    wire::KeyValueAndUnit {
        key_strindex,
        value: Some(AnyValue { value: Some(value) }),
        unit_strindex: 0,
    }
}

/// A sample of stack 1 with one value.
pub(crate) fn sample() -> wire::Sample {
    wire::Sample {
        stack_index: STACK_AB,
        values: vec![1],
        ..wire::Sample::default()
    }
}

pub(crate) fn profile(request: &mut ExportProfilesServiceRequest) -> &mut wire::Profile {
    &mut request.resource_profiles[0].scope_profiles[0].profiles[0]
}

pub(crate) fn dictionary(request: &mut ExportProfilesServiceRequest) -> &mut wire::ProfilesDictionary {
    request.dictionary.get_or_insert_default()
}

/// The bytes of `request` with the field numbers of layout 1.9 (`is_1_8`: of 1.8).
pub(crate) fn in_old_layout(request: &ExportProfilesServiceRequest, is_1_8: bool) -> Vec<u8> {
    let sample = |field| match field {
        2 => 3,
        3 => 4,
        4 => 2,
        field => field,
    };
    let profile = |field| match field {
        7 if is_1_8 => 8,
        11 if is_1_8 => 12,
        field => field,
    };
    let keep = |field| field;
    rewrite(&request.encode_to_vec(), &[&keep, &keep, &keep, &profile, &sample], &[1, 2, 2, 2])
}

type Renumber<'a> = &'a dyn Fn(u32) -> u32;

/// Renumbers fields level by level, going down where `path` says.
fn rewrite(bytes: &[u8], renumber: &[Renumber<'_>], path: &[u32]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let key = prost::encoding::decode_varint(&mut rest).expect("valid");
        let (field, wire_type) = ((key >> 3) as u32, key & 7);
        prost::encoding::encode_varint(u64::from(renumber[0](field)) << 3 | wire_type, &mut out);
        let len = match wire_type {
            0 => {
                prost::encoding::encode_varint(prost::encoding::decode_varint(&mut rest).expect("valid"), &mut out);
                continue;
            }
            1 => 8,
            2 => prost::encoding::decode_varint(&mut rest).expect("valid") as usize,
            _ => panic!("no such field in these messages"),
        };
        let (content, tail) = rest.split_at(len);
        rest = tail;
        let content = match path {
            [first, deeper @ ..] if *first == field => rewrite(content, &renumber[1..], deeper),
            _ => content.to_vec(),
        };
        if wire_type == 2 {
            prost::encoding::encode_varint(content.len() as u64, &mut out);
        }
        out.extend(content);
    }
    out
}
