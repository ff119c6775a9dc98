//! pprof to a profile.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message;
use spanflame_model::{Attributes, Frame, FrameId, Label, Profile, ProfileInfo, Resource, Sample, StackId, Timestamp, Value, ValueType};
use spanflame_proto::pprof as wire;

use super::keys;
use crate::compression::{Encoding, decompress};
use crate::links::{Ids, RawId, Role, label_bytes};
use crate::stacks::{self, StackBuilder};
use crate::wire::{Reader, Wire};
use crate::{Decoded, Error, Limits, Reason, Rejects, Subject, Upload};

const FORMAT: &str = "pprof";

/// Reads a pprof, compressed or not.
///
/// Time and duration of `upload` win over the profile's own.
pub fn decode(bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    decode_within(bytes, upload, &mut { *limits })
}

/// Reads one of several pprofs of a request. What it decompresses and unfolds into is taken off `left`, so that a
/// request of many may cost no more than a request of one.
pub(crate) fn decode_within(bytes: &[u8], upload: &Upload, left: &mut Limits) -> Result<Decoded, Error> {
    let limits = &{ *left };
    let bytes = decompress(Encoding::detect(bytes), bytes, limits.decoded_bytes_max)?;
    left.decoded_bytes_max -= bytes.len();
    if is_legacy(&bytes) {
        return Err(Error::Unsupported {
            found: "the legacy gperftools format".to_owned(),
            expected: "pprof in protobuf: convert it with `pprof -proto`",
        });
    }
    let (head, samples) = split_samples(&bytes, limits)?;
    let profile = wire::Profile::decode(&head[..]).map_err(|e| Error::malformed(FORMAT, e))?;
    let (decoded, expanded_bytes_left) = Importer::new(profile, limits).run(&samples, upload)?;
    left.expanded_bytes_max = expanded_bytes_left;
    Ok(decoded)
}

/// The samples of a profile, still as messages.
struct RawSamples<'a> {
    kept: Vec<&'a [u8]>,
    /// How many there are beyond the limit.
    excess: usize,
}

/// Parts the samples, of which a broken one may cost only itself, from the rest, and counts the entries of
/// the tables before they take memory.
fn split_samples<'a>(bytes: &'a [u8], limits: &Limits) -> Result<(Vec<u8>, RawSamples<'a>), Error> {
    let mut head = Vec::new();
    let mut samples = RawSamples {
        kept: Vec::new(),
        excess: 0,
    };
    let mut counts = [0; 16];
    let mut fields = Reader::new(bytes);
    loop {
        let before = fields;
        match fields.next().map_err(|e| Error::malformed(FORMAT, e))? {
            None => break,
            Some((2, Wire::Bytes(sample))) if samples.kept.len() < limits.samples_per_profile_max => samples.kept.push(sample),
            Some((2, _)) => samples.excess += 1,
            Some((field, _)) => {
                count_entry(&mut counts, field, limits)?;
                head.extend_from_slice(before.until(&fields));
            }
        }
    }
    Ok((head, samples))
}

/// Counts an entry of a table; fails if the table becomes too large.
fn count_entry(counts: &mut [usize; 16], field: u32, limits: &Limits) -> Result<(), Error> {
    let Some(count) = counts.get_mut(field as usize) else {
        return Ok(());
    };
    *count += 1;
    let (what, max) = match field {
        1 => ("sample types", limits.attribute_count_max),
        3 => ("mappings", limits.table_entries_max),
        4 => ("locations", limits.table_entries_max),
        5 => ("functions", limits.table_entries_max),
        6 => ("strings", limits.strings_max),
        _ => return Ok(()),
    };
    match *count > max {
        true => Err(Error::TooLarge { what, max }),
        false => Ok(()),
    }
}

/// Whether these are the words of a gperftools CPU profile: a header of machine words 0, 3, 0, period.
pub(crate) fn is_legacy(bytes: &[u8]) -> bool {
    let is_header = |word: usize| {
        let is_word = |at: usize, value: u8| {
            bytes[at * word..(at + 1) * word]
                .iter()
                .enumerate()
                .all(|(n, b)| *b == if n == 0 { value } else { 0 })
        };
        bytes.len() >= 5 * word && is_word(0, 0) && is_word(1, 3) && is_word(2, 0)
    };
    is_header(8) || is_header(4) || bytes.starts_with(b"heap profile: ") || bytes.starts_with(b"--- contention")
}

