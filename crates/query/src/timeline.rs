//! Samples one by one: when each was taken, on which thread, in which span.
//!
//! The same samples as those of a profile, before they are added up by stack. A sample that stands for several
//! observations is several moments, among which its value is split so that they add up to it. Samples of profiles
//! without times have no place here and are counted. Pure: samples in, moments out; stacks are looked up afterwards.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use spanflame_model::{Hasher, Link, ProfileInfo, Sample, SpanId, StackId, TimeRange, Timestamp};
use spanflame_store::StoredSample;

use crate::measure::{Recent, TypeSelector};
use crate::profile::{ProfileAnswer, ProfileRequest};
use crate::window::{instance_of, pid_of};

/// Which samples to show.
#[derive(Clone, Debug)]
pub struct TimelineRequest {
    /// A span in one of its scopes, or a trace. Its `rows` do not matter.
    pub profile: ProfileRequest,
    /// How many moments at most: 1 to [`TimelineRequest::LIMIT_MAX`]. The earliest are kept.
    pub limit: usize,
}

impl TimelineRequest {
    /// The most moments of one answer.
    pub const LIMIT_MAX: usize = 100_000;
}

/// When what ran.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The profile of the same samples, those without times too; its frames are what `stacks` name.
    pub profile: ProfileAnswer,
    /// The time that is shown: what was asked for, else the spans', else the moments'. `None` without any of these.
    /// Where nothing was asked for, moments may lie outside of it: a sample belongs to the span it names.
    pub range: Option<TimeRange>,
    /// By service, process, thread.
    pub threads: Vec<TimelineThread>,
    /// Root first, indices into the frames of the profile; each once, in order.
    pub stacks: Vec<Vec<u32>>,
    /// By time, then thread.
    pub moments: Vec<Moment>,
    /// Spans that moments name, in order of id.
    pub spans: Vec<SpanId>,
    /// Observations whose profiles do not say when.
    pub without_time: u64,
    /// There are more moments than the limit.
    pub truncated: bool,
}

/// Where samples were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimelineThread {
    /// The service.
    pub service: String,
    /// Its instance, else its pod or container, else its host, if the profile says.
    pub instance: Option<String>,
    /// The process.
    pub process_id: Option<i64>,
    /// The thread.
    pub thread_id: Option<i64>,
    /// What it is called.
    pub thread_name: Option<String>,
}

/// One observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub time: Timestamp,
    /// Index into [`Timeline::threads`].
    pub thread: u32,
    /// Index into [`Timeline::stacks`].
    pub stack: u32,
    /// Its part of the sample's value.
    pub value: i64,
    /// Index into [`Timeline::spans`]; `None` where the sample names none, or several.
    pub span: Option<u32>,
}

/// The most threads of one answer; moments of further ones are left out, and the answer is truncated.
const THREADS_MAX: usize = 10_000;

/// The growing list of moments.
pub(crate) struct Moments {
    selector: TypeSelector,
    recent: Recent,
    range: Option<TimeRange>,
    limit: usize,
    threads: Vec<TimelineThread>,
    by_key: HashMap<ThreadKey, u32>,
    seen: Vec<Seen>,
    without_time: u64,
    truncated: bool,
    resource: Option<(Arc<ProfileInfo>, u128)>,
}

/// A thread that is told from others of its name by its resource. The name counts where there is no id.
#[derive(PartialEq, Eq, Hash)]
struct ThreadKey {
    resource: u128,
    process_id: Option<i64>,
    thread_id: Option<i64>,
    thread_name: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    time: Timestamp,
    thread: u32,
    stack: StackId,
    span: Option<SpanId>,
    value: i64,
}

impl Moments {
    pub(crate) fn new(selector: TypeSelector, range: Option<TimeRange>, limit: usize) -> Moments {
        Moments {
            selector,
            recent: Recent::default(),
            range,
            limit,
            threads: Vec::new(),
            by_key: HashMap::new(),
            seen: Vec::new(),
            without_time: 0,
            truncated: false,
            resource: None,
        }
    }

    /// Adds a sample that has a value of the wanted type in the range.
    pub(crate) fn add(&mut self, stored: &StoredSample) {
        let (info, sample) = (&stored.info, &stored.sample);
        let (Some(measure), _) = self.recent.measure(&self.selector, info) else {
            return;
        };
        if sample.times.is_empty() {
            let reading = measure.read(info, sample, self.range);
            self.without_time += reading.map_or(0, |reading| reading.samples);
            return;
        }
        let Some(thread) = self.thread(info, sample) else {
            self.truncated = true;
            return;
        };
        let span = match &sample.link {
            Link::One { span_id, .. } => *span_id,
            Link::None | Link::Candidates { .. } => None,
        };
        for (at, time) in sample.times.iter().enumerate() {
            if self.range.is_none_or(|range| range.contains(*time)) {
                self.seen.push(Seen {
                    time: *time,
                    thread,
                    stack: sample.stack,
                    span,
                    value: measure.read_moment(info, sample, at),
                });
            }
        }
        // Twice the limit, so that dropping the latest ones costs little for each.
        if self.seen.len() >= 2 * self.limit {
            self.keep_earliest();
        }
    }

