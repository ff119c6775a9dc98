//! Latencies and what is said about them.

use std::time::Duration;

use serde_json::{Value, json};

/// Durations of one kind of request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn push(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    pub(crate) fn extend(&mut self, other: Latencies) {
        self.0.extend(other.0);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest latency that at least `share` of all do not exceed, in milliseconds; `None` if there are none.
    fn quantile_ms(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted
            .get(rank.max(1) - 1)
            .map(|latency| (latency.as_secs_f64() * 1e6).round() / 1e3)
    }

    /// Median, 99th percentile and maximum in milliseconds, and of how many.
    pub(crate) fn figures(&self) -> Value {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| self.quantile_ms(share));
        json!({ "p50_ms": p50, "p99_ms": p99, "max_ms": max, "count": self.0.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(latencies_ms: &[u64], share: f64, expected_ms: Option<f64>) {
        let latencies = Latencies(latencies_ms.iter().copied().map(Duration::from_millis).collect());
        assert_eq!(latencies.quantile_ms(share), expected_ms, "{latencies_ms:?} at {share}");
    }

    #[test]
    fn a_quantile_is_one_of_the_latencies() {
        check(&[4, 1, 3, 2], 0.5, Some(2.0));
        check(&[4, 1, 3, 2], 0.99, Some(4.0));
        check(&[7], 0.5, Some(7.0));
    }

    #[test]
    fn nothing_has_no_quantile() {
        check(&[], 0.5, None);
    }
}
