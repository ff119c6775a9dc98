//! The events of a chunk that are observations, and the settings that say how they were made.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use spanflame_model::{Claim, Label, Link, SpanId, TraceId};

use super::FORMAT;
use super::chunk::Chunk;
use super::cursor::{Broken, Cursor};
use super::labels::Labels;
use super::metadata::{Metadata, TypeIndex};
use super::pools::Pools;
use super::profiles::{Collector, Kind, Observation};
use super::symbols::Symbols;
use super::value::{Value, ValueReader};
use crate::budget::Budget;
use crate::links::label_bytes;
use crate::{Error, Reason, Subject};

/// What async-profiler means by an interval of 0.
const CPU_INTERVAL_DEFAULT_NS: i64 = 10_000_000;
const WALL_INTERVAL_DEFAULT_NS: i64 = 50_000_000;

/// Longest name of a thread's state; those of the JVM are shorter.
const STATE_CHARS_MAX: usize = 64;

/// Adds the observations of a chunk to `collector`. Fails if its tables cannot be read; an event that cannot be read
/// costs itself.
pub(super) fn read(chunk: &Chunk<'_>, labels: &Labels, collector: &mut Collector<'_>) -> Result<(), Error> {
    let limits = collector.limits;
    let malformed = |broken: Broken| match broken {
        Broken::Expansion => Error::TooLarge {
            what: "bytes of values",
            max: limits.expanded_bytes_max,
        },
        broken => Error::malformed(FORMAT, broken),
    };
    let metadata = Metadata::read(chunk).map_err(malformed)?;
    let budget = Budget::new(limits);
    let mut reader = ValueReader::new(chunk, &metadata, &budget);
    let pools = Pools::read(chunk, &mut reader).map_err(malformed)?;
    let settings = Settings::read(chunk, &mut reader, &pools);
    let mut events = EventReader {
        chunk,
        labels,
        settings,
        types: HashMap::new(),
        symbols: Symbols::new(&pools),
        reader,
    };
    collector.cover(chunk.start, chunk.duration_ns);
    for (at, event) in chunk.events().enumerate() {
        let added = match event {
            Ok(event) => events.event(event, collector),
            Err(broken) => Err((Reason::Malformed, broken.to_string())),
        };
        if let Err((reason, text)) = added {
            collector.rejects.add(Subject::Sample, reason, || format!("event {at}: {text}"));
        }
    }
    Ok(())
}

/// How the recording was made.
#[derive(Debug, Default)]
struct Settings {
    /// What async-profiler sampled: `cpu`, `itimer`, `wall`, ..; empty for a recording of the JDK.
    event: String,
    interval_ns: Option<i64>,
    wall_interval_ns: Option<i64>,
    alloc_interval_bytes: i64,
    /// Of the JDK: how far apart execution samples lie.
    period_ns: Option<i64>,
}

impl Settings {
    fn read<'a>(chunk: &Chunk<'a>, reader: &mut ValueReader<'_>, pools: &Pools<'a, '_>) -> Settings {
        let mut settings = Settings::default();
        for mut event in chunk.events().flatten() {
            let Some(kind) = event.long().ok().and_then(|id| reader.metadata.by_id(id)) else {
                continue;
            };
            if &*reader.metadata.get(kind).name != "jdk.ActiveSetting" {
                continue;
            }
            let Ok(fields) = reader.fields(&mut event, kind) else {
                continue;
            };
            let text = |name: &str| {
                let value = pools.position(kind, name).and_then(|at| fields.get(at));
                value.and_then(|value| pools.text(value)).map_or("", |text| &**text)
            };
            let about = pools.position(kind, "id").and_then(|at| pools.int(fields.get(at)?));
            let about = about.and_then(|id| reader.metadata.by_id(id));
            let about = about.map_or("", |kind| &*reader.metadata.get(kind).name);
            settings.set(about, text("name"), text("value"));
        }
        settings
    }

    fn set(&mut self, about: &str, name: &str, value: &str) {
        match name {
            "event" => self.event = value.chars().take(100).collect(),
            "interval" => self.interval_ns = value.parse().ok(),
            "wall" => self.wall_interval_ns = value.parse().ok(),
            "alloc" => self.alloc_interval_bytes = value.parse().unwrap_or(0).max(0),
            "period" if about == "jdk.ExecutionSample" => self.period_ns = duration_ns(value),
            _ => {}
        }
    }

    /// Kind and distance of execution samples, 0 if unknown.
    fn execution(&self, period_ns: i64) -> (Kind, i64) {
        let interval = |default| match self.interval_ns {
            Some(interval) if interval > 0 => interval,
            Some(_) => default,
            None => period_ns,
        };
        match self.event.as_str() {
            "wall" => (Kind::Wall, interval(WALL_INTERVAL_DEFAULT_NS)),
            "cpu" | "itimer" | "ctimer" => (Kind::Cpu, interval(CPU_INTERVAL_DEFAULT_NS)),
            "" => (Kind::Cpu, self.period_ns.unwrap_or(interval(CPU_INTERVAL_DEFAULT_NS))),
            // Hardware counters and functions are counted, not timed.
            _ => (Kind::Cpu, 0),
        }
    }

    fn wall(&self, period_ns: i64) -> i64 {
        match self.wall_interval_ns.or(self.interval_ns) {
            Some(interval) if interval > 0 => interval,
            Some(_) => WALL_INTERVAL_DEFAULT_NS,
            None => period_ns,
        }
    }
}