/// Whether the bytes have the outline of a pprof: known fields only, and strings of which the first is empty.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    let mut fields = Reader::new(bytes);
    let mut first_string = None;
    loop {
        match fields.next() {
            Ok(Some((6, Wire::Bytes(text)))) => {
                first_string.get_or_insert(text);
            }
            Ok(Some((1..=5 | 11, Wire::Bytes(_)) | (7..=10 | 12..=15, Wire::Varint(_)) | (13, Wire::Bytes(_)))) => {}
            Ok(None) => return first_string.is_some_and(<[u8]>::is_empty),
            Ok(Some(_)) | Err(_) => return false,
        }
    }
}

/// Position of an entry by its id. Ids are nearly always 1, 2, 3, .., which then costs no map.
struct ById {
    is_dense: bool,
    len: usize,
    map: HashMap<u64, usize>,
}

impl ById {
    fn new(ids: impl ExactSizeIterator<Item = u64> + Clone) -> ById {
        let len = ids.len();
        let is_dense = ids.clone().enumerate().all(|(at, id)| id == at as u64 + 1);
        let map = match is_dense {
            true => HashMap::new(),
            false => ids.enumerate().map(|(at, id)| (id, at)).collect(),
        };
        ById { is_dense, len, map }
    }

    fn get(&self, id: u64) -> Option<usize> {
        match self.is_dense {
            true => usize::try_from(id.checked_sub(1)?).ok().filter(|at| *at < self.len),
            false => self.map.get(&id).copied(),
        }
    }
}

/// A profile on its way in.
struct Importer<'a> {
    profile: wire::Profile,
    limits: &'a Limits,
    locations: ById,
    functions: ById,
    mappings: ById,
    /// Frames of a location, innermost first, once one was needed.
    frames: Vec<Option<Result<Box<[FrameId]>, Reason>>>,
    /// Stacks by their locations: many samples differ in their labels only.
    stacks: HashMap<Vec<u64>, StackId>,
    /// What the strings mean that are label keys.
    roles: HashMap<i64, Role>,
    scratch: Vec<FrameId>,
    builder: StackBuilder<'a>,
    rejects: Rejects,
}

