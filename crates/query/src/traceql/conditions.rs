//! What a store may prune by, and what it has to fetch.
//!
//! Only conditions that every matching span meets: the terms of the outermost "and". Of attributes the store
//! answers with more than is equal (lists, text that reads like the number), so every span is tested here again.

use spanflame_model::Value;
use spanflame_store::{SpanCondition, SpanFields};

use super::ast::{Comparator, Comparison, Expr, Field, Intrinsic, Literal};

/// What every matching span meets.
pub(super) fn of(filter: &Expr) -> Vec<SpanCondition> {
    let mut found = Vec::new();
    collect(filter, &mut found);
    found
}

/// Whether any part asks about the trace.
pub(super) fn needs_trace(filter: &Expr) -> bool {
    any_field(filter, &mut |field| field.is_of_trace())
}

/// Whether any part asks about the place of a span in its trace.
pub(super) fn needs_structure(filter: &Expr) -> bool {
    any_field(filter, &mut |field| field.is_of_structure())
}

/// The parts of a span that the filter reads.
pub(super) fn fields(filter: &Expr) -> SpanFields {
    let mut fields = SpanFields::default();
    any_field(filter, &mut |field| {
        read(field, &mut fields);
        false
    });
    fields
}

fn read(field: &Field, fields: &mut SpanFields) {
    match field {
        Field::Span(_) | Field::Intrinsic(Intrinsic::StatusMessage) => fields.attributes = true,
        Field::Resource(name) if name == "service.name" => {}
        Field::Resource(_) | Field::Instrumentation(_) => fields.resource = true,
        Field::Intrinsic(Intrinsic::InstrumentationName | Intrinsic::InstrumentationVersion) => fields.resource = true,
        Field::Any(_) => (fields.attributes, fields.resource) = (true, true),
        Field::Event(_) | Field::Link(_) => fields.events = true,
        Field::Intrinsic(Intrinsic::EventName | Intrinsic::EventTimeSinceStart) => fields.events = true,
        Field::Intrinsic(Intrinsic::LinkTraceId | Intrinsic::LinkSpanId) => fields.events = true,
        Field::Parent(field) => read(field, fields),
        Field::Intrinsic(_) => {}
    }
}

/// Every field, in order of appearance, each once.
pub(super) fn named(filter: &Expr) -> Vec<&Field> {
    let mut found: Vec<&Field> = Vec::new();
    any_field(filter, &mut |field| {
        if !found.contains(&field) {
            found.push(field);
        }
        false
    });
    found
}

fn collect(expr: &Expr, found: &mut Vec<SpanCondition>) {
    match expr {
        Expr::All(terms) => terms.iter().for_each(|term| collect(term, found)),
        Expr::Compare(comparison) => {
            let Comparison { left, operator, right, .. } = comparison.as_ref();
            match (left, right) {
                (Expr::Field(field), Expr::Literal(literal)) => found.extend(condition(field, *operator, literal)),
                (Expr::Literal(literal), Expr::Field(field)) => found.extend(condition(field, operator.flipped(), literal)),
                _ => {}
            }
        }
        _ => {}
    }
}

fn condition(field: &Field, operator: Comparator, literal: &Literal) -> Option<SpanCondition> {
    if *field == Field::Intrinsic(Intrinsic::Duration) {
        return duration(operator, literal);
    }
    if operator != Comparator::Equal {
        return None;
    }
    match (field, literal) {
        (Field::Span(name), _) => Some(SpanCondition::SpanAttribute(name.clone(), value(literal)?)),
        (Field::Intrinsic(Intrinsic::Name), Literal::Str(text)) => Some(SpanCondition::Name(text.clone())),
        (Field::Intrinsic(Intrinsic::Status), Literal::Status(status)) => Some(SpanCondition::Status(*status)),
        (Field::Intrinsic(Intrinsic::Kind), Literal::Kind(kind)) => Some(SpanCondition::Kind(*kind)),
        (Field::Resource(name), Literal::Str(text)) if name == "service.name" => Some(SpanCondition::Service(text.clone())),
        // Where it is not sent, the service has a name that is in no attribute.
        (Field::Resource(name) | Field::Any(name), _) if name == "service.name" => None,
        (Field::Resource(name), _) => Some(SpanCondition::ResourceAttribute(name.clone(), value(literal)?)),
        (Field::Any(name), _) => Some(SpanCondition::AnyAttribute(name.clone(), value(literal)?)),
        _ => None,
    }
}

/// The attribute value that equals a literal.
fn value(literal: &Literal) -> Option<Value> {
    match literal {
        Literal::Int(number) | Literal::Duration(number) => Some(Value::Int(*number)),
        Literal::Float(number) => Some(Value::Double(*number)),
        Literal::Str(text) => Some(Value::Str(text.clone())),
        Literal::Bool(value) => Some(Value::Bool(*value)),
        Literal::Nil | Literal::Status(_) | Literal::Kind(_) => None,
    }
}

fn duration(operator: Comparator, literal: &Literal) -> Option<SpanCondition> {
    // Whole nanoseconds on the safe side; negative bounds become 0.
    let (floor, ceil) = match literal {
        Literal::Int(number) | Literal::Duration(number) => (*number, *number),
        Literal::Float(number) => (number.floor() as i64, number.ceil() as i64),
        _ => return None,
    };
    let at_least = |bound: i64| SpanCondition::DurationMin(u64::try_from(bound).unwrap_or(0));
    let at_most = |bound: i64| SpanCondition::DurationMax(u64::try_from(bound).unwrap_or(0));
    match operator {
        Comparator::Greater | Comparator::GreaterEqual | Comparator::Equal => Some(at_least(floor)),
        Comparator::Less | Comparator::LessEqual => Some(at_most(ceil)),
        Comparator::NotEqual => None,
    }
}

fn any_field<'a>(expr: &'a Expr, test: &mut impl FnMut(&'a Field) -> bool) -> bool {
    match expr {
        Expr::Literal(_) => false,
        Expr::Field(field) => test(field),
        Expr::All(terms) | Expr::Any(terms) => terms.iter().any(|term| any_field(term, test)),
        Expr::Not(_, operand) | Expr::Negate(_, operand) | Expr::Match(_, operand, _, _) => any_field(operand, test),
        Expr::Compare(comparison) => any_field(&comparison.left, test) || any_field(&comparison.right, test),
        Expr::Arithmetic(arithmetic) => any_field(&arithmetic.left, test) || any_field(&arithmetic.right, test),
    }
}
