//! A profile to pprof.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message;
use spanflame_model::{Frame, FrameId, StackId, StackSet, Value, ValueType};
use spanflame_proto::pprof as wire;

use super::keys;
use crate::compression::gzip;
use crate::{Export, ExportRow};

/// Writes an export as pprof, compressed with gzip.
pub fn encode(export: &Export) -> Vec<u8> {
    gzip(&to_message(export).encode_to_vec())
}

/// An export as pprof's message, for who sends it inside another.
pub fn to_message(export: &Export) -> wire::Profile {
    let mut writer = Writer::new(&export.stacks);
    writer.head(export);
    for row in &export.rows {
        writer.row(row);
    }
    writer.out
}

/// Collects the tables; every entry is written once.
struct Writer<'a> {
    stacks: &'a StackSet,
    out: wire::Profile,
    string_index: HashMap<String, i64>,
    mapping_id: HashMap<(&'a str, &'a str), u64>,
    function_id: HashMap<[i64; 4], u64>,
    /// A location is a run of frames: the inlined ones and the one that is not.
    location_id: HashMap<Vec<FrameId>, u64>,
    stack_locations: HashMap<StackId, Vec<u64>>,
}

impl<'a> Writer<'a> {
    fn new(stacks: &'a StackSet) -> Writer<'a> {
        Writer {
            stacks,
            out: wire::Profile {
                string_table: vec![String::new()],
                ..wire::Profile::default()
            },
            string_index: HashMap::from([(String::new(), 0)]),
            mapping_id: HashMap::new(),
            function_id: HashMap::new(),
            location_id: HashMap::new(),
            stack_locations: HashMap::new(),
        }
    }

    fn head(&mut self, export: &Export) {
        self.out.sample_type = export.types.iter().map(|t| self.value_type(t)).collect();
        let period_type = &export.profile_type.period;
        self.out.period_type = (*period_type != ValueType::default()).then(|| self.value_type(period_type));
        self.out.period = export.period;
        self.out.time_nanos = export.start.unix_nanos();
        self.out.duration_nanos = i64::try_from(export.duration_ns).unwrap_or(i64::MAX);
        let text = |key: &str| export.attributes.get_str(key).unwrap_or_default();
        self.out.doc_url = self.string(text(keys::DOC_URL));
        self.out.drop_frames = self.string(text(keys::DROP_FRAMES));
        self.out.keep_frames = self.string(text(keys::KEEP_FRAMES));
        self.out.default_sample_type = self.string(text(keys::DEFAULT_SAMPLE_TYPE));
        if let Some(Value::Array(comments)) = export.attributes.get(keys::COMMENT) {
            self.out.comment = comments.iter().filter_map(Value::as_str).map(|c| self.string(c)).collect();
        }
    }

    fn row(&mut self, row: &ExportRow) {
        let labels = row.labels.iter().map(|label| {
            let mut out = wire::Label {
                key: self.string(&label.key),
                num_unit: self.string(&label.unit),
                ..wire::Label::default()
            };
            match &label.value {
                Value::Int(number) => out.num = *number,
                Value::Str(text) => out.str = self.string(text),
                other => out.str = self.string(&plain_text(other)),
            }
            out
        });
        let label = labels.collect();
        let sample = wire::Sample {
            location_id: self.stack(row.stack),
            value: row.values.clone(),
            label,
        };
        self.out.sample.push(sample);
    }

    fn value_type(&mut self, value_type: &ValueType) -> wire::ValueType {
        wire::ValueType {
            r#type: self.string(&value_type.kind),
            unit: self.string(&value_type.unit),
        }
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(index) = self.string_index.get(text) {
            return *index;
        }
        let index = self.out.string_table.len() as i64;
        self.out.string_table.push(text.to_owned());
        self.string_index.insert(text.to_owned(), index);
        index
    }

    fn stack(&mut self, id: StackId) -> Vec<u64> {
        if let Some(known) = self.stack_locations.get(&id) {
            return known.clone();
        }
        let stacks = self.stacks;
        let frames = stacks.stack(id).map(|frames| &frames[..]).unwrap_or_default();
        let is_inlined = |id: &FrameId| stacks.frame(*id).is_some_and(|f| f.inlined);
        let locations: Vec<u64> = frames.chunk_by(|a, _| is_inlined(a)).map(|run| self.location(run)).collect();
        self.stack_locations.insert(id, locations.clone());
        locations
    }

    fn location(&mut self, run: &[FrameId]) -> u64 {
        if let Some(id) = self.location_id.get(run) {
            return *id;
        }
        let stacks = self.stacks;
        let frames: Vec<&'a Frame> = run.iter().filter_map(|id| stacks.frame(*id).map(Arc::as_ref)).collect();
        let is_named = |frame: &&Frame| !frame.is_unresolved() || frame.line != 0 || run.len() > 1;
        let line: Vec<wire::Line> = frames.iter().copied().filter(is_named).map(|f| self.line(f)).collect();
        let id = self.out.location.len() as u64 + 1;
        let location = wire::Location {
            id,
            mapping_id: frames.first().map_or(0, |frame| self.mapping(frame)),
            address: frames.iter().find_map(|f| f.address).unwrap_or(0),
            line,
            is_folded: false,
        };
        self.out.location.push(location);
        self.location_id.insert(run.to_vec(), id);
        id
    }

    fn line(&mut self, frame: &Frame) -> wire::Line {
        wire::Line {
            function_id: self.function(frame),
            line: frame.line,
            column: frame.column,
        }
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        if frame.is_unresolved() {
            return 0;
        }
        let name = self.string(&frame.function);
        // Readers show the system name where they expect it filled.
        let system_name = match frame.system_name.as_str() {
            "" => name,
            text => self.string(text),
        };
        let key = [name, system_name, self.string(&frame.file), frame.start_line];
        if let Some(id) = self.function_id.get(&key) {
            return *id;
        }
        let [name, system_name, filename, start_line] = key;
        let id = self.out.function.len() as u64 + 1;
        self.out.function.push(wire::Function {
            id,
            name,
            system_name,
            filename,
            start_line,
        });
        self.function_id.insert(key, id);
        id
    }

    /// The mapping of the frame's module, 0 if that is unknown.
    fn mapping(&mut self, frame: &'a Frame) -> u64 {
        let key = (frame.module.as_str(), frame.build_id.as_str());
        if key == ("", "") {
            return 0;
        }
        let known = self.mapping_id.get(&key).copied();
        let id = known.unwrap_or_else(|| {
            let id = self.out.mapping.len() as u64 + 1;
            let (filename, build_id) = (self.string(key.0), self.string(key.1));
            self.out.mapping.push(wire::Mapping {
                id,
                filename,
                build_id,
                ..wire::Mapping::default()
            });
            self.mapping_id.insert(key, id);
            id
        });
        let mapping = &mut self.out.mapping[id as usize - 1];
        mapping.has_functions |= !frame.is_unresolved();
        mapping.has_filenames |= !frame.file.is_empty();
        mapping.has_line_numbers |= frame.line != 0;
        mapping.has_inline_frames |= frame.inlined;
        id
    }
}

/// Kinds of values that pprof labels do not have, as text.
fn plain_text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Bytes(bytes) => hex::encode(bytes),
        Value::Array(values) => values.iter().map(plain_text).collect::<Vec<_>>().join(","),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{key}={}", plain_text(value)));
            pairs.collect::<Vec<_>>().join(",")
        }
    }
}
