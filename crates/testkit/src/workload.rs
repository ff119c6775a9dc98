//! Services whose threads interleave many requests, and the truth about what each span ran.
//!
//! Time advances in ticks of one sampling period. A request is a root span in the first service, with an inner
//! span in its process and a call to the next service, and so on. In every tick each thread of a service runs
//! one of the spans that are open in it then, or nothing: that is one observation. What the span's client would
//! report of it depends on the service's [`LinkStyle`]; what really ran, and what an exact answer must therefore
//! say, is written down at that moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use spanflame_model::{Batch, Claim, Link, Profile, Resource, Sample, Span, SpanId, SpanKind, StackId, TimeRange, TraceId};

use crate::build::{ProfileBuilder, SpanBuilder, Stacks, at, link, resource, span_id, trace_id};
use crate::cost::Cost;
use crate::random::Random;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Everything follows from it.
    pub seed: u64,
    /// When the first request begins, in nanoseconds since the epoch.
    pub start: u64,
    /// How many requests there are; a new one begins in every tick.
    pub requests: u64,
    /// The sampling period, in nanoseconds.
    pub period_ns: u64,
    /// Who calls whom: the first service calls the second, and so on.
    pub services: Vec<ServicePlan>,
    /// How many of 100 spans are never sent.
    pub missing_percent: u64,
    /// How many of 100 spans are sent after all profiles.
    pub late_percent: u64,
}

/// One service.
#[derive(Clone, Debug)]
pub struct ServicePlan {
    /// Its name.
    pub name: &'static str,
    /// How its profiler names spans.
    pub style: LinkStyle,
    /// Its samples carry times, as OTLP's do; otherwise they are added up per profile, as pprof's are.
    pub timed: bool,
    /// How far its profiler's clock is ahead of its tracer's, in nanoseconds.
    pub ahead_ns: u64,
}

/// How a profiler names the span that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkStyle {
    /// Trace and span, as claim `active`.
    Active,
    /// Trace and span as plain labels.
    Label,
    /// The local root only, and the key says so.
    LocalRoot,
    /// The span id only, as a plain label.
    SpanIdOnly,
    /// Half of the samples name two spans.
    Ambiguous,
    /// Not at all.
    Unlinked,
}

/// What is known about one span.
#[derive(Clone, Debug)]
pub struct SpanTruth {
    /// The span as its SDK reports it.
    pub span: Span,
    /// Whether it is ever sent.
    pub is_sent: bool,
    /// The span through which its process entered the trace.
    pub local_root: SpanId,
    /// What ran in it, whoever reports it.
    pub ran: Cost,
    /// What an exact answer in scope `span` says: what its service's profiler reports under its id.
    pub linked: Cost,
}

/// A simulated load.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What arrives, in this order.
    pub batches: Vec<Batch>,
    /// By span id, which is unique over all traces here.
    pub spans: BTreeMap<SpanId, SpanTruth>,
    /// What samples without any id hold, by service.
    pub unlinked: BTreeMap<String, Cost>,
    /// By trace: what its samples name for certain, received spans or not.
    pub by_trace: BTreeMap<TraceId, Cost>,
    /// Everything, by service.
    pub by_service: BTreeMap<String, Cost>,
    /// The time in which it happens.
    pub range: TimeRange,
}

/// Threads of every service: fewer than requests in flight, so that they interleave.
const THREADS: u64 = 3;
/// Ticks that one profile covers.
const PROFILE_TICKS: u64 = 64;
/// How long a request lasts in the first service, in ticks.
const REQUEST_TICKS: u64 = 24;

impl Plan {
    /// Three services with exact links and nothing wrong.
    pub fn exact(seed: u64) -> Plan {
        let service = |name, timed| ServicePlan {
            name,
            style: LinkStyle::Active,
            timed,
            ahead_ns: 0,
        };
        Plan {
            seed,
            start: 1_790_000_000_000_000_000,
            requests: 40,
            period_ns: 10_000_000,
            services: vec![service("frontend", true), service("cart", false), service("pricing", true)],
            missing_percent: 0,
            late_percent: 0,
        }
    }

