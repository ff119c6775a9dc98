//! TraceQL: one spanset filter `{ ... }`, by a lexer and a parser that the rest of the language can extend.

mod error;

pub use error::{Error, Position};

/// A parsed query.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
}

impl Query {
    /// Longest text, in bytes.
    pub const BYTES_MAX: usize = 128 << 10;

    /// Reads a query.
    pub fn parse(text: &str) -> Result<Query, Error> {
        Ok(Query { text: text.to_owned() })
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }
}
