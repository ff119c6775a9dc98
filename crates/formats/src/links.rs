//! Ids in labels become links: the one place that knows the names and spellings in use.
//!
//! | key | names | spelling |
//! |---|---|---|
//! | `trace_id`, `otel.traceid`, `otel_traceid` | the trace | hex |
//! | `span_id`, `profile_id` | the span that ran, or its local root: clients differ | hex |
//! | `trace id`, `span id`, `local root span id` (Datadog) | trace, span, local root | decimal if only digits, else hex |
//!
//! Each also with the prefix `process.context.label.` under which the OpenTelemetry eBPF profiler passes
//! labels on. Hex ids have 16 digits (a span, or a trace of 64 bits) or 32. `trace endpoint` is a label as any other.
//!
//! A label that the link says again in full, under the key that [`to_labels`] would write, is taken out of
//! the sample's labels; every other spelling stays there too, so that pprof comes back as it was sent. An
//! id that cannot be read is counted and stays a label.

use spanflame_model::{Claim, Label, Link, Sample, SpanId, TraceId, Value};

use crate::Reason;

/// Under which key the link of a sample is written where a format has only labels.
const TRACE_ID_KEY: &str = "trace_id";
const SPAN_ID_KEY: &str = "span_id";
const LOCAL_ROOT_KEY: &str = "local root span id";
/// How the OpenTelemetry eBPF profiler marks labels that it found in a process.
pub(crate) const CONTEXT_LABEL_PREFIX: &str = "process.context.label.";

/// What an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Trace,
    Span,
    LocalRoot,
}

/// A label key whose value is an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdKey {
    names: Names,
    /// Datadog's: numbers in decimal.
    decimal: bool,
    /// The key that [`to_labels`] writes.
    canonical: bool,
}

impl IdKey {
    /// The key, if it is one in use for ids.
    pub(crate) fn of(key: &str) -> Option<IdKey> {
        let (names, decimal, canonical) = match key.strip_prefix(CONTEXT_LABEL_PREFIX).unwrap_or(key) {
            TRACE_ID_KEY => (Names::Trace, false, true),
            SPAN_ID_KEY => (Names::Span, false, true),
            "otel.traceid" | "otel_traceid" => (Names::Trace, false, false),
            "profile_id" => (Names::Span, false, false),
            "trace id" => (Names::Trace, true, false),
            "span id" => (Names::Span, true, false),
            LOCAL_ROOT_KEY => (Names::LocalRoot, true, false),
            _ => return None,
        };
        Some(IdKey { names, decimal, canonical })
    }
}

/// Whether a label of this key names a span, a local root or a trace.
pub fn is_id(key: &str) -> bool {
    IdKey::of(key).is_some()
}

/// The value of an id label, as sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RawId<'a> {
    Text(&'a str),
    Number(i64),
    /// Neither text nor number.
    Other,
}

impl<'a> RawId<'a> {
    pub(crate) fn of(value: &'a Value) -> RawId<'a> {
        match value {
            Value::Str(text) => RawId::Text(text),
            Value::Int(number) => RawId::Number(*number),
            _ => RawId::Other,
        }
    }
}

/// Distinct ids; nearly always none or one, which then costs no allocation.
#[derive(Debug)]
struct Found<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for Found<T> {
    fn default() -> Found<T> {
        Found {
            first: None,
            more: Vec::new(),
        }
    }
}

impl<T: Copy + Ord> Found<T> {
    fn add(&mut self, id: T) {
        match self.first {
            None => self.first = Some(id),
            Some(first) if first == id || self.more.contains(&id) => {}
            Some(_) => self.more.push(id),
        }
    }

    fn is_several(&self) -> bool {
        !self.more.is_empty()
    }

    fn into_sorted(self) -> Vec<T> {
        let mut all: Vec<T> = self.first.into_iter().chain(self.more).collect();
        all.sort_unstable();
        all
    }
}

/// The ids that one sample names, collected label by label.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    traces: Found<TraceId>,
    spans: Found<SpanId>,
    local_roots: Found<SpanId>,
}

impl Ids {
    /// Takes in the value of a label. Answers whether the link says all that the label said, so that the
    /// label need not be kept; fails if it is no id.
    pub(crate) fn offer(&mut self, key: IdKey, raw: RawId<'_>) -> Result<bool, Reason> {
        match key.names {
            Names::Trace => self.traces.add(trace_id(raw, key.decimal).ok_or(Reason::InvalidTraceId)?),
            Names::Span => self.spans.add(span_id(raw, key.decimal).ok_or(Reason::InvalidSpanId)?),
            Names::LocalRoot => self.local_roots.add(span_id(raw, key.decimal).ok_or(Reason::InvalidSpanId)?),
        }
        Ok(key.canonical && is_canonical(key.names, raw))
    }

