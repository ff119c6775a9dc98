//! Spans by time and duration: the rate, the errors, and the cells of a heatmap.
//!
//! Counts are exact. Rows have bounds of whole nanoseconds on a fixed scale, so that a cell can be written as a
//! condition (`duration >= a && duration < b`) that selects just the spans it counts, and neither bounds nor counts
//! move when a query is refined.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use spanflame_model::{Span, StatusCode, Tenant};

use crate::Error;
use crate::catalog::{Quantiles, Steps};
use crate::selected::SpanSelection;
use crate::stats::Durations;

/// Which spans to count, and how finely.
#[derive(Clone, Debug)]
pub struct HistogramRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Which spans.
    pub spans: SpanSelection,
    /// Steps of time: 1 to [`HistogramRequest::BUCKETS_MAX`].
    pub buckets: usize,
    /// Rows of duration at most: 1 to [`HistogramRequest::ROWS_MAX`].
    pub rows: usize,
}

impl HistogramRequest {
    /// The most steps of time.
    pub const BUCKETS_MAX: usize = Steps::MAX;
    /// The most rows.
    pub const ROWS_MAX: usize = 200;

    pub(crate) fn check(&self) -> Result<(), Error> {
        let within = |field: &'static str, number: usize, max: usize| match (1..=max).contains(&number) {
            true => Ok(()),
            false => Err(Error::Invalid {
                field,
                message: format!("{field} is {number}, expected 1 to {max}"),
            }),
        };
        within("buckets", self.buckets, HistogramRequest::BUCKETS_MAX)?;
        within("rows", self.rows, HistogramRequest::ROWS_MAX)
    }
}

/// Counts of spans.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The steps of time.
    pub steps: Steps,
    /// Spans counted.
    pub matched: u64,
    /// Spans that the store could not rule out without looking at them.
    pub inspected: u64,
    /// By step. A span that began before the range is in the first one.
    pub count: Vec<u64>,
    /// By step: those with status error.
    pub errors: Vec<u64>,
    /// One more than there are rows, ascending: row `r` holds `bounds_ns[r] <= duration < bounds_ns[r + 1]`. Empty without spans.
    pub bounds_ns: Vec<u64>,
    /// What is not empty, by step, then row.
    pub cells: Vec<Cell>,
    /// Durations by rank; `None` without spans.
    pub quantiles: Option<Quantiles>,
}

/// Spans of one step of time and one row of duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Which step.
    pub bucket: u32,
    /// Which row.
    pub row: u32,
    /// Spans.
    pub count: u64,
    /// Those with status error.
    pub errors: u64,
}

/// Rows of the fixed scale for each doubling.
const SCALE_PER_DOUBLING: u32 = 16;

/// The lower bounds of the fixed scale: whole nanoseconds, ascending.
static SCALE: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let steps = 0..64 * SCALE_PER_DOUBLING;
    let mut bounds: Vec<u64> = steps
        .map(|step| 2_f64.powf(f64::from(step) / f64::from(SCALE_PER_DOUBLING)).round() as u64)
        .collect();
    bounds.insert(0, 0);
    bounds.dedup();
    bounds
});

/// Counts spans as they stream by.
pub(crate) struct HistogramCount {
    steps: Steps,
    rows_max: usize,
    count: Vec<u64>,
    errors: Vec<u64>,
    /// Spans and errors by step and row of the fixed scale.
    cells: BTreeMap<(u32, u32), (u64, u64)>,
    durations: Durations,
}

impl HistogramCount {
    pub(crate) fn new(request: &HistogramRequest) -> HistogramCount {
        let steps = Steps::new(request.spans.range, request.buckets);
        let buckets = steps.count();
        HistogramCount {
            steps,
            rows_max: request.rows,
            count: vec![0; buckets],
            errors: vec![0; buckets],
            cells: BTreeMap::new(),
            durations: Durations::new(),
        }
    }

    pub(crate) fn add(&mut self, span: &Span) {
        let bucket = self.steps.of(span.start);
        let row = SCALE.partition_point(|bound| *bound <= span.duration_ns) - 1;
        let is_error = u64::from(span.status == StatusCode::Error);
        self.count[bucket] += 1;
        self.errors[bucket] += is_error;
        let cell = self.cells.entry((bucket as u32, row as u32)).or_default();
        *cell = (cell.0 + 1, cell.1 + is_error);
        self.durations.add(span.duration_ns);
    }

