//! What the rollup still knows of samples that are no longer kept.
//!
//! A kept sample is always read as it was sent: only it knows its times, link and labels. The rollup answers
//! for the others, by a difference that needs no list of what was dropped: what it holds of some whole minutes,
//! less what the samples that are still kept had added to it. Nothing counts twice, nothing is missed, and
//! where everything is kept the difference is 0.
//!
//! What the sums do not hold is not answered from them: averages of gauges (the number of profiles is
//! unknown), labels of single samples and of profiles beside their resource, and times within a minute. A
//! profile without sample times lies in the minute in which it began. Where profiles of equal labels and period
//! sent counts alone and counts with nanoseconds, CPU is the nanoseconds: too little rather than twice. Pure:
//! rows and samples in, rests out.

use std::collections::HashMap;
use std::sync::Arc;

use spanflame_model::{Attributes, Hasher, ProfileInfo, ProfileType, StackId, TimeRange, Timestamp};
use spanflame_store::{RollupRow, StoredSample};

use crate::coverage::Coverage;
use crate::measure::{Measure, TypeSelector, counted};
use crate::selector::LabelSelector;

/// The length of a sum.
pub(crate) const NANOS_PER_MINUTE: u64 = 60 * 1_000_000_000;

/// What to add up of samples that are no longer kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// `None` is every type.
    pub(crate) profile_type: Option<TypeSelector>,
    /// Whose resource has these labels.
    pub(crate) labels: LabelSelector,
    /// Keep stacks apart; else all of them are one.
    pub(crate) by_stack: bool,
    /// Keep minutes apart; else all of them are one.
    pub(crate) by_minute: bool,
}

/// The growing difference.
pub(crate) struct Expired {
    wanted: Wanted,
    range: TimeRange,
    rolled_up_until: Timestamp,
    groups: Vec<Group>,
    by_key: HashMap<u128, usize>,
    /// Where the values of the profile seen last go, by type.
    recent: Option<(Arc<ProfileInfo>, Vec<Option<Slot>>)>,
    coverage: Coverage,
    sum_count: usize,
}

/// Sums of what has the same labels and period: the types of one sender's profiles.
struct Group {
    /// With all types seen so far.
    info: ProfileInfo,
    is_selected: bool,
    /// Parallel to the types.
    sums: Vec<HashMap<Key, Sum>>,
}

/// Stack and minute, where they are kept apart.
type Key = (StackId, Timestamp);

#[derive(Clone, Copy)]
struct Slot {
    group: usize,
    index: usize,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    value: i128,
    count: i128,
}

/// The sum of one stack of one sender over samples that are no longer kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rest<'a> {
    /// Labels and period.
    pub(crate) info: &'a ProfileInfo,
    /// What `value` measures.
    pub(crate) profile_type: ProfileType,
    pub(crate) stack: StackId,
    /// When its minute begins, where minutes are kept apart.
    pub(crate) minute: Timestamp,
    pub(crate) value: i128,
    /// Observations.
    pub(crate) samples: u64,
}

impl Expired {
    /// Nothing yet, of the minutes that overlap `range`, from a rollup of what arrived before `rolled_up_until`.
    pub(crate) fn new(wanted: Wanted, range: TimeRange, rolled_up_until: Timestamp) -> Expired {
        Expired {
            wanted,
            range: whole_minutes(range),
            rolled_up_until,
            groups: Vec::new(),
            by_key: HashMap::new(),
            recent: None,
            coverage: Coverage::default(),
            sum_count: 0,
        }
    }

    /// The whole minutes it is about. Every row and every kept sample that overlaps them is to be shown to it.
    pub(crate) fn range(&self) -> TimeRange {
        self.range
    }

    /// How many sums are held.
    pub(crate) fn sum_count(&self) -> usize {
        self.sum_count
    }

    /// The minutes of which the rollup holds something.
    pub(crate) fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Adds a row of the rollup.
    pub(crate) fn add(&mut self, row: &RollupRow) {
        if !self.range.contains(row.minute) {
            return;
        }
        if let Some(slot) = self.slots(&row.info).first().copied().flatten() {
            self.coverage.add(row.info.range());
            let key = self.key(row.stack, row.minute);
            self.sum(slot, key, i128::from(row.sum), i128::from(row.count));
        }
    }

    /// Takes away what a sample that is still kept had added to the rollup. The rule by which the store rolls
    /// samples up.
    pub(crate) fn subtract(&mut self, stored: &StoredSample) {
        if stored.received >= self.rolled_up_until {
            return;
        }
        let (sample, range) = (&stored.sample, self.range);
        let (times, values) = (&sample.times, &sample.values);
        let slots = self.slots(&stored.info).to_vec();
        if let [slot] = slots[..]
            && !times.is_empty()
            && (values.is_empty() || values.len() == times.len())
        {
            let Some(slot) = slot else { return };
            for at in (0..times.len()).filter(|at| range.contains(times[*at])) {
                let value = values.get(at).copied().unwrap_or(1);
                let key = self.key(sample.stack, times[at]);
                self.sum(slot, key, -i128::from(value), -1);
            }
            return;
        }
        let when = times.first().copied().unwrap_or(stored.info.start);
        if range.contains(when) {
            let key = self.key(sample.stack, when);
            for (slot, value) in slots.into_iter().zip(values) {
                if let Some(slot) = slot {
                    self.sum(slot, key, -i128::from(*value), -i128::from(sample.observations()));
                }
            }
        }
    }

