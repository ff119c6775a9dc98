//! Span metrics: how often and how long, by service, name, kind and status.

use std::collections::{BTreeMap, HashMap, HashSet};

use spanflame_model::{Span, SpanKind, StatusCode};

use super::exposition::{Exposition, Histogram};

/// Services with series of their own.
const SERVICES_MAX: usize = 1_000;
/// Names of one service with series of their own.
const NAMES_PER_SERVICE_MAX: usize = 500;
/// Series of one tenant.
const SERIES_MAX: usize = 20_000;
/// What stands for services and names over a limit.
pub(super) const OTHER: &str = "<other>";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    service: String,
    name: String,
    kind: SpanKind,
    status: StatusCode,
}

/// The counters.
#[derive(Default)]
pub(super) struct Calls {
    series: BTreeMap<Key, Histogram>,
    names: HashMap<String, HashSet<String>>,
    /// Spans that count under [`OTHER`].
    folded: u64,
}

impl Calls {
    pub(super) fn add(&mut self, span: &Span) {
        let (service, name) = self.fold(span.resource.service(), &span.name);
        let key = Key {
            service: service.to_owned(),
            name: name.to_owned(),
            kind: span.kind,
            status: span.status,
        };
        self.folded += u64::from(key.name == OTHER);
        self.series.entry(key).or_default().add(span.duration_ns);
    }

    /// The names under which a span counts.
    fn fold<'a>(&mut self, service: &'a str, name: &'a str) -> (&'a str, &'a str) {
        let is_full = self.series.len() >= SERIES_MAX;
        let service = match self.names.contains_key(service) || (!is_full && self.names.len() < SERVICES_MAX) {
            true => service,
            false => OTHER,
        };
        if service == OTHER {
            return (OTHER, OTHER);
        }
        if !self.names.contains_key(service) {
            self.names.insert(service.to_owned(), HashSet::new());
        }
        let Some(names) = self.names.get_mut(service) else {
            return (service, OTHER);
        };
        if names.contains(name) {
            return (service, name);
        }
        if is_full || names.len() >= NAMES_PER_SERVICE_MAX {
            return (service, OTHER);
        }
        names.insert(name.to_owned());
        (service, name)
    }

    pub(super) fn expose(&self, text: &mut Exposition) {
        let calls = "traces_spanmetrics_calls_total";
        text.head(calls, "counter", "Spans.");
        for (key, histogram) in &self.series {
            text.counter(calls, &key.labels(), histogram.count());
        }
        let latency = "traces_spanmetrics_latency";
        text.head(latency, "histogram", "Durations of spans in seconds.");
        for (key, histogram) in &self.series {
            text.histogram(latency, &key.labels(), histogram);
        }
        let folded = "traces_spanmetrics_folded_total";
        text.head(
            folded,
            "counter",
            "Spans that count under <other>, because there are too many services or names.",
        );
        text.counter(folded, &[], self.folded);
    }
}

impl Key {
    fn labels(&self) -> [(&str, &str); 4] {
        [
            ("service", &self.service),
            ("span_name", &self.name),
            ("span_kind", kind(self.kind)),
            ("status_code", status(self.status)),
        ]
    }
}

fn kind(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Unspecified => "SPAN_KIND_UNSPECIFIED",
        SpanKind::Internal => "SPAN_KIND_INTERNAL",
        SpanKind::Server => "SPAN_KIND_SERVER",
        SpanKind::Client => "SPAN_KIND_CLIENT",
        SpanKind::Producer => "SPAN_KIND_PRODUCER",
        SpanKind::Consumer => "SPAN_KIND_CONSUMER",
    }
}

fn status(status: StatusCode) -> &'static str {
    match status {
        StatusCode::Unset => "STATUS_CODE_UNSET",
        StatusCode::Ok => "STATUS_CODE_OK",
        StatusCode::Error => "STATUS_CODE_ERROR",
    }
}
