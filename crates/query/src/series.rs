//! Profiles over time: sums by step and label, and what single profiles or spans cost.
//!
//! A flow is counted where it was observed: by its own times, else spread evenly over its profile, or over the minute
//! of a sum where its samples are no longer kept. Observations of what is spread count in every step they reach. A gauge is a state:
//! it counts wholly in the step in which its profile begins, is averaged there over the profiles of each sender, and
//! then added over senders. Groups are the values of some labels; a profile without a label is in the group where that
//! is empty. Memory is bounded by groups times steps, or by the number of profiles or spans.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use spanflame_model::{Fingerprint, Link, ProfileInfo, ProfileType, SpanId, Tenant, TimeRange, Timestamp, TraceId};
use spanflame_store::StoredSample;

use crate::Error;
use crate::catalog::Steps;
use crate::expired::{Expired, NANOS_PER_MINUTE};
use crate::gather::series_key;
use crate::links::observed;
use crate::measure::{FRACTION_BITS, Reading, Recent, TypeSelector};
use crate::profile::Evidence;
use crate::selector::{LabelSelector, label};

/// The most steps times groups of one answer.
const CELLS_MAX: usize = 4_000_000;
/// The most profiles or spans of one answer.
const ITEMS_MAX: usize = 1_000_000;

/// What to add up over time.
#[derive(Clone, Debug)]
pub struct SeriesRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Of which profiles.
    pub selector: LabelSelector,
    /// Which values.
    pub profile_type: TypeSelector,
    /// The range and how it is cut.
    pub steps: Steps,
    /// Labels whose values make groups, in the order of the answer. None is one group.
    pub by: Vec<String>,
}

/// Groups over time.
#[derive(Clone, Debug)]
pub struct SeriesAnswer {
    /// What the values measure.
    pub profile_type: ProfileType,
    /// By total descending, then by labels.
    pub series: Vec<StepSeries>,
    /// What the answer rests on.
    pub evidence: Evidence,
}

/// One group over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSeries {
    /// The labels of the group, in the order asked for; empty text for profiles without the label.
    pub labels: Vec<(String, String)>,
    /// Sum over all steps.
    pub total: i64,
    /// By step, in the unit of the type.
    pub values: Vec<i64>,
    /// Observations by step.
    pub samples: Vec<u64>,
    /// Profiles by step that had a value.
    pub profiles: Vec<u64>,
}

impl StepSeries {
    /// Several groups as one without labels; `None` if there is none.
    pub fn sum(series: &[StepSeries]) -> Option<StepSeries> {
        let (first, others) = series.split_first()?;
        let mut sum = StepSeries {
            labels: Vec::new(),
            ..first.clone()
        };
        for other in others {
            sum.total = sum.total.saturating_add(other.total);
            for (step, value) in other.values.iter().enumerate() {
                sum.values[step] = sum.values[step].saturating_add(*value);
                sum.samples[step] = sum.samples[step].saturating_add(other.samples[step]);
                sum.profiles[step] = sum.profiles[step].saturating_add(other.profiles[step]);
            }
        }
        Some(sum)
    }
}

/// What one profile or one span cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The profile, or the span with its trace where that is known.
    pub id: ItemId,
    /// The labels of its group.
    pub labels: Vec<(String, String)>,
    /// When it was observed first, or its profile began.
    pub at: Timestamp,
    /// In the unit of the type.
    pub value: i64,
    /// Observations.
    pub samples: u64,
}

/// Whose cost an [`Item`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemId {
    /// One profile.
    Profile(Fingerprint),
    /// One span.
    Span(Option<TraceId>, SpanId),
}

/// What items are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Single profiles.
    Profile,
    /// Spans that samples name, one each.
    Span,
}

impl ItemKind {
    fn of(self, stored: &StoredSample) -> Option<ItemId> {
        match (self, &stored.sample.link) {
            (ItemKind::Profile, _) => Some(ItemId::Profile(stored.profile)),
            (
                ItemKind::Span,
                Link::One {
                    trace_id,
                    span_id: Some(span),
                    ..
                },
            ) => Some(ItemId::Span(*trace_id, *span)),
            (ItemKind::Span, _) => None,
        }
    }
}

/// Groups by number, found once for each profile.
struct Groups {
    by: Vec<String>,
    numbers: BTreeMap<Vec<String>, usize>,
    recent: Option<(Arc<ProfileInfo>, usize)>,
}

