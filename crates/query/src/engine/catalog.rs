//! Fetching for catalogs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use spanflame_model::{Link, ProfileInfo, ProfileType, Span, SpanKind, StatusCode};
use spanflame_store::{SampleScan, SenderScan, SpanFields, SpanScan, StoredSample, StoredVolume};

use super::Engine;
use super::fetch::check_tenants;
use crate::Error;
use crate::catalog::{CatalogRequest, ProfileSeries, Service, ServiceSeries, Steps, TypeInfo};
use crate::expired::{Expired, Rest, Wanted};
use crate::measure::{FRACTION_BITS, Measure, TypeSelector};
use crate::selector::{LabelSelector, SERVICE, SERVICE_ALIAS, label, label_text};
use crate::stats::Durations;

/// The most names or values of one list.
const LIST_MAX: usize = 100_000;

impl Engine {
    /// Services that sent spans or profiles, by name.
    pub async fn services(&self, request: &CatalogRequest) -> Result<Vec<Service>, Error> {
        self.services_in(request, None).await
    }

    /// The same with the requests of each service over time.
    pub async fn services_over_time(&self, request: &CatalogRequest, steps: Steps) -> Result<Vec<Service>, Error> {
        self.services_in(request, Some(steps)).await
    }

    async fn services_in(&self, request: &CatalogRequest, steps: Option<Steps>) -> Result<Vec<Service>, Error> {
        let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
        let scan = SpanScan {
            tenants: request.tenants.clone(),
            range: request.range,
            conditions: Vec::new(),
            fields: SpanFields::default(),
            received_before: None,
        };
        check_tenants(&request.tenants)?;
        self.visit_spans(&scan, |stored| {
            Counts::of(&mut counts, stored.span.resource.service()).add_span(&stored.span, steps);
            ControlFlow::Continue(())
        })
        .await?;
        let mut recent: Option<(Arc<ProfileInfo>, Option<Measure>)> = None;
        let mut expired = self.expired_of(request, Some(TypeSelector::Cpu));
        self.visit_profiles(request, &mut expired, |stored| {
            if !recent.as_ref().is_some_and(|(info, _)| Arc::ptr_eq(info, &stored.info)) {
                recent = Some((stored.info.clone(), TypeSelector::Cpu.measure(&stored.info)));
            }
            let measure = recent.as_ref().and_then(|(_, measure)| measure.as_ref());
            Counts::of(&mut counts, stored.info.resource.service()).add_sample(stored, measure, request);
            ControlFlow::Continue(())
        })
        .await?;
        for rest in expired.iter().flat_map(Expired::rests) {
            Counts::of(&mut counts, rest.info.resource.service()).add_rest(&rest);
        }
        Ok(counts.into_iter().map(|(name, counts)| counts.finish(name, steps)).collect())
    }

    /// Profile types by name, CPU by its rule among them.
    pub async fn profile_types(&self, request: &CatalogRequest) -> Result<Vec<TypeInfo>, Error> {
        let mut found: BTreeMap<ProfileType, (BTreeSet<String>, u64)> = BTreeMap::new();
        let mut recent: Option<(Arc<ProfileInfo>, Vec<Measure>)> = None;
        let mut expired = self.expired_of(request, None);
        self.visit_profiles(request, &mut expired, |stored| {
            if !recent.as_ref().is_some_and(|(info, _)| Arc::ptr_eq(info, &stored.info)) {
                recent = Some((stored.info.clone(), Measure::all(&stored.info)));
            }
            for measure in recent.iter().flat_map(|(_, measures)| measures) {
                let reading = measure.read(&stored.info, &stored.sample, Some(request.range));
                let entry = match found.get_mut(&measure.profile_type) {
                    Some(entry) => entry,
                    None => found.entry(measure.profile_type.clone()).or_default(),
                };
                entry.1 += reading.map_or(0, |reading| reading.samples);
                if !entry.0.contains(stored.info.resource.service()) {
                    entry.0.insert(stored.info.resource.service().to_owned());
                }
            }
            ControlFlow::Continue(())
        })
        .await?;
        for rest in expired.iter().flat_map(Expired::rests) {
            let (services, samples) = found.entry(rest.profile_type).or_default();
            services.insert(rest.info.resource.service().to_owned());
            *samples += rest.samples;
        }
        let info = |(profile_type, (services, samples)): (ProfileType, (BTreeSet<String>, u64))| TypeInfo {
            profile_type,
            services: services.into_iter().collect(),
            samples,
        };
        Ok(found.into_iter().map(info).collect())
    }