/// `20 ms`, as the JDK writes it.
fn duration_ns(text: &str) -> Option<i64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "ns" => 1,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(factor).filter(|nanos| *nanos > 0)
}

/// What an event is, by its name.
#[derive(Clone, Copy, Debug)]
enum Source {
    Execution,
    Wall,
    Allocation(Kind, &'static str),
    Wait(Kind),
    Live,
}

impl Source {
    fn of(name: &str) -> Option<Source> {
        Some(match name {
            "jdk.ExecutionSample" | "datadog.ExecutionSample" => Source::Execution,
            "profiler.WallClockSample" | "datadog.MethodSample" => Source::Wall,
            "jdk.ObjectAllocationInNewTLAB" => Source::Allocation(Kind::AllocInNewTlab, "tlabSize"),
            "jdk.ObjectAllocationOutsideTLAB" => Source::Allocation(Kind::AllocOutsideTlab, "allocationSize"),
            "jdk.ObjectAllocationSample" => Source::Allocation(Kind::AllocSample, "weight"),
            "profiler.LiveObject" => Source::Live,
            "jdk.JavaMonitorEnter" => Source::Wait(Kind::MonitorEnter),
            "jdk.ThreadPark" => Source::Wait(Kind::ThreadPark),
            _ => return None,
        })
    }
}

struct EventReader<'r, 'a, 'm> {
    chunk: &'r Chunk<'a>,
    labels: &'r Labels,
    settings: Settings,
    /// What the types of events are, by id.
    types: HashMap<i64, Option<(TypeIndex, Source)>>,
    symbols: Symbols<'r, 'a, 'm>,
    reader: ValueReader<'m>,
}

/// The fields of one event by name.
struct Fields<'f, 'a, 'm> {
    kind: TypeIndex,
    values: &'f [Value<'a>],
    pools: &'f Pools<'a, 'm>,
}

impl<'f, 'a> Fields<'f, 'a, '_> {
    fn get(&self, name: &str) -> Option<&'f Value<'a>> {
        self.values.get(self.pools.position(self.kind, name)?)
    }

    fn int(&self, name: &str) -> i64 {
        self.get(name).and_then(|value| self.pools.int(value)).unwrap_or(0)
    }

    fn text(&self, name: &str) -> Option<&'f Cow<'a, str>> {
        let value = self.get(name)?;
        self.pools.text(value)
    }
}

impl<'a> EventReader<'_, 'a, '_> {
    fn event(&mut self, mut event: Cursor<'a>, collector: &mut Collector<'_>) -> Result<(), (Reason, String)> {
        let broken = |broken: Broken| (Reason::Malformed, broken.to_string());
        let id = event.long().map_err(broken)?;
        let metadata: &Metadata = self.reader.metadata;
        let known = *self.types.entry(id).or_insert_with(|| {
            let kind = metadata.by_id(id)?;
            Some((kind, Source::of(&metadata.get(kind).name)?))
        });
        let Some((kind, source)) = known else {
            return Ok(());
        };
        let values = self.reader.fields(&mut event, kind).map_err(broken)?;
        let fields = Fields {
            kind,
            values: &values,
            pools: self.symbols.pools,
        };
        let time = self.chunk.time(fields.int("startTime"));
        let time = time.ok_or_else(|| (Reason::TimeOutOfRange, "its time does not fit 63 bits of nanoseconds".to_owned()))?;
        let limited = |reason: Reason| (reason, format!("exceeds a limit: {reason}"));
        let thread = fields.get("sampledThread").or_else(|| fields.get("eventThread"));
        let stack = fields.get("stackTrace").unwrap_or(&Value::Absent);
        let depth_max = collector.limits.stack_depth_max;
        let observation = Observation {
            stack: self
                .symbols
                .stack(stack, &mut collector.builder, depth_max, &mut collector.rejects)
                .map_err(limited)?,
            thread: thread.map(|thread| self.symbols.thread(thread)).unwrap_or_default(),
            link: link(&fields),
            labels: self.labels_of(&fields, source, collector).map_err(limited)?,
            time,
        };
        self.add(source, &fields, observation, collector).map_err(limited)
    }

