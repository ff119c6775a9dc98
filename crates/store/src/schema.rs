//! The five tables and their columns: what is on disk.
//!
//! Only types that Delta Lake knows: signed integers, strings, binary, boolean, list, map. The partition
//! columns `tenant` and `day` are in no file; they belong to the path and the table's log. Column names are
//! used here and in `rows`, nowhere else. `docs/storage.md` explains every column to readers from outside.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

/// A table of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Table {
    /// A row is a span.
    Spans,
    /// A row is one stack of one link in one profile.
    Samples,
    /// A row is the sum of one stack over a minute: the rollup.
    Profiles,
    /// A row is a stack.
    Stacks,
    /// A row is a frame.
    Frames,
}

impl Table {
    /// Every table, in the order in which a reader would explain them.
    pub(crate) const ALL: [Table; 5] = [Table::Spans, Table::Samples, Table::Profiles, Table::Stacks, Table::Frames];

    /// Name of the table and of its folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Table::Spans => "spans",
            Table::Samples => "samples",
            Table::Profiles => "profiles",
            Table::Stacks => "stacks",
            Table::Frames => "frames",
        }
    }

    /// Its columns without the partition columns.
    pub(crate) fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 5]> = LazyLock::new(|| Table::ALL.map(|table| Arc::new(Schema::new(columns(table)))));
        Arc::clone(&SCHEMAS[self as usize])
    }

    /// Position of a column.
    pub(crate) fn column(self, name: &str) -> usize {
        self.schema().index_of(name).expect("columns are named by constants of this module")
    }
}

/// Columns of `spans`.
pub(crate) mod span {
    pub(crate) const TRACE_ID: &str = "trace_id";
    pub(crate) const SPAN_ID: &str = "span_id";
    pub(crate) const PARENT_SPAN_ID: &str = "parent_span_id";
    pub(crate) const START: &str = "start_unix_nano";
    pub(crate) const DURATION: &str = "duration_nano";
    pub(crate) const NAME: &str = "name";
    pub(crate) const KIND: &str = "kind";
    pub(crate) const STATUS: &str = "status";
    pub(crate) const STATUS_MESSAGE: &str = "status_message";
    pub(crate) const SERVICE: &str = "service";
    pub(crate) const FLAGS: &str = "flags";
    pub(crate) const TRACE_STATE: &str = "trace_state";
    pub(crate) const ATTRIBUTES: &str = "attributes";
    pub(crate) const ATTRIBUTE_TYPES: &str = "attribute_types";
    pub(crate) const RESOURCE: &str = "resource";
    pub(crate) const SCOPE: &str = "scope";
    pub(crate) const EVENTS: &str = "events";
    pub(crate) const LINKS: &str = "links";
    pub(crate) const DROPPED_ATTRIBUTES: &str = "dropped_attributes";
    pub(crate) const DROPPED_EVENTS: &str = "dropped_events";
    pub(crate) const DROPPED_LINKS: &str = "dropped_links";
    pub(crate) const RECEIVED: &str = super::RECEIVED;
}

/// Columns of `samples`.
pub(crate) mod sample {
    pub(crate) const TRACE_ID: &str = "trace_id";
    pub(crate) const SPAN_ID: &str = "span_id";
    pub(crate) const CLAIM: &str = "claim";
    pub(crate) const CANDIDATES: &str = "candidates";
    pub(crate) const PROFILE_HASH: &str = "profile_hash";
    pub(crate) const PROFILE_ID: &str = "profile_id";
    pub(crate) const PROFILE: &str = "profile";
    pub(crate) const PROFILE_START: &str = "profile_start_unix_nano";
    pub(crate) const PROFILE_DURATION: &str = "profile_duration_nano";
    pub(crate) const STACK_ID: &str = "stack_id";
    pub(crate) const VALUES: &str = "values";
    pub(crate) const TIMES: &str = "times_unix_nano";
    pub(crate) const THREAD_ID: &str = "thread_id";
    pub(crate) const THREAD_NAME: &str = "thread_name";
    pub(crate) const PID: &str = "pid";
    pub(crate) const LABELS: &str = "labels";
    pub(crate) const SERVICE: &str = "service";
    pub(crate) const RESOURCE: &str = "resource";
    pub(crate) const RECEIVED: &str = super::RECEIVED;
}

/// Columns of `profiles`.
pub(crate) mod rollup {
    pub(crate) const SERVICE: &str = "service";
    pub(crate) const VERSION: &str = "version";
    pub(crate) const LABELS: &str = "labels";
    pub(crate) const PROFILE_TYPE: &str = "profile_type";
    pub(crate) const PERIOD: &str = "period";
    pub(crate) const MINUTE: &str = "minute_unix_nano";
    pub(crate) const SPAN_NAME: &str = "span_name";
    pub(crate) const STACK_ID: &str = "stack_id";
    pub(crate) const SUM: &str = "sum";
    pub(crate) const COUNT: &str = "count";
}

/// Columns of `stacks`.
pub(crate) mod stack {
    pub(crate) const STACK_ID: &str = "stack_id";
    pub(crate) const FRAME_IDS: &str = "frame_ids";
}

