//! Limits on event times: off by default, because old uploads and odd clocks are data too.

use std::time::Duration;

use spanflame_formats::{Reason, Rejects, Subject};
use spanflame_model::{Batch, TimeRange, Timestamp};

/// The event times that are taken: `earliest..latest`.
pub(super) struct Clock {
    earliest: Option<Timestamp>,
    latest: Option<Timestamp>,
}

impl Clock {
    pub(super) fn new(past_max: Option<Duration>, future_max: Option<Duration>, now: Timestamp) -> Clock {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Clock {
            earliest: past_max.map(|past| now.saturating_sub(nanos(past))),
            latest: future_max.map(|future| now.saturating_add(nanos(future))),
        }
    }

    /// Drops and counts what lies outside.
    pub(super) fn check(&self, batch: &mut Batch, rejects: &mut Rejects) {
        if self.earliest.is_none() && self.latest.is_none() {
            return;
        }
        let Batch { spans, profiles, .. } = batch;
        spans.retain(|span| {
            let outside = self.outside(span.range());
            if let Some(expected) = outside {
                let example = || format!("span {} starts at {}, expected {expected}", span.span_id, span.start);
                rejects.add(Subject::Span, Reason::TimeOutOfRange, example);
            }
            outside.is_none()
        });
        profiles.retain(|profile| {
            let outside = self.outside(profile.info.range());
            if let Some(expected) = outside {
                let example = || format!("a profile starts at {}, expected {expected}", profile.info.start);
                rejects.add(Subject::Profile, Reason::TimeOutOfRange, example);
            }
            outside.is_none()
        });
    }

    /// What was expected of a range that is not taken.
    fn outside(&self, range: TimeRange) -> Option<&'static str> {
        if self.earliest.is_some_and(|earliest| range.end() <= earliest) {
            return Some("an end within past_max");
        }
        self.latest
            .is_some_and(|latest| range.start() > latest)
            .then_some("a start within future_max")
    }
}
