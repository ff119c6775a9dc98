//! Answers as text: pure functions from an answer and a terminal to lines.
//!
//! Numbers carry their units, shares their intervals, names of others cannot move the cursor. Nothing here
//! asks a server or writes.

pub(crate) mod terminal;

pub(crate) mod explanation;
pub(crate) mod functions;
pub(crate) mod quantity;
pub(crate) mod share;
pub(crate) mod table;
pub(crate) mod waterfall;
