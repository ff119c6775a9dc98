//! Spans to rows and back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, Int32Array, Int64Array, MapArray, StringArray, StringBuilder, StructArray, UInt8BufferBuilder,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use spanflame_model::{Attributes, Resource, Scope, Span, SpanEvent, SpanId, SpanKind, SpanLink, StatusCode, Tenant, Timestamp, TraceId};

use super::column::{self, column, id, non_empty, optional_column, text, timestamp};
use super::json::{self, JsonAttributes, OwnedAttributes};
use super::{REPEATED_BYTES_MAX, Unreadable};
use crate::schema::{Table, map_entries, span};
use crate::{Error, SpanFields, StoredSpan};

/// Rows of `spans`.
pub(super) fn encode(spans: &[Span], received: Timestamp) -> Result<RecordBatch, Error> {
    let texts = SharedTexts::of(spans)?;
    let events = optional_texts(spans, |span| (!span.events.is_empty()).then(|| write_events(&span.events)))?;
    let links = optional_texts(spans, |span| (!span.links.is_empty()).then(|| write_links(&span.links)))?;
    let (attributes, attribute_types) = encode_attributes(spans)?;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(BinaryArray::from_iter_values(spans.iter().map(|s| s.trace_id.as_bytes()))),
        Arc::new(BinaryArray::from_iter_values(spans.iter().map(|s| s.span_id.as_bytes()))),
        Arc::new(
            spans
                .iter()
                .map(|s| s.parent_span_id.map(|id| *id.as_bytes()))
                .collect::<BinaryArray>(),
        ),
        numbers(spans, |s| s.start.unix_nanos()),
        numbers(spans, |s| i64::try_from(s.duration_ns).unwrap_or(i64::MAX)),
        Arc::new(StringArray::from_iter_values(spans.iter().map(|s| &s.name))),
        Arc::new(Int32Array::from_iter_values(spans.iter().map(|s| s.kind as i32))),
        Arc::new(Int32Array::from_iter_values(spans.iter().map(|s| s.status as i32))),
        Arc::new(spans.iter().map(|s| non_empty(&s.status_message)).collect::<StringArray>()),
        Arc::new(StringArray::from_iter_values(spans.iter().map(|s| s.resource.service()))),
        numbers(spans, |s| i64::from(s.flags)),
        Arc::new(spans.iter().map(|s| non_empty(&s.trace_state)).collect::<StringArray>()),
        attributes,
        attribute_types,
        texts.resources,
        texts.scopes,
        events,
        links,
        numbers(spans, |s| i64::from(s.dropped[0])),
        numbers(spans, |s| i64::from(s.dropped[1])),
        numbers(spans, |s| i64::from(s.dropped[2])),
        column::received_array(received, spans.len()),
    ];
    column::batch(Table::Spans, columns)
}

/// Rows of `spans` to spans. Keeps what it parsed, so that rows of one sender share it.
pub(crate) struct SpanDecoder {
    tenant: Tenant,
    fields: SpanFields,
    resources: HashMap<Box<str>, Arc<Resource>>,
    scopes: HashMap<Box<str>, Arc<Scope>>,
}

impl SpanDecoder {
    /// A decoder of one tenant's rows that fills in `fields`.
    pub(crate) fn new(tenant: Tenant, fields: SpanFields) -> SpanDecoder {
        SpanDecoder {
            tenant,
            fields,
            resources: HashMap::new(),
            scopes: HashMap::from([(Box::from(""), Arc::new(Scope::default()))]),
        }
    }

