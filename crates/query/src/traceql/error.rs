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

impl Position {
    /// The first character.
    pub const START: Position = Position { line: 1, column: 1 };
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

impl Error {
    pub(super) fn new(at: Position, message: impl Into<String>) -> Error {
        Error {
            at,
            message: message.into(),
            expected: Vec::new(),
        }
    }

    pub(super) fn expecting(at: Position, message: impl Into<String>, expected: &[&str]) -> Error {
        Error {
            at,
            message: message.into(),
            expected: expected.iter().map(|text| (*text).to_owned()).collect(),
        }
    }
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
