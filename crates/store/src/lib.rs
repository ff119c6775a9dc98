//! Placeholder until the parts land; see `snapshot.rs` for the contract with `query`.

mod day;
mod error;
mod file;
mod head;
mod lock;
mod options;
mod reader;
mod rows;
mod schema;
mod snapshot;
mod store;
mod version;
mod wal;

pub use error::{Error, ErrorKind};
pub use options::{Ack, StoreOptions};
pub use snapshot::{RollupRow, RollupScan, SampleScan, ScanStats, Snapshot, SpanCondition, SpanFields, SpanScan, StoredSample, StoredSpan};
pub use store::{Appended, Store};