impl Groups {
    fn new(by: &[String]) -> Groups {
        Groups {
            by: by.to_vec(),
            numbers: BTreeMap::new(),
            recent: None,
        }
    }

    fn of(&mut self, info: &Arc<ProfileInfo>) -> usize {
        if let Some((recent, number)) = &self.recent
            && Arc::ptr_eq(recent, info)
        {
            return *number;
        }
        let number = self.number(info);
        self.recent = Some((info.clone(), number));
        number
    }

    fn number(&mut self, info: &ProfileInfo) -> usize {
        let values = self.by.iter().map(|name| label(info, name).unwrap_or_default()).collect();
        let next = self.numbers.len();
        *self.numbers.entry(values).or_insert(next)
    }

    /// The labels of every group, by number.
    fn labels(&self) -> Vec<Vec<(String, String)>> {
        let mut labels = vec![Vec::new(); self.numbers.len()];
        for (values, number) in &self.numbers {
            labels[*number] = self.by.iter().cloned().zip(values.iter().cloned()).collect();
        }
        labels
    }
}

/// One growing set of series.
pub(crate) struct SeriesCount {
    selector: TypeSelector,
    steps: Steps,
    is_gauge: bool,
    recent: Recent,
    groups: Groups,
    /// By group and step; only steps with something in them.
    cells: HashMap<(usize, usize), Cell>,
}

#[derive(Default)]
struct Cell {
    /// In units of 2^-32. Of gauges by sender, of flows under 0.
    sums: HashMap<u128, (i128, HashSet<Fingerprint>)>,
    samples: u64,
}

impl SeriesCount {
    pub(crate) fn new(request: &SeriesRequest) -> SeriesCount {
        SeriesCount {
            selector: request.profile_type.clone(),
            steps: request.steps,
            is_gauge: request.profile_type.is_gauge(),
            recent: Recent::default(),
            groups: Groups::new(&request.by),
            cells: HashMap::new(),
        }
    }

    /// Whether there is room for more.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_size("series hold", self.cells.len(), CELLS_MAX, "values")
    }

    pub(crate) fn add(&mut self, stored: &StoredSample) {
        let (Some(measure), _) = self.recent.measure(&self.selector, &stored.info) else {
            return;
        };
        let group = self.groups.of(&stored.info);
        if self.is_gauge {
            if self.steps.range.contains(stored.info.start)
                && let Some(reading) = measure.read(&stored.info, &stored.sample, None)
            {
                let sender = series_key(&stored.tenant, &stored.info);
                self.cell((group, self.steps.of(stored.info.start)), sender, stored, reading);
            }
            return;
        }
        let Some(when) = observed(stored).overlap(self.steps.range) else {
            return;
        };
        for step in self.steps_of(when) {
            let range = self.step_range(step);
            if let Some(reading) = measure.read(&stored.info, &stored.sample, Some(range)) {
                self.cell((group, step), 0, stored, reading);
            }
        }
    }

    /// Adds what the rollup knows of samples that are no longer kept, by minute. What of a minute lies outside of the
    /// range belongs to the part inside: only whole minutes are known.
    pub(crate) fn add_expired(&mut self, expired: &Expired) {
        for rest in expired.rests() {
            let group = self.groups.number(rest.info);
            let Some(when) = TimeRange::lasting(rest.minute, NANOS_PER_MINUTE).overlap(self.steps.range) else {
                continue;
            };
            for step in self.steps_of(when) {
                let Some(inside) = self.step_range(step).overlap(when) else {
                    continue;
                };
                let cell = self.cells.entry((group, step)).or_default();
                cell.sums.entry(0).or_default().0 += part(rest.value, inside.duration_ns(), when.duration_ns());
                cell.samples += rest.samples;
            }
        }
    }

    fn steps_of(&self, when: TimeRange) -> RangeInclusive<usize> {
        self.steps.of(when.start())..=self.steps.of(when.end().saturating_sub(1))
    }

    fn step_range(&self, step: usize) -> TimeRange {
        let start = self
            .steps
            .range
            .start()
            .saturating_add(self.steps.step_ns.saturating_mul(step as u64));
        TimeRange::lasting(start, self.steps.step_ns)
            .overlap(self.steps.range)
            .unwrap_or(self.steps.range)
    }

    fn cell(&mut self, at: (usize, usize), sender: u128, stored: &StoredSample, reading: Reading) {
        let cell = self.cells.entry(at).or_default();
        let (sum, profiles) = cell.sums.entry(sender).or_default();
        *sum += reading.value;
        profiles.insert(stored.profile);
        cell.samples += reading.samples;
    }

    /// By total descending, then by labels.
    pub(crate) fn finish(self) -> Vec<StepSeries> {
        let count = self.steps.count();
        let empty = |labels| StepSeries {
            labels,
            total: 0,
            values: vec![0; count],
            samples: vec![0; count],
            profiles: vec![0; count],
        };
        let mut series: Vec<StepSeries> = self.groups.labels().into_iter().map(empty).collect();
        for ((group, step), cell) in self.cells {
            let of_sender = |(sum, profiles): &(i128, HashSet<Fingerprint>)| match self.is_gauge {
                true => sum / profiles.len().max(1) as i128,
                false => *sum,
            };
            let series = &mut series[group];
            series.values[step] = rounded(cell.sums.values().map(of_sender).sum());
            series.samples[step] = cell.samples;
            series.profiles[step] = cell.sums.values().map(|(_, profiles)| profiles.len() as u64).sum();
        }
        for series in &mut series {
            series.total = series.values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value));
        }
        series.retain(|series| series.samples.iter().any(|samples| *samples > 0));
        series.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.labels.cmp(&b.labels)));
        series
    }
}

