//! Bounds on what a request may make us hold.

use spanflame_model::Timestamp;

/// Bounds on what one request may make a decoder hold. Each is checked before memory is taken.
///
/// Beyond `decoded_bytes_max`, `strings_max` and `table_entries_max` a request is refused; beyond the
/// others the item at fault is cut or left out, and counted in [`Rejects`](crate::Rejects).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request after decompression.
    pub decoded_bytes_max: usize,
    /// Frames of a stack, inlined ones included. A deeper stack keeps its leaf side and ends in a frame `[truncated]`.
    pub stack_depth_max: usize,
    /// Entries of a string table.
    pub strings_max: usize,
    /// Entries of any other table, and profiles or resources of one request.
    pub table_entries_max: usize,
    /// Attributes or labels of one item; the ones after that are left out.
    pub attribute_count_max: usize,
    /// Bytes of one attribute key or value; longer text is cut.
    pub attribute_bytes_max: usize,
    /// Bytes of a name: of a span, function or file; a longer one is cut.
    pub name_bytes_max: usize,
    /// Samples of one profile; the ones after that are left out.
    pub samples_per_profile_max: usize,
    /// Bytes that one request may unfold into. Of profiles, samples after that are left out; traces that would take
    /// more are refused.
    pub expanded_bytes_max: usize,
    /// Events of one span, and links of one span; the ones after that are left out.
    pub events_max: usize,
    /// How deep arrays and maps may nest in an attribute value; a deeper value is left out. Above
    /// [`Limits::RECURSION_CEILING`] it changes nothing.
    pub recursion_max: usize,
    /// The latest time accepted, of spans, events and observations.
    pub time_max: Timestamp,
}

impl Limits {
    /// The deepest nesting that any `recursion_max` allows. What reads values back from JSON stops at 128 levels,
    /// of which a map takes two.
    pub const RECURSION_CEILING: usize = 48;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            decoded_bytes_max: 64 << 20,
            stack_depth_max: 1024,
            strings_max: 4 << 20,
            table_entries_max: 2 << 20,
            attribute_count_max: 1024,
            attribute_bytes_max: 256 << 10,
            name_bytes_max: 16 << 10,
            samples_per_profile_max: 1 << 20,
            expanded_bytes_max: 512 << 20,
            events_max: 1024,
            recursion_max: 16,
            time_max: Timestamp::MAX,
        }
    }
}
