//! Spans and profiles on disk: write-ahead log, head, Parquet files in Delta tables.
//!
//! ```text
//! append -> wal (group commit) -> head (memory, indexed) -> flush -> files -> compaction -> retention
//!                                   \______________ snapshot ______________/
//! ```
//!
//! - Nothing is acknowledged before it is durable, and what is acknowledged is there exactly once: in a head
//!   or in files, also after a crash at any point.
//! - A snapshot is a list of heads and files; nothing that it names changes.
//! - Tables are plain Delta Lake: others read them as they are (`docs/storage.md`).
//!
//! Not here: what the rows mean to a question (`query`), and who may append how much (`server`).

mod committer;
mod compaction;
mod crash;
mod current;
mod day;
mod error;
mod file;
#[cfg(test)]
mod fixture;
mod flush;
mod head;
mod known;
mod lock;
mod log;
mod lookup;
mod maintenance;
mod options;
mod paths;
mod reader;
mod recognition;
mod repair;
mod retention;
mod rollup;
mod rows;
mod scan;
mod schema;
mod snapshot;
mod stacks;
mod stats;
mod store;
mod tables;
mod verify;
mod version;
mod wal;

pub use error::{Error, ErrorKind};
pub use options::{Ack, StoreOptions};
pub use repair::{Repair, repair};
pub use snapshot::{
    RollupRow, RollupScan, SampleScan, ScanStats, SenderScan, Snapshot, SpanCondition, SpanFields, SpanScan, StoredSample, StoredSpan,
    StoredVolume,
};
pub use stats::{StoreStats, TableStats};
pub use store::{Appended, Store};
pub use verify::{Finding, FindingKind, Verification, verify};
