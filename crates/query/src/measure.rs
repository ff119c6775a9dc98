//! How a sample is read as one number of one profile type, over one range of time.
//!
//! Exactly one value per sample, never two: of a profile that carries samples/count and cpu/nanoseconds, CPU
//! is the second. Parts of a sample (some of its times are in the range, or its profile only overlaps it) are
//! kept in fixed point and rounded once, at the end, so that many small parts do not vanish.

use std::str::FromStr;
use std::sync::Arc;

use spanflame_model::{ProfileInfo, ProfileType, Sample, TimeRange, ValueType};

use crate::Error;

/// Which values of samples an answer adds up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TypeSelector {
    /// CPU time in nanoseconds, by the rule of [`spanflame_model::cpu_rule`].
    #[default]
    Cpu,
    /// What was sent under exactly this type. [`ProfileType::cpu`] is answered as [`TypeSelector::Cpu`].
    Exact(ProfileType),
    /// The first type whose measured kind is this, e.g. `wall`, `alloc_space`.
    Kind(String),
}

impl FromStr for TypeSelector {
    type Err = Error;

    /// Reads `cpu`, a full profile type of five parts, or the kind that is measured.
    fn from_str(text: &str) -> Result<TypeSelector, Error> {
        if matches!(text, "" | "cpu") {
            return Ok(TypeSelector::Cpu);
        }
        if !text.contains(':') {
            return Ok(TypeSelector::Kind(text.to_owned()));
        }
        let parsed: ProfileType = text.parse().map_err(|error| Error::Invalid {
            field: "type",
            message: format!("{error}, or cpu"),
        })?;
        Ok(TypeSelector::from(parsed))
    }
}

impl From<ProfileType> for TypeSelector {
    fn from(profile_type: ProfileType) -> TypeSelector {
        match profile_type == ProfileType::cpu() {
            true => TypeSelector::Cpu,
            false => TypeSelector::Exact(profile_type),
        }
    }
}

/// How to read a sample's values: the one at `index`, times `factor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Position among the profile's types.
    pub index: usize,
    /// 1, or the period of a profile that counts.
    pub factor: i64,
    /// The type under which the result is known.
    pub profile_type: ProfileType,
}

impl TypeSelector {
    /// How to read this type out of a profile; `None` if the profile does not have it.
    pub fn measure(&self, info: &ProfileInfo) -> Option<Measure> {
        match self {
            TypeSelector::Cpu => info.cpu_rule().map(|rule| Measure {
                index: rule.index,
                factor: rule.factor,
                profile_type: ProfileType::cpu(),
            }),
            TypeSelector::Exact(wanted) => Measure::sent(info).find(|measure| measure.profile_type == *wanted),
            TypeSelector::Kind(kind) => Measure::sent(info).find(|measure| measure.profile_type.sample.kind == *kind),
        }
    }

    /// Whether values are averaged over time instead of added.
    pub fn is_gauge(&self) -> bool {
        let kind = match self {
            TypeSelector::Cpu => return false,
            TypeSelector::Exact(profile_type) => &profile_type.sample.kind,
            TypeSelector::Kind(kind) => kind,
        };
        let mut profile_type = ProfileType::cpu();
        profile_type.sample.kind.clone_from(kind);
        profile_type.is_gauge()
    }

    /// The type to name in an answer that has no sample to tell.
    pub fn nominal(&self) -> ProfileType {
        match self {
            TypeSelector::Cpu => ProfileType::cpu(),
            TypeSelector::Exact(profile_type) => profile_type.clone(),
            TypeSelector::Kind(kind) => {
                let mut profile_type = ProfileType::cpu();
                profile_type.name.clone_from(kind);
                profile_type.sample.kind.clone_from(kind);
                profile_type.sample.unit.clear();
                profile_type.period = Default::default();
                profile_type
            }
        }
    }
}

impl Measure {
    /// Every type as it was sent.
    pub(crate) fn sent(info: &ProfileInfo) -> impl Iterator<Item = Measure> {
        (0..info.types.len()).map(|index| Measure {
            index,
            factor: 1,
            profile_type: info.profile_type(index),
        })
    }

    /// Every type that can be asked for, CPU by its rule first and each type once.
    pub(crate) fn all(info: &ProfileInfo) -> Vec<Measure> {
        let mut measures: Vec<Measure> = TypeSelector::Cpu.measure(info).into_iter().collect();
        for sent in Measure::sent(info) {
            if !measures.iter().any(|known| known.profile_type == sent.profile_type) {
                measures.push(sent);
            }
        }
        measures
    }

    /// What of `sample` lies in `range` (everything for `None`); `None` if nothing does.
    pub(crate) fn read(&self, info: &ProfileInfo, sample: &Sample, range: Option<TimeRange>) -> Option<Reading> {
        read(self.index, self.factor, info, sample, range)
    }