    fn keep_earliest(&mut self) {
        if self.seen.len() > self.limit {
            self.seen.select_nth_unstable(self.limit);
            self.seen.truncate(self.limit);
            self.truncated = true;
        }
    }

    /// The index of a sample's thread; `None` if there are too many.
    fn thread(&mut self, info: &Arc<ProfileInfo>, sample: &Sample) -> Option<u32> {
        if !self.resource.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, info)) {
            let mut hasher = Hasher::new();
            hasher.attributes(info.resource.attributes());
            self.resource = Some((info.clone(), hasher.finish().0));
        }
        let process_id = sample.pid.or_else(|| pid_of(&info.resource));
        let thread_name = sample.thread_name.as_ref().filter(|name| !name.is_empty());
        let key = ThreadKey {
            resource: self.resource.as_ref().map_or(0, |(_, resource)| *resource),
            process_id,
            thread_id: sample.thread_id,
            thread_name: thread_name.filter(|_| sample.thread_id.is_none()).cloned(),
        };
        if let Some(index) = self.by_key.get(&key) {
            // A thread may be named late, or anew: the answer must not hang on the order of samples.
            let known = &mut self.threads[*index as usize].thread_name;
            if let Some(name) = thread_name.filter(|name| known.as_ref().is_none_or(|known| known > *name)) {
                *known = Some(name.clone());
            }
            return Some(*index);
        }
        let index = u32::try_from(self.threads.len()).ok()?;
        if self.threads.len() >= THREADS_MAX {
            return None;
        }
        self.threads.push(TimelineThread {
            service: info.resource.service().to_owned(),
            instance: instance_of(&info.resource),
            process_id,
            thread_id: sample.thread_id,
            thread_name: thread_name.cloned(),
        });
        self.by_key.insert(key, index);
        Some(index)
    }

    /// The answer, given the profile of the same samples.
    pub(crate) fn finish(mut self, profile: ProfileAnswer) -> Timeline {
        self.keep_earliest();
        let threads = self.order_threads();
        self.seen.iter_mut().for_each(|seen| seen.thread = threads[seen.thread as usize]);
        self.seen.sort_unstable();
        let spans: BTreeSet<SpanId> = self.seen.iter().filter_map(|seen| seen.span).collect();
        let spans: Vec<SpanId> = spans.into_iter().collect();
        let (stacks, stack_of) = paths(&profile, self.seen.iter().map(|seen| seen.stack));
        let moments: Vec<Moment> = self
            .seen
            .iter()
            .map(|seen| Moment {
                time: seen.time,
                thread: seen.thread,
                stack: stack_of[&seen.stack],
                value: seen.value,
                span: seen.span.and_then(|span| spans.binary_search(&span).ok()).map(|index| index as u32),
            })
            .collect();
        Timeline {
            range: profile.range.or_else(|| bounds(&moments)),
            profile,
            threads: self.threads,
            stacks,
            moments,
            spans,
            without_time: self.without_time,
            truncated: self.truncated,
        }
    }

    /// Sorts the threads that are left; the answer maps old to new indices.
    fn order_threads(&mut self) -> Vec<u32> {
        let used: BTreeSet<u32> = self.seen.iter().map(|seen| seen.thread).collect();
        let mut order: Vec<u32> = used.into_iter().collect();
        order.sort_by_key(|index| &self.threads[*index as usize]);
        let mut new = vec![0; self.threads.len()];
        order.iter().enumerate().for_each(|(at, old)| new[*old as usize] = at as u32);
        self.threads = order.iter().map(|old| self.threads[*old as usize].clone()).collect();
        new
    }
}

/// Stacks as they are shown, each once, and which of them every stack is: stacks that differ only in lines are one.
fn paths(profile: &ProfileAnswer, stacks: impl Iterator<Item = StackId>) -> (Vec<Vec<u32>>, HashMap<StackId, u32>) {
    let frames = profile.tree.frame_index();
    let path_of: HashMap<StackId, Vec<u32>> = stacks
        .collect::<BTreeSet<StackId>>()
        .into_iter()
        .map(|stack| (stack, frames.path(stack, &profile.stacks)))
        .collect();
    let paths: BTreeSet<&Vec<u32>> = path_of.values().collect();
    let number: BTreeMap<&Vec<u32>, u32> = paths.iter().enumerate().map(|(number, path)| (*path, number as u32)).collect();
    let stack_of = path_of.iter().map(|(stack, path)| (*stack, number[path])).collect();
    (paths.into_iter().cloned().collect(), stack_of)
}

fn bounds(moments: &[Moment]) -> Option<TimeRange> {
    let (first, last) = (moments.first()?.time, moments.last()?.time);
    Some(TimeRange::lasting(first, last.nanos_since(first) + 1))
}

#[cfg(test)]
mod tests;
