//! A part of a whole that was sampled, as honest as the samples allow.
//!
//! The rule of small numbers and the intervals are those of `query`; here they become text.

use spanflame_query::stats::{INTERVAL_SAMPLES_MIN, Interval, PERCENT_SAMPLES_MIN};

/// A part of a whole that rests on `samples` samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    part: f64,
    samples: u64,
}

impl Share {
    /// `part` of `total`; `None` of nothing.
    pub(crate) fn new(part: i64, total: i64, samples: u64) -> Option<Share> {
        (total > 0 && samples > 0).then(|| Share {
            part: (part as f64 / total as f64).clamp(0.0, 1.0),
            samples,
        })
    }

    /// `52 %` with its interval beside it, `31-72 %` alone, or `few`.
    pub(crate) fn text(self) -> String {
        let Interval { low, high } = Interval::of_share(self.part, self.samples);
        match self.samples {
            0..PERCENT_SAMPLES_MIN => "few".to_owned(),
            PERCENT_SAMPLES_MIN..INTERVAL_SAMPLES_MIN => format!("{}-{} %", percent(low), percent(high)),
            _ => format!("{} % ({}-{})", percent(self.part), percent(low), percent(high)),
        }
    }
}

/// Whole percents, but one decimal below 10 so that 0.4 is not 0.
fn percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        _ if percent < 0.05 => "0".to_owned(),
        _ if percent < 9.95 => format!("{percent:.1}"),
        _ => format!("{percent:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(part: i64, total: i64, samples: u64, expected: &str) {
        assert_eq!(Share::new(part, total, samples).expect("a share").text(), expected);
    }

    #[test]
    fn few_samples_get_no_percentage() {
        check(3, 4, 4, "few");
        check(3, 6, 6, "19-81 %");
    }

    #[test]
    fn a_number_stands_beside_its_interval() {
        check(50, 100, 100, "50 % (40-60)");
        check(100, 100, 100, "100 % (96-100)");
        check(1, 1000, 1000, "0.1 % (0-0.6)");
    }

    #[test]
    fn nothing_has_no_shares() {
        assert!(Share::new(1, 0, 10).is_none());
        assert!(Share::new(1, 10, 0).is_none());
    }
}