    fn add(
        &self,
        source: Source,
        fields: &Fields<'_, 'a, '_>,
        observation: Observation,
        collector: &mut Collector<'_>,
    ) -> Result<(), Reason> {
        let period_ns = collector.period_ns;
        match source {
            Source::Execution => {
                let (kind, period) = self.settings.execution(period_ns);
                collector.add_times(kind, period, observation, 1)
            }
            Source::Wall => {
                let times = fields.get("samples").or_else(|| fields.get("weight"));
                let times = times.and_then(|times| fields.pools.int(times)).unwrap_or(1).max(1);
                collector.add_times(Kind::Wall, self.settings.wall(period_ns), observation, times)
            }
            Source::Allocation(kind, size) => {
                let bytes = match fields.int(size) {
                    0 => fields.int("allocationSize"),
                    bytes => bytes,
                };
                collector.add_values(kind, self.settings.alloc_interval_bytes, observation, vec![1, bytes.max(0)])
            }
            Source::Live => collector.add_values(Kind::Live, 0, observation, vec![1]),
            Source::Wait(kind) => {
                let delay = self.chunk.duration(fields.int("duration"));
                collector.add_values(kind, 0, observation, vec![1, delay])
            }
        }
    }

    /// The labels of an event. Equal ones are built once: they may be long, and events are many.
    fn labels_of(&self, fields: &Fields<'_, 'a, '_>, source: Source, collector: &mut Collector<'_>) -> Result<Arc<[Label]>, Reason> {
        // Whether a thread ran or waited is what wall-clock time is about.
        let is_wall = matches!(source, Source::Wall) || self.settings.event == "wall";
        let state = fields.text("state").filter(|_| is_wall).map_or("", |state| state);
        let state: String = state.chars().take(STATE_CHARS_MAX).collect();
        let key = (fields.int("contextId"), fields.int("spanName"), state);
        if let Some(known) = collector.label_sets.get(&key) {
            return Ok(Arc::clone(known));
        }
        let (context, span_name, state) = &key;
        let mut labels: Vec<Label> = self.labels.context(*context).collect();
        labels.extend(self.labels.string(*span_name).map(|name| label("span_name", name)));
        labels.extend((!state.is_empty()).then(|| label("thread.state", state)));
        labels.sort_by(|a, b| a.key.cmp(&b.key));
        collector
            .builder
            .budget
            .take(size_of_val(&key) + labels.iter().map(label_bytes).sum::<usize>())?;
        let labels: Arc<[Label]> = labels.into();
        collector.label_sets.insert(key, Arc::clone(&labels));
        Ok(labels)
    }
}

fn label(key: &str, value: &str) -> Label {
    Label {
        key: key.to_owned(),
        value: value.into(),
        unit: String::new(),
    }
}

/// The span that an event names.
fn link(fields: &Fields<'_, '_, '_>) -> Link {
    let span = SpanId::from_u64(fields.int("spanId") as u64);
    let local_root = SpanId::from_u64(fields.int("localRootSpanId") as u64);
    let [high, low] = ["traceIdHi", "traceIdLo"].map(|name| u128::from(fields.int(name) as u64));
    let trace_id = TraceId::from_bytes((high << 64 | low).to_be_bytes());
    let (span_id, claim) = match (span, local_root) {
        (Some(span), Some(_)) => (Some(span), Claim::Active),
        (None, Some(root)) => (Some(root), Claim::LocalRoot),
        (span, None) => (span, Claim::Label),
    };
    match (trace_id, span_id) {
        (None, None) => Link::None,
        _ => Link::One { trace_id, span_id, claim },
    }
}
