//! The corpus' shape, made in memory: as many spans as wanted, in requests of any size.
//!
//! Same counts as `corpus.py`, from another stream of random numbers: ten spans a trace in ten services, each child
//! inside its parent; eleven string attributes of 97 keys and 1,000 values; ten observations a span from three stacks
//! of its operation, of 20,000 stacks of depth 30; a profile for each service and ten seconds. Traces begin 0.6 ms apart.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::profiles::v1development as wire;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use spanflame_testkit::Random;

use crate::corpus::Truth;

/// CPU time of an observation: 19 Hz.
pub(crate) const PERIOD_NS: u64 = 1_000_000_000 / 19;
pub(crate) const SPANS_PER_TRACE: u64 = 10;
pub(crate) const OBSERVATIONS_PER_SPAN: u64 = 10;

const SERVICES: usize = 10;
const OPERATIONS: u64 = 20;
const STACKS_PER_SERVICE: u64 = 2_000;
const FUNCTIONS_PER_SERVICE: u64 = 600;
const DEPTH: u64 = 30;
const KEYS: u64 = 97;
const VALUES: u64 = 1_000;
const ATTRIBUTES: usize = 11;
/// From the begin of a trace to the next.
pub(crate) const STEP_NS: u64 = 600_000;
/// Time of one profile.
const INTERVAL_NS: u64 = 10_000_000_000;

/// A stream of traces and of the profiles of the same spans.
pub(crate) struct Shape {
    random: Random,
    services: Vec<Service>,
    /// When the next trace begins.
    next_unix_nano: u64,
    traces: u64,
}

/// The code of one service.
struct Service {
    name: String,
    /// Leaf first, as numbers of functions.
    stacks: Vec<Vec<u64>>,
}

/// A span with what ran in it.
pub(crate) struct MadeSpan {
    service: usize,
    trace_id: [u8; 16],
    span_id: [u8; 8],
    parent: Option<[u8; 8]>,
    time: Range<u64>,
    operation: u64,
    failed: bool,
    attributes: Vec<(u64, u64)>,
    /// Times of observations by number of the stack.
    observations: BTreeMap<u64, Vec<u64>>,
}

impl Shape {
    /// A stream of `seed` whose first trace begins at `begin_unix_nano`.
    pub(crate) fn new(seed: u64, begin_unix_nano: u64) -> Shape {
        Shape {
            random: Random::new(seed),
            services: (0..SERVICES).map(|number| Service::new(number, seed)).collect(),
            next_unix_nano: begin_unix_nano,
            traces: 0,
        }
    }

    /// When the next trace begins.
    pub(crate) fn now_unix_nano(&self) -> u64 {
        self.next_unix_nano
    }

    /// The spans of the next `traces` traces.
    pub(crate) fn spans(&mut self, traces: u64) -> Vec<MadeSpan> {
        let mut spans = Vec::with_capacity((traces * SPANS_PER_TRACE) as usize);
        for _ in 0..traces {
            self.trace(&mut spans);
        }
        spans
    }

    fn trace(&mut self, spans: &mut Vec<MadeSpan>) {
        let random = &mut self.random;
        let first_of_trace = spans.len();
        let mut trace_id = [0; 16];
        trace_id[..8].copy_from_slice(&random.next_u64().to_be_bytes());
        trace_id[8..].copy_from_slice(&random.next_u64().to_be_bytes());
        let first = random.below(SERVICES as u64) as usize;
        for number in 0..SPANS_PER_TRACE as usize {
            let (parent, time) = match number.checked_sub(1) {
                None => {
                    let length = 20_000_000 + exponential(random, 80_000_000);
                    (None, self.next_unix_nano..self.next_unix_nano + length)
                }
                Some(before) => {
                    let parent = &spans[first_of_trace + before / 3];
                    let parent_length = parent.time.end - parent.time.start;
                    let begin = parent.time.start + parent_length * (20 + random.below(280)) / 1_000;
                    let length = (parent_length * (200 + random.below(450)) / 1_000).max(1_000_000);
                    (Some(parent.span_id), begin..begin + length)
                }
            };
            let operation = random.below(OPERATIONS);
            let chosen = [(); 3].map(|()| popular(random) * OPERATIONS + operation);
            let mut observations: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            for _ in 0..OBSERVATIONS_PER_SPAN {
                let stack = chosen[random.below(3) as usize];
                let at = time.start + random.below(time.end - time.start);
                observations.entry(stack).or_default().push(at);
            }
            observations.values_mut().for_each(|times| times.sort_unstable());
            spans.push(MadeSpan {
                service: (first + number) % SERVICES,
                trace_id,
                span_id: random.next_u64().to_be_bytes(),
                parent,
                time,
                operation,
                failed: random.percent(1),
                attributes: attributes(random),
                observations,
            });
        }
        self.next_unix_nano += STEP_NS;
        self.traces += 1;
    }

