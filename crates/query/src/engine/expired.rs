//! Fetching what the rollup knows of samples that are no longer kept.

use std::ops::ControlFlow;

use spanflame_model::TimeRange;
use spanflame_store::{RollupRow, RollupScan, SampleScan, StoredSample};

use super::Engine;
use crate::Error;
use crate::expired::{Expired, Wanted};

/// Samples older than their retention by arrival are gone. By their own clocks they may be this much younger.
const CLOCK_AHEAD_NS: u64 = 24 * 3600 * 1_000_000_000;

/// The most sums of one answer.
const SUMS_MAX: usize = 4_000_000;

impl Engine {
    /// The difference to work out for `range`; `None` if all samples in it are still kept.
    pub(crate) fn expired(&self, wanted: Wanted, range: TimeRange) -> Option<Expired> {
        let rolled_up_until = self.snapshot.rollup_until()?;
        let older = match self.clock.retention_ns {
            Some(kept) => {
                let horizon = self.clock.now.saturating_sub(kept);
                // Nothing can be missing that arrived since, however wrong its sender's clock is about the day.
                let gone_before = horizon.saturating_add(CLOCK_AHEAD_NS).min(range.end());
                (range.start() < horizon).then(|| TimeRange::new(range.start(), gone_before))??
            }
            None => range,
        };
        Some(Expired::new(wanted, older, rolled_up_until))
    }

    /// Visits the samples of a scan until `visit` breaks, and fills `expired`, if there is one.
    pub(crate) async fn visit_samples_and_expired(
        &self,
        scan: &SampleScan,
        expired: &mut Option<Expired>,
        mut visit: impl FnMut(&StoredSample) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        let Some(expired) = expired else {
            return self.visit_samples(scan, visit).await;
        };
        let wider = SampleScan {
            range: scan.range.cover(expired.range()),
            ..scan.clone()
        };
        self.visit_samples(&wider, |stored| {
            expired.subtract(stored);
            match overlaps(stored, scan.range) {
                true => visit(stored),
                false => ControlFlow::Continue(()),
            }
        })
        .await?;
        let rows = RollupScan {
            tenants: scan.tenants.clone(),
            range: expired.range(),
            services: scan.services.clone(),
        };
        let each = |rows: Vec<RollupRow>| {
            rows.iter().for_each(|row| expired.add(row));
            match expired.sum_count() > SUMS_MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        self.snapshot.scan_rollup(&rows, each).await?;
        match expired.sum_count() > SUMS_MAX {
            true => Err(Error::TooLarge {
                message: format!("more than {SUMS_MAX} sums by stack, expected a shorter range or a narrower selection"),
            }),
            false => Ok(()),
        }
    }
}

/// Whether a sample's times, or its profile where it has none, overlap a range.
fn overlaps(stored: &StoredSample, range: TimeRange) -> bool {
    match stored.sample.times.as_slice() {
        [] => stored.info.range().overlap(range).is_some(),
        times => times.iter().any(|time| range.contains(*time)),
    }
}
