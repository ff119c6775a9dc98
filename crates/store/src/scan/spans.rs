//! Scans of `spans`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayAccessor, BooleanArray, DictionaryArray, Int32Array, Int64Array, MapArray, StringArray, StringViewArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::Int32Type;
use arrow::record_batch::RecordBatch;
use spanflame_model::{Tenant, Value};

use super::{Decoder, PageTest, Scan, Stage, TextTest, arrived_before, lists_service, overlaps};
use crate::file::FileStats;
use crate::reader::OpenFile;
use crate::rows::{SpanDecoder, Unreadable, WantedText, column, resource_attribute};
use crate::schema::{self, Table, span};
use crate::{SpanCondition, SpanScan, StoredSpan};

impl Scan for SpanScan {
    type Item = StoredSpan;
    const TABLE: Table = Table::Spans;

    fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    fn wants_file(&self, stats: &FileStats) -> bool {
        let in_time = stats.time_unix_nano.is_some_and(|(first, last)| overlaps(first, last, self.range));
        let before = arrived_before(Some(stats.received_unix_nano.0), self.received_before);
        in_time && before && self.conditions.iter().all(|condition| file_may_meet(condition, stats))
    }

    fn wants_row_group(&self, file: &OpenFile, row_group: usize) -> bool {
        let starts = file.number_range(row_group, span::START);
        let durations = file.number_range(row_group, span::DURATION);
        let in_time = match (starts, durations) {
            (Some((first, last)), Some((_, longest))) => overlaps(first, last.saturating_add(longest.max(1) - 1), self.range),
            _ => true,
        };
        let received = file.number_range(row_group, schema::RECEIVED);
        let before = arrived_before(received.map(|(first, _)| first), self.received_before);
        in_time
            && before
            && self
                .conditions
                .iter()
                .all(|condition| row_group_may_meet(condition, file, row_group))
    }

    fn stages(&self, row_group: Option<(&OpenFile, usize)>) -> Vec<Stage> {
        let mut stages = Vec::new();
        if !row_group.is_some_and(|(file, row_group)| self.all_in_time(file, row_group)) {
            stages.push(Stage::new(vec![span::START, span::DURATION, schema::RECEIVED], time_mask(self)));
        }
        let mut late = Vec::new();
        for condition in &self.conditions {
            match condition {
                SpanCondition::Service(text) => stages.push(Stage::one_of(span::SERVICE, vec![text.clone()])),
                SpanCondition::Name(text) => stages.push(Stage::one_of(span::NAME, vec![text.clone()])),
                SpanCondition::SpanAttribute(key, value) => late.push(attribute_stage(key, value, true, false)),
                SpanCondition::ResourceAttribute(key, value) => stages.push(attribute_stage(key, value, false, true)),
                SpanCondition::AnyAttribute(key, value) => late.push(attribute_stage(key, value, true, true)),
                plain => stages.push(plain_stage(plain.clone())),
            }
        }
        stages.extend(late);
        stages
    }

    fn columns(&self) -> Option<Vec<&'static str>> {
        Some(SpanDecoder::columns(self.fields))
    }

    fn decoder(&self, tenant: &Tenant) -> Decoder<StoredSpan> {
        let mut decoder = SpanDecoder::new(tenant.clone(), self.fields);
        Box::new(move |rows| {
            let mut spans = Vec::with_capacity(rows.num_rows());
            decoder.decode(rows, 0..rows.num_rows(), &mut spans)?;
            Ok(spans)
        })
    }
}

impl SpanScan {
    /// Whether the bounds of a row group say that every row is in time.
    fn all_in_time(&self, file: &OpenFile, row_group: usize) -> bool {
        let starts = file.number_range(row_group, span::START);
        let in_range = starts.is_some_and(|(first, last)| {
            first >= self.range.start().unix_nanos()
                && last < self.range.end().unix_nanos()
                && file.null_count(row_group, span::START) == Some(0)
        });
        let received = file.number_range(row_group, schema::RECEIVED);
        let before = self
            .received_before
            .is_none_or(|before| received.is_some_and(|(_, last)| last < before.unix_nanos()));
        in_range && before
    }
}

fn file_may_meet(condition: &SpanCondition, stats: &FileStats) -> bool {
    match condition {
        SpanCondition::Service(service) => lists_service(stats, service),
        _ => true,
    }
}

fn row_group_may_meet(condition: &SpanCondition, file: &OpenFile, row_group: usize) -> bool {
    let durations = || file.number_range(row_group, span::DURATION);
    match condition {
        SpanCondition::Service(service) => file.may_hold_text(row_group, span::SERVICE, service),
        SpanCondition::Name(name) => file.may_hold_text(row_group, span::NAME, name),
        SpanCondition::DurationMin(min) => durations().is_none_or(|(_, longest)| longest as u64 >= *min),
        SpanCondition::DurationMax(max) => durations().is_none_or(|(shortest, _)| shortest as u64 <= *max),
        _ => true,
    }
}

fn time_mask(scan: &SpanScan) -> impl FnMut(&RecordBatch) -> Result<BooleanArray, Unreadable> + Send + use<> {
    let (range, before) = (scan.range, scan.received_before.map_or(i64::MAX, |before| before.unix_nanos()));
    let any_arrival = scan.received_before.is_none();
    move |rows| {
        let starts: &Int64Array = column(rows, span::START)?;
        let durations: &Int64Array = column(rows, span::DURATION)?;
        let received: &Int64Array = column(rows, schema::RECEIVED)?;
        Ok(mask(rows, |row| {
            let start = starts.value(row);
            let last = start.saturating_add(durations.value(row).max(1) - 1);
            overlaps(start, last, range) && (any_arrival || received.value(row) < before)
        }))
    }
}

