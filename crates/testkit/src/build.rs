//! Single spans, stacks and profiles in few words.

use std::sync::Arc;

use spanflame_model::{
    Attributes, Claim, Frame, Link, Profile, ProfileInfo, Resource, Sample, Span, SpanId, SpanKind, StackId, StackSet, StatusCode,
    Timestamp, TraceId, Value, ValueType,
};

/// A time, in nanoseconds since the epoch.
pub fn at(nanos: u64) -> Timestamp {
    Timestamp::from_unix_nanos(nanos).expect("a test stays before 2262")
}

/// The trace id with this number, which is not 0.
pub fn trace_id(number: u64) -> TraceId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    TraceId::from_bytes(bytes).expect("a test numbers traces from 1")
}

/// The span id with this number, which is not 0.
pub fn span_id(number: u64) -> SpanId {
    SpanId::from_u64(number).expect("a test numbers spans from 1")
}

/// A service with further resource attributes.
pub fn resource(service: &str, more: &[(&str, &str)]) -> Arc<Resource> {
    let pairs = [("service.name", service)].into_iter().chain(more.iter().copied());
    Arc::new(Resource::new(pairs.collect()))
}

/// Stacks by their text, root first: `main;serve;parse`.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// The frames and stacks so far.
    pub set: StackSet,
}

impl Stacks {
    /// The id of a stack.
    pub fn id(&mut self, text: &str) -> StackId {
        let frames: Vec<_> = text.rsplit(';').map(|name| self.set.add_frame(frame(name))).collect();
        self.set.add_stack(&frames)
    }

    /// The text of a stack.
    pub fn text(set: &StackSet, id: StackId) -> String {
        let frames = set.stack(id).map_or(&[][..], |frames| frames);
        let name = |id| set.frame(id).map_or("?".to_owned(), |frame| frame.display_name());
        frames.iter().rev().map(|id| name(*id)).collect::<Vec<_>>().join(";")
    }
}

fn frame(name: &str) -> Frame {
    Frame {
        function: name.to_owned(),
        file: "app.rs".to_owned(),
        line: name.len() as i64,
        ..Frame::default()
    }
}

/// A span under construction.
#[derive(Clone, Debug)]
pub struct SpanBuilder(Span);

impl SpanBuilder {
    /// Span `span` of trace `trace` in `service`, from 0 to 1 second.
    pub fn new(trace: u64, span: u64, service: &str) -> SpanBuilder {
        SpanBuilder(Span {
            trace_id: trace_id(trace),
            span_id: span_id(span),
            parent_span_id: None,
            trace_state: String::new(),
            flags: 0,
            name: format!("span {span}"),
            kind: SpanKind::Internal,
            start: Timestamp::ZERO,
            duration_ns: 1_000_000_000,
            status: StatusCode::Unset,
            status_message: String::new(),
            attributes: Attributes::new(),
            events: Vec::new(),
            links: Vec::new(),
            dropped: [0; 3],
            resource: resource(service, &[]),
            scope: Arc::default(),
        })
    }

    /// With a parent.
    pub fn parent(mut self, span: u64) -> SpanBuilder {
        self.0.parent_span_id = Some(span_id(span));
        self
    }

    /// With OTLP's flag that says where the parent ran.
    pub fn parent_is_remote(mut self, remote: bool) -> SpanBuilder {
        self.0.flags = Span::FLAG_HAS_IS_REMOTE | if remote { Span::FLAG_IS_REMOTE } else { 0 };
        self
    }

    /// Running from `start` for `duration_ns`.
    pub fn time(mut self, start: u64, duration_ns: u64) -> SpanBuilder {
        self.0.start = at(start);
        self.0.duration_ns = duration_ns;
        self
    }

    /// With a name.
    pub fn name(mut self, name: &str) -> SpanBuilder {
        self.0.name = name.to_owned();
        self
    }

