//! Which attribute values are more frequent in one set of spans than in another.
//!
//! The target is counted first. Of the base only values that the target has are counted, since no other can be more
//! frequent there; memory is then bounded by the target's values alone. Exact counts, except for keys that are named
//! as truncated: of these only the values that came first are known.

use std::collections::{BTreeSet, HashMap};

use spanflame_model::{Attributes, Span, SpanId, Tenant, TraceId, Value};

use super::{AttributeScope, SHARED_MAX, Shared, type_of};
use crate::selected::SpanSelection;
use crate::stats::Interval;
use crate::tags::text_of;
use crate::traceql::TraceFacts;

/// Two sets of spans whose attributes are compared.
#[derive(Clone, Debug)]
pub struct AttributesComparisonRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// What the target is compared with; spans that are in both count for the target only.
    pub base: SpanSet,
    /// The spans that are looked into.
    pub target: SpanSet,
    /// How many values at most: 1 to [`AttributesComparisonRequest::LIMIT_MAX`].
    pub limit: usize,
}

impl AttributesComparisonRequest {
    /// The limit where none is given.
    pub const LIMIT_DEFAULT: usize = 50;
    /// The largest limit.
    pub const LIMIT_MAX: usize = 1000;
}

/// Spans, by what they look like or by name.
#[derive(Clone, Debug)]
pub enum SpanSet {
    /// Those that match.
    Matching(SpanSelection),
    /// Those of a trace, or one of them.
    OfTrace {
        /// The trace.
        trace_id: TraceId,
        /// The span; `None` is all.
        span_id: Option<SpanId>,
    },
}

impl SpanSet {
    /// Whether `span` belongs to the set; `facts` are those of its trace, where the query asks for them.
    pub(crate) fn holds(&self, span: &Span, facts: &HashMap<TraceId, TraceFacts>) -> bool {
        match self {
            SpanSet::Matching(SpanSelection { query, range, rule }) => {
                span.range().overlap(*range).is_some()
                    && rule.holds(*range, span)
                    && query.test(span, facts.get(&span.trace_id)) == Some(true)
            }
            SpanSet::OfTrace { trace_id, span_id } => span.trace_id == *trace_id && span_id.is_none_or(|id| id == span.span_id),
        }
    }
}

/// What the target has more of than the base.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributesComparison {
    /// Spans that are in the base and not in the target.
    pub base_spans: u64,
    /// Spans of the target.
    pub target_spans: u64,
    /// By difference of shares descending, then scope, key, value. Only where the intervals do not overlap.
    pub values: Vec<OverRepresented>,
    /// Keys of which the target has more values than were counted, with their scope.
    pub truncated_keys: Vec<(AttributeScope, String)>,
}

/// A value that is more frequent in the target.
#[derive(Clone, Debug, PartialEq)]
pub struct OverRepresented {
    /// Where it is.
    pub scope: AttributeScope,
    /// Its key; of [`AttributeScope::Intrinsic`]: `name`, `service`, `status`, `kind`.
    pub key: String,
    /// As text.
    pub value: String,
    /// `string`, `int`, `double`, `bool`; `keyword` for the words of `status` and `kind`.
    pub value_type: &'static str,
    /// Spans of the target that have it.
    pub target_spans: u64,
    /// Spans of the base that have it.
    pub base_spans: u64,
    /// `target_spans` of all in the target.
    pub target_share: f64,
    /// Where that share may lie.
    pub target_interval: Interval,
    /// `base_spans` of all in the base.
    pub base_share: f64,
    /// Where that share may lie.
    pub base_interval: Interval,
}

impl OverRepresented {
    /// How much more of the target has it than of the base.
    pub fn difference(&self) -> f64 {
        self.target_share - self.base_share
    }
}

/// Most different values of one key, and of all keys together.
const VALUES_OF_KEY_MAX: usize = 10_000;
const VALUES_MAX: usize = 500_000;
/// Most keys; further ones are named as truncated up to the same number.
const KEYS_MAX: usize = 10_000;

/// Of which set a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Target = 0,
    Base = 1,
}

/// Counts values in the spans of the target, then of the base.
pub(crate) struct ComparisonCounter {
    of: Of,
    spans: [u64; 2],
    found: HashMap<AttributeScope, HashMap<String, Values>>,
    keys: usize,
    values: usize,
    truncated: BTreeSet<(AttributeScope, String)>,
    resources: Shared<spanflame_model::Resource>,
    scopes: Shared<spanflame_model::Scope>,
}

