//! The tables that all profiles of a request share, decoded entry by entry when first needed.

use std::borrow::Cow;

use opentelemetry_proto::tonic::common::v1::AnyValue;
use prost::Message;
use spanflame_model::{Claim, Frame, FrameId, Label, Link, SpanId, StackId, TraceId, Value};

use super::raw::Tables;
use crate::links::Role;
use crate::otlp::attributes::AttributeReader;
use crate::otlp::traces::invalid_id;
use crate::stacks::{self, StackBuilder};
use crate::wire::{Reader, Wire, WireError, each_varint};
use crate::{Limits, Reason, Rejects, Subject};

/// In which space the addresses of a profile lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    /// In that of the running process; the mapping says where the module lies in it.
    Process,
    /// In that of the module already: the OpenTelemetry eBPF profiler.
    Module,
}

/// An attribute of the table.
pub(super) struct TableAttribute {
    pub(super) role: Role,
    pub(super) label: Label,
}

/// An entry that may not have been looked at yet, and may turn out unusable.
type Cache<T> = Vec<Option<Result<T, Reason>>>;

/// The decoded side of [`Tables`].
pub(super) struct Dictionary<'a> {
    tables: Tables<'a>,
    limits: &'a Limits,
    pub(super) stacks: StackBuilder<'a>,
    attributes: Cache<TableAttribute>,
    links: Cache<Link>,
    /// By [`Addresses`].
    frames: [FrameCaches; 2],
}

#[derive(Default)]
struct FrameCaches {
    stacks: Cache<StackId>,
    /// Frames of a location, innermost first.
    locations: Cache<Box<[FrameId]>>,
}

/// A location as its fields say.
#[derive(Default)]
struct RawLocation<'a> {
    mapping: i64,
    address: u64,
    lines: Vec<&'a [u8]>,
    attributes: Vec<i64>,
}

/// A mapping, resolved.
#[derive(Default)]
struct Module {
    file: String,
    build_id: String,
    start: u64,
    limit: u64,
    offset: u64,
}

/// Which build id to prefer, best first.
const BUILD_ID_KEYS: [&str; 3] = [
    "process.executable.build_id.gnu",
    "process.executable.build_id.go",
    "process.executable.build_id.htlhash",
];

