//! A profile that is looked at without being stored: the same sums, tree and evidence, out of a decoded batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use spanflame_model::{Attributes, Batch, Link, ProfileType, Tenant, TimeRange, Timestamp};
use spanflame_store::StoredSample;

use crate::Error;
use crate::links::Precision;
use crate::measure::{Measure, TypeSelector};
use crate::profile::ProfileAnswer;
use crate::scoped::Draft;
use crate::tree::CallTree;

/// What a batch of profiles holds, and one type of it as a profile.
#[derive(Clone, Debug)]
pub struct Viewed {
    /// How many profiles.
    pub profiles: u64,
    /// What they measure, each with its observations; by name.
    pub types: Vec<(ProfileType, u64)>,
    /// One of these, of all profiles together.
    pub profile: ProfileAnswer,
    /// Resource attributes of the first profile.
    pub labels: Attributes,
}

/// Adds up the profiles of a batch. Without a type: CPU where it is measured, else the first type there is.
///
/// # Errors
///
/// [`Error::NotFound`] if the batch holds no profile.
pub fn view(batch: &Batch, wanted: Option<TypeSelector>) -> Result<Viewed, Error> {
    let Some(first) = batch.profiles.first() else {
        return Err(Error::NotFound {
            what: "the file holds no profile".to_owned(),
        });
    };
    let mut types: BTreeMap<ProfileType, u64> = BTreeMap::new();
    for profile in &batch.profiles {
        for measure in Measure::all(&profile.info) {
            let readings = profile
                .samples
                .iter()
                .filter_map(|sample| measure.read(&profile.info, sample, None));
            let samples: u64 = readings.map(|reading| reading.samples).sum();
            *types.entry(measure.profile_type).or_default() += samples;
        }
    }
    let selector = wanted.unwrap_or_else(|| {
        let has_cpu = batch
            .profiles
            .iter()
            .any(|profile| TypeSelector::Cpu.measure(&profile.info).is_some());
        match (has_cpu, Measure::all(&first.info).first()) {
            (false, Some(measure)) => TypeSelector::from(measure.profile_type.clone()),
            _ => TypeSelector::Cpu,
        }
    });
    Ok(Viewed {
        profiles: batch.profiles.len() as u64,
        types: types.into_iter().collect(),
        profile: add_up(batch, &selector),
        labels: first.info.resource.attributes().clone(),
    })
}

fn add_up(batch: &Batch, selector: &TypeSelector) -> ProfileAnswer {
    let mut draft = Draft::new(selector, None, false);
    draft.range = batch.profiles.iter().map(|profile| profile.info.range()).reduce(TimeRange::cover);
    let tenant = Tenant::anonymous();
    for profile in &batch.profiles {
        let fingerprint = profile.fingerprint(&tenant);
        for sample in &profile.samples {
            let precision = match &sample.link {
                Link::One { span_id: Some(_), .. } => Precision::Span,
                Link::One { .. } => Precision::Trace,
                Link::None | Link::Candidates { .. } => Precision::Window,
            };
            let stored = StoredSample {
                tenant: tenant.clone(),
                received: Timestamp::ZERO,
                profile: fingerprint,
                info: Arc::clone(&profile.info),
                sample: sample.clone(),
            };
            draft.add(&stored, precision);
        }
    }
    draft.settle();
    let totals = draft.gather.totals();
    let tree = CallTree::build(&totals, &batch.stacks);
    let facts = &draft.gather.facts;
    let mut evidence = draft.evidence;
    evidence.unresolved_frames = tree.unresolved_frames();
    ProfileAnswer {
        profile_type: facts.profile_type.clone().unwrap_or_else(|| selector.nominal()),
        scope: None,
        total: tree.total[0],
        samples: facts.samples,
        tree,
        totals,
        stacks: batch.stacks.clone(),
        rows: None,
        range: draft.range,
        evidence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanflame_testkit::Plan;

    #[test]
    fn a_batch_is_added_up_as_the_store_would() {
        let load = Plan::exact(61).run();
        let mut value = 0;
        let mut samples = 0;
        for batch in load.batches.iter().filter(|batch| !batch.profiles.is_empty()) {
            let viewed = view(batch, None).expect("it has profiles");
            value += viewed.profile.total;
            samples += viewed.profile.samples;
            assert_eq!(viewed.profiles, batch.profiles.len() as u64);
            assert!(
                viewed.types.iter().any(|(kind, _)| *kind == viewed.profile.profile_type),
                "{:?}",
                viewed.types
            );
            assert_eq!(viewed.profile.tree.samples[0], viewed.profile.samples);
        }
        let truth = load.by_service.values().map(|cost| cost.total());
        let (expected, observations) = truth.fold((0, 0), |(value, samples), spent| (value + spent.value, samples + spent.samples));
        assert_eq!((value, samples), (expected, observations));
    }

    #[test]
    fn another_type_is_empty_and_no_profile_is_said_so() {
        let load = Plan::exact(62).run();
        let batch = load.batches.iter().find(|batch| !batch.profiles.is_empty()).expect("profiles");
        let wall = view(batch, Some(TypeSelector::Kind("wall".to_owned()))).expect("it has profiles");
        assert_eq!((wall.profile.total, wall.profile.samples), (0, 0));
        assert!(view(&Batch::default(), None).is_err());
    }
}
