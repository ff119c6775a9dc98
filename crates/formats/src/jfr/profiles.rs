//! Observations on their way to profiles: one for each kind and period.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use spanflame_model::{Attributes, Label, Link, Profile, ProfileInfo, Resource, Sample, StackId, Timestamp, ValueType};

use super::symbols::Thread;
use crate::links::{self, label_bytes};
use crate::stacks::StackBuilder;
use crate::{Decoded, Limits, Reason, Rejects, Upload};

/// What was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Cpu,
    Wall,
    AllocInNewTlab,
    AllocOutsideTlab,
    AllocSample,
    Live,
    MonitorEnter,
    ThreadPark,
}

impl Kind {
    /// Name, types, and what the period is.
    fn row(self, period: i64) -> (&'static str, Vec<ValueType>, ValueType) {
        let (name, types, period): (_, &[(&str, &str)], _) = match self {
            // Without a period it is not known how much time a sample stands for.
            Kind::Cpu if period == 0 => ("", &[("samples", "count")], ("", "")),
            Kind::Wall if period == 0 => ("wall", &[("samples", "count")], ("", "")),
            Kind::Cpu => ("process_cpu", &[("samples", "count")], ("cpu", "nanoseconds")),
            Kind::Wall => ("wall", &[("wall", "nanoseconds")], ("wall", "nanoseconds")),
            Kind::AllocInNewTlab => (
                "memory",
                &[("alloc_in_new_tlab_objects", "count"), ("alloc_in_new_tlab_bytes", "bytes")],
                ("space", "bytes"),
            ),
            Kind::AllocOutsideTlab => (
                "memory",
                &[("alloc_outside_tlab_objects", "count"), ("alloc_outside_tlab_bytes", "bytes")],
                ("space", "bytes"),
            ),
            Kind::AllocSample => (
                "memory",
                &[("alloc_sample_objects", "count"), ("alloc_sample_bytes", "bytes")],
                ("space", "bytes"),
            ),
            Kind::Live => ("memory", &[("live", "count")], ("objects", "count")),
            Kind::MonitorEnter => ("mutex", &[("contentions", "count"), ("delay", "nanoseconds")], ("mutex", "count")),
            Kind::ThreadPark => ("block", &[("contentions", "count"), ("delay", "nanoseconds")], ("block", "count")),
        };
        let types = types.iter().map(|(kind, unit)| ValueType::new(*kind, *unit));
        (name, types.collect(), ValueType::new(period.0, period.1))
    }
}

/// One event.
#[derive(Debug)]
pub(super) struct Observation {
    pub(super) stack: StackId,
    pub(super) thread: Thread,
    pub(super) link: Link,
    /// Sorted by key; equal ones are one.
    pub(super) labels: Arc<[Label]>,
    pub(super) time: Timestamp,
}

/// What observations have in common that become one sample.
#[derive(PartialEq, Eq, Hash)]
struct Same {
    stack: StackId,
    thread: Thread,
    link: Link,
    /// Address of the labels.
    labels: usize,
}

/// Threads write into buffers of their own, so events are not in order.
fn sort_times(sample: &mut Sample) {
    if sample.values.len() == sample.times.len() && sample.times.len() > 1 {
        let mut pairs: Vec<(Timestamp, i64)> = sample.times.drain(..).zip(sample.values.drain(..)).collect();
        pairs.sort_by_key(|(time, _)| *time);
        (sample.times, sample.values) = pairs.into_iter().unzip();
    } else {
        sample.times.sort_unstable();
    }
}

/// The samples of one profile.
#[derive(Default)]
struct Group {
    samples: Vec<Sample>,
    /// Position of the sample that further observations join.
    index: HashMap<Same, usize>,
}

/// Collects the observations of a file.
pub(super) struct Collector<'a> {
    pub(super) builder: StackBuilder<'a>,
    pub(super) rejects: Rejects,
    pub(super) limits: &'a Limits,
    /// Where the recording does not say how far apart its samples lie.
    pub(super) period_ns: i64,
    upload: &'a Upload,
    groups: BTreeMap<(Kind, i64), Group>,
    /// Labels by context, span name and state of the thread.
    pub(super) label_sets: HashMap<(i64, i64, String), Arc<[Label]>>,
    start: Option<Timestamp>,
    end: Timestamp,
}

