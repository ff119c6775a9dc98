//! A profile and its samples.

use std::sync::Arc;

use crate::{
    Attributes, CpuRule, Fingerprint, Hasher, Link, ProfileType, Resource, Scope, StackId, StackSet, Tenant, TimeRange, Timestamp, Value,
    ValueType, cpu_rule, default_name,
};

/// Samples that one process or host took over one stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What all samples share.
    pub info: Arc<ProfileInfo>,
    /// In the sender's order.
    pub samples: Vec<Sample>,
}

/// What all samples of a profile share.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileInfo {
    /// OTLP's `profile_id`, where the client sends one. Not the identity: that is [`Profile::fingerprint`].
    pub profile_id: Option<[u8; 16]>,
    /// What the sender calls the profile (`__name__`, `type=`); empty if it says nothing.
    pub name: String,
    /// What is measured; the values of every sample are parallel to this. Never empty.
    pub types: Vec<ValueType>,
    /// Between what two samples lie.
    pub period_type: ValueType,
    /// How far apart samples lie, in units of `period_type`; 0 if unknown.
    pub period: i64,
    /// When it began.
    pub start: Timestamp,
    /// How long it lasted, in nanoseconds; 0 for a state at an instant.
    pub duration_ns: u64,
    /// Who sent it: resource attributes, or the labels of a Pyroscope series.
    pub resource: Arc<Resource>,
    /// Which profiler made it.
    pub scope: Arc<Scope>,
    /// What belongs to the whole profile: attributes, pprof comments (`pprof.profile.comment`), drop frames.
    pub attributes: Attributes,
}

/// One stack, how often or how much, and for whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The stack; its frames are in the batch's [`StackSet`].
    pub stack: StackId,
    /// The span it is claimed for.
    pub link: Link,
    /// Parallel to the profile's types; for a single type with [`Sample::times`] as long as they are or one
    /// value in all. Empty where the client sends times only: each of them counts 1.
    pub values: Vec<i64>,
    /// When each observation was made, ascending; empty where the client does not say.
    pub times: Vec<Timestamp>,
    /// The thread's id.
    pub thread_id: Option<i64>,
    /// The thread's name.
    pub thread_name: Option<String>,
    /// The process.
    pub pid: Option<i64>,
    /// All other labels and attributes, sorted by key; keys may repeat.
    pub labels: Vec<Label>,
}

/// A label of a sample: a pprof label or an attribute of an OTLP sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The value's unit, empty if it has none.
    pub unit: String,
}

impl ProfileInfo {
    /// When it was taken. At least one nanosecond.
    pub fn range(&self) -> TimeRange {
        TimeRange::lasting(self.start, self.duration_ns)
    }

    /// The full type of the value at `index` among [`ProfileInfo::types`].
    pub fn profile_type(&self, index: usize) -> ProfileType {
        let sample = self.types[index].clone();
        let name = match self.name.as_str() {
            "" => default_name(&sample, &self.period_type),
            name => name.to_owned(),
        };
        ProfileType {
            name,
            sample,
            period: self.period_type.clone(),
        }
    }

    /// How to read CPU time out of its samples, if it measures that.
    pub fn cpu_rule(&self) -> Option<CpuRule> {
        cpu_rule(&self.types, &self.period_type, self.period)
    }
}

impl Profile {
    /// Identity: tenant, labels, times, types and samples as decoded. Independent of encoding, compression,
    /// the order of samples, and `profile_id`, which senders may assign anew on every retry.
    pub fn fingerprint(&self, tenant: &Tenant) -> Fingerprint {
        let info = &self.info;
        let mut h = Hasher::new();
        h.text(tenant.as_str());
        h.text(&info.name);
        for value_type in info.types.iter().chain([&info.period_type]) {
            h.text(&value_type.kind);
            h.text(&value_type.unit);
        }
        h.number(info.period as u64);
        h.number(info.start.unix_nanos() as u64);
        h.number(info.duration_ns);
        h.attributes(info.resource.attributes());
        h.attributes(&info.attributes);
        let mut samples: Vec<u128> = self.samples.iter().map(|s| s.fingerprint().0).collect();
        samples.sort_unstable();
        for sample in samples {
            h.number(sample as u64);
            h.number((sample >> 64) as u64);
        }
        h.finish()
    }

    /// Whether every stack it names is in `stacks`.
    pub fn is_complete(&self, stacks: &StackSet) -> bool {
        self.samples.iter().all(|sample| stacks.stack(sample.stack).is_some())
    }
}

impl Sample {
    /// A sample of `stack` and nothing else.
    pub fn new(stack: StackId) -> Sample {
        Sample {
            stack,
            link: Link::None,
            values: Vec::new(),
            times: Vec::new(),
            thread_id: None,
            thread_name: None,
            pid: None,
            labels: Vec::new(),
        }
    }

    /// How many observations it stands for: its times, else its count where the profile counts, else 1.
    pub fn observations(&self) -> u64 {
        self.times.len().max(1) as u64
    }

    fn fingerprint(&self) -> Fingerprint {
        let mut h = Hasher::new();
        h.number(self.stack.0);
        match &self.link {
            Link::None => h.number(0),
            Link::One { trace_id, span_id, claim } => {
                h.number(1 + *claim as u64);
                h.bytes(trace_id.as_ref().map_or(&[][..], |id| id.as_bytes()));
                h.bytes(span_id.as_ref().map_or(&[][..], |id| id.as_bytes()));
            }
            Link::Candidates { trace_ids, span_ids } => {
                h.number(9);
                h.number(trace_ids.len() as u64);
                trace_ids.iter().for_each(|id| h.bytes(id.as_bytes()));
                h.number(span_ids.len() as u64);
                span_ids.iter().for_each(|id| h.bytes(id.as_bytes()));
            }
        }
        h.number(self.values.len() as u64);
        self.values.iter().for_each(|value| h.number(*value as u64));
        h.number(self.times.len() as u64);
        self.times.iter().for_each(|time| h.number(time.unix_nanos() as u64));
        for number in [self.thread_id, self.pid] {
            h.number(u64::from(number.is_some()));
            h.number(number.unwrap_or(0) as u64);
        }
        h.text(self.thread_name.as_deref().unwrap_or_default());
        for label in &self.labels {
            h.text(&label.key);
            h.value(&label.value);
            h.text(&label.unit);
        }
        h.finish()
    }
}
