//! Fetching for profiles over time.

use std::ops::ControlFlow;

use spanflame_store::{SampleScan, StoredSample};

use super::Engine;
use super::fetch::check_tenants;
use crate::Error;
use crate::series::{Item, ItemCount, ItemKind, SeriesCount, SeriesRequest, StepSeries};

impl Engine {
    /// Values by step and group, by total descending. Of samples that are still kept.
    pub async fn profile_steps(&self, request: &SeriesRequest) -> Result<Vec<StepSeries>, Error> {
        let mut count = SeriesCount::new(request);
        self.visit_series(request, |stored| {
            count.add(stored);
            count.check()
        })
        .await?;
        Ok(count.finish())
    }

    /// What single profiles or spans that begin in the range cost, in order of time.
    pub async fn profile_items(&self, kind: ItemKind, request: &SeriesRequest) -> Result<Vec<Item>, Error> {
        let mut count = ItemCount::new(kind, request);
        self.visit_series(request, |stored| {
            count.add(stored);
            count.check()
        })
        .await?;
        Ok(count.finish())
    }

    async fn visit_series(
        &self,
        request: &SeriesRequest,
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
        self.visit_samples(&scan, |stored| {
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