    /// The same with another style of links everywhere.
    pub fn with_style(mut self, style: LinkStyle) -> Plan {
        self.services.iter_mut().for_each(|service| service.style = style);
        self
    }

    /// Simulates it.
    pub fn run(&self) -> Workload {
        let mut simulation = Simulation::new(self);
        (0..self.requests).for_each(|request| simulation.begin(request));
        let end = self.requests + REQUEST_TICKS + 1;
        (0..end).for_each(|tick| simulation.tick(tick));
        simulation.finish(end)
    }
}

/// A span while it runs: open in ticks `from..until`.
struct Open {
    id: u64,
    trace: u64,
    local_root: u64,
    service: usize,
    from: u64,
    until: u64,
}

struct Simulation<'a> {
    plan: &'a Plan,
    random: Random,
    stacks: Stacks,
    resources: Vec<Arc<Resource>>,
    open: Vec<Open>,
    spans: BTreeMap<SpanId, SpanTruth>,
    /// Per service and profile: what was observed.
    observed: BTreeMap<(usize, u64), Vec<Observation>>,
    unlinked: BTreeMap<String, Cost>,
    by_trace: BTreeMap<TraceId, Cost>,
    by_service: BTreeMap<String, Cost>,
}

struct Observation {
    stack: StackId,
    link: Link,
    thread: i64,
    time: u64,
}