    /// What is left, one value for each observation: CPU by its rule, never two.
    pub(crate) fn rests(&self) -> impl Iterator<Item = Rest<'_>> {
        self.groups.iter().flat_map(move |group| {
            let measures = match &self.wanted.profile_type {
                Some(selector) => selector.measure(&group.info).into_iter().collect(),
                None => Measure::all(&group.info),
            };
            measures.into_iter().flat_map(move |measure| group.rests(measure))
        })
    }

    fn key(&self, stack: StackId, when: Timestamp) -> Key {
        let stack = if self.wanted.by_stack { stack } else { StackId(0) };
        let minute = match self.wanted.by_minute {
            true => when.saturating_sub(into_minute(when)),
            false => Timestamp::ZERO,
        };
        (stack, minute)
    }

    fn sum(&mut self, slot: Slot, key: Key, value: i128, count: i128) {
        let sums = &mut self.groups[slot.group].sums[slot.index];
        let known = sums.len();
        let sum = sums.entry(key).or_default();
        sum.value += value;
        sum.count += count;
        self.sum_count += sums.len() - known;
    }

    fn slots(&mut self, info: &Arc<ProfileInfo>) -> &[Option<Slot>] {
        if !self.recent.as_ref().is_some_and(|(recent, _)| Arc::ptr_eq(recent, info)) {
            let slots = (0..info.types.len())
                .map(|index| self.slot(info, info.profile_type(index)))
                .collect();
            self.recent = Some((Arc::clone(info), slots));
        }
        self.recent.as_ref().map_or(&[], |(_, slots)| slots)
    }

    fn slot(&mut self, info: &ProfileInfo, profile_type: ProfileType) -> Option<Slot> {
        let single = Group::info(info, &profile_type);
        if !self.wants(&single) {
            return None;
        }
        let mut h = Hasher::new();
        h.attributes(info.resource.attributes());
        [&profile_type.name, &profile_type.period.kind, &profile_type.period.unit]
            .iter()
            .for_each(|text| h.text(text));
        h.number(info.period as u64);
        let groups = &mut self.groups;
        let labels = &self.wanted.labels;
        let at = *self.by_key.entry(h.finish().0).or_insert_with(|| {
            groups.push(Group {
                is_selected: labels.selects(&single),
                info: ProfileInfo {
                    types: Vec::new(),
                    ..single
                },
                sums: Vec::new(),
            });
            groups.len() - 1
        });
        let group = &mut groups[at];
        let index = group.info.types.iter().position(|known| *known == profile_type.sample);
        let index = index.unwrap_or_else(|| {
            group.info.types.push(profile_type.sample);
            group.sums.push(HashMap::new());
            group.sums.len() - 1
        });
        group.is_selected.then_some(Slot { group: at, index })
    }

    /// Whether the answer needs a type: it is asked for, or says how many observations there were.
    fn wants(&self, single: &ProfileInfo) -> bool {
        let selector = self.wanted.profile_type.as_ref();
        selector.is_none_or(|selector| selector.measure(single).is_some()) || counted(single).is_some()
    }
}

impl Group {
    /// What profiles that carry `profile_type` share, as far as the rollup keeps it.
    fn info(of: &ProfileInfo, profile_type: &ProfileType) -> ProfileInfo {
        ProfileInfo {
            profile_id: None,
            name: profile_type.name.clone(),
            types: vec![profile_type.sample.clone()],
            attributes: Attributes::new(),
            scope: Arc::default(),
            ..of.clone()
        }
    }

    fn rests(&self, measure: Measure) -> impl Iterator<Item = Rest<'_>> {
        self.sums[measure.index].iter().filter_map(move |(key, sum)| {
            // Less than nothing is left where the rollup is kept shorter than the samples.
            let is_left = sum.count > 0 && sum.value >= 0;
            is_left.then(|| Rest {
                info: &self.info,
                profile_type: measure.profile_type.clone(),
                stack: key.0,
                minute: key.1,
                value: sum.value.saturating_mul(i128::from(measure.factor)),
                samples: self.observations(*key, *sum),
            })
        })
    }

    /// As for samples: the count where the profile counts, else nanoseconds over the period, else samples.
    fn observations(&self, key: Key, sum: Sum) -> u64 {
        let of = |index: usize| self.sums[index].get(&key).map_or(0, |sum: &Sum| sum.value);
        let period = i128::from(self.info.period);
        let number = match counted(&self.info) {
            Some(index) => of(index),
            None if self.info.types[0].is_nanoseconds() && self.info.period_type.is_nanoseconds() && period > 0 => {
                (of(0) + period / 2) / period
            }
            None => sum.count,
        };
        u64::try_from(number).unwrap_or(1).max(1)
    }
}

fn into_minute(at: Timestamp) -> u64 {
    at.unix_nanos().unsigned_abs() % NANOS_PER_MINUTE
}

/// The minutes that overlap a range.
fn whole_minutes(range: TimeRange) -> TimeRange {
    let start = range.start().saturating_sub(into_minute(range.start()));
    let end = range.end();
    let end = end.saturating_add((NANOS_PER_MINUTE - into_minute(end)) % NANOS_PER_MINUTE);
    TimeRange::new(start, end).unwrap_or(range)
}
