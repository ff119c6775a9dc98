//! Prometheus's text format, and the histogram that all metrics here use.

use std::fmt::Write;

/// Upper bounds of buckets in seconds: 2 ms, doubled up to 16.384 s.
const BOUNDS_SECONDS: [f64; 14] = [
    0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];

/// Durations by bucket.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Durations up to each bound and above the one before; not cumulative.
    buckets: [u64; BOUNDS_SECONDS.len()],
    count: u64,
    sum_seconds: f64,
}

impl Histogram {
    pub(super) fn add(&mut self, duration_ns: u64) {
        let seconds = duration_ns as f64 / 1e9;
        self.count += 1;
        self.sum_seconds += seconds;
        let bucket = BOUNDS_SECONDS.iter().position(|bound| seconds <= *bound);
        if let Some(bucket) = bucket {
            self.buckets[bucket] += 1;
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// A text under construction.
#[derive(Default)]
pub(super) struct Exposition(String);

/// Names and values of labels.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// The lines before the series of a metric.
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn counter(&mut self, name: &str, labels: Labels<'_>, value: u64) {
        let _ = writeln!(self.0, "{name}{} {value}", text_of(labels, None));
    }

    pub(super) fn histogram(&mut self, name: &str, labels: Labels<'_>, histogram: &Histogram) {
        let mut below = 0;
        for (bound, count) in BOUNDS_SECONDS.iter().zip(histogram.buckets) {
            below += count;
            let _ = writeln!(self.0, "{name}_bucket{} {below}", text_of(labels, Some(&bound.to_string())));
        }
        let (count, labels_only) = (histogram.count, text_of(labels, None));
        let _ = writeln!(self.0, "{name}_bucket{} {count}", text_of(labels, Some("+Inf")));
        let _ = writeln!(self.0, "{name}_sum{labels_only} {}", histogram.sum_seconds);
        let _ = writeln!(self.0, "{name}_count{labels_only} {count}");
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn text_of(labels: Labels<'_>, bound: Option<&str>) -> String {
    let pairs = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
    let written: Vec<String> = pairs.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    match written.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", written.join(",")),
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_values_escaped() {
        let mut histogram = Histogram::default();
        for duration_ns in [1_000_000, 2_000_000, 3_000_000, 20_000_000_000] {
            histogram.add(duration_ns);
        }
        let mut text = Exposition::default();
        text.histogram("x", &[("a", "b\"\\\n")], &histogram);
        let text = text.finish();
        let label = r#"a="b\"\\\n""#;
        for line in [
            format!("x_bucket{{{label},le=\"0.002\"}} 2"),
            format!("x_bucket{{{label},le=\"0.004\"}} 3"),
            format!("x_bucket{{{label},le=\"16.384\"}} 3"),
            format!("x_bucket{{{label},le=\"+Inf\"}} 4"),
            format!("x_sum{{{label}}} 20.006"),
            format!("x_count{{{label}}} 4"),
        ] {
            assert!(text.lines().any(|l| l == line), "{line}: {text}");
        }
    }
}