    /// An OTLP request with these spans.
    pub(crate) fn trace_request(&self, spans: &[MadeSpan]) -> Bytes {
        let mut by_service: BTreeMap<usize, Vec<Span>> = BTreeMap::new();
        for span in spans {
            by_service.entry(span.service).or_default().push(span.to_wire());
        }
        let resource_spans = by_service.into_iter().map(|(service, spans)| ResourceSpans {
            resource: Some(self.services[service].resource()),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope()),
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        });
        let request = ExportTraceServiceRequest {
            resource_spans: resource_spans.collect(),
        };
        request.encode_to_vec().into()
    }

    /// OTLP requests with the profiles of these spans, one for each service and interval.
    pub(crate) fn profile_requests(&self, spans: &[MadeSpan]) -> Vec<Bytes> {
        let mut by_profile: BTreeMap<(u64, usize), Vec<&MadeSpan>> = BTreeMap::new();
        for span in spans {
            by_profile
                .entry((span.time.start / INTERVAL_NS, span.service))
                .or_default()
                .push(span);
        }
        let requests = by_profile.into_iter().map(|((interval, service), spans)| {
            let request = self.services[service].profile(interval * INTERVAL_NS, &spans);
            request.encode_to_vec().into()
        });
        requests.collect()
    }

    /// What a span's answers must be.
    pub(crate) fn truth(&self, span: &MadeSpan) -> Truth {
        let service = &self.services[span.service];
        let by_stack = span.observations.iter().map(|(stack, times)| {
            let names: Vec<String> = service
                .stack(*stack)
                .iter()
                .rev()
                .map(|function| service.function(*function))
                .collect();
            (names.join(";"), times.len() as u64)
        });
        let mut sums = BTreeMap::new();
        for (stack, count) in by_stack {
            *sums.entry(stack).or_default() += count;
        }
        Truth {
            trace_id: hex(&span.trace_id),
            span_id: hex(&span.span_id),
            service: service.name.clone(),
            operation: format!("operation-{}", span.operation),
            start_unix_nano: span.time.start,
            end_unix_nano: span.time.end,
            by_stack: sums,
        }
    }
}

impl MadeSpan {
    fn to_wire(&self) -> Span {
        let attributes = self
            .attributes
            .iter()
            .map(|(key, value)| attribute(&format!("key-{key:02}"), format!("value-{value:03}")));
        Span {
            trace_id: self.trace_id.to_vec(),
            span_id: self.span_id.to_vec(),
            parent_span_id: self.parent.map(|id| id.to_vec()).unwrap_or_default(),
            name: format!("operation-{}", self.operation),
            kind: if self.parent.is_none() { 2 } else { 3 },
            start_time_unix_nano: self.time.start,
            end_time_unix_nano: self.time.end,
            attributes: attributes.collect(),
            status: self.failed.then(|| Status {
                code: 2,
                ..Status::default()
            }),
            ..Span::default()
        }
    }
}

