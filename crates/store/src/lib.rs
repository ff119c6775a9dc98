//! Placeholder until the parts land; see `snapshot.rs` for the contract with `query`.

mod error;
mod options;
mod snapshot;
mod store;

pub use error::{Error, ErrorKind};
pub use options::{Ack, StoreOptions};
pub use snapshot::{RollupRow, RollupScan, SampleScan, ScanStats, Snapshot, SpanCondition, SpanFields, SpanScan, StoredSample, StoredSpan};
pub use store::{Appended, Store};