/// Columns of `frames`.
pub(crate) mod frame {
    pub(crate) const FRAME_ID: &str = "frame_id";
    pub(crate) const FUNCTION: &str = "function";
    pub(crate) const SYSTEM_NAME: &str = "system_name";
    pub(crate) const FILE: &str = "file";
    pub(crate) const LINE: &str = "line";
    pub(crate) const COLUMN: &str = "column";
    pub(crate) const START_LINE: &str = "start_line";
    pub(crate) const MODULE: &str = "module";
    pub(crate) const BUILD_ID: &str = "build_id";
    pub(crate) const ADDRESS: &str = "address";
    pub(crate) const KIND: &str = "kind";
    pub(crate) const INLINED: &str = "inlined";
}

/// When a row arrived; the last column of every table.
pub(crate) const RECEIVED: &str = "received_unix_nano";

/// The field of a list's elements, named as the Parquet specification asks.
pub(crate) fn list_element() -> Arc<Field> {
    Arc::new(Field::new("element", DataType::Int64, false))
}

/// The fields of a map's entries, named as the Parquet specification asks.
pub(crate) fn map_entries() -> Fields {
    Fields::from(vec![text("key"), text("value")])
}

/// `spans` as a scan reads it that looks for an attribute: keys by dictionary, values where they lie, so that
/// neither is copied for rows that do not match.
pub(crate) fn spans_with_attribute_views() -> SchemaRef {
    let key = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = map_entries();
    let entries = Fields::from(vec![
        fields[0].as_ref().clone().with_data_type(key),
        fields[1].as_ref().clone().with_data_type(DataType::Utf8View),
    ]);
    let viewed = |field: &Arc<Field>| match field.data_type() {
        DataType::Map(entry, sorted) if field.name() == span::ATTRIBUTES => {
            let entry = entry.as_ref().clone().with_data_type(DataType::Struct(entries.clone()));
            Arc::new(field.as_ref().clone().with_data_type(DataType::Map(Arc::new(entry), *sorted)))
        }
        _ => Arc::clone(field),
    };
    let columns: Fields = Table::Spans.schema().fields().iter().map(viewed).collect();
    Arc::new(Schema::new(columns))
}

fn columns(table: Table) -> Vec<Field> {
    match table {
        Table::Spans => span_columns(),
        Table::Samples => sample_columns(),
        Table::Profiles => rollup_columns(),
        Table::Stacks => vec![number(stack::STACK_ID), list(stack::FRAME_IDS), number(RECEIVED)],
        Table::Frames => frame_columns(),
    }
}

fn span_columns() -> Vec<Field> {
    let entries = Field::new("key_value", DataType::Struct(map_entries()), false);
    vec![
        binary(span::TRACE_ID),
        binary(span::SPAN_ID),
        optional(binary(span::PARENT_SPAN_ID)),
        number(span::START),
        number(span::DURATION),
        text(span::NAME),
        Field::new(span::KIND, DataType::Int32, false),
        Field::new(span::STATUS, DataType::Int32, false),
        optional(text(span::STATUS_MESSAGE)),
        text(span::SERVICE),
        number(span::FLAGS),
        optional(text(span::TRACE_STATE)),
        Field::new(span::ATTRIBUTES, DataType::Map(Arc::new(entries), false), false),
        optional(text(span::ATTRIBUTE_TYPES)),
        text(span::RESOURCE),
        optional(text(span::SCOPE)),
        optional(text(span::EVENTS)),
        optional(text(span::LINKS)),
        number(span::DROPPED_ATTRIBUTES),
        number(span::DROPPED_EVENTS),
        number(span::DROPPED_LINKS),
        number(span::RECEIVED),
    ]
}

fn sample_columns() -> Vec<Field> {
    vec![
        optional(binary(sample::TRACE_ID)),
        optional(binary(sample::SPAN_ID)),
        optional(text(sample::CLAIM)),
        optional(text(sample::CANDIDATES)),
        binary(sample::PROFILE_HASH),
        optional(binary(sample::PROFILE_ID)),
        text(sample::PROFILE),
        number(sample::PROFILE_START),
        number(sample::PROFILE_DURATION),
        number(sample::STACK_ID),
        optional(list(sample::VALUES)),
        optional(list(sample::TIMES)),
        optional(number(sample::THREAD_ID)),
        optional(text(sample::THREAD_NAME)),
        optional(number(sample::PID)),
        optional(text(sample::LABELS)),
        text(sample::SERVICE),
        text(sample::RESOURCE),
        number(sample::RECEIVED),
    ]
}

fn rollup_columns() -> Vec<Field> {
    vec![
        text(rollup::SERVICE),
        optional(text(rollup::VERSION)),
        text(rollup::LABELS),
        text(rollup::PROFILE_TYPE),
        number(rollup::PERIOD),
        number(rollup::MINUTE),
        optional(text(rollup::SPAN_NAME)),
        number(rollup::STACK_ID),
        number(rollup::SUM),
        number(rollup::COUNT),
        number(RECEIVED),
    ]
}

fn frame_columns() -> Vec<Field> {
    vec![
        number(frame::FRAME_ID),
        text(frame::FUNCTION),
        text(frame::SYSTEM_NAME),
        text(frame::FILE),
        number(frame::LINE),
        number(frame::COLUMN),
        number(frame::START_LINE),
        text(frame::MODULE),
        text(frame::BUILD_ID),
        optional(number(frame::ADDRESS)),
        text(frame::KIND),
        Field::new(frame::INLINED, DataType::Boolean, false),
        number(RECEIVED),
    ]
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, false)
}

fn binary(name: &str) -> Field {
    Field::new(name, DataType::Binary, false)
}

fn list(name: &str) -> Field {
    Field::new(name, DataType::List(list_element()), false)
}

fn optional(field: Field) -> Field {
    field.with_nullable(true)
}
