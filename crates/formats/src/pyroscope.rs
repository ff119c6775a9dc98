//! What only Pyroscope's clients send: series named by labels, batches of pprof, and two binary trees of stacks.
//!
//! `/ingest` names a series in a query parameter ([`Series::from_name`]) and sends one file; a push lists series with
//! their labels and pprofs ([`push`]). Older agents send their stacks as a trie or a tree ([`trie`]).

pub mod push;
mod series;
pub mod trie;

pub use series::{Identity, Series};