    /// The columns that [`SpanDecoder::decode`] reads for `fields`.
    pub(crate) fn columns(fields: SpanFields) -> Vec<&'static str> {
        let mut names = vec![
            span::TRACE_ID,
            span::SPAN_ID,
            span::PARENT_SPAN_ID,
            span::START,
            span::DURATION,
            span::NAME,
            span::KIND,
            span::STATUS,
            span::STATUS_MESSAGE,
            span::SERVICE,
            span::FLAGS,
            span::TRACE_STATE,
            span::RECEIVED,
        ];
        if fields.attributes {
            names.extend([span::ATTRIBUTES, span::ATTRIBUTE_TYPES, span::DROPPED_ATTRIBUTES]);
        }
        if fields.resource {
            names.extend([span::RESOURCE, span::SCOPE]);
        }
        if fields.events {
            names.extend([span::EVENTS, span::LINKS, span::DROPPED_EVENTS, span::DROPPED_LINKS]);
        }
        names
    }

    /// Appends the spans at `rows` to `out`.
    pub(crate) fn decode(
        &mut self,
        batch: &RecordBatch,
        rows: impl IntoIterator<Item = usize>,
        out: &mut Vec<StoredSpan>,
    ) -> Result<(), Unreadable> {
        let columns = Columns::of(batch, self.fields)?;
        for row in rows {
            out.push(self.decode_row(&columns, row)?);
        }
        Ok(())
    }

    fn decode_row(&mut self, c: &Columns<'_>, row: usize) -> Result<StoredSpan, Unreadable> {
        let missing = |what: &str| Unreadable::new(format!("row {row} has no {what}"));
        let dropped = |array: Option<&Int64Array>| array.map_or(0, |a| u32::try_from(a.value(row)).unwrap_or(u32::MAX));
        let span = Span {
            trace_id: id(c.trace_id, row, "trace id", TraceId::from_slice)?.ok_or_else(|| missing("trace id"))?,
            span_id: id(c.span_id, row, "span id", SpanId::from_slice)?.ok_or_else(|| missing("span id"))?,
            parent_span_id: id(c.parent_span_id, row, "parent span id", SpanId::from_slice)?,
            trace_state: text(c.trace_state, row).to_owned(),
            flags: u32::try_from(c.flags.value(row)).unwrap_or(0),
            name: text(c.name, row).to_owned(),
            kind: SpanKind::from_number(c.kind.value(row)),
            start: timestamp(c.start.value(row))?,
            duration_ns: u64::try_from(c.duration.value(row)).unwrap_or(0),
            status: StatusCode::from_number(c.status.value(row)),
            status_message: text(c.status_message, row).to_owned(),
            attributes: match &c.attributes {
                Some(attributes) => attributes.decode(row)?,
                None => Attributes::new(),
            },
            events: c.events.map_or(Ok(Vec::new()), |array| read_events(text(array, row)))?,
            links: c.links.map_or(Ok(Vec::new()), |array| read_links(text(array, row)))?,
            dropped: c.dropped.map(dropped),
            resource: match c.resource {
                Some(array) => self.resource(text(array, row))?,
                None => self.resource_of_service(text(c.service, row)),
            },
            scope: self.scope(c.scope.map_or("", |array| text(array, row)))?,
        };
        Ok(StoredSpan {
            tenant: self.tenant.clone(),
            received: timestamp(c.received.value(row))?,
            span,
        })
    }

    fn resource(&mut self, json: &str) -> Result<Arc<Resource>, Unreadable> {
        if let Some(known) = self.resources.get(json) {
            return Ok(Arc::clone(known));
        }
        let resource = read_resource(json)?;
        self.resources.insert(json.into(), Arc::clone(&resource));
        Ok(resource)
    }

    /// What stands for the resource where only the service was asked for.
    fn resource_of_service(&mut self, service: &str) -> Arc<Resource> {
        if let Some(known) = self.resources.get(service) {
            return Arc::clone(known);
        }
        let resource = Arc::new(Resource::new([("service.name", service)].into_iter().collect()));
        self.resources.insert(service.into(), Arc::clone(&resource));
        resource
    }

    fn scope(&mut self, json: &str) -> Result<Arc<Scope>, Unreadable> {
        if let Some(known) = self.scopes.get(json) {
            return Ok(Arc::clone(known));
        }
        let scope = read_scope(json)?;
        self.scopes.insert(json.into(), Arc::clone(&scope));
        Ok(scope)
    }
}

