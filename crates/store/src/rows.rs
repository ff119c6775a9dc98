//! Rows between the model and Arrow, both ways.
//!
//! Encoding and decoding are exact inverses: what `encode` is given, a decoder returns, with every attribute
//! in its type. Text that repeats on many rows (resource, scope, profile) is JSON whose distinct values are
//! parsed once per decoder, so spans of one sender share one `Arc`.
//!
//! Not here: which rows are read, in which order they lie, where they lie.

mod column;
mod json;
mod rollup;
mod samples;
mod spans;
mod stacks;

use arrow::record_batch::RecordBatch;
use spanflame_model::{Batch, Fingerprint, Timestamp};

pub(crate) use column::{Unreadable, column, numbers};
pub(crate) use json::{WantedText, resource_attribute};
pub(crate) use rollup::{RollupDecoder, encode_rollup};
pub(crate) use samples::{SampleDecoder, SenderDecoder};
pub(crate) use spans::SpanDecoder;
pub(crate) use stacks::{decode_frames, decode_stacks, encode_frames, encode_stacks};

use crate::Error;
use crate::schema::Table;

/// The most bytes of repeated text (resources, scopes, profiles) that the rows of one batch may take: a
/// sender's one large resource is repeated on each of its rows.
pub(crate) const REPEATED_BYTES_MAX: usize = 256 << 20;

/// The rows of a batch, for `spans`, `samples`, `stacks` and `frames`; tables without rows are left out.
/// `profile_hashes` are the fingerprints of `batch.profiles`, in their order.
///
/// # Errors
///
/// [`Error::Invalid`] if attribute values nest too deeply, or if the repeated text of all rows is larger than
/// [`REPEATED_BYTES_MAX`].
pub(crate) fn encode(batch: &Batch, profile_hashes: &[Fingerprint], received: Timestamp) -> Result<Vec<(Table, RecordBatch)>, Error> {
    let mut tables = Vec::with_capacity(4);
    if !batch.spans.is_empty() {
        tables.push((Table::Spans, spans::encode(&batch.spans, received)?));
    }
    if batch.profiles.iter().any(|profile| !profile.samples.is_empty()) {
        tables.push((Table::Samples, samples::encode(&batch.profiles, profile_hashes, received)?));
    }
    if batch.stacks.stacks().len() > 0 {
        tables.push((Table::Stacks, encode_stacks(batch.stacks.stacks(), received)?));
    }
    if batch.stacks.frames().len() > 0 {
        tables.push((Table::Frames, encode_frames(batch.stacks.frames(), received)?));
    }
    Ok(tables)
}

#[cfg(test)]
mod tests;