    /// The part of a sample's value that belongs to one of its times. The parts of all times add up to the value.
    pub(crate) fn read_moment(&self, info: &ProfileInfo, sample: &Sample, at: usize) -> i64 {
        let (values, times) = (&sample.values, sample.times.len());
        if values.is_empty() {
            return self.factor;
        }
        if info.types.len() == 1 && values.len() == times {
            return values[at].saturating_mul(self.factor);
        }
        let whole = i128::from(values.get(self.index).copied().unwrap_or(0)) * i128::from(self.factor);
        let until = |at: usize| (whole * at as i128).div_euclid(times as i128);
        (until(at + 1) - until(at)).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// The same for the value at `index` as it was sent.
    pub(crate) fn read_sent(index: usize, info: &ProfileInfo, sample: &Sample, range: Option<TimeRange>) -> Option<Reading> {
        read(index, 1, info, sample, range)
    }
}

fn read(index: usize, factor: i64, info: &ProfileInfo, sample: &Sample, range: Option<TimeRange>) -> Option<Reading> {
    let part = Part::of(info, sample, range)?;
    let scaled = |value: i64| value.saturating_mul(factor);
    let value = match (info.types.len(), sample.values.len(), sample.times.len()) {
        (_, 0, times) => Part::WHOLE.of_value(scaled(if times == 0 { 1 } else { part.times_inside as i64 })),
        (1, values, times) if values == times && times > 1 => {
            let inside = sample
                .times
                .iter()
                .zip(&sample.values)
                .filter(|(time, _)| range.is_none_or(|r| r.contains(**time)));
            Part::WHOLE.of_value(inside.fold(0_i64, |sum, (_, value)| sum.saturating_add(scaled(*value))))
        }
        _ => part.of_value(scaled(sample.values.get(index).copied().unwrap_or(0))),
    };
    Some(Reading {
        value,
        samples: observations(info, sample, part),
        prorated: part.prorated,
    })
}

/// The measure of the profile that was looked at last: samples of one profile come together, and finding the
/// measure compares and builds texts.
#[derive(Default)]
pub(crate) struct Recent(Option<(Arc<ProfileInfo>, Option<Arc<Measure>>)>);

impl Recent {
    /// How to read `selector` out of `info`, and whether that was worked out anew.
    pub(crate) fn measure(&mut self, selector: &TypeSelector, info: &Arc<ProfileInfo>) -> (Option<Arc<Measure>>, bool) {
        if let Some((recent, measure)) = &self.0
            && Arc::ptr_eq(recent, info)
        {
            return (measure.clone(), false);
        }
        let measure = selector.measure(info).map(Arc::new);
        self.0 = Some((info.clone(), measure.clone()));
        (measure, true)
    }
}

/// What one sample adds to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// In units of 2^-32.
    pub(crate) value: i128,
    /// Observations. Of a profile that only overlaps the range, all of them: it is them the estimate rests on.
    pub(crate) samples: u64,
    /// Its profile has no times and only overlaps the range.
    pub(crate) prorated: bool,
}

/// Fractional bits of a fixed-point value.
pub(crate) const FRACTION_BITS: u32 = 32;

/// The share of a sample that lies in a range.
#[derive(Clone, Copy)]
struct Part {
    /// In units of 2^-32, at most 1.
    share: u64,
    times_inside: u64,
    prorated: bool,
}

impl Part {
    const WHOLE: Part = Part {
        share: 1 << FRACTION_BITS,
        times_inside: 0,
        prorated: false,
    };

    fn of(info: &ProfileInfo, sample: &Sample, range: Option<TimeRange>) -> Option<Part> {
        let times = sample.times.len() as u64;
        let Some(range) = range else {
            return Some(Part {
                times_inside: times,
                ..Part::WHOLE
            });
        };
        if times > 0 {
            let times_inside = sample.times.iter().filter(|time| range.contains(**time)).count() as u64;
            return (times_inside > 0).then_some(Part {
                share: ratio(times_inside, times),
                times_inside,
                prorated: false,
            });
        }
        let whole = info.range();
        let overlap = whole.overlap(range)?;
        Some(Part {
            share: ratio(overlap.duration_ns(), whole.duration_ns()),
            times_inside: 0,
            prorated: overlap != whole,
        })
    }

    fn of_value(self, value: i64) -> i128 {
        i128::from(value) * i128::from(self.share)
    }
}

fn ratio(part: u64, whole: u64) -> u64 {
    ((u128::from(part) << FRACTION_BITS) / u128::from(whole.max(1))) as u64
}