    /// The link that labels alone make.
    pub(crate) fn into_link(self) -> Link {
        let Ids {
            traces,
            spans,
            local_roots,
        } = self;
        let (spans, claim) = match (spans.first, local_roots.first) {
            // A client that names both tells them apart, so its span is the one that ran.
            (Some(_), Some(_)) => (spans, Claim::Active),
            (None, Some(_)) => (local_roots, Claim::LocalRoot),
            _ => (spans, Claim::Label),
        };
        if spans.is_several() || traces.is_several() {
            return Link::Candidates {
                trace_ids: traces.into_sorted(),
                span_ids: spans.into_sorted(),
            };
        }
        match (traces.first, spans.first) {
            (None, None) => Link::None,
            (trace_id, span_id) => Link::One { trace_id, span_id, claim },
        }
    }

    /// The link of a sample that has a link of the format's own, `explicit`, besides labels. That one
    /// knows the span that ran; labels beside it may name its local root. Labels that name another trace
    /// contradict it, and then none is believed.
    pub(crate) fn into_link_beside(self, explicit: &Link) -> Link {
        let Link::One {
            trace_id: Some(trace),
            span_id,
            ..
        } = explicit
        else {
            return self.into_link();
        };
        let mut traces = self.traces;
        traces.add(*trace);
        if !traces.is_several() {
            return explicit.clone();
        }
        let mut spans = self.spans;
        span_id.iter().for_each(|id| spans.add(*id));
        Link::Candidates {
            trace_ids: traces.into_sorted(),
            span_ids: spans.into_sorted(),
        }
    }
}

/// Whether a label in this spelling is what [`to_labels`] would write for the id.
fn is_canonical(names: Names, raw: RawId<'_>) -> bool {
    let RawId::Text(text) = raw else { return false };
    let digits = match names {
        Names::Trace => 2 * TraceId::LEN,
        _ => 2 * SpanId::LEN,
    };
    text.len() == digits && !text.bytes().any(|b| b.is_ascii_uppercase())
}

fn trace_id(raw: RawId<'_>, decimal: bool) -> Option<TraceId> {
    match raw {
        RawId::Text(text) if decimal => match decimal_id(text) {
            Some(number) => trace_of_u64(number),
            None => hex::<32>(text).and_then(TraceId::from_bytes).or_else(|| short_trace(text)),
        },
        RawId::Text(text) => hex::<32>(text).and_then(TraceId::from_bytes).or_else(|| short_trace(text)),
        RawId::Number(number) => trace_of_u64(number as u64),
        RawId::Other => None,
    }
}

fn span_id(raw: RawId<'_>, decimal: bool) -> Option<SpanId> {
    match raw {
        RawId::Text(text) if decimal => match decimal_id(text) {
            Some(number) => SpanId::from_u64(number),
            None => hex::<16>(text).and_then(SpanId::from_bytes),
        },
        RawId::Text(text) => hex::<16>(text).and_then(SpanId::from_bytes),
        RawId::Number(number) => SpanId::from_u64(number as u64),
        RawId::Other => None,
    }
}

fn short_trace(text: &str) -> Option<TraceId> {
    trace_of_u64(u64::from_be_bytes(hex::<16>(text)?))
}

fn trace_of_u64(number: u64) -> Option<TraceId> {
    TraceId::from_bytes(u128::from(number).to_be_bytes())
}

/// A number in decimal. 32 digits are no number of 64 bits, so those are left to be read as hex.
fn decimal_id(text: &str) -> Option<u64> {
    const DIGITS_MAX: usize = 20;
    match text.len() <= DIGITS_MAX && text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None,
    }
}

/// Exactly `DIGITS` hex digits of either case.
fn hex<const DIGITS: usize>(text: &str) -> Option<<[u8; DIGITS] as HalfArray>::Half>
where
    [u8; DIGITS]: HalfArray,
{
    let digits: &[u8; DIGITS] = text.as_bytes().try_into().ok()?;
    digits.decode()
}

/// An array of hex digits and the bytes they spell.
trait HalfArray {
    type Half;
    fn decode(&self) -> Option<Self::Half>;
}

macro_rules! half_array {
    ($digits:literal, $bytes:literal) => {
        impl HalfArray for [u8; $digits] {
            type Half = [u8; $bytes];

            fn decode(&self) -> Option<[u8; $bytes]> {
                let mut bytes = [0; $bytes];
                ::hex::decode_to_slice(self, &mut bytes).ok()?;
                Some(bytes)
            }
        }
    };
}