impl<'a> Simulation<'a> {
    fn new(plan: &'a Plan) -> Simulation<'a> {
        Simulation {
            plan,
            random: Random::new(plan.seed),
            stacks: Stacks::default(),
            resources: plan.services.iter().map(|service| resource(service.name, &[])).collect(),
            open: Vec::new(),
            spans: BTreeMap::new(),
            observed: BTreeMap::new(),
            unlinked: BTreeMap::new(),
            by_trace: BTreeMap::new(),
            by_service: BTreeMap::new(),
        }
    }

    /// Two spans in each service: the one that serves, and one inside it, from which the next service is called.
    fn begin(&mut self, request: u64) {
        let trace = request + 1;
        let mut parent = None;
        for service in 0..self.plan.services.len() {
            let margin = 2 * service as u64;
            let (from, until) = (request + margin, request + REQUEST_TICKS - margin);
            let server = trace * 100 + 2 * service as u64;
            let inner = server + 1;
            let open = Open {
                id: server,
                trace,
                local_root: server,
                service,
                from,
                until,
            };
            self.span(open, parent);
            let open = Open {
                id: inner,
                trace,
                local_root: server,
                service,
                from: from + 1,
                until: until - 1,
            };
            self.span(open, Some(server));
            parent = Some(inner);
        }
    }

    fn span(&mut self, open: Open, parent: Option<u64>) {
        let is_server = open.id == open.local_root;
        let period_ns = self.plan.period_ns;
        let mut builder = SpanBuilder::new(open.trace, open.id, self.plan.services[open.service].name)
            .resource(&self.resources[open.service])
            .name(if is_server { "serve" } else { "inner" })
            .kind(if is_server { SpanKind::Server } else { SpanKind::Internal })
            .time(self.plan.start + open.from * period_ns, (open.until - open.from) * period_ns);
        if let Some(parent) = parent {
            builder = builder.parent(parent);
        }
        let truth = SpanTruth {
            span: builder.build(),
            is_sent: !self.random.percent(self.plan.missing_percent),
            local_root: span_id(open.local_root),
            ran: Cost::default(),
            linked: Cost::default(),
        };
        self.spans.insert(span_id(open.id), truth);
        self.open.push(open);
    }

    fn tick(&mut self, tick: u64) {
        for service in 0..self.plan.services.len() {
            for thread in 0..THREADS {
                let running: Vec<usize> = (0..self.open.len())
                    .filter(|index| {
                        let open = &self.open[*index];
                        open.service == service && (open.from..open.until).contains(&tick)
                    })
                    .collect();
                if running.is_empty() || self.random.percent(20) {
                    continue;
                }
                let chosen = running[self.random.below(running.len() as u64) as usize];
                let other = running[self.random.below(running.len() as u64) as usize];
                self.observe(tick, thread, chosen, other);
            }
        }
    }

    fn observe(&mut self, tick: u64, thread: u64, chosen: usize, other: usize) {
        let service = self.open[chosen].service;
        let plan = &self.plan.services[service];
        let (id, trace) = (self.open[chosen].id, self.open[chosen].trace);
        let function = self.random.below(4);
        let stack = self.stacks.id(&format!("main;{};span {};work {function}", plan.name, id % 100));
        let link = self.claim(plan.style, chosen, other);
        let value = self.plan.period_ns as i64;
        if let Some(truth) = self.spans.get_mut(&span_id(id)) {
            truth.ran.add(stack, value);
        }
        self.by_service.entry(plan.name.to_owned()).or_default().add(stack, value);
        match &link {
            Link::None => self.unlinked.entry(plan.name.to_owned()).or_default().add(stack, value),
            Link::Candidates { .. } => {}
            Link::One {
                span_id, trace_id: named, ..
            } => {
                // Without its span, an id alone leads to no trace.
                let owner = span_id.and_then(|span| self.spans.get_mut(&span));
                if let Some(truth) = owner {
                    if named.is_some() || truth.is_sent {
                        self.by_trace.entry(trace_id(trace)).or_default().add(stack, value);
                    }
                    truth.linked.add(stack, value);
                }
            }
        }
        let time = self.plan.start + tick * self.plan.period_ns + plan.ahead_ns;
        self.observed.entry((service, tick / PROFILE_TICKS)).or_default().push(Observation {
            stack,
            link,
            thread: thread as i64 + 1,
            time,
        });
    }

    fn claim(&mut self, style: LinkStyle, chosen: usize, other: usize) -> Link {
        let (open, other) = (&self.open[chosen], &self.open[other]);
        match style {
            LinkStyle::Active => link(open.trace, open.id, Claim::Active),
            LinkStyle::Label => link(open.trace, open.id, Claim::Label),
            LinkStyle::LocalRoot => link(open.trace, open.local_root, Claim::LocalRoot),
            LinkStyle::SpanIdOnly => link(0, open.id, Claim::Label),
            LinkStyle::Unlinked => Link::None,
            LinkStyle::Ambiguous if open.id == other.id || self.random.percent(50) => link(open.trace, open.id, Claim::Active),
            LinkStyle::Ambiguous => {
                let mut trace_ids = vec![trace_id(open.trace), trace_id(other.trace)];
                let mut span_ids = vec![span_id(open.id), span_id(other.id)];
                trace_ids.sort_unstable();
                trace_ids.dedup();
                span_ids.sort_unstable();
                Link::Candidates { trace_ids, span_ids }
            }
        }
    }

    fn finish(mut self, ticks: u64) -> Workload {
        let observed = std::mem::take(&mut self.observed);
        let mut batches: Vec<Batch> = observed
            .into_iter()
            .map(|((service, window), observations)| Batch {
                profiles: vec![self.profile(service, window, &observations)],
                stacks: self.stacks.set.clone(),
                ..Batch::default()
            })
            .collect();
        let (mut early, mut late) = (Batch::default(), Batch::default());
        for truth in self.spans.values().filter(|truth| truth.is_sent) {
            let batch = match self.random.percent(self.plan.late_percent) {
                true => &mut late,
                false => &mut early,
            };
            batch.spans.push(truth.span.clone());
        }
        batches.insert(0, early);
        batches.push(late);
        batches.retain(|batch| !batch.is_empty());
        Workload {
            batches,
            spans: self.spans,
            unlinked: self.unlinked,
            by_trace: self.by_trace,
            by_service: self.by_service,
            range: TimeRange::lasting(at(self.plan.start), ticks * self.plan.period_ns),
        }
    }

    fn profile(&self, service: usize, window: u64, observations: &[Observation]) -> Profile {
        let plan = &self.plan.services[service];
        let period = self.plan.period_ns as i64;
        let builder = match plan.timed {
            true => ProfileBuilder::timed(plan.name, period),
            false => ProfileBuilder::cpu(plan.name, period),
        };
        let start = self.plan.start + plan.ahead_ns + window * PROFILE_TICKS * self.plan.period_ns;
        let mut builder = builder
            .time(start, PROFILE_TICKS * self.plan.period_ns)
            .resource(&self.resources[service]);
        let mut groups: HashMap<(StackId, &Link, i64), Vec<u64>> = HashMap::new();
        for seen in observations {
            groups.entry((seen.stack, &seen.link, seen.thread)).or_default().push(seen.time);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|((stack, _, thread), times)| (*stack, *thread, times.clone()));
        for ((stack, link, thread), times) in groups {
            let count = times.len() as i64;
            builder = builder.push(Sample {
                link: link.clone(),
                values: if plan.timed { Vec::new() } else { vec![count, count * period] },
                times: if plan.timed {
                    times.iter().map(|time| at(*time)).collect()
                } else {
                    Vec::new()
                },
                thread_id: Some(thread),
                ..Sample::new(stack)
            });
        }
        builder.build()
    }
}

impl Workload {
    /// The descendants of a span and itself, sent or not.
    pub fn subtree(&self, root: SpanId) -> Vec<SpanId> {
        let mut found = vec![root];
        let mut next = 0;
        while next < found.len() {
            let parent = found[next];
            found.extend(
                self.spans
                    .values()
                    .filter(|truth| truth.span.parent_span_id == Some(parent))
                    .map(|truth| truth.span.span_id),
            );
            next += 1;
        }
        found
    }