/// The columns of one batch; those that were not asked for are absent.
struct Columns<'a> {
    trace_id: &'a BinaryArray,
    span_id: &'a BinaryArray,
    parent_span_id: &'a BinaryArray,
    start: &'a Int64Array,
    duration: &'a Int64Array,
    name: &'a StringArray,
    kind: &'a Int32Array,
    status: &'a Int32Array,
    status_message: &'a StringArray,
    service: &'a StringArray,
    flags: &'a Int64Array,
    trace_state: &'a StringArray,
    received: &'a Int64Array,
    attributes: Option<AttributeColumns<'a>>,
    resource: Option<&'a StringArray>,
    scope: Option<&'a StringArray>,
    events: Option<&'a StringArray>,
    links: Option<&'a StringArray>,
    dropped: [Option<&'a Int64Array>; 3],
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch, fields: SpanFields) -> Result<Columns<'a>, Unreadable> {
        let wanted_text = |wanted: bool, name| if wanted { optional_column(batch, name) } else { Ok(None) };
        let wanted_number = |wanted: bool, name| if wanted { optional_column(batch, name) } else { Ok(None) };
        Ok(Columns {
            trace_id: column(batch, span::TRACE_ID)?,
            span_id: column(batch, span::SPAN_ID)?,
            parent_span_id: column(batch, span::PARENT_SPAN_ID)?,
            start: column(batch, span::START)?,
            duration: column(batch, span::DURATION)?,
            name: column(batch, span::NAME)?,
            kind: column(batch, span::KIND)?,
            status: column(batch, span::STATUS)?,
            status_message: column(batch, span::STATUS_MESSAGE)?,
            service: column(batch, span::SERVICE)?,
            flags: column(batch, span::FLAGS)?,
            trace_state: column(batch, span::TRACE_STATE)?,
            received: column(batch, span::RECEIVED)?,
            attributes: if fields.attributes {
                Some(AttributeColumns::of(batch)?)
            } else {
                None
            },
            resource: wanted_text(fields.resource, span::RESOURCE)?,
            scope: wanted_text(fields.resource, span::SCOPE)?,
            events: wanted_text(fields.events, span::EVENTS)?,
            links: wanted_text(fields.events, span::LINKS)?,
            dropped: [
                wanted_number(fields.attributes, span::DROPPED_ATTRIBUTES)?,
                wanted_number(fields.events, span::DROPPED_EVENTS)?,
                wanted_number(fields.events, span::DROPPED_LINKS)?,
            ],
        })
    }
}

struct AttributeColumns<'a> {
    map: &'a MapArray,
    keys: &'a StringArray,
    values: &'a StringArray,
    types: &'a StringArray,
}

impl<'a> AttributeColumns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<AttributeColumns<'a>, Unreadable> {
        let map: &MapArray = column(batch, span::ATTRIBUTES)?;
        let strings = |array: &'a ArrayRef| {
            let strings = array.as_any().downcast_ref::<StringArray>();
            strings.ok_or_else(|| Unreadable::new("attributes are no map of text to text"))
        };
        Ok(AttributeColumns {
            map,
            keys: strings(map.keys())?,
            values: strings(map.values())?,
            types: column(batch, span::ATTRIBUTE_TYPES)?,
        })
    }

    fn decode(&self, row: usize) -> Result<Attributes, Unreadable> {
        let offsets = self.map.value_offsets();
        let entries = offsets[row] as usize..offsets[row + 1] as usize;
        let letters = text(self.types, row).as_bytes();
        let mut pairs = Vec::with_capacity(entries.len());
        for (n, entry) in entries.enumerate() {
            let letter = letters.get(n).copied().unwrap_or(b's');
            let value = json::attribute_value(text(self.values, entry), letter)
                .ok_or_else(|| Unreadable::new(format!("row {row} has an attribute that is not of its type {:?}", letter as char)))?;
            pairs.push((text(self.keys, entry).to_owned(), value));
        }
        Ok(Attributes::from(pairs))
    }
}

fn numbers(spans: &[Span], number: impl Fn(&Span) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(spans.iter().map(number)))
}

fn optional_texts(spans: &[Span], text: impl Fn(&Span) -> Option<Result<String, Error>>) -> Result<ArrayRef, Error> {
    let texts: Vec<Option<String>> = spans.iter().map(|span| text(span).transpose()).collect::<Result<_, _>>()?;
    Ok(Arc::new(StringArray::from(texts)))
}

