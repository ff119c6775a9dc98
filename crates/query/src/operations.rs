//! What services do and whom they call.

use spanflame_model::SpanKind;

/// Spans of one name and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Name of the spans.
    pub name: String,
    /// Their kind.
    pub kind: SpanKind,
    /// How many there are.
    pub spans: u64,
}

/// One service calls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Service of the parent.
    pub caller: String,
    /// Service of the child.
    pub callee: String,
    /// Children with such a parent.
    pub count: u64,
}