/// Target and base counts by type and text.
type Values = HashMap<&'static str, HashMap<String, [u64; 2]>>;

impl ComparisonCounter {
    pub(crate) fn new() -> ComparisonCounter {
        ComparisonCounter {
            of: Of::Target,
            spans: [0; 2],
            found: HashMap::new(),
            keys: 0,
            values: 0,
            truncated: BTreeSet::new(),
            resources: Shared::default(),
            scopes: Shared::default(),
        }
    }

    /// From now on spans are the base's.
    pub(crate) fn turn_to_base(&mut self) {
        self.unfold(|_| true);
        self.of = Of::Base;
    }

    pub(crate) fn add(&mut self, span: &Span) {
        self.spans[self.of as usize] += 1;
        self.resources.add(&span.resource);
        self.scopes.add(&span.scope);
        self.unfold(|held| held >= SHARED_MAX);
        self.count_all(AttributeScope::Span, &span.attributes, 1);
        let intrinsic = AttributeScope::Intrinsic;
        self.count((intrinsic, "name"), "string", &span.name, 1);
        self.count((intrinsic, "service"), "string", span.resource.service(), 1);
        self.count((intrinsic, "status"), "keyword", span.status.as_str(), 1);
        self.count((intrinsic, "kind"), "keyword", span.kind.as_str(), 1);
    }

    fn unfold(&mut self, when: impl Fn(usize) -> bool) {
        for (resource, spans) in self.resources.take_if(&when) {
            self.count_all(AttributeScope::Resource, resource.attributes(), spans);
        }
        for (scope, spans) in self.scopes.take_if(&when) {
            self.count_all(AttributeScope::Instrumentation, &scope.attributes, spans);
        }
    }

