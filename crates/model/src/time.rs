//! Points and ranges on the one clock all data shares.
//!
//! Inside, time is nanoseconds since the Unix epoch, UTC, in 63 bits: enough until 2262. Decoders
//! convert at the door; behind it nobody meets milliseconds, zones or negative time. Not for measuring
//! how long our own work takes: that clock is monotonic.

use std::fmt;

/// Nanoseconds since the Unix epoch. Never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The epoch itself.
    pub const ZERO: Timestamp = Timestamp(0);
    /// The latest time that can be kept, in the year 2262.
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    /// `None` if `nanos` does not fit 63 bits.
    pub fn from_unix_nanos(nanos: u64) -> Option<Timestamp> {
        i64::try_from(nanos).ok().map(Timestamp)
    }

    /// `None` if `nanos` is negative.
    pub fn from_unix_nanos_signed(nanos: i64) -> Option<Timestamp> {
        (nanos >= 0).then_some(Timestamp(nanos))
    }

    /// Nanoseconds since the epoch.
    pub fn unix_nanos(self) -> i64 {
        self.0
    }

    /// This time moved later by `nanos`, or [`Timestamp::MAX`] where that does not fit.
    pub fn saturating_add(self, nanos: u64) -> Timestamp {
        Timestamp(self.0.saturating_add_unsigned(nanos))
    }

    /// This time moved earlier by `nanos`, or the epoch where that does not fit.
    pub fn saturating_sub(self, nanos: u64) -> Timestamp {
        Timestamp(self.0.saturating_sub_unsigned(nanos).max(0))
    }

    /// Nanoseconds from `earlier` to this time; 0 if `earlier` is later.
    pub fn nanos_since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0 - earlier.0).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A half-open range of time: `start` is inside, `end` is not.
///
/// Never empty and never reversed, so a rate may divide by its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    start: Timestamp,
    end: Timestamp,
}

impl TimeRange {
    /// All of time.
    pub const ALL: TimeRange = TimeRange {
        start: Timestamp::ZERO,
        end: Timestamp::MAX,
    };

    /// Returns `None` unless `start < end`.
    pub fn new(start: Timestamp, end: Timestamp) -> Option<TimeRange> {
        (start < end).then_some(TimeRange { start, end })
    }

    /// The range that starts at `start` and lasts `duration_ns`, at least one nanosecond.
    pub fn lasting(start: Timestamp, duration_ns: u64) -> TimeRange {
        let start = start.min(Timestamp(i64::MAX - 1));
        TimeRange {
            start,
            end: start.saturating_add(duration_ns.max(1)),
        }
    }

    /// The first instant inside.
    pub fn start(self) -> Timestamp {
        self.start
    }

    /// The first instant after.
    pub fn end(self) -> Timestamp {
        self.end
    }

    /// Length in nanoseconds, at least 1.
    pub fn duration_ns(self) -> u64 {
        self.end.nanos_since(self.start)
    }

    /// Whether `at` lies inside.
    pub fn contains(self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }

    /// The time both ranges cover; `None` if they only touch.
    pub fn overlap(self, other: TimeRange) -> Option<TimeRange> {
        TimeRange::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// The shortest range that covers both.
    pub fn cover(self, other: TimeRange) -> TimeRange {
        TimeRange {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// This range widened by `nanos` on both sides.
    pub fn widened(self, nanos: u64) -> TimeRange {
        TimeRange {
            start: self.start.saturating_sub(nanos),
            end: self.end.saturating_add(nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::new(Timestamp(start), Timestamp(end)).expect("start < end")
    }

    #[test]
    fn ranges_that_touch_do_not_overlap() {
        assert_eq!(range(1, 5).overlap(range(5, 9)), None);
        assert_eq!(range(1, 6).overlap(range(5, 9)), Some(range(5, 6)));
    }

    #[test]
    fn a_range_is_never_empty() {
        assert_eq!(TimeRange::new(Timestamp(3), Timestamp(3)), None);
        assert_eq!(TimeRange::lasting(Timestamp(3), 0), range(3, 4));
        assert_eq!(TimeRange::lasting(Timestamp::MAX, 5).duration_ns(), 1);
    }

    #[test]
    fn time_past_2262_is_refused() {
        assert_eq!(Timestamp::from_unix_nanos(u64::MAX), None);
    }
}