impl<'a> Collector<'a> {
    pub(super) fn new(upload: &'a Upload, limits: &'a Limits) -> Collector<'a> {
        Collector {
            builder: StackBuilder::new(limits),
            rejects: Rejects::new(),
            limits,
            period_ns: upload.period.max(0),
            upload,
            groups: BTreeMap::new(),
            label_sets: HashMap::new(),
            start: None,
            end: Timestamp::ZERO,
        }
    }

    /// Whether no chunk was read.
    pub(super) fn is_empty(&self) -> bool {
        self.start.is_none()
    }

    /// A chunk covers this time.
    pub(super) fn cover(&mut self, start: Timestamp, duration_ns: u64) {
        self.start = Some(self.start.map_or(start, |earlier| earlier.min(start)));
        self.end = self.end.max(start.saturating_add(duration_ns));
    }

    /// Adds an observation that stands for `times` periods. Equal ones become one sample with a list of times.
    pub(super) fn add_times(&mut self, kind: Kind, period: i64, observation: Observation, times: i64) -> Result<(), Reason> {
        let value = match kind {
            Kind::Wall if period > 0 => Some(period.saturating_mul(times)),
            _ => None,
        };
        let same = Same {
            stack: observation.stack,
            thread: observation.thread.clone(),
            link: observation.link.clone(),
            labels: observation.labels.as_ptr().addr(),
        };
        self.builder.budget.take(size_of::<Timestamp>() + size_of::<i64>())?;
        let time = observation.time;
        let known = self.groups.get(&(kind, period)).and_then(|group| group.index.get(&same)).copied();
        let at = match known {
            Some(at) => at,
            None => {
                let at = self.push(kind, period, observation)?;
                self.groups.entry((kind, period)).or_default().index.insert(same, at);
                at
            }
        };
        let group = self.groups.entry((kind, period)).or_default();
        let sample = &mut group.samples[at];
        sample.times.push(time);
        sample.values.extend(value);
        Ok(())
    }

    /// Adds an observation with values of its own.
    pub(super) fn add_values(&mut self, kind: Kind, period: i64, observation: Observation, values: Vec<i64>) -> Result<(), Reason> {
        let time = observation.time;
        let at = self.push(kind, period, observation)?;
        let sample = &mut self.groups.entry((kind, period)).or_default().samples[at];
        sample.values = values;
        sample.times.push(time);
        Ok(())
    }

    fn push(&mut self, kind: Kind, period: i64, observation: Observation) -> Result<usize, Reason> {
        let group = self.groups.entry((kind, period)).or_default();
        if group.samples.len() >= self.limits.samples_per_profile_max {
            return Err(Reason::TooManySamples);
        }
        let name_bytes = observation.thread.name.as_ref().map_or(0, String::len);
        let label_bytes: usize = observation.labels.iter().map(label_bytes).sum();
        // What tells equal samples apart holds the name again.
        self.builder.budget.take(2 * (size_of::<Sample>() + name_bytes) + label_bytes)?;
        let link = match observation.link {
            Link::None => links::from_labels(&observation.labels),
            link => link,
        };
        group.samples.push(Sample {
            link,
            thread_id: observation.thread.id,
            thread_name: observation.thread.name,
            labels: observation.labels.to_vec(),
            ..Sample::new(observation.stack)
        });
        Ok(group.samples.len() - 1)
    }

    /// The profiles, by kind.
    pub(super) fn finish(self) -> Decoded {
        let resource = Arc::new(Resource::new(self.upload.resource.clone()));
        let scope = Arc::new(self.upload.scope.clone());
        let start = self.start.unwrap_or_default();
        let mut decoded = Decoded::default();
        for ((kind, period), mut group) in self.groups {
            group.samples.iter_mut().for_each(sort_times);
            // Events may end after the header of an unfinished chunk says, and begin before: waits are written at their end.
            let times = || group.samples.iter().flat_map(|sample| &sample.times).copied();
            let start = times().min().map_or(start, |first| first.min(start));
            let end = times().max().map_or(self.end, |last| self.end.max(last.saturating_add(1)));
            let (name, types, period_type) = kind.row(period);
            let info = ProfileInfo {
                profile_id: None,
                name: name.to_owned(),
                types,
                period_type,
                period,
                start,
                duration_ns: end.nanos_since(start),
                resource: Arc::clone(&resource),
                scope: Arc::clone(&scope),
                attributes: Attributes::new(),
            };
            decoded.batch.profiles.push(Profile {
                info: Arc::new(info),
                samples: group.samples,
            });
        }
        decoded.batch.stacks = self.builder.set;
        decoded.rejects = self.rejects;
        decoded
    }
}
