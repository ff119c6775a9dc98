//! Typed access to the columns of a batch, and the few array shapes that the tables use.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, Int64Array, ListArray, StringArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::record_batch::RecordBatch;
use spanflame_model::Timestamp;

use crate::Error;
use crate::schema::{Table, list_element};

/// Rows that do not hold what their table promises.
#[derive(Debug)]
pub(crate) struct Unreadable(String);

impl Unreadable {
    pub(crate) fn new(message: impl Into<String>) -> Unreadable {
        Unreadable(message.into())
    }

    /// As an error that names the file in which the rows lie.
    pub(crate) fn in_file(self, file: &str) -> Error {
        Error::Corrupt {
            file: file.to_owned(),
            offset: 0,
            message: self.0,
        }
    }
}

/// The column `name` as an array of type `A`.
pub(crate) fn column<'a, A: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a A, Unreadable> {
    optional_column(batch, name)?.ok_or_else(|| Unreadable(format!("column {name} is missing")))
}

/// The column `name`; `None` if the batch was read without it.
pub(crate) fn optional_column<'a, A: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<Option<&'a A>, Unreadable> {
    let Some(array) = batch.column_by_name(name) else {
        return Ok(None);
    };
    match array.as_any().downcast_ref() {
        Some(array) => Ok(Some(array)),
        None => Err(Unreadable(format!("column {name} has the unexpected type {}", array.data_type()))),
    }
}

/// The text at `row`; empty where it is null.
pub(crate) fn text(array: &StringArray, row: usize) -> &str {
    if array.is_null(row) { "" } else { array.value(row) }
}

/// The number at `row`, if it is not null.
pub(crate) fn number(array: &Int64Array, row: usize) -> Option<i64> {
    array.is_valid(row).then(|| array.value(row))
}

/// The numbers at `row`; empty where the list is null.
pub(crate) fn numbers(array: &ListArray, row: usize) -> Result<&[i64], Unreadable> {
    if array.is_null(row) {
        return Ok(&[]);
    }
    let values = array
        .values()
        .as_any()
        .downcast_ref::<Int64Array>()
        .ok_or_else(|| Unreadable::new("a list does not hold numbers"))?;
    let offsets = array.value_offsets();
    Ok(&values.values()[offsets[row] as usize..offsets[row + 1] as usize])
}

/// The id at `row`, `None` where it is null.
pub(crate) fn id<T>(array: &BinaryArray, row: usize, what: &str, parse: impl Fn(&[u8]) -> Option<T>) -> Result<Option<T>, Unreadable> {
    if array.is_null(row) {
        return Ok(None);
    }
    let bytes = array.value(row);
    match parse(bytes) {
        Some(id) => Ok(Some(id)),
        None => Err(Unreadable(format!("row {row} has a {what} of {} bytes that is no id", bytes.len()))),
    }
}

/// The instant that `nanos` names.
pub(crate) fn timestamp(nanos: i64) -> Result<Timestamp, Unreadable> {
    Timestamp::from_unix_nanos_signed(nanos).ok_or_else(|| Unreadable(format!("time is {nanos}, expected 0 or later")))
}

/// A list column; an empty list becomes null if `nullable`.
pub(crate) fn list_array(lengths: &[usize], values: Vec<i64>, nullable: bool) -> ArrayRef {
    let nulls = nullable.then(|| lengths.iter().map(|length| *length > 0).collect::<NullBuffer>());
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    Arc::new(ListArray::new(list_element(), offsets, Arc::new(Int64Array::from(values)), nulls))
}

/// A batch of all columns of a table.
pub(crate) fn batch(table: Table, columns: Vec<ArrayRef>) -> Result<RecordBatch, Error> {
    RecordBatch::try_new(table.schema(), columns).map_err(Error::arrow("build rows"))
}

/// `text`, or `None` if it is empty.
pub(crate) fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The same instant for `rows` rows.
pub(crate) fn received_array(received: Timestamp, rows: usize) -> ArrayRef {
    Arc::new(Int64Array::from(vec![received.unix_nanos(); rows]))
}