/// How many observations a sample stands for: its times, else its count where the profile counts samples,
/// else its value over the period where both are in nanoseconds, else 1.
fn observations(info: &ProfileInfo, sample: &Sample, part: Part) -> u64 {
    if sample.times.len() > 1 || sample.values.is_empty() {
        return part.times_inside.max(1);
    }
    let value_at = |index: usize| sample.values.get(index).copied().unwrap_or(0);
    let number = match counted(info) {
        Some(index) => value_at(index),
        None => match (info.types.first(), info.period) {
            (Some(first), period) if first.is_nanoseconds() && info.period_type.is_nanoseconds() && period > 0 => {
                value_at(0).saturating_add(period / 2) / period
            }
            _ => 1,
        },
    };
    u64::try_from(number).unwrap_or(1).max(1)
}

/// Which of a profile's types says how often the profiler looked.
pub(crate) fn counted(info: &ProfileInfo) -> Option<usize> {
    let is_count = |t: &ValueType| t.unit == "count" && COUNT_KINDS.contains(&t.kind.as_str());
    info.types.iter().position(is_count)
}

/// Kinds whose count is the number of times the profiler looked.
const COUNT_KINDS: [&str; 6] = ["samples", "sample", "itimer", "perf_events", "cpu", "wall"];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spanflame_model::{Attributes, Resource, StackId, Timestamp};

    use super::*;

    fn info(types: &[(&str, &str)], period: i64) -> ProfileInfo {
        ProfileInfo {
            profile_id: None,
            name: String::new(),
            types: types.iter().map(|(kind, unit)| ValueType::new(*kind, *unit)).collect(),
            period_type: ValueType::new("cpu", "nanoseconds"),
            period,
            start: at(1000),
            duration_ns: 100,
            resource: Arc::new(Resource::new(Attributes::new())),
            scope: Arc::default(),
            attributes: Attributes::new(),
        }
    }

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_unix_nanos_signed(nanos).expect("not negative")
    }

    fn sample(values: &[i64], times: &[i64]) -> Sample {
        Sample {
            values: values.to_vec(),
            times: times.iter().map(|time| at(*time)).collect(),
            ..Sample::new(StackId(1))
        }
    }

    /// Value (rounded down), observations, prorated.
    fn check(info: &ProfileInfo, sample: &Sample, range: Option<(i64, i64)>, expected: Option<(i64, u64, bool)>) {
        let measure = TypeSelector::Cpu.measure(info).expect("measures cpu");
        let range = range.map(|(start, end)| TimeRange::new(at(start), at(end)).expect("start < end"));
        let reading = measure.read(info, sample, range);
        let rounded = reading.map(|r| (((r.value + (1 << 31)) >> FRACTION_BITS) as i64, r.samples, r.prorated));
        assert_eq!(rounded, expected);
    }

    #[test]
    fn cpu_is_the_nanoseconds_and_the_count_says_how_often() {
        let both = info(&[("samples", "count"), ("cpu", "nanoseconds")], 10);
        check(&both, &sample(&[3, 30], &[]), None, Some((30, 3, false)));
    }

    #[test]
    fn counts_are_multiplied_by_the_period() {
        let counts = info(&[("samples", "count")], 50);
        check(&counts, &sample(&[2], &[]), None, Some((100, 2, false)));
        check(&counts, &sample(&[], &[1001, 1002, 1050]), None, Some((150, 3, false)));
        check(&counts, &sample(&[], &[1001, 1002, 1050]), Some((1002, 1050)), Some((50, 1, false)));
    }

    #[test]
    fn values_that_pair_with_times_are_taken_one_by_one() {
        let cpu = info(&[("cpu", "nanoseconds")], 10);
        check(
            &cpu,
            &sample(&[7, 11, 13], &[1001, 1002, 1003]),
            Some((1002, 1004)),
            Some((24, 2, false)),
        );
    }

    #[test]
    fn one_value_for_several_times_is_split_evenly() {
        let cpu = info(&[("cpu", "nanoseconds")], 10);
        check(&cpu, &sample(&[30], &[1001, 1002, 1003]), Some((1003, 1004)), Some((10, 1, false)));
    }

    #[test]
    fn a_profile_without_times_counts_in_proportion() {
        let cpu = info(&[("cpu", "nanoseconds")], 10);
        check(&cpu, &sample(&[40], &[]), Some((1075, 2000)), Some((10, 4, true)));
        check(&cpu, &sample(&[40], &[]), Some((1000, 1100)), Some((40, 4, false)));
        check(&cpu, &sample(&[40], &[]), Some((1100, 2000)), None);
    }

    #[test]
    fn the_full_name_of_cpu_is_cpu() {
        let name = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        assert_eq!(name.parse::<TypeSelector>().expect("valid"), TypeSelector::Cpu);
        assert!(matches!("a:b".parse::<TypeSelector>(), Err(Error::Invalid { field: "type", .. })));
        assert!("inuse_space".parse::<TypeSelector>().expect("valid").is_gauge());
    }
}
