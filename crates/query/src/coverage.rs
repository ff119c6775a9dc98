//! Time covered by overlapping ranges, however many there are.

use std::collections::BTreeMap;

use spanflame_model::{TimeRange, Timestamp};

/// A set of instants, kept as ranges that neither overlap nor touch: profiles that follow each other are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<Timestamp, Timestamp>);

impl Coverage {
    /// Adds a range.
    pub(crate) fn add(&mut self, range: TimeRange) {
        let (mut start, mut end) = (range.start(), range.end());
        if let Some((known_start, known_end)) = self.0.range(..=start).next_back().filter(|(_, known)| **known >= start) {
            if *known_end >= end {
                return;
            }
            start = *known_start;
        }
        while let Some((known_start, known_end)) = self.0.range(start..=end).next().map(|(start, end)| (*start, *end)) {
            end = end.max(known_end);
            self.0.remove(&known_start);
        }
        self.0.insert(start, end);
    }

    /// Adds everything that another one covers.
    pub(crate) fn extend(&mut self, other: &Coverage) {
        other
            .0
            .iter()
            .filter_map(|(start, end)| TimeRange::new(*start, *end))
            .for_each(|range| self.add(range));
    }

    /// The shortest range that holds all of it; `None` if it covers nothing.
    pub(crate) fn bounds(&self) -> Option<TimeRange> {
        let (start, _) = self.0.first_key_value()?;
        let (_, end) = self.0.last_key_value()?;
        TimeRange::new(*start, *end)
    }

    /// How much of `within` is covered, in nanoseconds.
    pub(crate) fn covered_ns(&self, within: TimeRange) -> u64 {
        let covered = |(start, end): (&Timestamp, &Timestamp)| TimeRange::new(*start, *end)?.overlap(within);
        self.0.range(..within.end()).filter_map(covered).map(TimeRange::duration_ns).sum()
    }
}

#[cfg(test)]
mod tests {
    use spanflame_testkit::{Random, at};

    use super::*;

    fn range(start: u64, end: u64) -> TimeRange {
        TimeRange::new(at(start), at(end)).expect("start < end")
    }

    #[test]
    fn ranges_that_overlap_or_touch_are_one() {
        let mut coverage = Coverage::default();
        [(10, 20), (30, 40), (20, 25), (24, 31), (5, 6)]
            .iter()
            .for_each(|(start, end)| coverage.add(range(*start, *end)));
        assert_eq!(coverage.0, BTreeMap::from([(at(5), at(6)), (at(10), at(40))]));
        assert_eq!(coverage.covered_ns(range(0, 15)), 6);
    }

    #[test]
    fn the_sum_is_that_of_every_instant() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let (mut coverage, mut instants) = (Coverage::default(), [false; 64]);
            for _ in 0..8 {
                let start = random.below(60);
                let end = start + 1 + random.below(63 - start);
                coverage.add(range(start, end));
                instants[start as usize..end as usize].fill(true);
            }
            let expected = instants[10..50].iter().filter(|covered| **covered).count() as u64;
            assert_eq!(coverage.covered_ns(range(10, 50)), expected);
        }
    }
}
