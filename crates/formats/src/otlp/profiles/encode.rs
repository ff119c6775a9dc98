//! Profiles as one request in layout 1.10.

use std::collections::HashMap;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::profiles::v1development as wire;
use spanflame_model::{
    Attributes, Batch, Claim, Frame, FrameId, Label, Link, Profile, ProfileInfo, Sample, StackId, StackSet, Value, ValueType,
};

use crate::links;
use crate::otlp::attributes::{any_value, key_value, wire_resource, wire_scope};
use crate::otlp::traces::unix_nanos;

/// Writes the profiles of a batch as one request, in layout 1.10, values packed, attributes inline.
///
/// A profile with several types becomes several, as the protocol asks. An `active` link becomes a link,
/// any other claim the attributes that say the same.
pub fn encode(batch: &Batch) -> ExportProfilesServiceRequest {
    let mut dictionary = DictionaryWriter::new(&batch.stacks);
    let mut resource_profiles: Vec<wire::ResourceProfiles> = Vec::new();
    let mut last: Option<(&ProfileInfo, Option<i64>)> = None;
    for profile in &batch.profiles {
        let pid = common_pid(profile);
        let info = profile.info.as_ref();
        let same = last.is_some_and(|(l, p)| p == pid && same(&l.resource, &info.resource) && same(&l.scope, &info.scope));
        if !same {
            resource_profiles.push(group(info, pid));
        }
        let scopes = &mut resource_profiles
            .last_mut()
            .expect("a group was pushed for the first profile")
            .scope_profiles;
        let profiles = &mut scopes.last_mut().expect("every group has one scope").profiles;
        profiles.extend((0..info.types.len()).map(|index| dictionary.profile(profile, index, pid)));
        last = Some((info, pid));
    }
    ExportProfilesServiceRequest {
        resource_profiles,
        dictionary: Some(dictionary.out),
    }
}

fn same<T: PartialEq>(a: &Arc<T>, b: &Arc<T>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// The process of all samples, if it is one: it then belongs to the resource.
fn common_pid(profile: &Profile) -> Option<i64> {
    let first = profile.samples.first()?.pid;
    first.filter(|_| profile.samples.iter().all(|sample| sample.pid == first))
}

fn group(info: &ProfileInfo, pid: Option<i64>) -> wire::ResourceProfiles {
    let mut resource = wire_resource(&info.resource);
    let pid = pid.map(|pid| key_value(links::Place::Pid.key(), &Value::Int(pid)));
    resource.attributes.extend(pid);
    wire::ResourceProfiles {
        resource: Some(resource),
        scope_profiles: vec![wire::ScopeProfiles {
            scope: wire_scope(&info.scope),
            ..wire::ScopeProfiles::default()
        }],
        schema_url: String::new(),
    }
}

/// Collects the tables; every entry is written once.
struct DictionaryWriter<'a> {
    stacks: &'a StackSet,
    out: wire::ProfilesDictionary,
    string_index: HashMap<String, i32>,
    mapping_index: HashMap<(String, String), i32>,
    /// A location is a run of frames: the inlined ones and the one that is not.
    location_index: HashMap<Vec<FrameId>, i32>,
    function_index: HashMap<wire::Function, i32>,
    attribute_index: HashMap<u128, i32>,
    link_index: HashMap<Link, i32>,
    stack_index: HashMap<StackId, i32>,
}