    /// Names of the labels that profiles carry, in order.
    pub async fn label_names(&self, request: &CatalogRequest) -> Result<Vec<String>, Error> {
        let mut names = BTreeSet::new();
        self.visit_infos(request, |info| {
            names.insert(SERVICE.to_owned());
            let attributes = info.resource.attributes().iter().chain(info.attributes.iter());
            let labels = attributes.filter(|(name, value)| *name != SERVICE_ALIAS && label_text(value).is_some());
            names.extend(labels.map(|(name, _)| name.to_owned()));
            names.len() < LIST_MAX
        })
        .await?;
        Ok(names.into_iter().collect())
    }

    /// How many samples are stored, and how much room they take: of every file that overlaps the range.
    pub fn profile_volume(&self, request: &CatalogRequest) -> Result<StoredVolume, Error> {
        check_tenants(&request.tenants)?;
        Ok(self.snapshot.sample_volume(&request.tenants, request.range)?)
    }

    /// Label sets of the profiles that one of `selectors` selects, with the types that it selects, in order of labels.
    /// No selector selects everything.
    pub async fn profile_series(&self, request: &CatalogRequest, selectors: &[LabelSelector]) -> Result<Vec<ProfileSeries>, Error> {
        let everything = [LabelSelector::default()];
        let selectors = if selectors.is_empty() { &everything[..] } else { selectors };
        let mut series: BTreeMap<Vec<(String, String)>, BTreeSet<ProfileType>> = BTreeMap::new();
        let services: Option<Vec<Vec<String>>> = selectors.iter().map(LabelSelector::services).collect();
        self.visit_infos_of(request, services.map(|lists| lists.concat()), |info| {
            let measures = Measure::all(info);
            let types = measures.into_iter().map(|measure| measure.profile_type);
            let selecting: Vec<&LabelSelector> = selectors.iter().filter(|selector| selector.selects(info)).collect();
            let types: Vec<ProfileType> = types
                .filter(|profile_type| selecting.iter().any(|selector| selector.selects_type(profile_type)))
                .collect();
            if !types.is_empty() {
                series.entry(labels_of(info)).or_default().extend(types);
            }
            series.len() < LIST_MAX
        })
        .await?;
        let one = |(labels, types): (Vec<(String, String)>, BTreeSet<ProfileType>)| ProfileSeries {
            labels,
            types: types.into_iter().collect(),
        };
        Ok(series.into_iter().map(one).collect())
    }

    /// Values of a label, in order; none if no profile carries it.
    pub async fn label_values(&self, request: &CatalogRequest, name: &str) -> Result<Vec<String>, Error> {
        let mut values = BTreeSet::new();
        self.visit_infos(request, |info| {
            values.extend(label(info, name));
            values.len() < LIST_MAX
        })
        .await?;
        Ok(values.into_iter().collect())
    }

    /// Visits what the samples of the range share, each of it at least once, as long as `visit` wants more.
    async fn visit_infos(&self, request: &CatalogRequest, visit: impl FnMut(&ProfileInfo) -> bool + Send) -> Result<(), Error> {
        self.visit_infos_by_sample(request, None, visit).await
    }

    /// Likewise, of some services only. While all samples are kept, profiles that overlap the range count whether or
    /// not one of their samples lies in it: times need not be read then.
    async fn visit_infos_of(
        &self,
        request: &CatalogRequest,
        services: Option<Vec<String>>,
        visit: impl FnMut(&ProfileInfo) -> bool + Send,
    ) -> Result<(), Error> {
        match self.expired_of(request, None) {
            None => self.visit_senders(request, services, visit).await,
            Some(_) => self.visit_infos_by_sample(request, services, visit).await,
        }
    }