/// The attribute map, and the kinds of its values where a span has others than text.
fn encode_attributes(spans: &[Span]) -> Result<(ArrayRef, ArrayRef), Error> {
    let entries = spans.iter().map(|span| span.attributes.len()).sum();
    let mut keys = StringBuilder::with_capacity(entries, entries * 16);
    let mut values = StringBuilder::with_capacity(entries, entries * 16);
    let mut types = StringBuilder::with_capacity(spans.len(), 0);
    let mut letters = UInt8BufferBuilder::new(32);
    for span in spans {
        letters.truncate(0);
        for (key, value) in span.attributes.iter() {
            let (text, letter) = json::attribute_text(value)?;
            keys.append_value(key);
            values.append_value(text);
            letters.append(letter);
        }
        let all_text = letters.as_slice().iter().all(|letter| *letter == b's');
        types.append_option((!all_text).then(|| std::str::from_utf8(letters.as_slice()).expect("letters are ASCII")));
    }
    let fields = map_entries();
    let offsets = OffsetBuffer::from_lengths(spans.iter().map(|span| span.attributes.len()));
    let pairs = StructArray::new(fields.clone(), vec![Arc::new(keys.finish()), Arc::new(values.finish())], None);
    let entry = Arc::new(Field::new("key_value", DataType::Struct(fields), false));
    Ok((
        Arc::new(MapArray::new(entry, offsets, pairs, None, false)),
        Arc::new(types.finish()),
    ))
}

/// Resource and scope of every span as JSON, written once for neighbours that share them.
struct SharedTexts {
    resources: ArrayRef,
    scopes: ArrayRef,
}

impl SharedTexts {
    fn of(spans: &[Span]) -> Result<SharedTexts, Error> {
        let mut resources = RepeatedText::new(spans.len());
        let mut scopes = RepeatedText::new(spans.len());
        let (mut resource, mut scope): (Option<&Arc<Resource>>, Option<&Arc<Scope>>) = (None, None);
        for span in spans {
            if !resource.is_some_and(|last| Arc::ptr_eq(last, &span.resource)) {
                resources.set(Some(write_resource(&span.resource)?));
                resource = Some(&span.resource);
            }
            if !scope.is_some_and(|last| Arc::ptr_eq(last, &span.scope)) {
                scopes.set(write_scope(&span.scope)?);
                scope = Some(&span.scope);
            }
            resources.repeat()?;
            scopes.repeat()?;
        }
        Ok(SharedTexts {
            resources: resources.finish(),
            scopes: scopes.finish(),
        })
    }
}

/// A text column whose neighbouring rows mostly hold the same.
pub(super) struct RepeatedText {
    rows: StringBuilder,
    current: Option<String>,
}

impl RepeatedText {
    pub(super) fn new(rows: usize) -> RepeatedText {
        RepeatedText {
            rows: StringBuilder::with_capacity(rows, rows * 64),
            current: None,
        }
    }

    /// What the next rows hold.
    pub(super) fn set(&mut self, text: Option<String>) {
        self.current = text;
    }

    /// Appends a row. Fails where the column grows past [`REPEATED_BYTES_MAX`].
    pub(super) fn repeat(&mut self) -> Result<(), Error> {
        let grown = self.rows.values_slice().len() + self.current.as_ref().map_or(0, String::len);
        if grown > REPEATED_BYTES_MAX {
            return Err(Error::Invalid {
                message: format!(
                    "resources take {grown} bytes when repeated on every row, expected at most {REPEATED_BYTES_MAX}: send smaller requests"
                ),
            });
        }
        self.rows.append_option(self.current.as_deref());
        Ok(())
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        Arc::new(self.rows.finish())
    }
}

pub(super) fn write_resource(resource: &Resource) -> Result<String, Error> {
    json::write(&JsonAttributes(resource.attributes()))
}

pub(super) fn read_resource(text: &str) -> Result<Arc<Resource>, Unreadable> {
    let OwnedAttributes(attributes) = json::read(span::RESOURCE, text)?;
    Ok(Arc::new(Resource::new(attributes)))
}

