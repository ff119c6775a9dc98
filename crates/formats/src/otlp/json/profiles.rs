//! Profile requests in JSON.

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::profiles::v1development as wire;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::fields::{AnyValue, HexId, Number, ProfileId, Resource, Scope, nullable};
use crate::Error;
use crate::otlp::profiles::too_old;

/// Reads a profiles request. Refuses layouts before 1.8, whose samples name a range of locations.
pub(in crate::otlp) fn profiles_request(bytes: &[u8]) -> Result<ExportProfilesServiceRequest, Error> {
    let request: Request = super::request(bytes).map_err(|e| Error::malformed("OTLP/JSON profiles request", e))?;
    let groups = request.resource_profiles.iter().flat_map(|r| &r.scope_profiles);
    let mut samples = groups.flat_map(|s| &s.profiles).flat_map(|p| &p.samples);
    if samples.any(|s| s.locations_start_index.is_some() || s.locations_length.is_some()) {
        return Err(too_old("1.7 or before"));
    }
    Ok(ExportProfilesServiceRequest {
        resource_profiles: request.resource_profiles.into_iter().map(Into::into).collect(),
        dictionary: request.dictionary.map(Into::into),
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Request {
    #[serde(alias = "resource_profiles", deserialize_with = "nullable")]
    resource_profiles: Vec<ResourceProfiles>,
    dictionary: Option<Dictionary>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceProfiles {
    resource: Option<Resource>,
    #[serde(alias = "scope_profiles", deserialize_with = "nullable")]
    scope_profiles: Vec<ScopeProfiles>,
    #[serde(alias = "schema_url", deserialize_with = "nullable")]
    schema_url: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ScopeProfiles {
    scope: Option<Scope>,
    #[serde(deserialize_with = "nullable")]
    profiles: Vec<Profile>,
    #[serde(alias = "schema_url", deserialize_with = "nullable")]
    schema_url: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Profile {
    #[serde(alias = "sample_type")]
    sample_type: Option<ValueType>,
    #[serde(alias = "sample", deserialize_with = "nullable")]
    samples: Vec<Sample>,
    #[serde(alias = "time_unix_nano", deserialize_with = "nullable")]
    time_unix_nano: Number<u64>,
    #[serde(alias = "duration_nano", deserialize_with = "nullable")]
    duration_nano: Number<u64>,
    #[serde(alias = "period_type")]
    period_type: Option<ValueType>,
    #[serde(deserialize_with = "nullable")]
    period: Number<i64>,
    #[serde(alias = "profile_id", deserialize_with = "nullable")]
    profile_id: ProfileId,
    #[serde(alias = "attribute_indices", deserialize_with = "nullable")]
    attribute_indices: Vec<Number<i32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sample {
    #[serde(alias = "stack_index", deserialize_with = "nullable")]
    stack_index: Number<i32>,
    #[serde(alias = "attribute_indices", deserialize_with = "nullable")]
    attribute_indices: Vec<Number<i32>>,
    #[serde(alias = "link_index", deserialize_with = "nullable")]
    link_index: Number<i32>,
    #[serde(deserialize_with = "nullable")]
    values: Vec<Number<i64>>,
    #[serde(alias = "timestamps_unix_nano", deserialize_with = "nullable")]
    timestamps_unix_nano: Vec<Number<u64>>,
    #[serde(alias = "locations_start_index")]
    locations_start_index: Option<IgnoredAny>,
    #[serde(alias = "locations_length")]
    locations_length: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Dictionary {
    #[serde(alias = "mapping_table", deserialize_with = "nullable")]
    mapping_table: Vec<Mapping>,
    #[serde(alias = "location_table", deserialize_with = "nullable")]
    location_table: Vec<Location>,
    #[serde(alias = "function_table", deserialize_with = "nullable")]
    function_table: Vec<Function>,
    #[serde(alias = "link_table", deserialize_with = "nullable")]
    link_table: Vec<Link>,
    #[serde(alias = "string_table", deserialize_with = "nullable")]
    string_table: Vec<String>,
    #[serde(alias = "attribute_table", deserialize_with = "nullable")]
    attribute_table: Vec<Attribute>,
    #[serde(alias = "stack_table", deserialize_with = "nullable")]
    stack_table: Vec<Stack>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ValueType {
    #[serde(alias = "type_strindex", deserialize_with = "nullable")]
    type_strindex: Number<i32>,
    #[serde(alias = "unit_strindex", deserialize_with = "nullable")]
    unit_strindex: Number<i32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Mapping {
    #[serde(alias = "memory_start", deserialize_with = "nullable")]
    memory_start: Number<u64>,
    #[serde(alias = "memory_limit", deserialize_with = "nullable")]
    memory_limit: Number<u64>,
    #[serde(alias = "file_offset", deserialize_with = "nullable")]
    file_offset: Number<u64>,
    #[serde(alias = "filename_strindex", deserialize_with = "nullable")]
    filename_strindex: Number<i32>,
    #[serde(alias = "attribute_indices", deserialize_with = "nullable")]
    attribute_indices: Vec<Number<i32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Location {
    #[serde(alias = "mapping_index", deserialize_with = "nullable")]
    mapping_index: Number<i32>,
    #[serde(deserialize_with = "nullable")]
    address: Number<u64>,
    #[serde(alias = "line", deserialize_with = "nullable")]
    lines: Vec<Line>,
    #[serde(alias = "attribute_indices", deserialize_with = "nullable")]
    attribute_indices: Vec<Number<i32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Line {
    #[serde(alias = "function_index", deserialize_with = "nullable")]
    function_index: Number<i32>,
    #[serde(deserialize_with = "nullable")]
    line: Number<i64>,
    #[serde(deserialize_with = "nullable")]
    column: Number<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Function {
    #[serde(alias = "name_strindex", deserialize_with = "nullable")]
    name_strindex: Number<i32>,
    #[serde(alias = "system_name_strindex", deserialize_with = "nullable")]
    system_name_strindex: Number<i32>,
    #[serde(alias = "filename_strindex", deserialize_with = "nullable")]
    filename_strindex: Number<i32>,
    #[serde(alias = "start_line", deserialize_with = "nullable")]
    start_line: Number<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Link {
    #[serde(alias = "trace_id", deserialize_with = "nullable")]
    trace_id: HexId,
    #[serde(alias = "span_id", deserialize_with = "nullable")]
    span_id: HexId,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attribute {
    #[serde(alias = "key_strindex", deserialize_with = "nullable")]
    key_strindex: Number<i32>,
    value: Option<AnyValue>,
    #[serde(alias = "unit_strindex", deserialize_with = "nullable")]
    unit_strindex: Number<i32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Stack {
    #[serde(alias = "location_indices", deserialize_with = "nullable")]
    location_indices: Vec<Number<i32>>,
}

impl From<ResourceProfiles> for wire::ResourceProfiles {
    fn from(from: ResourceProfiles) -> wire::ResourceProfiles {
        wire::ResourceProfiles {
            resource: from.resource.map(Into::into),
            scope_profiles: from.scope_profiles.into_iter().map(Into::into).collect(),
            schema_url: from.schema_url,
        }
    }
}

impl From<ScopeProfiles> for wire::ScopeProfiles {
    fn from(from: ScopeProfiles) -> wire::ScopeProfiles {
        wire::ScopeProfiles {
            scope: from.scope.map(Into::into),
            profiles: from.profiles.into_iter().map(Into::into).collect(),
            schema_url: from.schema_url,
        }
    }
}

impl From<Profile> for wire::Profile {
    fn from(from: Profile) -> wire::Profile {
        wire::Profile {
            sample_type: from.sample_type.map(Into::into),
            samples: from.samples.into_iter().map(Into::into).collect(),
            time_unix_nano: from.time_unix_nano.0,
            duration_nano: from.duration_nano.0,
            period_type: from.period_type.map(Into::into),
            period: from.period.0,
            profile_id: from.profile_id.0,
            attribute_indices: numbers(from.attribute_indices),
            ..wire::Profile::default()
        }
    }
}

impl From<Sample> for wire::Sample {
    fn from(from: Sample) -> wire::Sample {
        wire::Sample {
            stack_index: from.stack_index.0,
            attribute_indices: numbers(from.attribute_indices),
            link_index: from.link_index.0,
            values: numbers(from.values),
            timestamps_unix_nano: numbers(from.timestamps_unix_nano),
        }
    }
}

impl From<Dictionary> for wire::ProfilesDictionary {
    fn from(from: Dictionary) -> wire::ProfilesDictionary {
        wire::ProfilesDictionary {
            mapping_table: from.mapping_table.into_iter().map(Into::into).collect(),
            location_table: from.location_table.into_iter().map(Into::into).collect(),
            function_table: from.function_table.into_iter().map(Into::into).collect(),
            link_table: from.link_table.into_iter().map(Into::into).collect(),
            string_table: from.string_table,
            attribute_table: from.attribute_table.into_iter().map(Into::into).collect(),
            stack_table: from.stack_table.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<ValueType> for wire::ValueType {
    fn from(from: ValueType) -> wire::ValueType {
        wire::ValueType {
            type_strindex: from.type_strindex.0,
            unit_strindex: from.unit_strindex.0,
        }
    }
}

impl From<Mapping> for wire::Mapping {
    fn from(from: Mapping) -> wire::Mapping {
        wire::Mapping {
            memory_start: from.memory_start.0,
            memory_limit: from.memory_limit.0,
            file_offset: from.file_offset.0,
            filename_strindex: from.filename_strindex.0,
            attribute_indices: numbers(from.attribute_indices),
        }
    }
}

impl From<Location> for wire::Location {
    fn from(from: Location) -> wire::Location {
        wire::Location {
            mapping_index: from.mapping_index.0,
            address: from.address.0,
            lines: from.lines.into_iter().map(Into::into).collect(),
            attribute_indices: numbers(from.attribute_indices),
        }
    }
}

impl From<Line> for wire::Line {
    fn from(from: Line) -> wire::Line {
        wire::Line {
            function_index: from.function_index.0,
            line: from.line.0,
            column: from.column.0,
        }
    }
}

impl From<Function> for wire::Function {
    fn from(from: Function) -> wire::Function {
        wire::Function {
            name_strindex: from.name_strindex.0,
            system_name_strindex: from.system_name_strindex.0,
            filename_strindex: from.filename_strindex.0,
            start_line: from.start_line.0,
        }
    }
}

impl From<Link> for wire::Link {
    fn from(from: Link) -> wire::Link {
        wire::Link {
            trace_id: from.trace_id.0,
            span_id: from.span_id.0,
        }
    }
}

impl From<Attribute> for wire::KeyValueAndUnit {
    fn from(from: Attribute) -> wire::KeyValueAndUnit {
        wire::KeyValueAndUnit {
            key_strindex: from.key_strindex.0,
            value: from.value.map(|v| v.0),
            unit_strindex: from.unit_strindex.0,
        }
    }
}

impl From<Stack> for wire::Stack {
    fn from(from: Stack) -> wire::Stack {
        wire::Stack {
            location_indices: numbers(from.location_indices),
        }
    }
}

fn numbers<T>(numbers: Vec<Number<T>>) -> Vec<T> {
    numbers.into_iter().map(|number| number.0).collect()
}
