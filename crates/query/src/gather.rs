//! Adds samples up by stack, as they stream by.
//!
//! Flows (CPU, allocations, contentions) are added. Gauges (heap in use, goroutines) are states: they are
//! averaged over the profiles of a series, a resource that sends them, and then added over series.
//!
//! Memory is bounded by the number of different stacks, not of samples.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use spanflame_model::{Fingerprint, Hasher, ProfileInfo, ProfileType, StackId, Tenant, TimeRange};
use spanflame_store::StoredSample;

use crate::coverage::Coverage;
use crate::expired::Rest;
use crate::measure::{FRACTION_BITS, Measure, Reading, Recent, TypeSelector};
use crate::trace::SpanProfile;
use crate::tree::StackTotal;

/// One growing sum.
pub(crate) struct Gather {
    selector: TypeSelector,
    range: Option<TimeRange>,
    is_gauge: bool,
    by_stack: bool,
    recent: Recent,
    series: HashMap<u128, Series>,
    stack_count: usize,
    /// What was added so far.
    pub(crate) facts: Facts,
}

/// What an answer rests on, as far as the samples themselves tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) profile_type: Option<ProfileType>,
    pub(crate) samples: u64,
    pub(crate) prorated: u64,
    pub(crate) prorated_profile_ns: u64,
    /// The coarsest period among the profiles.
    pub(crate) period_ns: Option<u64>,
    /// When the profiles that were added were taken.
    pub(crate) coverage: Coverage,
    /// Samples of profiles that do not measure the wanted type.
    pub(crate) other_type_samples: u64,
    pub(crate) other_types: Vec<ProfileType>,
}

#[derive(Default)]
struct Series {
    profiles: HashSet<Fingerprint>,
    stacks: HashMap<StackId, Sum>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    value: i128,
    samples: u64,
}

/// How many other types an answer names.
const OTHER_TYPES_MAX: usize = 8;

impl Gather {
    /// Adds what `selector` selects and what lies in `range`, where one is given.
    pub(crate) fn new(selector: TypeSelector, range: Option<TimeRange>) -> Gather {
        Gather {
            is_gauge: selector.is_gauge(),
            selector,
            range,
            by_stack: true,
            recent: Recent::default(),
            series: HashMap::new(),
            stack_count: 0,
            facts: Facts::default(),
        }
    }

    /// Adds all stacks up as one, where only facts and the sum matter.
    pub(crate) fn without_stacks(mut self) -> Gather {
        self.by_stack = false;
        self
    }

    /// Adds a sample; answers how many observations it stood for, 0 if it has no value of the wanted type.
    pub(crate) fn add(&mut self, stored: &StoredSample) -> u64 {
        self.add_within(stored, self.range)
    }

    /// Likewise, in another range.
    pub(crate) fn add_within(&mut self, stored: &StoredSample, range: Option<TimeRange>) -> u64 {
        let Some(measure) = self.measure(&stored.info) else {
            self.note_other(stored);
            return 0;
        };
        let Some(reading) = measure.read(&stored.info, &stored.sample, range) else {
            return 0;
        };
        let key = match self.is_gauge {
            true => series_key(&stored.tenant, &stored.info),
            false => 0,
        };
        let series = self.series.entry(key).or_default();
        if self.is_gauge {
            series.profiles.insert(stored.profile);
        }
        let stacks = series.stacks.len();
        let stack = if self.by_stack { stored.sample.stack } else { StackId(0) };
        series.stacks.entry(stack).or_default().add(reading);
        self.stack_count += series.stacks.len() - stacks;
        self.facts.samples += reading.samples;
        if reading.prorated {
            self.facts.prorated += reading.samples;
            self.facts.prorated_profile_ns = self.facts.prorated_profile_ns.max(stored.info.duration_ns);
        }
        reading.samples
    }

    /// Adds what the rollup knows of samples that are no longer kept; a flow, never a gauge.
    pub(crate) fn add_rest(&mut self, rest: &Rest<'_>) {
        let series = self.series.entry(0).or_default();
        let stacks = series.stacks.len();
        let stack = if self.by_stack { rest.stack } else { StackId(0) };
        series.stacks.entry(stack).or_default().add(Reading {
            value: rest.value.saturating_mul(1 << FRACTION_BITS),
            samples: rest.samples,
            prorated: false,
        });
        self.stack_count += series.stacks.len() - stacks;
        self.facts.samples += rest.samples;
        self.facts.profile_type.get_or_insert_with(|| rest.profile_type.clone());
        self.facts.note_period(rest.info);
    }

