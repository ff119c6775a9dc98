//! Fetching for profiles over time.

use std::ops::ControlFlow;

use spanflame_store::{SampleScan, StoredSample};

use super::Engine;
use super::fetch::check_tenants;
use super::profile::{claimed_precision, lost, nothing_selected};
use crate::Error;
use crate::expired::{Expired, Wanted};
use crate::scoped::Draft;
use crate::series::{Item, ItemCount, ItemKind, SeriesAnswer, SeriesCount, SeriesRequest};

impl Engine {
    /// Values by step and group, by total descending: of the samples, and of the sums by minute beyond those that are
    /// kept. Gauges are of samples only.
    pub async fn profile_steps(&self, request: &SeriesRequest) -> Result<SeriesAnswer, Error> {
        let range = request.steps.range;
        let mut count = SeriesCount::new(request);
        let mut draft = Draft::new(&request.profile_type, Some(range), false).without_stacks();
        let wanted = Wanted {
            profile_type: Some(request.profile_type.clone()),
            labels: request.selector.clone(),
            by_stack: false,
            by_minute: true,
        };
        let is_gauge = request.profile_type.is_gauge();
        let older = self.expired(wanted, range);
        let is_lost = older.is_some() && is_gauge && self.clock.retention_ns.is_some();
        let mut expired = older.filter(|_| !is_gauge);
        self.visit_series(request, &mut expired, |stored| {
            draft.add(stored, claimed_precision(&stored.sample.link));
            count.add(stored);
            count.check()
        })
        .await?;
        if let Some(expired) = &expired {
            count.add_expired(expired);
            count.check()?;
            draft.add_expired(expired);
        }
        draft.settle();
        if draft.gather.facts.samples == 0 {
            draft.evidence.reasons = nothing_selected(&draft);
        }
        if is_lost {
            draft.evidence.reasons.insert(0, lost());
        }
        let profile_type = draft.gather.facts.profile_type.take();
        Ok(SeriesAnswer {
            profile_type: profile_type.unwrap_or_else(|| request.profile_type.nominal()),
            series: count.finish(),
            evidence: draft.evidence,
        })
    }

    /// What single profiles or spans that begin in the range cost, in order of time.
    pub async fn profile_items(&self, kind: ItemKind, request: &SeriesRequest) -> Result<Vec<Item>, Error> {
        let mut count = ItemCount::new(kind, request);
        self.visit_series(request, &mut None, |stored| {
            count.add(stored);
            count.check()
        })
        .await?;
        Ok(count.finish())
    }

    async fn visit_series(
        &self,
        request: &SeriesRequest,
        expired: &mut Option<Expired>,
        mut visit: impl FnMut(&StoredSample) -> Result<(), Error> + Send,
    ) -> Result<(), Error> {
        check_tenants(&request.tenants)?;
        let scan = SampleScan {
            tenants: request.tenants.clone(),
            range: request.steps.range,
            services: request.selector.services(),
            unlinked_only: false,
            received_before: None,
        };
        let mut selected = request.selector.remembering();
        let mut visited = Ok(());
        self.visit_samples_and_expired(&scan, expired, |stored| {
            if selected.selects(&stored.info) {
                visited = visit(stored);
            }
            match visited.is_ok() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })
        .await?;
        visited
    }
}