impl<'a> Importer<'a> {
    fn new(profile: wire::Profile, limits: &'a Limits) -> Importer<'a> {
        let mut rejects = Rejects::new();
        if profile.string_table.first().is_some_and(|s| !s.is_empty()) {
            rejects.add(Subject::Detail, Reason::MissingZeroEntry, || "string 0 is not empty".to_owned());
        }
        Importer {
            locations: ById::new(profile.location.iter().map(|l| l.id)),
            functions: ById::new(profile.function.iter().map(|f| f.id)),
            mappings: ById::new(profile.mapping.iter().map(|m| m.id)),
            frames: vec![None; profile.location.len()],
            stacks: HashMap::new(),
            roles: HashMap::new(),
            scratch: Vec::new(),
            profile,
            builder: StackBuilder::new(limits),
            limits,
            rejects,
        }
    }

    /// What was read, and how many bytes the request may still unfold into.
    fn run(mut self, sent: &RawSamples<'_>, upload: &Upload) -> Result<(Decoded, usize), Error> {
        let info = self.info(upload)?;
        let mut samples = Vec::with_capacity(sent.kept.len());
        self.rejects
            .add_many(Subject::Sample, Reason::TooManySamples, sent.excess as u64, || {
                format!("the limit is {} samples", self.limits.samples_per_profile_max)
            });
        for (at, sample) in sent.kept.iter().enumerate() {
            match self.sample(sample, info.types.len()) {
                Ok(sample) => samples.push(sample),
                Err((reason, text)) => self.rejects.add(Subject::Sample, reason, || format!("sample {at} {text}")),
            }
        }
        let mut decoded = Decoded::default();
        if !samples.is_empty() {
            let info = Arc::new(info);
            decoded.batch.profiles.push(Profile { info, samples });
        }
        decoded.batch.stacks = self.builder.set;
        decoded.rejects = self.rejects;
        Ok((decoded, self.builder.budget.left()))
    }

    fn info(&mut self, upload: &Upload) -> Result<ProfileInfo, Error> {
        let types: Vec<ValueType> = self.profile.sample_type.iter().map(|t| self.value_type(t)).collect();
        if types.is_empty() {
            return Err(Error::malformed(FORMAT, "it names no sample type, expected at least one"));
        }
        let own_time = Timestamp::from_unix_nanos_signed(self.profile.time_nanos);
        let start = upload.time.or(own_time).filter(|time| *time <= self.limits.time_max);
        let start = start.ok_or_else(|| Error::malformed(FORMAT, format!("its time is {} ns, out of range", self.profile.time_nanos)))?;
        let own_duration = u64::try_from(self.profile.duration_nanos).unwrap_or(0);
        Ok(ProfileInfo {
            profile_id: None,
            name: upload.name.clone(),
            types,
            period_type: self.profile.period_type.as_ref().map(|t| self.value_type(t)).unwrap_or_default(),
            period: self.profile.period,
            start,
            duration_ns: upload.duration_ns.unwrap_or(own_duration),
            resource: Arc::new(Resource::new(upload.resource.clone())),
            scope: Arc::new(upload.scope.clone()),
            attributes: self.attributes(),
        })
    }

    fn attributes(&mut self) -> Attributes {
        let mut attributes = Attributes::new();
        let comments = self.profile.comment.iter().take(self.limits.attribute_count_max);
        let comments: Vec<Value> = comments.map(|index| Value::from(self.short_text(*index))).collect();
        if !comments.is_empty() {
            attributes.insert(keys::COMMENT, Value::Array(comments));
        }
        for (key, index) in [
            (keys::DOC_URL, self.profile.doc_url),
            (keys::DROP_FRAMES, self.profile.drop_frames),
            (keys::KEEP_FRAMES, self.profile.keep_frames),
            (keys::DEFAULT_SAMPLE_TYPE, self.profile.default_sample_type),
        ] {
            let text = self.short_text(index);
            if !text.is_empty() {
                attributes.insert(key, text);
            }
        }
        attributes
    }

    fn value_type(&self, value_type: &wire::ValueType) -> ValueType {
        ValueType::new(self.short_text(value_type.r#type), self.short_text(value_type.unit))
    }

    /// A string; empty at index 0 and outside the table.
    fn text(&self, index: i64) -> &str {
        usize::try_from(index)
            .ok()
            .filter(|index| *index != 0)
            .and_then(|index| self.profile.string_table.get(index))
            .map_or("", String::as_str)
    }

    /// The beginning of a string that may be no longer than a name.
    fn short_text(&self, index: i64) -> &str {
        let text = self.text(index);
        &text[..text.floor_char_boundary(self.limits.name_bytes_max)]
    }

    fn sample(&mut self, sent: &[u8], types: usize) -> Result<Sample, (Reason, String)> {
        let sent = wire::Sample::decode(sent).map_err(|e| (Reason::Malformed, format!("breaks off: {e}")))?;
        if sent.value.len() != types {
            let text = format!("has {} values, the profile declares {types} sample types", sent.value.len());
            return Err((Reason::ValueCount, text));
        }
        let limited = |reason: Reason| (reason, format!("exceeds a limit: {reason}"));
        let bytes = size_of::<Sample>() + size_of_val(&sent.value[..]);
        self.builder.budget.take(bytes).map_err(limited)?;
        let stack = self.stack(sent.location_id)?;
        let mut sample = Sample {
            values: sent.value,
            ..Sample::new(stack)
        };
        self.labels(&sent.label, &mut sample).map_err(limited)?;
        Ok(sample)
    }

    fn stack(&mut self, locations: Vec<u64>) -> Result<StackId, (Reason, String)> {
        if let Some(known) = self.stacks.get(&locations) {
            return Ok(*known);
        }
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        for id in &locations {
            let known = self
                .location(*id)
                .map_err(|reason| (reason, format!("has location {id}: {reason}")))?;
            frames.extend_from_slice(known);
            if frames.len() > self.limits.stack_depth_max {
                break;
            }
        }
        let added = self.builder.add_stack(&mut frames, &mut self.rejects);
        let stack = added.map_err(|reason| (reason, format!("has a stack of {} frames: {reason}", frames.len())))?;
        self.scratch = frames;
        self.stacks.insert(locations, stack);
        Ok(stack)
    }

    fn location(&mut self, id: u64) -> Result<&[FrameId], Reason> {
        let at = self.locations.get(id).ok_or(Reason::UnknownReference)?;
        if self.frames[at].is_none() {
            let frames = self.read_location(at);
            self.frames[at] = Some(frames);
        }
        match &self.frames[at] {
            Some(Ok(frames)) => Ok(frames),
            Some(Err(reason)) => Err(*reason),
            None => Err(Reason::UnknownReference),
        }
    }

    fn read_location(&mut self, at: usize) -> Result<Box<[FrameId]>, Reason> {
        let location = std::mem::take(&mut self.profile.location[at]);
        let mut bare = Frame::default();
        let mut address = location.address;
        if location.mapping_id != 0 {
            let mapping = self.mappings.get(location.mapping_id).ok_or(Reason::UnknownReference)?;
            let mapping = &self.profile.mapping[mapping];
            address = stacks::module_address(address, mapping.memory_start, mapping.memory_limit, mapping.file_offset);
            let (file, build_id) = (mapping.filename, mapping.build_id);
            bare.module = self.name(file)?;
            bare.build_id = self.name(build_id)?;
        }
        let mut ids = Vec::with_capacity(location.line.len().max(1));
        for (line_at, line) in location.line.iter().take(self.limits.stack_depth_max + 1).enumerate() {
            let mut frame = self.read_line(line, bare.clone())?;
            frame.inlined = line_at + 1 < location.line.len();
            if frame.is_unresolved() {
                frame.address = Some(address);
            }
            ids.push(self.builder.add_frame(frame)?);
        }
        if ids.is_empty() {
            bare.address = Some(address);
            ids.push(self.builder.add_frame(bare)?);
        }
        Ok(ids.into_boxed_slice())
    }

    fn read_line(&mut self, line: &wire::Line, mut frame: Frame) -> Result<Frame, Reason> {
        (frame.line, frame.column) = (line.line.max(0), line.column.max(0));
        if line.function_id == 0 {
            return Ok(frame);
        }
        let at = self.functions.get(line.function_id).ok_or(Reason::UnknownReference)?;
        let function = &self.profile.function[at];
        let (name, system_name, file) = (function.name, function.system_name, function.filename);
        frame.start_line = function.start_line.max(0);
        frame.function = self.name(name)?;
        // Most writers repeat the name here.
        if system_name != name {
            frame.system_name = self.name(system_name)?;
        }
        frame.file = self.name(file)?;
        Ok(frame)
    }

    fn name(&mut self, index: i64) -> Result<String, Reason> {
        let mut rejects = std::mem::take(&mut self.rejects);
        let name = self.builder.name(self.text(index), &mut rejects);
        self.rejects = rejects;
        name
    }

    fn labels(&mut self, sent: &[wire::Label], sample: &mut Sample) -> Result<(), Reason> {
        let mut rejects = std::mem::take(&mut self.rejects);
        let result = self.read_labels(sent, sample, &mut rejects);
        self.rejects = rejects;
        result
    }

    fn read_labels(&mut self, sent: &[wire::Label], sample: &mut Sample, rejects: &mut Rejects) -> Result<(), Reason> {
        let excess = sent.len().saturating_sub(self.limits.attribute_count_max);
        rejects.add_many(Subject::Detail, Reason::TooManyAttributes, excess as u64, || {
            format!("a sample has {} labels", sent.len())
        });
        let mut ids = Ids::default();
        for label in sent.iter().take(self.limits.attribute_count_max) {
            if self.text(label.key).is_empty() {
                rejects.add(Subject::Detail, Reason::NoKey, || "a label has no key".to_owned());
                continue;
            }
            if !self.is_said(label, sample, &mut ids, rejects) {
                let label = self.label(label, rejects);
                self.builder.budget.take(label_bytes(&label))?;
                sample.labels.push(label);
            }
        }
        // Labels are a set: writers order them as they like.
        sample.labels.sort_by(|a, b| a.key.cmp(&b.key));
        sample.link = ids.into_link();
        Ok(())
    }

    /// Whether the sample's own fields now say all that the label says.
    fn is_said(&mut self, label: &wire::Label, sample: &mut Sample, ids: &mut Ids, rejects: &mut Rejects) -> bool {
        let role = match self.roles.get(&label.key) {
            Some(role) => *role,
            None => {
                let role = Role::of(self.text(label.key));
                self.roles.insert(label.key, role);
                role
            }
        };
        match role {
            Role::Plain => false,
            Role::Place(place, canonical) => {
                let value = match label.str {
                    0 => Value::Int(label.num),
                    index => Value::from(self.text(index)),
                };
                place.set(sample, &value) && canonical
            }
            Role::Id(key) => {
                let raw = match label.str {
                    0 => RawId::Number(label.num),
                    index => RawId::Text(self.text(index)),
                };
                ids.offer(key, raw).unwrap_or_else(|reason| {
                    rejects.add(Subject::Link, reason, || format!("label {:?} is {raw:?}", self.text(label.key)));
                    false
                })
            }
        }
    }

    fn label(&self, label: &wire::Label, rejects: &mut Rejects) -> Label {
        let mut bounded = |index: i64| {
            let text = self.text(index);
            if text.len() <= self.limits.attribute_bytes_max {
                return text.to_owned();
            }
            rejects.add(Subject::Detail, Reason::AttributeTooLong, || {
                format!("a label has {} bytes", text.len())
            });
            text[..text.floor_char_boundary(self.limits.attribute_bytes_max)].to_owned()
        };
        Label {
            key: bounded(label.key),
            value: match label.str {
                0 => Value::Int(label.num),
                index => Value::Str(bounded(index)),
            },
            unit: bounded(label.num_unit),
        }
    }
}