    /// What an exact answer in scope `subtree` says, for a load of which every span is sent.
    pub fn linked_in_subtree(&self, root: SpanId) -> Cost {
        let mut cost = Cost::default();
        self.subtree(root)
            .iter()
            .filter_map(|span| self.spans.get(span))
            .for_each(|truth| cost.merge(&truth.linked));
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_loads() {
        let profiles = |seed| {
            Plan::exact(seed)
                .run()
                .batches
                .into_iter()
                .flat_map(|batch| batch.profiles)
                .collect::<Vec<_>>()
        };
        assert_eq!(profiles(1), profiles(1));
        assert_ne!(profiles(1), profiles(2));
    }

    #[test]
    fn requests_interleave_on_every_thread() {
        let load = Plan::exact(3).run();
        let profile = &load.batches[1].profiles[0];
        let mut spans_by_thread: BTreeMap<i64, Vec<SpanId>> = BTreeMap::new();
        for sample in &profile.samples {
            let thread = sample.thread_id.expect("every sample has a thread");
            spans_by_thread.entry(thread).or_default().extend(sample.link.span_id());
        }
        assert_eq!(spans_by_thread.len() as u64, THREADS);
        assert!(spans_by_thread.values().all(|spans| spans.len() > 10));
    }

    #[test]
    fn what_ran_is_what_the_profiles_hold() {
        let load = Plan::exact(4).run();
        let (mut ran, mut linked, mut held) = (Cost::default(), Cost::default(), 0);
        load.spans.values().for_each(|truth| ran.merge(&truth.ran));
        load.spans.values().for_each(|truth| linked.merge(&truth.linked));
        for sample in load
            .batches
            .iter()
            .flat_map(|batch| &batch.profiles)
            .flat_map(|profile| &profile.samples)
        {
            held += sample.values.first().copied().unwrap_or(0) as u64 + sample.times.len() as u64;
        }
        assert_eq!(ran, linked);
        assert_eq!(ran.total().samples, held);
        assert!(held > 400);
    }
}
