//! Which attributes spans have, and which values: what a search box offers.
//!
//! Counted from the spans of a range. What many spans share (resources, scopes) is counted by its address first and
//! unfolded once, so that a range of a million spans costs little more than reading it.

mod comparison;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use spanflame_model::{Attributes, Span, Tenant, TimeRange, Value};

use crate::selected::RangeRule;
use crate::tags::text_of;
use crate::traceql::Query;

pub(crate) use comparison::ComparisonCounter;
pub use comparison::{AttributesComparison, AttributesComparisonRequest, OverRepresented, SpanSet};

/// Which spans to look at.
#[derive(Clone, Debug)]
pub struct AttributesRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// When they ran.
    pub range: TimeRange,
    /// What that means.
    pub rule: RangeRule,
    /// Only spans that match; `None` is all.
    pub query: Option<Query>,
}

/// Where an attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttributeScope {
    /// On the span.
    Span,
    /// On what sent it.
    Resource,
    /// On the library that made it.
    Instrumentation,
    /// On one of its events.
    Event,
    /// On one of its links.
    Link,
    /// No attribute, but a field that every span has: `name`, `status`, ...
    Intrinsic,
}

impl AttributeScope {
    /// Every scope.
    pub const ALL: [AttributeScope; 6] = [
        AttributeScope::Span,
        AttributeScope::Resource,
        AttributeScope::Instrumentation,
        AttributeScope::Event,
        AttributeScope::Link,
        AttributeScope::Intrinsic,
    ];

    /// The word of TraceQL and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            AttributeScope::Span => "span",
            AttributeScope::Resource => "resource",
            AttributeScope::Instrumentation => "instrumentation",
            AttributeScope::Event => "event",
            AttributeScope::Link => "link",
            AttributeScope::Intrinsic => "intrinsic",
        }
    }

    /// The scope of a word, if it is one.
    pub fn from_word(word: &str) -> Option<AttributeScope> {
        AttributeScope::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// An attribute that spans have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeName {
    /// Where it is; never [`AttributeScope::Intrinsic`].
    pub scope: AttributeScope,
    /// Its key.
    pub key: String,
    /// Of what types its values are: `string`, `int`, `double`, `bool`, `bytes`, `array`, `map`.
    pub value_types: BTreeSet<&'static str>,
    /// Spans that have it.
    pub spans: u64,
}

/// A value that spans have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeValue {
    /// As text.
    pub value: String,
    /// As in [`AttributeName::value_types`]; `keyword` for the words of `status` and `kind`.
    pub value_type: &'static str,
    /// Spans that have it.
    pub spans: u64,
}

/// The values of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesRequest {
    /// Where it is; `None` is on the span, else on its resource.
    pub scope: Option<AttributeScope>,
    /// Its key. Of intrinsics: `name`, `status`, `statusMessage`, `kind`, `service`, `rootName`, `rootServiceName`,
    /// `instrumentation:name`, `instrumentation:version`, `event:name`.
    pub key: String,
}

/// A list, and whether that is all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// By spans descending, then in order.
    pub items: Vec<T>,
    /// There are more than are counted.
    pub truncated: bool,
}

/// Most keys, or values, that are counted.
const KEPT_MAX: usize = 100_000;
/// Most resources and scopes that are counted by address before they are unfolded.
const SHARED_MAX: usize = 10_000;

/// Things by address, with how many spans share each. What is counted is kept, so that its address stays its own.
struct Shared<T>(HashMap<usize, (Arc<T>, u64)>);

impl<T> Shared<T> {
    fn add(&mut self, shared: &Arc<T>) {
        let address = Arc::as_ptr(shared) as usize;
        self.0.entry(address).or_insert_with(|| (shared.clone(), 0)).1 += 1;
    }

    fn take_if(&mut self, take: impl FnOnce(usize) -> bool) -> Vec<(Arc<T>, u64)> {
        match take(self.0.len()) {
            true => self.0.drain().map(|(_, counted)| counted).collect(),
            false => Vec::new(),
        }
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared(HashMap::new())
    }
}

