//! A window as a batch of the model: names for addresses, links for spans.

use std::sync::Arc;

use spanflame_model::{Attributes, Batch, Claim, Link, Profile, ProfileInfo, Resource, Sample, Scope, StackId, ValueType};

use crate::resolve::Resolver;
use crate::window::{Key, Window};

/// What all profiles of this process have in common.
pub(crate) struct ProfileBuilder {
    /// Without the process id, which the model keeps on samples.
    pub(crate) resource: Arc<Resource>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) period_ns: u64,
    pub(crate) resolver: Resolver,
}

impl ProfileBuilder {
    /// The window's one profile: `samples/count` with a CPU period, one time per observation.
    pub(crate) fn batch(&mut self, window: Window) -> Batch {
        let mut batch = Batch::default();
        let stacks: Vec<StackId> = window.stacks.iter().map(|stack| self.stack(&window, stack, &mut batch)).collect();
        let info = Arc::new(self.info(&window));
        let names = window.thread_names;
        let mut samples: Vec<Sample> = Vec::with_capacity(window.samples.len());
        for (key, mut times) in window.samples {
            times.sort_unstable();
            samples.push(Sample {
                link: link(&key),
                times,
                pid: Some(std::process::id().into()),
                thread_id: Some(key.tid.into()),
                thread_name: names.get(&key.tid).map(|name| name.to_string()),
                ..Sample::new(stacks[key.stack])
            });
        }
        batch.profiles.push(Profile { info, samples });
        batch
    }

    fn stack(&mut self, window: &Window, addresses: &[u64], batch: &mut Batch) -> StackId {
        let mut frames = Vec::with_capacity(addresses.len());
        for address in addresses {
            self.resolver.frames(&window.modules, *address, &mut batch.stacks, &mut frames);
        }
        batch.stacks.add_stack(&frames)
    }

    fn info(&self, window: &Window) -> ProfileInfo {
        ProfileInfo {
            profile_id: None,
            name: String::new(),
            types: vec![ValueType::new("samples", "count")],
            period_type: ValueType::new("cpu", "nanoseconds"),
            period: i64::try_from(self.period_ns).unwrap_or(i64::MAX),
            start: window.start,
            duration_ns: window.end.nanos_since(window.start),
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            attributes: Attributes::new(),
        }
    }
}

fn link(key: &Key) -> Link {
    match key.span {
        None => Link::None,
        Some((trace_id, span_id)) => Link::One {
            trace_id: Some(trace_id),
            span_id: Some(span_id),
            claim: Claim::Active,
        },
    }
}