fn plain_stage(condition: SpanCondition) -> Stage {
    let name = match &condition {
        SpanCondition::Kind(_) => span::KIND,
        SpanCondition::Status(_) => span::STATUS,
        _ => span::DURATION,
    };
    Stage::new(vec![name], move |rows| {
        let duration = |row: usize, array: &Int64Array| u64::try_from(array.value(row)).unwrap_or(0);
        Ok(match &condition {
            SpanCondition::Kind(kind) => {
                let array: &Int32Array = column(rows, name)?;
                mask(rows, |row| array.value(row) == *kind as i32)
            }
            SpanCondition::Status(status) => {
                let array: &Int32Array = column(rows, name)?;
                mask(rows, |row| array.value(row) == *status as i32)
            }
            SpanCondition::DurationMin(min) => {
                let array = column(rows, name)?;
                mask(rows, |row| duration(row, array) >= *min)
            }
            SpanCondition::DurationMax(max) => {
                let array = column(rows, name)?;
                mask(rows, |row| duration(row, array) <= *max)
            }
            _ => mask(rows, |_| true),
        })
    })
}

type RowTest = Box<dyn FnMut(&RecordBatch) -> Result<BooleanBuffer, Unreadable> + Send>;

/// Rows with an attribute of the span or of its resource whose text may be the value.
fn attribute_stage(key: &str, value: &Value, of_span: bool, of_resource: bool) -> Stage {
    let mut columns = Vec::new();
    columns.extend(of_span.then_some(span::ATTRIBUTES));
    columns.extend(of_resource.then_some(span::RESOURCE));
    let mut tests: Vec<RowTest> = Vec::new();
    tests.extend(of_span.then(|| span_attribute(key, value)));
    tests.extend(of_resource.then(|| memoized_resource(key, value)));
    let stage = Stage::new(columns, move |rows| {
        let mut passing = BooleanBuffer::new_unset(rows.num_rows());
        for test in &mut tests {
            passing = &passing | &test(rows)?;
        }
        Ok(BooleanArray::new(passing, None))
    });
    let wanted = Arc::new(WantedText::of(value));
    let entry = of_span.then(|| {
        let wanted = Arc::clone(&wanted);
        let passes: TextTest = Arc::new(move |text| wanted.may_be(text));
        (span::ATTRIBUTES, key.to_owned(), passes)
    });
    let text = of_resource.then(|| {
        let key = key.to_owned();
        let passes: TextTest = Arc::new(move |json| match resource_attribute(json, &key) {
            Ok(text) => text.is_some_and(|text| wanted.may_be(&text)),
            // Decoding the row says what is wrong.
            Err(_) => true,
        });
        (span::RESOURCE, passes)
    });
    stage.on_pages(PageTest { text, entry })
}

/// Spans that have an attribute whose text may be the value. In the head keys and values are text, in files a
/// dictionary and views.
fn span_attribute(key: &str, value: &Value) -> RowTest {
    let (key, wanted) = (key.to_owned(), WantedText::of(value));
    Box::new(move |rows| {
        let map: &MapArray = column(rows, span::ATTRIBUTES)?;
        let (keys, values) = (map.keys().as_any(), map.values().as_any());
        if let (Some(keys), Some(values)) = (keys.downcast_ref(), values.downcast_ref::<StringArray>()) {
            let keys: &StringArray = keys;
            return Ok(with_entry(map, values, |entry| keys.value(entry) == key, &wanted));
        }
        let (Some(keys), Some(values)) = (keys.downcast_ref(), values.downcast_ref::<StringViewArray>()) else {
            return Err(Unreadable::new("attributes are no map of text to text"));
        };
        let keys: &DictionaryArray<Int32Type> = keys;
        let words: &StringArray = keys
            .values()
            .as_any()
            .downcast_ref()
            .ok_or_else(|| Unreadable::new("keys are no text"))?;
        let is_key: Vec<bool> = words.iter().map(|word| word == Some(&key)).collect();
        let codes = keys.keys().values();
        Ok(with_entry(map, values, |entry| is_key[codes[entry] as usize], &wanted))
    })
}

/// Rows of a map with an entry whose key and value are wanted.
fn with_entry<'a>(
    map: &MapArray,
    values: impl ArrayAccessor<Item = &'a str>,
    is_key: impl Fn(usize) -> bool,
    wanted: &WantedText,
) -> BooleanBuffer {
    let offsets = map.value_offsets();
    let is_wanted = |entry: usize| is_key(entry) && wanted.may_be(values.value(entry));
    BooleanBuffer::collect_bool(map.len(), |row| (offsets[row] as usize..offsets[row + 1] as usize).any(is_wanted))
}

/// Spans whose resource has the attribute; a resource is parsed once.
fn memoized_resource(key: &str, value: &Value) -> RowTest {
    let (key, wanted) = (key.to_owned(), WantedText::of(value));
    let mut known: HashMap<Box<str>, bool> = HashMap::new();
    Box::new(move |rows| {
        let resources: &StringArray = column(rows, span::RESOURCE)?;
        let mut passing = Vec::with_capacity(resources.len());
        for json in resources.iter().map(Option::unwrap_or_default) {
            let passes = match known.get(json) {
                Some(passes) => *passes,
                None => {
                    let text = resource_attribute(json, &key)?;
                    let passes = text.is_some_and(|text| wanted.may_be(&text));
                    known.insert(json.into(), passes);
                    passes
                }
            };
            passing.push(passes);
        }
        Ok(BooleanBuffer::from(passing))
    })
}

fn mask(rows: &RecordBatch, passes: impl FnMut(usize) -> bool) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::collect_bool(rows.num_rows(), passes), None)
}