/// Counts names.
#[derive(Default)]
pub(crate) struct NameCounter {
    found: HashMap<AttributeScope, HashMap<String, (BTreeSet<&'static str>, u64)>>,
    kept: usize,
    truncated: bool,
    resources: Shared<spanflame_model::Resource>,
    scopes: Shared<spanflame_model::Scope>,
}

impl NameCounter {
    pub(crate) fn add(&mut self, span: &Span) {
        self.resources.add(&span.resource);
        self.scopes.add(&span.scope);
        self.unfold(|held| held >= SHARED_MAX);
        self.count(AttributeScope::Span, &span.attributes, 1);
        // A key that several events have is on one span.
        self.count(AttributeScope::Event, &merged(span.events.iter().map(|event| &event.attributes)), 1);
        self.count(AttributeScope::Link, &merged(span.links.iter().map(|link| &link.attributes)), 1);
    }

    fn unfold(&mut self, when: impl Fn(usize) -> bool) {
        for (resource, spans) in self.resources.take_if(&when) {
            self.count(AttributeScope::Resource, resource.attributes(), spans);
            if resource.attributes().get("service.name").is_none() {
                let derived = [("service.name", resource.service())].into_iter().collect();
                self.count(AttributeScope::Resource, &derived, spans);
            }
        }
        for (scope, spans) in self.scopes.take_if(&when) {
            self.count(AttributeScope::Instrumentation, &scope.attributes, spans);
        }
    }

    fn count(&mut self, scope: AttributeScope, attributes: &Attributes, spans: u64) {
        for (key, value) in attributes.iter() {
            let found = self.found.entry(scope).or_default();
            if !found.contains_key(key) {
                if self.kept >= KEPT_MAX {
                    self.truncated = true;
                    continue;
                }
                self.kept += 1;
                found.insert(key.to_owned(), Default::default());
            }
            if let Some((types, count)) = found.get_mut(key) {
                types.insert(type_of(value));
                *count += spans;
            }
        }
    }

    pub(crate) fn finish(mut self) -> Listed<AttributeName> {
        self.unfold(|_| true);
        let mut items = Vec::with_capacity(self.kept);
        for (scope, keys) in self.found {
            items.extend(keys.into_iter().map(|(key, (value_types, spans))| AttributeName {
                scope,
                key,
                value_types,
                spans,
            }));
        }
        items.sort_by(|a, b| (b.spans, a.scope, &a.key).cmp(&(a.spans, b.scope, &b.key)));
        Listed {
            items,
            truncated: self.truncated,
        }
    }
}

fn merged<'a>(sets: impl Iterator<Item = &'a Attributes>) -> Attributes {
    let pairs = sets.flat_map(Attributes::iter);
    pairs.map(|(key, value)| (key.to_owned(), value.clone())).collect()
}

/// Counts values.
pub(crate) struct ValueCounter {
    request: ValuesRequest,
    found: HashMap<(String, &'static str), u64>,
    truncated: bool,
}

impl ValueCounter {
    pub(crate) fn new(request: ValuesRequest) -> ValueCounter {
        ValueCounter {
            request,
            found: HashMap::new(),
            truncated: false,
        }
    }

    pub(crate) fn add(&mut self, span: &Span) {
        let key = self.request.key.clone();
        let of_resource = |span: &Span| match span.resource.attributes().get(&key) {
            None if key == "service.name" => Some(span.resource.service().into()),
            value => value.cloned(),
        };
        match self.request.scope {
            None => {
                let value = span.attributes.get(&key).cloned().or_else(|| of_resource(span));
                self.count_all(value);
            }
            Some(AttributeScope::Span) => self.count_all(span.attributes.get(&key).cloned()),
            Some(AttributeScope::Resource) => self.count_all(of_resource(span)),
            Some(AttributeScope::Instrumentation) => self.count_all(span.scope.attributes.get(&key).cloned()),
            Some(AttributeScope::Event) => {
                self.count_all(span.events.iter().filter_map(|event| event.attributes.get(&key).cloned()));
            }
            Some(AttributeScope::Link) => {
                self.count_all(span.links.iter().filter_map(|link| link.attributes.get(&key).cloned()));
            }
            Some(AttributeScope::Intrinsic) => self.count_intrinsic(&key, span),
        }
    }

    fn count_intrinsic(&mut self, key: &str, span: &Span) {
        let is_root = span.parent_span_id.is_none();
        let text = match key {
            "name" => &span.name,
            "statusMessage" => &span.status_message,
            "service" => span.resource.service(),
            "instrumentation:name" => &span.scope.name,
            "instrumentation:version" => &span.scope.version,
            "rootName" if is_root => &span.name,
            "rootServiceName" if is_root => span.resource.service(),
            "status" => return self.count(span.status.as_str(), "keyword"),
            "kind" => return self.count(span.kind.as_str(), "keyword"),
            "event:name" => return span.events.iter().for_each(|event| self.count(&event.name, "string")),
            _ => return,
        };
        if !text.is_empty() {
            self.count(text, "string");
        }
    }