    fn count_all(&mut self, scope: AttributeScope, attributes: &Attributes, spans: u64) {
        for (key, value) in attributes.iter() {
            match value {
                // The service is counted as the intrinsic.
                _ if scope == AttributeScope::Resource && key == "service.name" => {}
                Value::Str(text) => self.count((scope, key), "string", text, spans),
                Value::Array(values) => {
                    // A span has an element once, however often its list does.
                    let elements: BTreeSet<(&'static str, String)> = values.iter().map(|value| (type_of(value), text_of(value))).collect();
                    elements
                        .iter()
                        .for_each(|(value_type, text)| self.count((scope, key), value_type, text, spans));
                }
                Value::Bytes(_) | Value::Map(_) => {}
                plain => self.count((scope, key), type_of(plain), &text_of(plain), spans),
            }
        }
    }

    fn count(&mut self, (scope, key): (AttributeScope, &str), value_type: &'static str, text: &str, spans: u64) {
        let index = self.of as usize;
        let keys = self.found.entry(scope).or_default();
        if let Some(counts) = keys
            .get_mut(key)
            .and_then(|types| types.get_mut(value_type))
            .and_then(|values| values.get_mut(text))
        {
            counts[index] += spans;
            return;
        }
        if self.of == Of::Base {
            return;
        }
        let is_new = !keys.contains_key(key);
        let known: usize = keys.get(key).map_or(0, |types| types.values().map(HashMap::len).sum());
        if known >= VALUES_OF_KEY_MAX || self.values >= VALUES_MAX || (is_new && self.keys >= KEYS_MAX) {
            if self.truncated.len() < KEYS_MAX {
                self.truncated.insert((scope, key.to_owned()));
            }
            return;
        }
        self.keys += usize::from(is_new);
        self.values += 1;
        let types = keys.entry(key.to_owned()).or_default();
        let values = types.entry(value_type).or_default();
        values.insert(text.to_owned(), [spans, 0]);
    }

    pub(crate) fn finish(mut self, limit: usize) -> AttributesComparison {
        self.unfold(|_| true);
        let all = self.spans;
        let mut values = Vec::new();
        for (scope, keys) in self.found {
            for (key, types) in keys {
                for (value_type, counted) in types {
                    let more = counted.into_iter().filter_map(|(value, counts)| {
                        let place = (scope, key.as_str(), value_type);
                        over_represented(place, value, counts, all)
                    });
                    values.extend(more);
                }
            }
        }
        values.sort_by(|a: &OverRepresented, b| {
            let place = |v: &OverRepresented| (v.scope, v.key.clone(), v.value.clone(), v.value_type);
            b.difference().total_cmp(&a.difference()).then_with(|| place(a).cmp(&place(b)))
        });
        values.truncate(limit);
        AttributesComparison {
            base_spans: all[Of::Base as usize],
            target_spans: all[Of::Target as usize],
            values,
            truncated_keys: self.truncated.into_iter().collect(),
        }
    }
}

/// `None` unless the target surely has more of it: without base or target nothing is sure.
fn over_represented(
    (scope, key, value_type): (AttributeScope, &str, &'static str),
    value: String,
    counts: [u64; 2],
    all: [u64; 2],
) -> Option<OverRepresented> {
    let ([target_spans, base_spans], [target, base]) = (counts, all);
    let (target_interval, base_interval) = (Interval::wilson(target_spans, target), Interval::wilson(base_spans, base));
    (target_interval.low > base_interval.high).then(|| OverRepresented {
        scope,
        key: key.to_owned(),
        value,
        value_type,
        target_spans,
        base_spans,
        target_share: target_spans as f64 / target as f64,
        target_interval,
        base_share: base_spans as f64 / base as f64,
        base_interval,
    })
}

#[cfg(test)]
mod tests {
    use spanflame_testkit::{SpanBuilder, resource};

    use super::*;

    fn span(n: u64, size: &str, host: &str) -> Span {
        let builder = SpanBuilder::new(1, n + 1, "cart").resource(&resource("cart", &[("host", host)]));
        builder.attribute("size", size).attribute("id", n as i64).name("checkout").build()
    }

    /// Of 40 targets 36 are large on host b; of 200 others 20 are large, all on host a or b alike.
    fn counted(limit: usize) -> AttributesComparison {
        let mut counter = ComparisonCounter::new();
        (0..40).for_each(|n| counter.add(&span(n, if n < 36 { "large" } else { "small" }, "b")));
        counter.turn_to_base();
        (40..240).for_each(|n| counter.add(&span(n, if n < 60 { "large" } else { "small" }, ["a", "b"][n as usize % 2])));
        counter.finish(limit)
    }

    #[test]
    fn only_what_is_surely_more_frequent_is_named_largest_difference_first() {
        let found = counted(10);
        assert_eq!((found.target_spans, found.base_spans), (40, 200));
        let rows: Vec<_> = found
            .values
            .iter()
            .map(|v| (v.scope.as_str(), v.key.as_str(), v.value.as_str(), v.target_spans, v.base_spans))
            .collect();
        assert_eq!(rows, [("span", "size", "large", 36, 20), ("resource", "host", "b", 40, 100)]);
        assert!((found.values[0].difference() - 0.8).abs() < 1e-9);
        assert!(found.values[0].base_interval.high < found.values[0].target_interval.low);
        assert_eq!(found.truncated_keys, []);
        assert_eq!(counted(1).values.len(), 1);
    }

    #[test]
    fn keys_with_too_many_values_are_named() {
        let mut counter = ComparisonCounter::new();
        (0..VALUES_OF_KEY_MAX as u64 + 1).for_each(|n| counter.add(&span(n, "large", "a")));
        let found = counter.finish(10);
        assert_eq!(found.truncated_keys, [(AttributeScope::Span, "id".to_owned())]);
        assert_eq!(found.values, [], "nothing is sure without a base");
    }

    #[test]
    fn a_list_counts_each_element_once() {
        let list = |values: &[&str]| Value::Array(values.iter().map(|value| (*value).into()).collect());
        let tagged = |n: u64, values: &[&str]| SpanBuilder::new(1, n, "s").attribute("tags", list(values)).build();
        let mut counter = ComparisonCounter::new();
        (1..30).for_each(|n| counter.add(&tagged(n, &["red", "red", "blue"])));
        counter.turn_to_base();
        (30..60).for_each(|n| counter.add(&tagged(n, &["blue"])));
        let found = counter.finish(10);
        let rows: Vec<_> = found.values.iter().map(|v| (v.value.as_str(), v.target_spans)).collect();
        assert_eq!(rows, [("red", 29)]);
    }
}
