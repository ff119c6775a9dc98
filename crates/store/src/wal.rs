//! The write-ahead log: what was acknowledged and is not in the tables yet.
//!
//! A directory of segments, numbered from 1. One segment holds what one flush writes; the flush bears the
//! segment's number, and the segment is deleted when every table has committed it.
//!
//! ```text
//! segment  "SPFWAL" version:u16 header_len:u32 header_crc:u32 header record*
//! header   table_count:u16, then per table name_len:u16 name schema_len:u32 schema (Arrow IPC message)
//! record   "REC\x01" body_len:u32 crc:u32 body          crc over body_len and body
//! body     received:i64 tenant_len:u16 tenant fingerprint_count:u32 (u128)*
//!          table_count:u16, then per table index:u16 meta_len:u32 data_len:u64 meta data (Arrow IPC message)
//! ```
//!
//! Numbers are little-endian. The fingerprints are those of the spans, in the order of their rows, then those
//! of the profiles. The marker in front of a record lets a reader find the next one behind damage.
//! Nothing here knows what the rows mean, and nothing here runs a thread: see `committer.rs`.

mod record;
mod segment;

pub(crate) use record::Record;
pub(crate) use segment::{Damage, SegmentWriter, Tables, keep_damaged, list_segments, read_segment, remove_segment, segment_path};