    /// With a kind.
    pub fn kind(mut self, kind: SpanKind) -> SpanBuilder {
        self.0.kind = kind;
        self
    }

    /// With an outcome.
    pub fn status(mut self, status: StatusCode) -> SpanBuilder {
        self.0.status = status;
        self
    }

    /// With an attribute.
    pub fn attribute(mut self, key: &str, value: impl Into<Value>) -> SpanBuilder {
        self.0.attributes.insert(key, value);
        self
    }

    /// Sent by a resource.
    pub fn resource(mut self, resource: &Arc<Resource>) -> SpanBuilder {
        self.0.resource = resource.clone();
        self
    }

    /// The span.
    pub fn build(self) -> Span {
        self.0
    }
}

/// A profile under construction.
#[derive(Clone, Debug)]
pub struct ProfileBuilder {
    info: ProfileInfo,
    samples: Vec<Sample>,
}

impl ProfileBuilder {
    /// A CPU profile of `service` as pprof has it (samples/count, cpu/nanoseconds), from 0 to 1 second.
    pub fn cpu(service: &str, period_ns: i64) -> ProfileBuilder {
        let types = [("samples", "count"), ("cpu", "nanoseconds")];
        ProfileBuilder::of(service, &types, period_ns)
    }

    /// A CPU profile of `service` as OTLP has it: counts with times, and a period.
    pub fn timed(service: &str, period_ns: i64) -> ProfileBuilder {
        ProfileBuilder::of(service, &[("samples", "count")], period_ns)
    }

    /// A profile of other types, whose period is in CPU nanoseconds if it is not 0.
    pub fn of(service: &str, types: &[(&str, &str)], period_ns: i64) -> ProfileBuilder {
        let period_type = match period_ns {
            0 => ValueType::default(),
            _ => ValueType::new("cpu", "nanoseconds"),
        };
        ProfileBuilder {
            info: ProfileInfo {
                profile_id: None,
                name: String::new(),
                types: types.iter().map(|(kind, unit)| ValueType::new(*kind, *unit)).collect(),
                period_type,
                period: period_ns,
                start: Timestamp::ZERO,
                duration_ns: 1_000_000_000,
                resource: resource(service, &[]),
                scope: Arc::default(),
                attributes: Attributes::new(),
            },
            samples: Vec::new(),
        }
    }

    /// Taken from `start` for `duration_ns`.
    pub fn time(mut self, start: u64, duration_ns: u64) -> ProfileBuilder {
        self.info.start = at(start);
        self.info.duration_ns = duration_ns;
        self
    }

    /// Sent by a resource.
    pub fn resource(mut self, resource: &Arc<Resource>) -> ProfileBuilder {
        self.info.resource = resource.clone();
        self
    }

    /// With a sample.
    pub fn sample(mut self, stack: StackId, link: Link, values: &[i64]) -> ProfileBuilder {
        self.samples.push(Sample {
            link,
            values: values.to_vec(),
            ..Sample::new(stack)
        });
        self
    }

    /// With a sample observed at some times, in order.
    pub fn observed(mut self, stack: StackId, link: Link, times: &[u64]) -> ProfileBuilder {
        self.samples.push(Sample {
            link,
            times: times.iter().map(|nanos| at(*nanos)).collect(),
            ..Sample::new(stack)
        });
        self
    }

    /// With a sample that is complete.
    pub fn push(mut self, sample: Sample) -> ProfileBuilder {
        self.samples.push(sample);
        self
    }

    /// The profile.
    pub fn build(self) -> Profile {
        Profile {
            info: Arc::new(self.info),
            samples: self.samples,
        }
    }
}

/// A link to one span of a trace; trace 0 stands for a client that sends none.
pub fn link(trace: u64, span: u64, claim: Claim) -> Link {
    Link::One {
        trace_id: (trace != 0).then(|| trace_id(trace)),
        span_id: (span != 0).then(|| span_id(span)),
        claim,
    }
}
