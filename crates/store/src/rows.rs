//! Rows between the model and Arrow, both ways.

use arrow::record_batch::RecordBatch;
use spanflame_model::{Batch, Fingerprint, Timestamp};

use crate::schema::Table;
use crate::{Error, RollupRow};

/// The rows of a batch, for `spans`, `samples`, `stacks` and `frames`; tables without rows are left out.
/// `profile_hashes` are the fingerprints of `batch.profiles`, in their order.
pub(crate) fn encode(_batch: &Batch, _profile_hashes: &[Fingerprint], _received: Timestamp) -> Result<Vec<(Table, RecordBatch)>, Error> {
    unimplemented!()
}

/// Rows of `profiles`.
pub(crate) fn encode_rollup(_rows: &[RollupRow], _received: Timestamp) -> Result<RecordBatch, Error> {
    unimplemented!()
}