half_array!(16, 8);
half_array!(32, 16);

/// The link that `labels` make.
pub fn from_labels(labels: &[Label]) -> Link {
    let mut ids = Ids::default();
    for label in labels {
        if let Some(key) = IdKey::of(&label.key) {
            // What cannot be read was counted when the sample was decoded.
            let _ = ids.offer(key, RawId::of(&label.value));
        }
    }
    ids.into_link()
}

/// The labels that say what `link` says, for formats without links.
///
/// An `active` claim comes out as plain `span_id`, since only a local root beside it would say more.
pub fn to_labels(link: &Link) -> Vec<Label> {
    let (trace_ids, span_ids, claim) = match link {
        Link::None => return Vec::new(),
        Link::One { trace_id, span_id, claim } => (trace_id.as_slice(), span_id.as_slice(), *claim),
        Link::Candidates { trace_ids, span_ids } => (&trace_ids[..], &span_ids[..], Claim::Label),
    };
    let span_key = match claim {
        Claim::LocalRoot => LOCAL_ROOT_KEY,
        Claim::Active | Claim::Label => SPAN_ID_KEY,
    };
    // A local root's key is Datadog's, whose ids are decimal.
    let span_text = |id: &SpanId| match claim {
        Claim::LocalRoot => u64::from_be_bytes(*id.as_bytes()).to_string(),
        _ => id.to_string(),
    };
    let spans = span_ids.iter().map(|id| label(span_key, span_text(id)));
    let traces = trace_ids.iter().map(|id| label(TRACE_ID_KEY, id.to_string()));
    spans.chain(traces).collect()
}

/// All that a sample says, as labels: its own, its link and its thread, each once.
pub fn labels_of(sample: &Sample) -> Vec<Label> {
    let mut labels = sample.labels.clone();
    let said = from_labels(&labels);
    if said != sample.link {
        labels.extend(to_labels(&sample.link).into_iter().filter(|label| !sample.labels.contains(label)));
    }
    let has = |labels: &[Label], place: Place| labels.iter().any(|l| Place::of(&l.key).is_some_and(|(p, _)| p == place));
    for (place, number) in [(Place::ThreadId, sample.thread_id), (Place::Pid, sample.pid)] {
        if let Some(number) = number.filter(|_| !has(&labels, place)) {
            labels.push(label(place.key(), number));
        }
    }
    if let Some(name) = sample.thread_name.as_ref().filter(|_| !has(&labels, Place::ThreadName)) {
        labels.push(label(Place::ThreadName.key(), name.as_str()));
    }
    labels.sort_by(|a, b| a.key.cmp(&b.key));
    labels
}

/// About how much memory a label takes.
pub(crate) fn label_bytes(label: &Label) -> usize {
    size_of::<Label>() + label.key.len() + label.unit.len() + value_bytes(&label.value)
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(values) => values.iter().map(|v| size_of::<Value>() + value_bytes(v)).sum(),
        Value::Map(pairs) => pairs
            .iter()
            .map(|(key, v)| size_of::<(String, Value)>() + key.len() + value_bytes(v))
            .sum(),
        Value::Int(_) | Value::Double(_) | Value::Bool(_) => 0,
    }
}

fn label(key: &str, value: impl Into<Value>) -> Label {
    Label {
        key: key.to_owned(),
        value: value.into(),
        unit: String::new(),
    }
}

/// Where a sample was taken, as labels say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    ThreadId,
    ThreadName,
    Pid,
}

impl Place {
    /// The place that a label key names, and whether it is the key that [`Place::key`] gives.
    pub(crate) fn of(key: &str) -> Option<(Place, bool)> {
        let place = match key {
            "thread.id" | "thread_id" | "thread id" => Place::ThreadId,
            "thread.name" | "thread_name" | "thread name" => Place::ThreadName,
            "process.pid" | "process_id" | "pid" => Place::Pid,
            _ => return None,
        };
        Some((place, key == place.key()))
    }

    /// OpenTelemetry's name.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Place::ThreadId => "thread.id",
            Place::ThreadName => "thread.name",
            Place::Pid => "process.pid",
        }
    }

    /// Sets the place if `value` is of its kind; whether it was.
    pub(crate) fn set(self, sample: &mut Sample, value: &Value) -> bool {
        match self {
            Place::ThreadId => set(&mut sample.thread_id, value.to_int()),
            Place::Pid => set(&mut sample.pid, value.to_int()),
            Place::ThreadName => set(&mut sample.thread_name, value.as_str().map(str::to_owned)),
        }
    }
}

fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    let known = value.is_some();
    if known {
        *field = value;
    }
    known
}

/// What a label key means, looked up once per key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Id(IdKey),
    Place(Place, bool),
    Plain,
}

impl Role {
    pub(crate) fn of(key: &str) -> Role {
        if let Some(id) = IdKey::of(key) {
            return Role::Id(id);
        }
        match Place::of(key) {
            Some((place, canonical)) => Role::Place(place, canonical),
            None => Role::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    /// Labels as `key=value`, an integer where the value begins with `#`; the link as text.
    fn check(labels: &[&str], expected: &str) {
        let labels: Vec<Label> = labels.iter().map(|text| parse(text)).collect();
        assert_eq!(text_of(&from_labels(&labels)), expected);
    }

    fn parse(text: &str) -> Label {
        let (key, value) = text.split_once('=').expect("key=value");
        match value.strip_prefix('#') {
            Some(number) => label(key, number.parse::<i64>().expect("number")),
            None => label(key, value),
        }
    }

    fn text_of(link: &Link) -> String {
        let short = |id: String| id.trim_start_matches('0').to_owned();
        match link {
            Link::None => "none".to_owned(),
            Link::One { trace_id, span_id, claim } => {
                let trace = trace_id.map_or("-".to_owned(), |id| short(id.to_string()));
                let span = span_id.map_or("-".to_owned(), |id| short(id.to_string()));
                format!("{} {trace} {span}", claim.as_str())
            }
            Link::Candidates { trace_ids, span_ids } => format!("candidates {} {}", trace_ids.len(), span_ids.len()),
        }
    }

    #[test]
    fn every_name_in_use_is_read() {
        for trace_key in [
            "trace_id",
            "otel.traceid",
            "otel_traceid",
            "trace id",
            "process.context.label.trace_id",
        ] {
            check(
                &[&format!("{trace_key}={TRACE}")],
                &format!("label {} -", TRACE.trim_start_matches('0')),
            );
        }
        for span_key in ["span_id", "profile_id", "span id", "process.context.label.profile_id"] {
            check(&[&format!("{span_key}={SPAN}")], &format!("label - {SPAN}"));
        }
        check(&["trace endpoint=GET /slow"], "none");
    }

    #[test]
    fn a_local_root_beside_a_span_makes_the_span_the_active_one() {
        check(&["local root span id=17"], "local_root - 11");
        check(&["local root span id=17", "span id=18"], "active - 12");
        check(&["local root span id=17", "span id=17"], "active - 11");
    }

    #[test]
    fn datadog_digits_are_decimal_and_others_hex() {
        check(&["span id=1234567890123456"], "label - 462d53c8abac0");
        check(&["span_id=1234567890123456"], "label - 1234567890123456");
        check(&["span id=18446744073709551615"], "label - ffffffffffffffff");
        check(&["span id=#-1"], "label - ffffffffffffffff");
        check(&["span id=00000000000000ab"], "label - ab");
        check(&["trace id=00000000000000000000000000000012"], "label 12 -");
        check(&["trace id=255"], "label ff -");
        check(&["trace_id=00000000000000ff"], "label ff -");
    }

    #[test]
    fn what_is_no_id_makes_no_link() {
        for bad in ["", "0000000000000000", "abc", "b7ad6b716920333g", "1234", "b7ad6b71692033311"] {
            check(&[&format!("span_id={bad}")], "none");
        }
        check(&["span id=0"], "none");
        check(&["trace_id=00000000000000000000000000000000"], "none");
        check(&["trace_id=xyz", &format!("span_id={SPAN}")], &format!("label - {SPAN}"));
    }

    #[test]
    fn several_ids_are_candidates_and_equal_ones_are_one() {
        check(
            &[&format!("span_id={SPAN}"), "span_id=00000000000000aa", &format!("trace_id={TRACE}")],
            "candidates 1 2",
        );
        check(
            &[&format!("span_id={SPAN}"), &format!("profile_id={SPAN}")],
            &format!("label - {SPAN}"),
        );
    }

    #[test]
    fn a_link_written_as_labels_is_read_back() {
        for labels in [
            vec![format!("span_id={SPAN}"), format!("trace_id={TRACE}")],
            vec!["span_id=00000000000000aa".to_owned(), format!("span_id={SPAN}")],
            vec!["local root span id=17".to_owned()],
            vec![format!("trace_id={TRACE}")],
        ] {
            let labels: Vec<Label> = labels.iter().map(|text| parse(text)).collect();
            assert_eq!(to_labels(&from_labels(&labels)), labels);
        }
    }
}