impl<'a> DictionaryWriter<'a> {
    /// Tables that hold only their zero values.
    fn new(stacks: &'a StackSet) -> DictionaryWriter<'a> {
        let zero_link = wire::Link {
            trace_id: vec![0; 16],
            span_id: vec![0; 8],
        };
        DictionaryWriter {
            stacks,
            out: wire::ProfilesDictionary {
                mapping_table: vec![Default::default()],
                location_table: vec![Default::default()],
                function_table: vec![Default::default()],
                link_table: vec![zero_link],
                string_table: vec![String::new()],
                attribute_table: vec![Default::default()],
                stack_table: vec![Default::default()],
            },
            string_index: HashMap::from([(String::new(), 0)]),
            mapping_index: HashMap::from([(Default::default(), 0)]),
            location_index: HashMap::new(),
            function_index: HashMap::from([(Default::default(), 0)]),
            attribute_index: HashMap::new(),
            link_index: HashMap::new(),
            stack_index: HashMap::new(),
        }
    }

    /// The profile with only the type at `index`.
    fn profile(&mut self, profile: &Profile, index: usize, resource_pid: Option<i64>) -> wire::Profile {
        let info = &profile.info;
        wire::Profile {
            sample_type: Some(self.value_type(&info.types[index])),
            samples: profile.samples.iter().map(|s| self.sample(s, info, index, resource_pid)).collect(),
            time_unix_nano: unix_nanos(info.start),
            duration_nano: info.duration_ns,
            period_type: (info.period_type != ValueType::default()).then(|| self.value_type(&info.period_type)),
            period: info.period,
            profile_id: info.profile_id.map(|id| id.to_vec()).unwrap_or_default(),
            attribute_indices: self.attributes(&info.attributes),
            ..wire::Profile::default()
        }
    }

    fn sample(&mut self, sample: &Sample, info: &ProfileInfo, index: usize, resource_pid: Option<i64>) -> wire::Sample {
        let values = match info.types.len() {
            1 => sample.values.clone(),
            _ => sample.values.get(index).copied().into_iter().collect(),
        };
        let link_index = match &sample.link {
            link @ Link::One { claim: Claim::Active, .. } => self.link(link),
            _ => 0,
        };
        wire::Sample {
            stack_index: self.stack(sample.stack),
            attribute_indices: self.sample_attributes(sample, link_index != 0, resource_pid),
            link_index,
            values,
            timestamps_unix_nano: sample.times.iter().map(|time| unix_nanos(*time)).collect(),
        }
    }

    fn sample_attributes(&mut self, sample: &Sample, has_link: bool, resource_pid: Option<i64>) -> Vec<i32> {
        let link = match has_link {
            true => links::from_labels(&sample.labels),
            false => sample.link.clone(),
        };
        let said = Sample {
            link,
            labels: sample.labels.clone(),
            thread_id: sample.thread_id,
            thread_name: sample.thread_name.clone(),
            pid: sample.pid.filter(|_| resource_pid.is_none()),
            ..Sample::new(sample.stack)
        };
        let labels = links::labels_of(&said);
        labels.iter().map(|label| self.attribute(label)).collect()
    }

    fn value_type(&mut self, value_type: &ValueType) -> wire::ValueType {
        wire::ValueType {
            type_strindex: self.string(&value_type.kind),
            unit_strindex: self.string(&value_type.unit),
        }
    }

    fn string(&mut self, text: &str) -> i32 {
        if let Some(index) = self.string_index.get(text) {
            return *index;
        }
        let index = push(&mut self.out.string_table, text.to_owned());
        self.string_index.insert(text.to_owned(), index);
        index
    }

    fn attributes(&mut self, attributes: &Attributes) -> Vec<i32> {
        let labels = attributes.iter().map(|(key, value)| Label {
            key: key.to_owned(),
            value: value.clone(),
            unit: String::new(),
        });
        labels.map(|label| self.attribute(&label)).collect()
    }

    fn attribute(&mut self, label: &Label) -> i32 {
        let mut hash = spanflame_model::Hasher::new();
        hash.text(&label.key);
        hash.value(&label.value);
        hash.text(&label.unit);
        let hash = hash.finish().0;
        if let Some(index) = self.attribute_index.get(&hash) {
            return *index;
        }
        let entry = wire::KeyValueAndUnit {
            key_strindex: self.string(&label.key),
            value: Some(any_value(&label.value)),
            unit_strindex: self.string(&label.unit),
        };
        let index = push(&mut self.out.attribute_table, entry);
        self.attribute_index.insert(hash, index);
        index
    }

    fn text_attribute(&mut self, key: &str, text: &str) -> Vec<i32> {
        match text {
            "" => Vec::new(),
            text => vec![self.attribute(&Label {
                key: key.to_owned(),
                value: text.into(),
                unit: String::new(),
            })],
        }
    }

    fn link(&mut self, link: &Link) -> i32 {
        if let Some(index) = self.link_index.get(link) {
            return *index;
        }
        let entry = wire::Link {
            trace_id: link.trace_id().map_or(vec![0; 16], |id| id.as_bytes().to_vec()),
            span_id: link.span_id().map_or(vec![0; 8], |id| id.as_bytes().to_vec()),
        };
        let index = push(&mut self.out.link_table, entry);
        self.link_index.insert(link.clone(), index);
        index
    }

    fn stack(&mut self, id: StackId) -> i32 {
        if let Some(index) = self.stack_index.get(&id) {
            return *index;
        }
        let index = match self.stacks.stack(id) {
            Some(frames) if !frames.is_empty() => {
                let location_indices = {
                    let runs: Vec<&[FrameId]> = frames.chunk_by(|a, _| self.is_inlined(*a)).collect();
                    runs.into_iter().map(|run| self.location(run)).collect()
                };
                push(&mut self.out.stack_table, wire::Stack { location_indices })
            }
            // Index 0 is the stack of which nothing is known.
            _ => 0,
        };
        self.stack_index.insert(id, index);
        index
    }

    fn is_inlined(&self, frame: FrameId) -> bool {
        self.stacks.frame(frame).is_some_and(|f| f.inlined)
    }

    fn location(&mut self, run: &[FrameId]) -> i32 {
        if let Some(index) = self.location_index.get(run) {
            return *index;
        }
        let stacks = self.stacks;
        let frames: Vec<&Frame> = run.iter().filter_map(|id| stacks.frame(*id).map(Arc::as_ref)).collect();
        // All frames of a location have its module; a frame that is missing from the set is shown as unknown.
        let unknown = Frame::default();
        let first = frames.first().copied().unwrap_or(&unknown);
        let attribute_indices = self.text_attribute("profile.frame.type", &first.kind);
        let is_named = |frame: &&Frame| !frame.is_unresolved() || frame.line != 0 || frames.len() > 1;
        let location = wire::Location {
            mapping_index: self.mapping(first),
            address: frames.iter().find_map(|f| f.address).unwrap_or(0),
            lines: frames.iter().copied().filter(is_named).map(|f| self.line(f)).collect(),
            attribute_indices,
        };
        let index = push(&mut self.out.location_table, location);
        self.location_index.insert(run.to_vec(), index);
        index
    }

    fn line(&mut self, frame: &Frame) -> wire::Line {
        let function = wire::Function {
            name_strindex: self.string(&frame.function),
            system_name_strindex: self.string(&frame.system_name),
            filename_strindex: self.string(&frame.file),
            start_line: frame.start_line,
        };
        let function_index = match self.function_index.get(&function) {
            Some(index) => *index,
            None => {
                let index = push(&mut self.out.function_table, function);
                self.function_index.insert(function, index);
                index
            }
        };
        wire::Line {
            function_index,
            line: frame.line,
            column: frame.column,
        }
    }

    fn mapping(&mut self, frame: &Frame) -> i32 {
        let key = (frame.module.clone(), frame.build_id.clone());
        if let Some(index) = self.mapping_index.get(&key) {
            return *index;
        }
        let mapping = wire::Mapping {
            filename_strindex: self.string(&frame.module),
            attribute_indices: self.text_attribute(build_id_key(&frame.build_id), &frame.build_id),
            // Start, limit and offset stay zero: addresses are those of the module already.
            ..wire::Mapping::default()
        };
        let index = push(&mut self.out.mapping_table, mapping);
        self.mapping_index.insert(key, index);
        index
    }
}

/// Go's own build ids hold slashes; the rest is hex, as GNU's.
fn build_id_key(build_id: &str) -> &'static str {
    match build_id.contains('/') {
        true => "process.executable.build_id.go",
        false => "process.executable.build_id.gnu",
    }
}

fn push<T>(table: &mut Vec<T>, entry: T) -> i32 {
    table.push(entry);
    i32::try_from(table.len() - 1).expect("a batch is bounded far below 2^31 entries")
}