/// `None` for a scope that says nothing.
pub(super) fn write_scope(scope: &Scope) -> Result<Option<String>, Error> {
    if *scope == Scope::default() {
        return Ok(None);
    }
    json::write(&ScopeOut {
        name: &scope.name,
        version: &scope.version,
        attributes: JsonAttributes(&scope.attributes),
    })
    .map(Some)
}

pub(super) fn read_scope(text: &str) -> Result<Arc<Scope>, Unreadable> {
    let scope: ScopeIn = json::read(span::SCOPE, text)?;
    Ok(Arc::new(Scope {
        name: scope.name,
        version: scope.version,
        attributes: scope.attributes.0,
    }))
}

fn write_events(events: &[SpanEvent]) -> Result<String, Error> {
    let events: Vec<EventOut<'_>> = events
        .iter()
        .map(|event| EventOut {
            time_unix_nano: event.time.unix_nanos(),
            name: &event.name,
            attributes: JsonAttributes(&event.attributes),
            dropped: event.dropped,
        })
        .collect();
    json::write(&events)
}

fn read_events(text: &str) -> Result<Vec<SpanEvent>, Unreadable> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let events: Vec<EventIn> = json::read(span::EVENTS, text)?;
    let event = |event: EventIn| {
        Ok(SpanEvent {
            time: timestamp(event.time_unix_nano)?,
            name: event.name,
            attributes: event.attributes.0,
            dropped: event.dropped,
        })
    };
    events.into_iter().map(event).collect()
}

fn write_links(links: &[SpanLink]) -> Result<String, Error> {
    let links: Vec<LinkOut<'_>> = links
        .iter()
        .map(|link| LinkOut {
            trace_id: link.trace_id.to_string(),
            span_id: link.span_id.to_string(),
            trace_state: &link.trace_state,
            attributes: JsonAttributes(&link.attributes),
            dropped: link.dropped,
            flags: link.flags,
        })
        .collect();
    json::write(&links)
}

fn read_links(text: &str) -> Result<Vec<SpanLink>, Unreadable> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let links: Vec<LinkIn> = json::read(span::LINKS, text)?;
    let link = |link: LinkIn| {
        Ok(SpanLink {
            trace_id: link.trace_id.parse().map_err(|error| Unreadable::new(format!("{error}")))?,
            span_id: link.span_id.parse().map_err(|error| Unreadable::new(format!("{error}")))?,
            trace_state: link.trace_state,
            attributes: link.attributes.0,
            dropped: link.dropped,
            flags: link.flags,
        })
    };
    links.into_iter().map(link).collect()
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn no_attributes(attributes: &JsonAttributes<'_>) -> bool {
    attributes.0.is_empty()
}

#[derive(Serialize)]
struct ScopeOut<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "no_attributes")]
    attributes: JsonAttributes<'a>,
}

#[derive(Deserialize)]
struct ScopeIn {
    name: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    attributes: OwnedAttributes,
}

#[derive(Serialize)]
struct EventOut<'a> {
    time_unix_nano: i64,
    name: &'a str,
    #[serde(skip_serializing_if = "no_attributes")]
    attributes: JsonAttributes<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped: u32,
}

#[derive(Deserialize)]
struct EventIn {
    time_unix_nano: i64,
    name: String,
    #[serde(default)]
    attributes: OwnedAttributes,
    #[serde(default)]
    dropped: u32,
}

#[derive(Serialize)]
struct LinkOut<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    trace_state: &'a str,
    #[serde(skip_serializing_if = "no_attributes")]
    attributes: JsonAttributes<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped: u32,
    #[serde(skip_serializing_if = "is_zero")]
    flags: u32,
}

#[derive(Deserialize)]
struct LinkIn {
    trace_id: String,
    span_id: String,
    #[serde(default)]
    trace_state: String,
    #[serde(default)]
    attributes: OwnedAttributes,
    #[serde(default)]
    dropped: u32,
    #[serde(default)]
    flags: u32,
}