    async fn visit_infos_by_sample(
        &self,
        request: &CatalogRequest,
        services: Option<Vec<String>>,
        mut visit: impl FnMut(&ProfileInfo) -> bool + Send,
    ) -> Result<(), Error> {
        let mut expired = self.expired_of(request, None);
        let mut seen = HashSet::new();
        let mut recent: Option<Arc<ProfileInfo>> = None;
        let mut wants_more = true;
        self.visit_profiles_of(request, services, &mut expired, |stored| {
            let is_recent = recent.as_ref().is_some_and(|info| Arc::ptr_eq(info, &stored.info));
            if is_recent {
                return ControlFlow::Continue(());
            }
            recent = Some(stored.info.clone());
            wants_more = !seen.insert(stored.profile) || visit(&stored.info);
            match wants_more {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })
        .await?;
        // An interrupted visit has shown only a part of what is kept: what is left then tells nothing.
        let rests = expired.iter().filter(|_| wants_more).flat_map(Expired::rests);
        rests.map(|rest| rest.info).take_while(|info| visit(info)).for_each(drop);
        Ok(())
    }

    async fn visit_senders(
        &self,
        request: &CatalogRequest,
        services: Option<Vec<String>>,
        mut visit: impl FnMut(&ProfileInfo) -> bool + Send,
    ) -> Result<(), Error> {
        check_tenants(&request.tenants)?;
        let scan = SenderScan {
            tenants: request.tenants.clone(),
            range: request.range,
            services,
        };
        let each = |infos: Vec<Arc<ProfileInfo>>| match infos.iter().all(|info| visit(info)) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        self.snapshot.scan_senders(&scan, each).await?;
        Ok(())
    }

    /// What there was of samples that are no longer kept, stacks as one.
    fn expired_of(&self, request: &CatalogRequest, profile_type: Option<TypeSelector>) -> Option<Expired> {
        let wanted = Wanted {
            profile_type,
            ..Wanted::default()
        };
        self.expired(wanted, request.range)
    }

    async fn visit_profiles(
        &self,
        request: &CatalogRequest,
        expired: &mut Option<Expired>,
        visit: impl FnMut(&StoredSample) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        self.visit_profiles_of(request, None, expired, visit).await
    }

    async fn visit_profiles_of(
        &self,
        request: &CatalogRequest,
        services: Option<Vec<String>>,
        expired: &mut Option<Expired>,
        visit: impl FnMut(&StoredSample) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        check_tenants(&request.tenants)?;
        let scan = SampleScan {
            tenants: request.tenants.clone(),
            range: request.range,
            services,
            unlinked_only: false,
            received_before: None,
        };
        self.visit_samples_and_expired(&scan, expired, visit).await
    }
}

/// The labels of a profile, by name; a resource's before the profile's own.
fn labels_of(info: &ProfileInfo) -> Vec<(String, String)> {
    let mut labels = BTreeMap::from([(SERVICE.to_owned(), info.resource.service().to_owned())]);
    for (name, value) in info.resource.attributes().iter().chain(info.attributes.iter()) {
        if let Some(text) = label_text(value).filter(|_| name != SERVICE_ALIAS) {
            labels.entry(name.to_owned()).or_insert(text);
        }
    }
    labels.into_iter().collect()
}

/// What is counted of one service.
struct Counts {
    service: Service,
    durations: Durations,
    /// By step: requests, errors, durations.
    steps: BTreeMap<usize, (u64, u64, Durations)>,
    /// In units of 2^-32.
    cpu: i128,
}

impl Counts {
    fn of<'a>(counts: &'a mut BTreeMap<String, Counts>, service: &str) -> &'a mut Counts {
        counts.entry(service.to_owned()).or_insert_with(|| Counts {
            service: Service::default(),
            durations: Durations::new(),
            steps: BTreeMap::new(),
            cpu: 0,
        })
    }

    fn add_span(&mut self, span: &Span, steps: Option<Steps>) {
        self.service.spans += 1;
        let enters = matches!(span.kind, SpanKind::Server | SpanKind::Consumer) || span.parent_span_id.is_none();
        if enters || span.parent_is_remote() == Some(true) {
            let is_error = u64::from(span.status == StatusCode::Error);
            self.service.requests += 1;
            self.service.errors += is_error;
            self.durations.add(span.duration_ns);
            if let Some(steps) = steps {
                let (requests, errors, durations) = self.steps.entry(steps.of(span.start)).or_default();
                *requests += 1;
                *errors += is_error;
                durations.add(span.duration_ns);
            }
        }
    }

    fn add_sample(&mut self, stored: &StoredSample, measure: Option<&Measure>, request: &CatalogRequest) {
        let Some(reading) = measure.and_then(|measure| measure.read(&stored.info, &stored.sample, Some(request.range))) else {
            return;
        };
        self.cpu += reading.value;
        self.service.samples += reading.samples;
        let is_linked = matches!(stored.sample.link, Link::One { .. });
        self.service.linked_samples += if is_linked { reading.samples } else { 0 };
    }

    /// Which of them named a span is no longer known.
    fn add_rest(&mut self, rest: &Rest<'_>) {
        self.cpu += rest.value.saturating_mul(1 << FRACTION_BITS);
        self.service.samples += rest.samples;
    }

    fn finish(mut self, name: String, steps: Option<Steps>) -> Service {
        let mut series = steps.map(|_| ServiceSeries::default());
        for step in 0..steps.map_or(0, |steps| steps.count()) {
            let (requests, errors, durations) = self.steps.remove(&step).unwrap_or_default();
            if let Some(series) = &mut series {
                series.requests.push(requests);
                series.errors.push(errors);
                series.p99_ns.push(durations.quantiles().map(|quantiles| quantiles.p99_ns));
            }
        }
        Service {
            name,
            series,
            duration: self.durations.quantiles(),
            cpu_ns: (self.cpu >> FRACTION_BITS).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            ..self.service
        }
    }
}