    /// How many observations of the wanted type a sample stands for, without adding it.
    pub(crate) fn observe(&mut self, stored: &StoredSample) -> u64 {
        let (measure, _) = Recent::default().measure(&self.selector, &stored.info);
        let reading = measure.and_then(|measure| measure.read(&stored.info, &stored.sample, self.range));
        reading.map_or(0, |reading| reading.samples)
    }

    /// How many different stacks were added; the same stack of two series counts twice.
    pub(crate) fn stack_count(&self) -> usize {
        self.stack_count
    }

    /// The sums by stack, in order of stack. Rounded so that they add up to the rounded total.
    pub(crate) fn totals(&self) -> Vec<StackTotal> {
        let mut sums: HashMap<StackId, Sum> = HashMap::new();
        for series in self.series.values() {
            let profiles = series.profiles.len().max(1) as i128;
            for (stack, sum) in &series.stacks {
                let entry = sums.entry(*stack).or_default();
                entry.value += sum.value / profiles;
                entry.samples += sum.samples;
            }
        }
        let mut totals: Vec<(StackId, Sum)> = sums.into_iter().collect();
        totals.sort_unstable_by_key(|(stack, _)| *stack);
        round_together(totals)
    }

    /// The one number.
    pub(crate) fn sum(&self) -> SpanProfile {
        let value = self.totals().iter().fold(0_i64, |sum, total| sum.saturating_add(total.value));
        SpanProfile {
            samples: self.facts.samples,
            value,
        }
    }

    fn measure(&mut self, info: &Arc<ProfileInfo>) -> Option<Arc<Measure>> {
        let (measure, is_new) = self.recent.measure(&self.selector, info);
        if let Some(measure) = measure.as_ref().filter(|_| is_new) {
            self.facts.profile_type.get_or_insert_with(|| measure.profile_type.clone());
            self.facts.coverage.add(info.range());
            self.facts.note_period(info);
        }
        measure
    }

    fn note_other(&mut self, stored: &StoredSample) {
        self.facts.other_type_samples += 1;
        if self.facts.other_types.len() < OTHER_TYPES_MAX {
            for measure in Measure::all(&stored.info) {
                if !self.facts.other_types.contains(&measure.profile_type) {
                    self.facts.other_types.push(measure.profile_type);
                }
            }
        }
    }
}

impl Facts {
    fn note_period(&mut self, info: &ProfileInfo) {
        if info.period_type.is_nanoseconds() && info.period > 0 {
            self.period_ns = self.period_ns.max(u64::try_from(info.period).ok());
        }
    }
}

impl Sum {
    fn add(&mut self, reading: Reading) {
        self.value += reading.value;
        self.samples += reading.samples;
    }
}

/// Who sends: what tells the series of a gauge apart.
pub(crate) fn series_key(tenant: &Tenant, info: &ProfileInfo) -> u128 {
    let mut hasher = Hasher::new();
    hasher.text(tenant.as_str());
    hasher.text(&info.name);
    hasher.attributes(info.resource.attributes());
    hasher.finish().0
}

/// Rounds every value down, then hands what is missing to the largest remainders.
fn round_together(sums: Vec<(StackId, Sum)>) -> Vec<StackTotal> {
    let one = 1_i128 << FRACTION_BITS;
    let exact: i128 = sums.iter().map(|(_, sum)| sum.value).sum();
    let floors: i128 = sums.iter().map(|(_, sum)| sum.value.div_euclid(one)).sum();
    let missing = ((exact + one / 2).div_euclid(one) - floors).max(0) as usize;
    let mut by_remainder: Vec<usize> = (0..sums.len()).collect();
    if missing > 0 {
        by_remainder.sort_by_key(|index| std::cmp::Reverse(sums[*index].1.value.rem_euclid(one)));
    }
    let mut totals: Vec<StackTotal> = sums
        .iter()
        .map(|(stack, sum)| StackTotal {
            stack: *stack,
            value: sum.value.div_euclid(one).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            samples: sum.samples,
        })
        .collect();
    for index in by_remainder.into_iter().take(missing) {
        totals[index].value = totals[index].value.saturating_add(1);
    }
    totals
}

#[cfg(test)]
mod tests;