impl<'a> Dictionary<'a> {
    /// Notes tables that lack the zero value as their first entry.
    pub(super) fn new(tables: Tables<'a>, limits: &'a Limits, rejects: &mut Rejects) -> Dictionary<'a> {
        let named = [
            ("mapping", &tables.mappings),
            ("location", &tables.locations),
            ("function", &tables.functions),
            ("link", &tables.links),
            ("string", &tables.strings),
            ("attribute", &tables.attributes),
            ("stack", &tables.stacks),
        ];
        for (name, table) in named {
            if table.first().is_some_and(|entry| !is_zero(name, entry)) {
                rejects.add(Subject::Detail, Reason::MissingZeroEntry, || {
                    format!("entry 0 of the {name} table is not the zero value")
                });
            }
        }
        Dictionary {
            tables,
            limits,
            stacks: StackBuilder::new(limits),
            attributes: Vec::new(),
            links: Vec::new(),
            frames: Default::default(),
        }
    }

    /// A string; index 0 is the empty one. Of one that is longer than anything may be, only the beginning
    /// is looked at: many entries may name it.
    fn string(&self, index: i64) -> Result<Cow<'a, str>, Reason> {
        if index == 0 {
            return Ok(Cow::Borrowed(""));
        }
        let bytes = entry(&self.tables.strings, index)?;
        let len_max = self.limits.attribute_bytes_max.max(self.limits.name_bytes_max) + 1;
        Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(len_max)]))
    }

    /// A string to keep, charged to the request.
    pub(super) fn owned_string(&self, index: i64) -> Result<String, Reason> {
        let text = self.string(index)?;
        self.stacks.budget.take(text.len())?;
        Ok(text.into_owned())
    }

    fn name(&self, index: i64, rejects: &mut Rejects) -> Result<String, Reason> {
        self.stacks.name(&self.string(index)?, rejects)
    }

    /// The link of an entry; none at index 0 and for the zero link.
    pub(super) fn link(&mut self, index: i64) -> Result<Link, Reason> {
        if index == 0 {
            return Ok(Link::None);
        }
        let bytes = entry(&self.tables.links, index)?;
        let cache = slot(&mut self.links, index, self.tables.links.len());
        if let Some(known) = cache {
            return known.clone();
        }
        cache.insert(read_link(bytes)).clone()
    }

    /// The attribute of an entry.
    pub(super) fn attribute(&mut self, index: i64, rejects: &mut Rejects) -> Result<&TableAttribute, Reason> {
        let bytes = entry(&self.tables.attributes, index)?;
        if slot(&mut self.attributes, index, self.tables.attributes.len()).is_none() {
            let read = self.read_attribute(bytes, rejects);
            self.attributes[index as usize] = Some(read);
        }
        match &self.attributes[index as usize] {
            Some(Ok(attribute)) => Ok(attribute),
            Some(Err(reason)) => Err(*reason),
            None => Err(Reason::Malformed),
        }
    }

    fn read_attribute(&self, bytes: &[u8], rejects: &mut Rejects) -> Result<TableAttribute, Reason> {
        let (mut key, mut value, mut unit) = (0, None, 0);
        let mut fields = Reader::new(bytes);
        while let Some((field, wire)) = fields.next().map_err(|_| Reason::Malformed)? {
            match (field, wire) {
                (1, Wire::Varint(index)) => key = index as i64,
                (2, Wire::Bytes(bytes)) => value = Some(bytes),
                (3, Wire::Varint(index)) => unit = index as i64,
                _ => {}
            }
        }
        let key = self.owned_string(key)?;
        if key.is_empty() {
            return Err(Reason::NoKey);
        }
        let value = AnyValue::decode(value.unwrap_or_default()).map_err(|_| Reason::Malformed)?;
        let strings = |index: i32| self.owned_string(index.into());
        let reader = AttributeReader {
            limits: self.limits,
            strings: &strings,
        };
        let value = reader.value(value, 0, rejects).ok_or(Reason::InvalidValue)?;
        let unit = self.owned_string(unit)?;
        Ok(TableAttribute {
            role: Role::of(&key),
            label: Label { key, value, unit },
        })
    }

    /// The stack of an entry; the empty one at index 0.
    pub(super) fn stack(&mut self, index: i64, addresses: Addresses, rejects: &mut Rejects) -> Result<StackId, Reason> {
        if index == 0 {
            return self.stacks.add_stack(&mut Vec::new(), rejects);
        }
        let bytes = entry(&self.tables.stacks, index)?;
        if let Some(known) = *slot(&mut self.frames[addresses as usize].stacks, index, self.tables.stacks.len()) {
            return known;
        }
        let read = self.read_stack(bytes, addresses, rejects);
        self.frames[addresses as usize].stacks[index as usize] = Some(read);
        read
    }

    fn read_stack(&mut self, bytes: &[u8], addresses: Addresses, rejects: &mut Rejects) -> Result<StackId, Reason> {
        let mut locations = Vec::new();
        read_numbers(bytes, 1, &mut locations).map_err(|_| Reason::Malformed)?;
        let mut frames = Vec::with_capacity(locations.len().min(self.limits.stack_depth_max));
        for location in locations {
            frames.extend_from_slice(self.location(location, addresses, rejects)?);
            if frames.len() > self.limits.stack_depth_max {
                break;
            }
        }
        self.stacks.add_stack(&mut frames, rejects)
    }

    fn location(&mut self, index: i64, addresses: Addresses, rejects: &mut Rejects) -> Result<&[FrameId], Reason> {
        let bytes = entry(&self.tables.locations, index)?;
        let cache = &mut self.frames[addresses as usize].locations;
        if slot(cache, index, self.tables.locations.len()).is_none() {
            let read = self.read_location(bytes, addresses, rejects);
            self.frames[addresses as usize].locations[index as usize] = Some(read);
        }
        match &self.frames[addresses as usize].locations[index as usize] {
            Some(Ok(frames)) => Ok(frames),
            Some(Err(reason)) => Err(*reason),
            None => Err(Reason::Malformed),
        }
    }

    fn read_location(&mut self, bytes: &'a [u8], addresses: Addresses, rejects: &mut Rejects) -> Result<Box<[FrameId]>, Reason> {
        let location = RawLocation::read(bytes).map_err(|_| Reason::Malformed)?;
        let module = self.module(location.mapping, rejects)?;
        let kind = self.first_text(&location.attributes, &["profile.frame.type"], rejects)?;
        let address = match addresses {
            Addresses::Module => location.address,
            Addresses::Process => stacks::module_address(location.address, module.start, module.limit, module.offset),
        };
        let bare = Frame {
            module: module.file,
            build_id: module.build_id,
            kind,
            ..Frame::default()
        };
        let mut ids = Vec::with_capacity(location.lines.len().max(1));
        for (at, line) in location.lines.iter().take(self.limits.stack_depth_max + 1).enumerate() {
            let mut frame = self.read_line(line, bare.clone(), rejects)?;
            frame.inlined = at + 1 < location.lines.len();
            if frame.is_unresolved() {
                frame.address = Some(address);
            }
            ids.push(self.stacks.add_frame(frame)?);
        }
        if ids.is_empty() {
            let frame = Frame {
                address: Some(address),
                ..bare
            };
            ids.push(self.stacks.add_frame(frame)?);
        }
        Ok(ids.into_boxed_slice())
    }

    fn read_line(&self, bytes: &[u8], mut frame: Frame, rejects: &mut Rejects) -> Result<Frame, Reason> {
        let [function, line, column, _] = small_numbers(bytes).map_err(|_| Reason::Malformed)?;
        (frame.line, frame.column) = (line.max(0), column.max(0));
        if function == 0 {
            return Ok(frame);
        }
        let bytes = entry(&self.tables.functions, function)?;
        let [name, system_name, file, start_line] = small_numbers(bytes).map_err(|_| Reason::Malformed)?;
        frame.function = self.name(name, rejects)?;
        frame.system_name = self.name(system_name, rejects)?;
        if frame.system_name == frame.function {
            frame.system_name.clear();
        }
        frame.file = self.name(file, rejects)?;
        frame.start_line = start_line.max(0);
        Ok(frame)
    }

    fn module(&mut self, index: i64, rejects: &mut Rejects) -> Result<Module, Reason> {
        if index == 0 {
            return Ok(Module::default());
        }
        let bytes = entry(&self.tables.mappings, index)?;
        let [start, limit, offset, file] = small_numbers(bytes).map_err(|_| Reason::Malformed)?;
        let mut attributes = Vec::new();
        read_numbers(bytes, 5, &mut attributes).map_err(|_| Reason::Malformed)?;
        Ok(Module {
            file: self.name(file, rejects)?,
            build_id: self.first_text(&attributes, &BUILD_ID_KEYS, rejects)?,
            start: start as u64,
            limit: limit as u64,
            offset: offset as u64,
        })
    }

    /// The text of the first of `keys` that is among the attributes; empty if none is.
    fn first_text(&mut self, attributes: &[i64], keys: &[&str], rejects: &mut Rejects) -> Result<String, Reason> {
        let mut best: Option<(usize, String)> = None;
        for index in attributes.iter().take(self.limits.attribute_count_max) {
            // An attribute that cannot be read costs no frame.
            let Ok(attribute) = self.attribute(*index, rejects) else { continue };
            let rank = keys.iter().position(|key| *key == attribute.label.key);
            let (Some(rank), Value::Str(text)) = (rank, &attribute.label.value) else {
                continue;
            };
            if best.as_ref().is_none_or(|(found, _)| rank < *found) {
                best = Some((rank, text.clone()));
            }
        }
        Ok(best.map(|(_, text)| text).unwrap_or_default())
    }
}