/// One growing list of what profiles or spans cost.
pub(crate) struct ItemCount {
    kind: ItemKind,
    selector: TypeSelector,
    range: TimeRange,
    recent: Recent,
    groups: Groups,
    items: HashMap<(ItemId, usize), ItemSum>,
}

struct ItemSum {
    value: i128,
    samples: u64,
    at: Timestamp,
}

impl ItemCount {
    pub(crate) fn new(kind: ItemKind, request: &SeriesRequest) -> ItemCount {
        ItemCount {
            kind,
            selector: request.profile_type.clone(),
            range: request.steps.range,
            recent: Recent::default(),
            groups: Groups::new(&request.by),
            items: HashMap::new(),
        }
    }

    /// Whether there is room for more.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_size("the answer holds", self.items.len(), ITEMS_MAX, "profiles or spans")
    }

    /// Adds a sample wholly if it, or its profile, begins in the range.
    pub(crate) fn add(&mut self, stored: &StoredSample) {
        let (Some(measure), _) = self.recent.measure(&self.selector, &stored.info) else {
            return;
        };
        let at = stored.sample.times.first().copied().unwrap_or(stored.info.start);
        let Some(id) = self.kind.of(stored).filter(|_| self.range.contains(at)) else {
            return;
        };
        let Some(reading) = measure.read(&stored.info, &stored.sample, None) else {
            return;
        };
        let group = self.groups.of(&stored.info);
        let item = self.items.entry((id, group)).or_insert(ItemSum { value: 0, samples: 0, at });
        item.value += reading.value;
        item.samples += reading.samples;
        item.at = item.at.min(at);
    }

    /// In order of time, then of id.
    pub(crate) fn finish(self) -> Vec<Item> {
        let labels = self.groups.labels();
        let item = |((id, group), sum): ((ItemId, usize), ItemSum)| Item {
            id,
            labels: labels[group].clone(),
            at: sum.at,
            value: rounded(sum.value),
            samples: sum.samples,
        };
        let mut items: Vec<Item> = self.items.into_iter().map(item).collect();
        items.sort_by(|a, b| (a.at, a.id, &a.labels).cmp(&(b.at, b.id, &b.labels)));
        items
    }
}

fn check_size(what: &str, size: usize, max: usize, unit: &str) -> Result<(), Error> {
    match size > max {
        true => Err(Error::TooLarge {
            message: format!("{what} more than {max} {unit}, expected a shorter range or a narrower selection"),
        }),
        false => Ok(()),
    }
}

/// `value * part / whole` in units of 2^-32.
fn part(value: i128, part: u64, whole: u64) -> i128 {
    let (product, whole) = (value.saturating_mul(part.into()), i128::from(whole));
    // Apart, since the fraction bits of a large product would not fit.
    ((product / whole) << FRACTION_BITS) + ((product % whole) << FRACTION_BITS) / whole
}

fn rounded(value: i128) -> i64 {
    let half = 1 << (FRACTION_BITS - 1);
    ((value + half) >> FRACTION_BITS).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests;