impl Service {
    fn new(number: usize, seed: u64) -> Service {
        let mut random = Random::new(seed ^ (number as u64 + 1) << 32);
        let stack = |stack: u64| {
            let operation = stack % OPERATIONS;
            let outer = (0..10).map(|depth| (operation * 13 + depth) % 60);
            let middle = (0..10).map(|depth| 60 + (operation * 31 + stack / OPERATIONS / 10 * 7 + depth) % 140);
            let inner = (20..DEPTH).map(|_| 200 + random.below(400));
            let mut frames: Vec<u64> = outer.chain(middle).chain(inner).collect();
            frames.reverse();
            frames
        };
        Service {
            name: format!("svc-{number}"),
            stacks: (0..STACKS_PER_SERVICE).map(stack).collect(),
        }
    }

    fn stack(&self, number: u64) -> &[u64] {
        &self.stacks[number as usize]
    }

    fn function(&self, number: u64) -> String {
        debug_assert!(number < FUNCTIONS_PER_SERVICE);
        let service = self.name.trim_start_matches("svc-");
        format!("svc{service}::module_{}::Type{}::method_{number}", number / 20, number % 7)
    }

    fn resource(&self) -> Resource {
        Resource {
            attributes: vec![attribute("service.name", self.name.clone())],
            ..Resource::default()
        }
    }

    fn profile(&self, begin: u64, spans: &[&MadeSpan]) -> ExportProfilesServiceRequest {
        let mut dictionary = Dictionary::new();
        let (mut stacks, mut functions) = (HashMap::new(), HashMap::new());
        let mut samples = Vec::new();
        let mut profile_id = [0; 16];
        for span in spans {
            profile_id.copy_from_slice(&span.trace_id);
            dictionary.tables.link_table.push(wire::Link {
                trace_id: span.trace_id.to_vec(),
                span_id: span.span_id.to_vec(),
            });
            let link_index = dictionary.tables.link_table.len() as i32 - 1;
            for (stack, times) in &span.observations {
                let stack_index = *stacks.entry(*stack).or_insert_with(|| {
                    let locations = self.stack(*stack).iter();
                    let locations =
                        locations.map(|function| *functions.entry(*function).or_insert_with(|| dictionary.location(self, *function)));
                    let location_indices = locations.collect();
                    dictionary.tables.stack_table.push(wire::Stack { location_indices });
                    dictionary.tables.stack_table.len() as i32 - 1
                });
                samples.push(wire::Sample {
                    stack_index,
                    link_index,
                    timestamps_unix_nano: times.clone(),
                    ..wire::Sample::default()
                });
            }
        }
        let mut value_type = |kind: &str, unit: &str| wire::ValueType {
            type_strindex: dictionary.string(kind),
            unit_strindex: dictionary.string(unit),
        };
        let profile = wire::Profile {
            sample_type: Some(value_type("samples", "count")),
            period_type: Some(value_type("cpu", "nanoseconds")),
            samples,
            time_unix_nano: begin,
            duration_nano: INTERVAL_NS,
            period: PERIOD_NS as i64,
            profile_id: profile_id.to_vec(),
            ..wire::Profile::default()
        };
        ExportProfilesServiceRequest {
            resource_profiles: vec![wire::ResourceProfiles {
                resource: Some(self.resource()),
                scope_profiles: vec![wire::ScopeProfiles {
                    scope: Some(scope()),
                    profiles: vec![profile],
                    ..wire::ScopeProfiles::default()
                }],
                ..wire::ResourceProfiles::default()
            }],
            dictionary: Some(dictionary.tables),
        }
    }
}

/// The tables of a profile; entry 0 of each is the absent one.
struct Dictionary {
    tables: wire::ProfilesDictionary,
    strings: HashMap<String, i32>,
}

