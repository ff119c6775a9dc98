//! What was left out of a request, and why.

use std::collections::BTreeMap;
use std::fmt;

/// What was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A whole span.
    Span,
    /// A whole profile.
    Profile,
    /// One sample of a profile that was kept.
    Sample,
    /// The link of a sample or a span that was kept.
    Link,
    /// A part of something that was kept (an attribute, an event, the root side of a stack), or an
    /// irregularity that cost nothing.
    Detail,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Subject; 5] = [Subject::Span, Subject::Profile, Subject::Sample, Subject::Link, Subject::Detail];

    /// The word used in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Subject::Span => "span",
            Subject::Profile => "profile",
            Subject::Sample => "sample",
            Subject::Link => "link",
            Subject::Detail => "detail",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Why something was left out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The word used in metrics and answers; it never changes.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => $word,)* }
            }
        }
    };
}

reasons! {
    /// A trace id that has not 16 bytes, is not hex, or is zero.
    InvalidTraceId = "invalid_trace_id",
    /// A span id that has not 8 bytes, is not hex, or is zero.
    InvalidSpanId = "invalid_span_id",
    /// A parent span id that has not 8 bytes.
    InvalidParentSpanId = "invalid_parent_span_id",
    /// A time later than the limit, or one that does not fit 63 bits.
    TimeOutOfRange = "time_out_of_range",
    /// An index that points outside its table.
    IndexOutOfRange = "index_out_of_range",
    /// An id that no entry of the table has.
    UnknownReference = "unknown_reference",
    /// A sample whose number of values does not fit its profile or its times.
    ValueCount = "value_count",
    /// A sample with neither a value nor a time.
    NoObservation = "no_observation",
    /// A value that is no number, or does not fit 63 bits and a sign.
    InvalidValue = "invalid_value",
    /// A part that is not in the format.
    Malformed = "malformed",
    /// A profile that does not say what it measures.
    NoSampleType = "no_sample_type",
    /// A table whose entry 0 is not the zero value.
    MissingZeroEntry = "missing_zero_entry",
    /// More attributes or labels than the limit.
    TooManyAttributes = "too_many_attributes",
    /// An attribute longer than the limit; its beginning was kept.
    AttributeTooLong = "attribute_too_long",
    /// An attribute value nested deeper than the limit.
    NestedTooDeep = "nested_too_deep",
    /// An attribute without a key.
    NoKey = "no_key",
    /// A name longer than the limit; its beginning was kept.
    NameTooLong = "name_too_long",
    /// A stack deeper than the limit; its leaf side was kept.
    StackTooDeep = "stack_too_deep",
    /// More samples in a profile than the limit.
    TooManySamples = "too_many_samples",
    /// Tables that unfold into more bytes than the limit.
    ExpansionLimit = "expansion_limit",
    /// More events or links in a span than the limit.
    TooManyEvents = "too_many_events",
    /// A profile in the message layout of OTLP 1.8 or 1.9; it was read as such and kept whole.
    OldLayout = "old_layout",
    /// More profiles in a request than the limit.
    TooManyProfiles = "too_many_profiles",
    /// One of several files of a request that is larger than the limit, alone or with those before it.
    TooLarge = "too_large",
    /// A format that is known and not read.
    UnsupportedFormat = "unsupported_format",
    /// A profile of which no sample could be kept.
    NoSampleKept = "no_sample_kept",
    /// Two names for one thing, of which one was used.
    Ambiguous = "ambiguous",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many texts about single rejects are kept.
const EXAMPLES_MAX: usize = 5;
/// How many bytes of each are kept.
const EXAMPLE_BYTES_MAX: usize = 300;

/// Counts of what was left out, by subject and reason, with the first few as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejects {
    counts: BTreeMap<(Subject, Reason), u64>,
    examples: Vec<String>,
}

impl Rejects {
    /// Nothing left out.
    pub fn new() -> Rejects {
        Rejects::default()
    }

