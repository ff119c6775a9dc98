//! Whether a span matches.
//!
//! Three-valued where the query asks about the trace and the trace is not at hand: unknown stays unknown unless
//! the rest of the filter decides.

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::Regex;
use spanflame_model::{Attributes, Span, SpanKind, StatusCode, Value};

use super::TraceFacts;
use super::ast::{Arithmetic, ArithmeticOperator, Comparator, Comparison, Expr, Field, Intrinsic, Literal};

/// The value of an expression for one span.
#[derive(Clone, Debug)]
enum Operand<'a> {
    /// It depends on the trace, which is not at hand.
    Unknown,
    Nil,
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Bool(bool),
    Status(StatusCode),
    Kind(SpanKind),
    Many(Cow<'a, [Value]>),
}

/// Where a span is in its trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place<'a> {
    /// `None` where there is none, or it was not received.
    pub(super) parent: Option<&'a Span>,
    pub(super) children: i64,
    /// Left, right and the parent's left of the nested set; 0 where there is no way from a root.
    pub(super) nested_set: [i64; 3],
}

/// Whether `span` matches; `None` if that depends on the trace.
pub(super) fn test(filter: &Expr, span: &Span, trace: Option<&TraceFacts>) -> Option<bool> {
    let place = None;
    Context { span, trace, place }.test(filter)
}

/// Whether a span of a trace that is known matches.
pub(super) fn test_in_trace(filter: &Expr, span: &Span, facts: &TraceFacts, place: Place<'_>) -> bool {
    let (trace, place) = (Some(facts), Some(place));
    Context { span, trace, place }.test(filter) == Some(true)
}

/// The number that an expression is for a span of a trace that is known.
pub(super) fn number_in_trace(expr: &Expr, span: &Span, facts: &TraceFacts, place: Place<'_>) -> Option<f64> {
    let (trace, place) = (Some(facts), Some(place));
    to_float(&Context { span, trace, place }.operand(expr))
}

/// The value of a field for a span of a trace that is known; `None` where it is absent.
pub(super) fn value_in_trace(field: &Field, span: &Span, facts: &TraceFacts, place: Place<'_>) -> Option<Value> {
    let (trace, place) = (Some(facts), Some(place));
    plain(Context { span, trace, place }.field(field))
}

/// The value of a field, as an attribute would have it; `None` where it is absent.
pub(super) fn value(field: &Field, span: &Span, trace: Option<&TraceFacts>) -> Option<Value> {
    let place = None;
    plain(Context { span, trace, place }.field(field))
}

fn plain(operand: Operand<'_>) -> Option<Value> {
    match operand {
        Operand::Unknown | Operand::Nil => None,
        Operand::Int(number) => Some(Value::Int(number)),
        Operand::Float(number) => Some(Value::Double(number)),
        Operand::Text(text) => Some(Value::Str(text.into_owned())),
        Operand::Bool(value) => Some(Value::Bool(value)),
        Operand::Status(status) => Some(status.as_str().into()),
        Operand::Kind(kind) => Some(kind.as_str().into()),
        Operand::Many(values) => Some(Value::Array(values.into_owned())),
    }
}

struct Context<'a> {
    span: &'a Span,
    trace: Option<&'a TraceFacts>,
    place: Option<Place<'a>>,
}

impl<'a> Context<'a> {
    fn test(&self, expr: &'a Expr) -> Option<bool> {
        match expr {
            Expr::All(terms) => all(terms.iter().map(|term| self.test(term))),
            Expr::Any(terms) => all(terms.iter().map(|term| self.test(term).map(|value| !value))).map(|value| !value),
            Expr::Not(_, operand) => self.test(operand).map(|value| !value),
            Expr::Compare(comparison) => self.compare(comparison),
            Expr::Match(_, operand, regex, wanted) => match self.operand(operand) {
                Operand::Unknown => None,
                found => Some(matches(&found, regex, *wanted)),
            },
            Expr::Literal(_) | Expr::Field(_) | Expr::Negate(..) | Expr::Arithmetic(_) => match self.operand(expr) {
                Operand::Unknown => None,
                Operand::Bool(value) => Some(value),
                _ => Some(false),
            },
        }
    }