impl Dictionary {
    fn new() -> Dictionary {
        Dictionary {
            tables: wire::ProfilesDictionary {
                mapping_table: vec![wire::Mapping::default()],
                location_table: vec![wire::Location::default()],
                function_table: vec![wire::Function::default()],
                link_table: vec![wire::Link {
                    trace_id: vec![0; 16],
                    span_id: vec![0; 8],
                }],
                string_table: vec![String::new()],
                attribute_table: vec![wire::KeyValueAndUnit::default()],
                stack_table: vec![wire::Stack::default()],
            },
            strings: HashMap::from([(String::new(), 0)]),
        }
    }

    fn string(&mut self, text: &str) -> i32 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = self.tables.string_table.len() as i32;
        self.tables.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn location(&mut self, service: &Service, function: u64) -> i32 {
        let name_strindex = self.string(&service.function(function));
        let filename_strindex = self.string(&format!("src/module_{}/file_{}.rs", function / 20, function / 5));
        let start_line = 10 + function as i64;
        self.tables.function_table.push(wire::Function {
            name_strindex,
            filename_strindex,
            start_line,
            ..wire::Function::default()
        });
        self.tables.location_table.push(wire::Location {
            lines: vec![wire::Line {
                function_index: self.tables.function_table.len() as i32 - 1,
                line: start_line + 3,
                ..wire::Line::default()
            }],
            ..wire::Location::default()
        });
        self.tables.location_table.len() as i32 - 1
    }
}

/// Few stacks of an operation are frequent.
fn popular(random: &mut Random) -> u64 {
    let share = random.below(1 << 20) as f64 / (1 << 20) as f64;
    ((STACKS_PER_SERVICE / OPERATIONS) as f64 * share.powi(3)) as u64
}

fn exponential(random: &mut Random, mean: u64) -> u64 {
    let share = (random.below(1 << 32) + 1) as f64 / (1_u64 << 32) as f64;
    (-share.ln() * mean as f64) as u64
}

/// Different keys, each with a value.
fn attributes(random: &mut Random) -> Vec<(u64, u64)> {
    let mut attributes: Vec<(u64, u64)> = Vec::with_capacity(ATTRIBUTES);
    while attributes.len() < ATTRIBUTES {
        let key = random.below(KEYS);
        if attributes.iter().all(|(known, _)| *known != key) {
            attributes.push((key, random.below(VALUES)));
        }
    }
    attributes
}

fn attribute(key: &str, value: String) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value)),
        }),
        ..KeyValue::default()
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "corpus".to_owned(),
        ..InstrumentationScope::default()
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_bytes_and_others_do_not() {
        let bytes = |seed| {
            let mut shape = Shape::new(seed, 1_700_000_000_000_000_000);
            let spans = shape.spans(20);
            (shape.trace_request(&spans), shape.profile_requests(&spans))
        };
        assert_eq!(bytes(1), bytes(1));
        assert_ne!(bytes(1), bytes(2));
    }

    #[test]
    fn every_observation_of_a_span_is_in_its_profiles_once() {
        let mut shape = Shape::new(1, 1_700_000_000_000_000_000);
        let spans = shape.spans(30);
        let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
        for body in shape.profile_requests(&spans) {
            let request = ExportProfilesServiceRequest::decode(body).expect("a request");
            let tables = request.dictionary.expect("tables");
            for sample in &request.resource_profiles[0].scope_profiles[0].profiles[0].samples {
                let link = &tables.link_table[sample.link_index as usize];
                *seen.entry(link.span_id.clone()).or_default() += sample.timestamps_unix_nano.len();
            }
        }
        assert_eq!(seen.len(), 300);
        assert!(seen.values().all(|count| *count == OBSERVATIONS_PER_SPAN as usize), "{seen:?}");
    }

    #[test]
    fn truth_counts_what_a_span_ran() {
        let mut shape = Shape::new(1, 1_700_000_000_000_000_000);
        let spans = shape.spans(1);
        let truth = shape.truth(&spans[3]);
        assert_eq!(truth.by_stack.values().sum::<u64>(), OBSERVATIONS_PER_SPAN);
        assert!(truth.by_stack.keys().all(|stack| stack.split(';').count() == DEPTH as usize));
    }
}