impl<'a> RawLocation<'a> {
    fn read(bytes: &'a [u8]) -> Result<RawLocation<'a>, WireError> {
        let mut location = RawLocation::default();
        let mut fields = Reader::new(bytes);
        while let Some((field, wire)) = fields.next()? {
            match field {
                1 => location.mapping = wire.number(field)? as i64,
                2 => location.address = wire.number(field)?,
                3 => location.lines.push(wire.bytes(field)?),
                4 => each_varint(field, wire, |index| location.attributes.push(index as i64))?,
                _ => {}
            }
        }
        Ok(location)
    }
}

fn entry<'a>(table: &[&'a [u8]], index: i64) -> Result<&'a [u8], Reason> {
    let index = usize::try_from(index).map_err(|_| Reason::IndexOutOfRange)?;
    table.get(index).copied().ok_or(Reason::IndexOutOfRange)
}

/// The place of an entry in its cache, which is made when first used. The index was checked by [`entry`].
fn slot<T>(cache: &mut Cache<T>, index: i64, len: usize) -> &mut Option<Result<T, Reason>> {
    if cache.is_empty() {
        cache.resize_with(len, || None);
    }
    &mut cache[index as usize]
}

fn read_link(bytes: &[u8]) -> Result<Link, Reason> {
    let (mut trace_id, mut span_id): (&[u8], &[u8]) = (&[], &[]);
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next().map_err(|_| Reason::Malformed)? {
        match (field, wire) {
            (1, Wire::Bytes(bytes)) => trace_id = bytes,
            (2, Wire::Bytes(bytes)) => span_id = bytes,
            _ => {}
        }
    }
    let is_none = |id: &[u8], len: usize| id.is_empty() || (id.len() == len && id.iter().all(|b| *b == 0));
    if is_none(trace_id, TraceId::LEN) && is_none(span_id, SpanId::LEN) {
        return Ok(Link::None);
    }
    let known_len = |id: &[u8], len: usize| id.is_empty() || id.len() == len;
    if !known_len(trace_id, TraceId::LEN) || !known_len(span_id, SpanId::LEN) {
        return Err(invalid_id(trace_id));
    }
    Ok(Link::One {
        trace_id: TraceId::from_slice(trace_id),
        span_id: SpanId::from_slice(span_id),
        claim: Claim::Active,
    })
}