    fn compare(&self, comparison: &'a Comparison) -> Option<bool> {
        let (left, right) = (self.operand(&comparison.left), self.operand(&comparison.right));
        if matches!(left, Operand::Unknown) || matches!(right, Operand::Unknown) {
            return None;
        }
        if is_nil(&comparison.left) || is_nil(&comparison.right) {
            let both = matches!((&left, &right), (Operand::Nil, Operand::Nil));
            return Some(both == (comparison.operator == Comparator::Equal));
        }
        Some(match (&left, &right) {
            (Operand::Many(values), one) => holds_for_list(values, one, comparison.operator),
            (one, Operand::Many(values)) => holds_for_list(values, one, comparison.operator.flipped()),
            (left, right) => holds(left, right, comparison.operator),
        })
    }

    fn operand(&self, expr: &'a Expr) -> Operand<'a> {
        match expr {
            Expr::Literal(literal) => literal_operand(literal),
            Expr::Field(field) => self.field(field),
            Expr::Negate(_, operand) => match self.operand(operand) {
                Operand::Int(number) => Operand::Int(number.wrapping_neg()),
                Operand::Float(number) => Operand::Float(-number),
                Operand::Unknown => Operand::Unknown,
                _ => Operand::Nil,
            },
            Expr::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            _ => self.test(expr).map_or(Operand::Unknown, Operand::Bool),
        }
    }

    fn arithmetic(&self, arithmetic: &'a Arithmetic) -> Operand<'a> {
        let (left, right) = (self.operand(&arithmetic.left), self.operand(&arithmetic.right));
        match (left, right) {
            (Operand::Unknown, _) | (_, Operand::Unknown) => Operand::Unknown,
            (Operand::Int(left), Operand::Int(right)) => calculate_int(left, arithmetic.operator, right),
            (left, right) => match (to_float(&left), to_float(&right)) {
                (Some(left), Some(right)) => Operand::Float(calculate(left, arithmetic.operator, right)),
                _ => Operand::Nil,
            },
        }
    }

    fn field(&self, field: &'a Field) -> Operand<'a> {
        let span = self.span;
        let resource = |name: &str| match span.resource.attributes().get(name) {
            None if name == "service.name" => Operand::Text(span.resource.service().into()),
            value => value_operand(value),
        };
        match field {
            Field::Span(name) => attribute(&span.attributes, name),
            Field::Resource(name) => resource(name),
            Field::Instrumentation(name) => attribute(&span.scope.attributes, name),
            Field::Any(name) => match span.attributes.get(name) {
                Some(value) => value_operand(Some(value)),
                None => resource(name),
            },
            Field::Event(name) => many(span.events.iter().filter_map(|event| event.attributes.get(name))),
            Field::Link(name) => many(span.links.iter().filter_map(|link| link.attributes.get(name))),
            Field::Parent(field) => self.of_parent(field),
            Field::Intrinsic(intrinsic) if intrinsic.is_of_trace() => self.trace_field(*intrinsic),
            Field::Intrinsic(intrinsic) => self.intrinsic(*intrinsic),
        }
    }

    fn of_parent(&self, field: &'a Field) -> Operand<'a> {
        let Some(place) = self.place else {
            // A span without a parent tells it by itself.
            return if self.span.parent_span_id.is_none() {
                Operand::Nil
            } else {
                Operand::Unknown
            };
        };
        let (trace, place, parent) = (self.trace, None, place.parent);
        parent.map_or(Operand::Nil, |span| Context { span, trace, place }.field(field))
    }

    fn intrinsic(&self, intrinsic: Intrinsic) -> Operand<'a> {
        let span = self.span;
        match intrinsic {
            Intrinsic::Name => Operand::Text(span.name.as_str().into()),
            Intrinsic::Status => Operand::Status(span.status),
            Intrinsic::StatusMessage => Operand::Text(span.status_message.as_str().into()),
            Intrinsic::Kind => Operand::Kind(span.kind),
            Intrinsic::Duration => Operand::Int(i64::try_from(span.duration_ns).unwrap_or(i64::MAX)),
            Intrinsic::SpanId => Operand::Text(span.span_id.to_string().into()),
            Intrinsic::ParentId => span.parent_span_id.map_or(Operand::Nil, |id| Operand::Text(id.to_string().into())),
            Intrinsic::TraceId => Operand::Text(span.trace_id.to_string().into()),
            Intrinsic::InstrumentationName => Operand::Text(span.scope.name.as_str().into()),
            Intrinsic::InstrumentationVersion => Operand::Text(span.scope.version.as_str().into()),
            Intrinsic::EventName => listed(span.events.iter().map(|event| Value::from(event.name.as_str()))),
            Intrinsic::EventTimeSinceStart => listed(span.events.iter().map(|event| {
                let since = event.time.unix_nanos().saturating_sub(span.start.unix_nanos());
                Value::Int(since)
            })),
            Intrinsic::LinkTraceId => listed(span.links.iter().map(|link| Value::Str(link.trace_id.to_string()))),
            Intrinsic::LinkSpanId => listed(span.links.iter().map(|link| Value::Str(link.span_id.to_string()))),
            _ => Operand::Unknown,
        }
    }

    fn trace_field(&self, intrinsic: Intrinsic) -> Operand<'a> {
        if let Some(Place { children, nested_set, .. }) = self.place {
            match intrinsic {
                Intrinsic::ChildCount => return Operand::Int(children),
                Intrinsic::NestedSetLeft => return Operand::Int(nested_set[0]),
                Intrinsic::NestedSetRight => return Operand::Int(nested_set[1]),
                Intrinsic::NestedSetParent => return Operand::Int(nested_set[2]),
                _ => {}
            }
        }
        let Some(trace) = self.trace else {
            return Operand::Unknown;
        };
        let text = |text: &'a Option<String>| text.as_deref().map_or(Operand::Nil, |text| Operand::Text(text.into()));
        match intrinsic {
            Intrinsic::TraceDuration => Operand::Int(i64::try_from(trace.duration_ns).unwrap_or(i64::MAX)),
            Intrinsic::RootName => text(&trace.root_name),
            Intrinsic::RootService => text(&trace.root_service),
            _ => Operand::Unknown,
        }
    }
}

/// Kleene's "and": a false decides, an unknown spoils the rest.
fn all(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(true);
    for value in values {
        match value {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = None,
        }
    }
    known
}

fn is_nil(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(Literal::Nil))
}

fn literal_operand(literal: &Literal) -> Operand<'_> {
    match literal {
        Literal::Nil => Operand::Nil,
        Literal::Int(number) | Literal::Duration(number) => Operand::Int(*number),
        Literal::Float(number) => Operand::Float(*number),
        Literal::Str(text) => Operand::Text(text.as_str().into()),
        Literal::Bool(value) => Operand::Bool(*value),
        Literal::Status(status) => Operand::Status(*status),
        Literal::Kind(kind) => Operand::Kind(*kind),
    }
}