    pub(crate) fn finish(self, inspected: u64) -> Histogram {
        let rows = self.cells.keys().map(|(_, row)| *row);
        let bounds = rows.clone().min().zip(rows.max());
        // So many rows of the scale become one. Joined at multiples, so that they do not move with the slowest span.
        let joined = bounds.map_or(1, |(first, last)| {
            let fits = |joined: &u32| (last / joined - first / joined + 1) as usize <= self.rows_max;
            (1..=SCALE.len() as u32).find(fits).unwrap_or(SCALE.len() as u32)
        });
        let first = bounds.map_or(0, |(first, _)| first / joined);
        let mut cells: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for ((bucket, row), (count, errors)) in self.cells {
            let cell = cells.entry((bucket, row / joined - first)).or_default();
            *cell = (cell.0 + count, cell.1 + errors);
        }
        let bound = |row: u32| SCALE.get((row * joined) as usize).copied().unwrap_or(u64::MAX);
        Histogram {
            steps: self.steps,
            matched: self.count.iter().sum(),
            inspected,
            count: self.count,
            errors: self.errors,
            bounds_ns: bounds.map_or_else(Vec::new, |(_, last)| (first..=last / joined + 1).map(bound).collect()),
            cells: cells
                .into_iter()
                .map(|((bucket, row), (count, errors))| Cell {
                    bucket,
                    row,
                    count,
                    errors,
                })
                .collect(),
            quantiles: self.durations.quantiles(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selected::RangeRule;
    use crate::traceql::Query;
    use spanflame_model::{TimeRange, Timestamp};
    use spanflame_testkit::SpanBuilder;

    /// Counts spans that begin at these nanoseconds and last so long; 100 ns in `buckets` steps.
    fn check(spans: &[(u64, u64)], buckets: usize, rows: usize) -> Histogram {
        let start = Timestamp::from_unix_nanos(1000).expect("in range");
        let mut count = HistogramCount::new(&HistogramRequest {
            tenants: vec![Tenant::anonymous()],
            spans: SpanSelection {
                query: Query::parse("{}").expect("parses"),
                range: TimeRange::lasting(start, 100),
                rule: RangeRule::Start,
            },
            buckets,
            rows,
        });
        for (at, duration_ns) in spans {
            count.add(&SpanBuilder::new(1, 1, "cart").time(*at, *duration_ns).build());
        }
        let histogram = count.finish(spans.len() as u64);
        assert_eq!(histogram.cells.iter().map(|cell| cell.count).sum::<u64>(), histogram.matched);
        assert!(histogram.bounds_ns.is_sorted_by(|a, b| a < b));
        histogram
    }

    #[test]
    fn every_duration_lies_within_the_bounds_of_its_row() {
        for duration_ns in [0, 1, 2, 3, 999, 1_000_000, 123_456_789, 1 << 40, u64::MAX - 1] {
            let histogram = check(&[(1000, duration_ns)], 4, 40);
            assert_eq!(histogram.cells.len(), 1);
            let row = histogram.cells[0].row as usize;
            assert!(histogram.bounds_ns[row] <= duration_ns && duration_ns < histogram.bounds_ns[row + 1]);
        }
    }

    #[test]
    fn steps_are_equal_and_hold_what_began_in_them() {
        let histogram = check(&[(1000, 5), (1024, 5), (1025, 5), (1099, 5), (990, 5)], 4, 10);
        assert_eq!((histogram.steps.step_ns, histogram.count), (25, vec![3, 1, 0, 1]));
    }

    #[test]
    fn rows_are_joined_until_they_fit() {
        let spans: Vec<(u64, u64)> = (0..40).map(|power| (1000, 1 << power)).collect();
        for rows in [1, 2, 7, 40, 200] {
            let histogram = check(&spans, 1, rows);
            assert!(histogram.bounds_ns.len() - 1 <= rows, "{rows}");
            assert_eq!(histogram.matched, 40);
        }
        assert_eq!(check(&[], 3, 5).bounds_ns, [0; 0]);
    }
}