/// The numbers of fields 1 to 4 of a message that has only numbers there; other fields are passed over.
fn small_numbers(bytes: &[u8]) -> Result<[i64; 4], WireError> {
    let mut numbers = [0; 4];
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        if let 1..=4 = field {
            numbers[field as usize - 1] = wire.number(field)? as i64;
        }
    }
    Ok(numbers)
}

/// All numbers of the repeated field `wanted`.
fn read_numbers(bytes: &[u8], wanted: u32, numbers: &mut Vec<i64>) -> Result<(), WireError> {
    let mut fields = Reader::new(bytes);
    while let Some((field, wire)) = fields.next()? {
        if field == wanted {
            each_varint(field, wire, |number| numbers.push(number as i64))?;
        }
    }
    Ok(())
}

/// Whether an entry is the zero value in any of the forms senders write it: nothing at all, fields present
/// but empty, ids of zero bytes.
fn is_zero(table: &str, entry: &[u8]) -> bool {
    match table {
        "string" => entry.is_empty(),
        _ => is_zero_message(entry),
    }
}

fn is_zero_message(bytes: &[u8]) -> bool {
    let mut fields = Reader::new(bytes);
    loop {
        let zero = match fields.next() {
            Ok(None) => return true,
            Err(_) => return false,
            Ok(Some((_, Wire::Bytes(bytes)))) => bytes.iter().all(|b| *b == 0),
            Ok(Some((_, Wire::Varint(number) | Wire::Fixed64(number)))) => number == 0,
            Ok(Some((_, Wire::Fixed32(number)))) => number == 0,
        };
        if !zero {
            return false;
        }
    }
}