    fn count_all(&mut self, values: impl IntoIterator<Item = Value>) {
        for value in values {
            match &value {
                Value::Str(text) => self.count(text, "string"),
                // Of a list any element is a value that a search finds.
                Value::Array(values) => values.iter().for_each(|value| self.count(&text_of(value), type_of(value))),
                value => self.count(&text_of(value), type_of(value)),
            }
        }
    }

    fn count(&mut self, text: &str, value_type: &'static str) {
        let key = (text.to_owned(), value_type);
        if self.found.len() >= KEPT_MAX && !self.found.contains_key(&key) {
            self.truncated = true;
            return;
        }
        *self.found.entry(key).or_default() += 1;
    }

    pub(crate) fn finish(self, limit: usize) -> Listed<AttributeValue> {
        let of = |((value, value_type), spans)| AttributeValue { value, value_type, spans };
        let mut items: Vec<AttributeValue> = self.found.into_iter().map(of).collect();
        items.sort_by(|a, b| (b.spans, &a.value, a.value_type).cmp(&(a.spans, &b.value, b.value_type)));
        let truncated = self.truncated || items.len() > limit;
        items.truncate(limit);
        Listed { items, truncated }
    }
}

/// The word for the type of a value.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Str(_) => "string",
        Value::Int(_) => "int",
        Value::Double(_) => "double",
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Array(_) => "array",
        Value::Map(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use spanflame_model::StatusCode;
    use spanflame_testkit::{SpanBuilder, resource};

    use super::*;

    fn spans() -> Vec<Span> {
        let host = resource("a", &[("host", "h1")]);
        let one = SpanBuilder::new(1, 1, "a").resource(&host).attribute("n", Value::Int(1)).name("x");
        let two = SpanBuilder::new(1, 2, "a")
            .resource(&host)
            .attribute("n", "one")
            .parent(1)
            .name("y");
        vec![
            one.status(StatusCode::Error).build(),
            two.build(),
            SpanBuilder::new(1, 3, "b").parent(1).name("y").build(),
        ]
    }

    #[test]
    fn names_are_counted_by_scope_with_their_types() {
        let mut counter = NameCounter::default();
        spans().iter().for_each(|span| counter.add(span));
        let listed = counter.finish();
        let texts: Vec<String> = listed
            .items
            .iter()
            .map(|name| format!("{}.{} {:?} {}", name.scope.as_str(), name.key, name.value_types, name.spans))
            .collect();
        let expected = [
            "resource.service.name {\"string\"} 3",
            "span.n {\"int\", \"string\"} 2",
            "resource.host {\"string\"} 2",
        ];
        assert_eq!((texts.as_slice(), listed.truncated), (&expected.map(str::to_owned)[..], false));
    }

    fn check(scope: Option<AttributeScope>, key: &str, limit: usize, expected: &[(&str, &str, u64)]) {
        let mut counter = ValueCounter::new(ValuesRequest {
            scope,
            key: key.to_owned(),
        });
        spans().iter().for_each(|span| counter.add(span));
        let listed = counter.finish(limit);
        let found: Vec<(&str, &str, u64)> = listed.items.iter().map(|v| (v.value.as_str(), v.value_type, v.spans)).collect();
        assert_eq!(found, expected, "{key}");
    }

    #[test]
    fn values_are_counted_most_frequent_first() {
        check(
            Some(AttributeScope::Intrinsic),
            "name",
            10,
            &[("y", "string", 2), ("x", "string", 1)],
        );
        check(Some(AttributeScope::Intrinsic), "name", 1, &[("y", "string", 2)]);
        check(Some(AttributeScope::Intrinsic), "rootName", 10, &[("x", "string", 1)]);
        check(
            Some(AttributeScope::Intrinsic),
            "status",
            10,
            &[("unset", "keyword", 2), ("error", "keyword", 1)],
        );
        check(Some(AttributeScope::Span), "n", 10, &[("1", "int", 1), ("one", "string", 1)]);
        check(None, "host", 10, &[("h1", "string", 2)]);
        check(Some(AttributeScope::Span), "host", 10, &[]);
    }
}