fn attribute<'a>(attributes: &'a Attributes, name: &str) -> Operand<'a> {
    value_operand(attributes.get(name))
}

fn value_operand(value: Option<&Value>) -> Operand<'_> {
    match value {
        None | Some(Value::Bytes(_) | Value::Map(_)) => Operand::Nil,
        Some(Value::Str(text)) => Operand::Text(text.as_str().into()),
        Some(Value::Int(number)) => Operand::Int(*number),
        Some(Value::Double(number)) => Operand::Float(*number),
        Some(Value::Bool(value)) => Operand::Bool(*value),
        Some(Value::Array(values)) => Operand::Many(values.into()),
    }
}

/// What several events or links have: like a list, of which lists are parts.
fn many<'a>(values: impl Iterator<Item = &'a Value>) -> Operand<'a> {
    listed(values.flat_map(|value| match value {
        Value::Array(values) => values.clone(),
        value => vec![value.clone()],
    }))
}

fn listed<'a>(values: impl Iterator<Item = Value>) -> Operand<'a> {
    let values: Vec<Value> = values.collect();
    match values.is_empty() {
        true => Operand::Nil,
        false => Operand::Many(values.into()),
    }
}

fn matches(found: &Operand<'_>, regex: &Regex, wanted: bool) -> bool {
    match found {
        Operand::Text(text) => regex.is_match(text) == wanted,
        Operand::Many(values) => {
            let mut texts = values.iter().filter_map(Value::as_str).peekable();
            texts.peek().is_some() && texts.any(|text| regex.is_match(text)) == wanted
        }
        _ => false,
    }
}

