//! What was sampled in some seconds, as addresses.

use std::collections::HashMap;
use std::sync::Arc;

use spanflame_model::{SpanId, Timestamp, TraceId};

use crate::sampler::Module;

/// Observations a window holds; further ones are dropped and counted. At 100 Hz and two seconds that is 300
/// busy threads.
const OBSERVATIONS_MAX: usize = 65_536;

/// Samples grouped by stack, span and thread.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    /// Addresses of each stack, leaf first, as [`Key::stack`] counts them.
    pub(crate) stacks: Vec<Arc<[u64]>>,
    pub(crate) samples: HashMap<Key, Vec<Timestamp>>,
    pub(crate) thread_names: HashMap<i32, Arc<str>>,
    /// Where the addresses lie; as of the end of the window.
    pub(crate) modules: Arc<[Module]>,
    /// Times in all samples together.
    pub(crate) observations: usize,
    stack_index: HashMap<Arc<[u64]>, usize>,
}

/// What the observations of one sample have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) tid: i32,
    pub(crate) span: Option<(TraceId, SpanId)>,
    pub(crate) stack: usize,
}

/// One expiry of a thread's timer.
#[derive(Debug)]
pub(crate) struct Observation<'a> {
    pub(crate) tid: i32,
    pub(crate) time: Timestamp,
    pub(crate) span: Option<(TraceId, SpanId)>,
    /// Periods that passed since the expiry before, normally 1.
    pub(crate) weight: usize,
    pub(crate) stack: &'a [u64],
}

impl Window {
    pub(crate) fn new(start: Timestamp) -> Window {
        Window {
            start,
            end: start,
            stacks: Vec::new(),
            samples: HashMap::new(),
            thread_names: HashMap::new(),
            modules: Arc::new([]),
            observations: 0,
            stack_index: HashMap::new(),
        }
    }

    /// `false` if the window is full; the observation is then lost.
    pub(crate) fn add(&mut self, observation: &Observation<'_>) -> bool {
        if self.observations + observation.weight > OBSERVATIONS_MAX {
            return false;
        }
        let stack = match self.stack_index.get(observation.stack) {
            Some(known) => *known,
            None => self.add_stack(observation.stack.into()),
        };
        let key = Key {
            tid: observation.tid,
            span: observation.span,
            stack,
        };
        let times = self.samples.entry(key).or_default();
        times.extend(std::iter::repeat_n(observation.time, observation.weight));
        self.observations += observation.weight;
        true
    }

    fn add_stack(&mut self, stack: Arc<[u64]>) -> usize {
        let index = self.stacks.len();
        self.stacks.push(stack.clone());
        self.stack_index.insert(stack, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(tid: i32, weight: usize, stack: &[u64]) -> Observation<'_> {
        Observation {
            tid,
            time: Timestamp::ZERO,
            span: None,
            weight,
            stack,
        }
    }

    #[test]
    fn equal_stacks_of_one_thread_and_span_become_one_sample() {
        let mut window = Window::new(Timestamp::ZERO);
        for (tid, stack) in [(1, &[5, 6][..]), (1, &[5, 6]), (2, &[5, 6]), (1, &[5])] {
            assert!(window.add(&observation(tid, 1, stack)));
        }
        assert_eq!((window.stacks.len(), window.samples.len(), window.observations), (2, 3, 4));
    }

    #[test]
    fn a_full_window_refuses_more() {
        let mut window = Window::new(Timestamp::ZERO);
        assert!(window.add(&observation(1, OBSERVATIONS_MAX, &[5])));
        assert!(!window.add(&observation(1, 1, &[5])));
        assert_eq!(window.observations, OBSERVATIONS_MAX);
    }
}
