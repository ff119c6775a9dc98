//! What is wrong with a query, and where.

use std::fmt;

/// A place in the text of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// 1-based.
    pub line: u32,
    /// 1-based, in characters.
    pub column: u32,
}

/// A query that does not parse, or asks for something that is not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where.
    pub at: Position,
    /// What is wrong there.
    pub message: String,
    /// What could stand there instead; empty where that helps nobody.
    pub expected: Vec<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.at.line, self.at.column, self.message)?;
        match self.expected.is_empty() {
            true => Ok(()),
            false => write!(f, ", expected {}", self.expected.join(" or ")),
        }
    }
}

impl std::error::Error for Error {}
