//! Batches from a seed, with everything in them that the model allows.

use std::sync::Arc;

use spanflame_model::{
    Attributes, Batch, Claim, Fingerprint, Frame, Label, Link, Profile, ProfileInfo, Resource, Sample, Scope, Span, SpanEvent, SpanId,
    SpanKind, SpanLink, StackId, StackSet, StatusCode, Tenant, Timestamp, TraceId, Value, ValueType,
};

/// First instant of what is made.
pub(crate) const EPOCH: u64 = 1_790_000_000_000_000_000;
/// Length of the time over which it is spread.
pub(crate) const SPREAD_NS: u64 = 600_000_000_000;
/// Number of different traces; the spans of one come in several batches.
const TRACES: u64 = 30;

/// A sequence of numbers that looks random (xorshift64*).
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Seeded {
        Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn time(&mut self) -> Timestamp {
        at(EPOCH + self.below(SPREAD_NS))
    }

    fn text(&mut self) -> String {
        ["", "a", "cart", "a \"quoted\"\n line", "gr\u{fc}n", "$map"][self.below(6) as usize].to_owned()
    }

    fn value(&mut self, depth: u64) -> Value {
        let kinds = if depth > 3 { 6 } else { 9 };
        match self.below(kinds) {
            0 | 1 => Value::Str(self.text()),
            2 => Value::Int(self.number() as i64),
            3 => Value::Double([0.1, -0.0, 1e300, 3.0, f64::INFINITY][self.below(5) as usize]),
            4 => Value::Bool(self.chance(50)),
            5 => Value::Bytes(self.number().to_be_bytes()[..self.below(8) as usize].to_vec()),
            6 => Value::Array((0..self.below(4)).map(|_| self.value(depth + 1)).collect()),
            _ => {
                let key = |n: u64| ["$bytes", "$map", "k", "k", ""][n as usize].to_owned();
                Value::Map((0..self.below(3)).map(|_| (key(self.below(5)), self.value(depth + 1))).collect())
            }
        }
    }

    fn attributes(&mut self) -> Attributes {
        (0..self.below(6))
            .map(|_| (format!("key-{}", self.below(8)), self.value(0)))
            .collect()
    }

    pub(crate) fn trace(&mut self) -> TraceId {
        trace(self.below(TRACES))
    }

    pub(crate) fn span_id(&mut self) -> SpanId {
        SpanId::from_u64(1 + self.below(200)).expect("not zero")
    }

    fn resource(&mut self) -> Arc<Resource> {
        let mut attributes = self.attributes();
        attributes.insert("service.name", format!("svc-{}", self.below(3)));
        Arc::new(Resource::new(attributes))
    }

    fn scope(&mut self) -> Arc<Scope> {
        if self.chance(50) {
            return Arc::new(Scope::default());
        }
        Arc::new(Scope {
            name: self.text(),
            version: self.text(),
            attributes: self.attributes(),
        })
    }

    fn span(&mut self, resource: &Arc<Resource>, scope: &Arc<Scope>) -> Span {
        Span {
            trace_id: self.trace(),
            span_id: self.span_id(),
            parent_span_id: self.chance(60).then(|| self.span_id()),
            trace_state: self.text(),
            flags: self.below(0x400) as u32,
            name: format!("operation-{}", self.below(5)),
            kind: SpanKind::ALL[self.below(6) as usize],
            start: self.time(),
            duration_ns: self.below(3) * self.below(50_000_000_000),
            status: StatusCode::ALL[self.below(3) as usize],
            status_message: self.text(),
            attributes: self.attributes(),
            events: (0..self.below(3)).map(|_| self.event()).collect(),
            links: (0..self.below(2)).map(|_| self.span_link()).collect(),
            dropped: [self.below(2) as u32, self.below(2) as u32, self.below(2) as u32],
            resource: Arc::clone(resource),
            scope: Arc::clone(scope),
        }
    }

    fn event(&mut self) -> SpanEvent {
        SpanEvent {
            time: self.time(),
            name: self.text(),
            attributes: self.attributes(),
            dropped: self.below(2) as u32,
        }
    }

    fn span_link(&mut self) -> SpanLink {
        SpanLink {
            trace_id: self.trace(),
            span_id: self.span_id(),
            trace_state: self.text(),
            attributes: self.attributes(),
            dropped: self.below(2) as u32,
            flags: self.below(4) as u32,
        }
    }

    fn link(&mut self) -> Link {
        match self.below(10) {
            0 | 1 => Link::None,
            2 => Link::Candidates {
                trace_ids: sorted((0..self.below(3)).map(|_| self.trace()).collect()),
                span_ids: sorted((0..1 + self.below(3)).map(|_| self.span_id()).collect()),
            },
            3 | 4 => Link::One {
                trace_id: None,
                span_id: Some(self.span_id()),
                claim: Claim::Label,
            },
            5 => Link::One {
                trace_id: Some(self.trace()),
                span_id: None,
                claim: Claim::LocalRoot,
            },
            _ => Link::One {
                trace_id: Some(self.trace()),
                span_id: Some(self.span_id()),
                claim: Claim::Active,
            },
        }
    }

    fn stack(&mut self, stacks: &mut StackSet) -> StackId {
        let mut frame = |n: u64| {
            stacks.add_frame(Frame {
                function: format!("f{n}"),
                line: n as i64,
                address: n.is_multiple_of(3).then_some(u64::MAX - n),
                inlined: n.is_multiple_of(2),
                ..Frame::default()
            })
        };
        let frames: Vec<_> = (0..self.below(5)).map(|_| frame(self.below(20))).collect();
        stacks.add_stack(&frames)
    }

    fn sample(&mut self, stacks: &mut StackSet) -> Sample {
        let mut times: Vec<Timestamp> = (0..self.below(4)).map(|_| self.time()).collect();
        times.sort();
        let mut labels: Vec<Label> = (0..self.below(3)).map(|_| self.label()).collect();
        labels.sort_by(|a, b| a.key.cmp(&b.key));
        Sample {
            stack: self.stack(stacks),
            link: self.link(),
            values: (0..self.below(3)).map(|_| self.number() as i64).collect(),
            times,
            thread_id: self.chance(50).then(|| self.number() as i64),
            thread_name: self.chance(50).then(|| self.text()),
            pid: self.chance(50).then(|| self.below(9) as i64),
            labels,
        }
    }

    fn label(&mut self) -> Label {
        Label {
            key: self.text(),
            value: self.value(0),
            unit: self.text(),
        }
    }

    fn profile(&mut self, stacks: &mut StackSet) -> Profile {
        let info = ProfileInfo {
            profile_id: self.chance(50).then(|| (1 + u128::from(self.number())).to_be_bytes()),
            name: self.text(),
            types: vec![ValueType::new("samples", "count"), ValueType::new("cpu", self.text())],
            period_type: ValueType::new("cpu", "nanoseconds"),
            period: self.below(1000) as i64,
            start: self.time(),
            duration_ns: self.below(2) * self.below(20_000_000_000),
            resource: self.resource(),
            scope: self.scope(),
            attributes: self.attributes(),
        };
        Profile {
            info: Arc::new(info),
            samples: (0..1 + self.below(40)).map(|_| self.sample(stacks)).collect(),
        }
    }

    /// Up to 60 spans of two senders and one to three profiles.
    pub(crate) fn batch(&mut self) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..2 {
            let (resource, scope) = (self.resource(), self.scope());
            batch.spans.extend((0..self.below(30)).map(|_| self.span(&resource, &scope)));
        }
        batch.profiles = (0..1 + self.below(3)).map(|_| self.profile(&mut batch.stacks)).collect();
        batch
    }
}

/// The `n`th trace.
pub(crate) fn trace(n: u64) -> TraceId {
    let spread = u128::from(n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    TraceId::from_bytes(spread.to_be_bytes()).expect("not zero")
}

/// An instant.
pub(crate) fn at(nanos: u64) -> Timestamp {
    Timestamp::from_unix_nanos(nanos).expect("before 2262")
}

/// A tenant.
pub(crate) fn tenant(name: &str) -> Tenant {
    name.parse().expect("a name")
}

/// The fingerprints of a batch's profiles.
pub(crate) fn hashes(tenant: &Tenant, batch: &Batch) -> Vec<Fingerprint> {
    batch.profiles.iter().map(|profile| profile.fingerprint(tenant)).collect()
}

fn sorted<T: Ord>(mut ids: Vec<T>) -> Vec<T> {
    ids.sort();
    ids.dedup();
    ids
}