/// Of a list, `!=` wants no element that is equal, every other operator any element for which it holds.
fn holds_for_list(values: &[Value], one: &Operand<'_>, operator: Comparator) -> bool {
    let any = |operator| values.iter().any(|value| holds(&value_operand(Some(value)), one, operator));
    match operator {
        Comparator::NotEqual => !any(Comparator::Equal) && any(Comparator::NotEqual),
        operator => any(operator),
    }
}

fn holds(left: &Operand<'_>, right: &Operand<'_>, operator: Comparator) -> bool {
    let Some(ordering) = order(left, right) else {
        return false;
    };
    match operator {
        Comparator::Equal => ordering == Ordering::Equal,
        Comparator::NotEqual => ordering != Ordering::Equal,
        Comparator::Greater => ordering == Ordering::Greater,
        Comparator::GreaterEqual => ordering != Ordering::Less,
        Comparator::Less => ordering == Ordering::Less,
        Comparator::LessEqual => ordering != Ordering::Greater,
    }
}

/// `None` where the two are of different types.
fn order(left: &Operand<'_>, right: &Operand<'_>) -> Option<Ordering> {
    match (left, right) {
        (Operand::Int(a), Operand::Int(b)) => Some(a.cmp(b)),
        (Operand::Text(a), Operand::Text(b)) => Some(a.cmp(b)),
        (Operand::Bool(a), Operand::Bool(b)) => Some(a.cmp(b)),
        (Operand::Status(a), Operand::Status(b)) => Some(a.cmp(b)),
        (Operand::Kind(a), Operand::Kind(b)) => Some(a.cmp(b)),
        (a, b) => to_float(a)?.partial_cmp(&to_float(b)?),
    }
}

fn to_float(operand: &Operand<'_>) -> Option<f64> {
    match operand {
        Operand::Int(number) => Some(*number as f64),
        Operand::Float(number) => Some(*number),
        _ => None,
    }
}

fn calculate_int<'a>(left: i64, operator: ArithmeticOperator, right: i64) -> Operand<'a> {
    let exact = match operator {
        ArithmeticOperator::Add => left.checked_add(right),
        ArithmeticOperator::Subtract => left.checked_sub(right),
        ArithmeticOperator::Multiply => left.checked_mul(right),
        ArithmeticOperator::Divide => left.checked_div(right),
        ArithmeticOperator::Modulo => left.checked_rem(right),
        ArithmeticOperator::Power => u32::try_from(right).ok().and_then(|right| left.checked_pow(right)),
    };
    match exact {
        Some(number) => Operand::Int(number),
        None => Operand::Float(calculate(left as f64, operator, right as f64)),
    }
}

fn calculate(left: f64, operator: ArithmeticOperator, right: f64) -> f64 {
    match operator {
        ArithmeticOperator::Add => left + right,
        ArithmeticOperator::Subtract => left - right,
        ArithmeticOperator::Multiply => left * right,
        ArithmeticOperator::Divide => left / right,
        ArithmeticOperator::Modulo => left % right,
        ArithmeticOperator::Power => left.powf(right),
    }
}