    /// Counts one; `example` is asked for its text only while fewer than five are kept.
    pub fn add(&mut self, subject: Subject, reason: Reason, example: impl FnOnce() -> String) {
        self.add_many(subject, reason, 1, example);
    }

    /// Counts `count`, with one example.
    pub fn add_many(&mut self, subject: Subject, reason: Reason, count: u64, example: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        *self.counts.entry((subject, reason)).or_default() += count;
        if self.examples.len() < EXAMPLES_MAX {
            let mut text = example();
            cut(&mut text, EXAMPLE_BYTES_MAX);
            if !self.examples.contains(&text) {
                self.examples.push(text);
            }
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Rejects) {
        for (key, count) in other.counts {
            *self.counts.entry(key).or_default() += count;
        }
        let room = EXAMPLES_MAX.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
    }

    /// Whether nothing was left out and nothing was irregular.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many of `subject` were left out.
    pub fn count(&self, subject: Subject) -> u64 {
        self.iter().filter(|(s, _, _)| *s == subject).map(|(_, _, count)| count).sum()
    }

    /// How many of `subject` were left out for `reason`.
    pub fn count_of(&self, subject: Subject, reason: Reason) -> u64 {
        self.counts.get(&(subject, reason)).copied().unwrap_or(0)
    }

    /// Spans left out.
    pub fn spans(&self) -> u64 {
        self.count(Subject::Span)
    }

    /// Profiles left out as a whole.
    pub fn profiles(&self) -> u64 {
        self.count(Subject::Profile)
    }

    /// Samples left out of profiles that were kept.
    pub fn samples(&self) -> u64 {
        self.count(Subject::Sample)
    }

    /// Links left out of samples and spans that were kept.
    pub fn links(&self) -> u64 {
        self.count(Subject::Link)
    }

    /// Every count, ordered by subject and reason.
    pub fn iter(&self) -> impl Iterator<Item = (Subject, Reason, u64)> {
        self.counts.iter().map(|((subject, reason), count)| (*subject, *reason, *count))
    }

    /// Up to five single rejects as text.
    pub fn examples(&self) -> &[String] {
        &self.examples
    }

    /// One line for the sender, e.g. for OTLP's `partial_success`; `None` if there is nothing to say.
    pub fn message(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let counts: Vec<String> = self
            .iter()
            .map(|(subject, reason, count)| format!("{count} {}: {reason}", subject.as_str()))
            .collect();
        let mut message = counts.join(", ");
        if !self.examples.is_empty() {
            message.push_str("; e.g. ");
            message.push_str(&self.examples.join("; "));
        }
        Some(message)
    }
}

/// Shortens `text` to at most `bytes_max` bytes at a character's boundary; whether it had to.
pub(crate) fn cut(text: &mut String, bytes_max: usize) -> bool {
    if text.len() <= bytes_max {
        return false;
    }
    text.truncate(text.floor_char_boundary(bytes_max));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_apart_and_examples_are_few() {
        let mut rejects = Rejects::new();
        for n in 0..9 {
            rejects.add(Subject::Sample, Reason::ValueCount, || format!("sample {n}"));
        }
        rejects.add(Subject::Link, Reason::InvalidSpanId, || unreachable!("five are enough"));
        assert_eq!((rejects.samples(), rejects.links(), rejects.spans()), (9, 1, 0));
        assert_eq!(rejects.examples().len(), 5);
        let message = rejects.message().expect("not empty");
        assert!(
            message.starts_with("9 sample: value_count, 1 link: invalid_span_id; e.g. sample 0;"),
            "{message}"
        );
    }

    #[test]
    fn nothing_left_out_says_nothing() {
        assert_eq!(Rejects::new().message(), None);
    }

    #[test]
    fn words_are_unique() {
        let words: std::collections::HashSet<&str> = Reason::ALL.iter().map(|r| r.as_str()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
    }
}
