//! What types may meet: found out once, before any span is looked at.

use super::ast::{Arithmetic, Comparison, Expr, Field, Intrinsic, Literal};
use super::error::{Error, Position};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    /// An attribute: known only when a span is looked at.
    Any,
    Nil,
    Number,
    Text,
    Bool,
    Status,
    Kind,
}

impl Type {
    fn as_str(self) -> &'static str {
        match self {
            Type::Any => "an attribute",
            Type::Nil => "nil",
            Type::Number => "a number or duration",
            Type::Text => "text",
            Type::Bool => "true or false",
            Type::Status => "a status",
            Type::Kind => "a kind",
        }
    }

    fn may_be(self, other: Type) -> bool {
        self == Type::Any || self == other
    }
}

/// Fails unless the expression can be true or false.
pub(super) fn check(filter: &Expr, at: Position) -> Result<(), Error> {
    expect_bool(filter, at)
}

fn expect_bool(expr: &Expr, at: Position) -> Result<(), Error> {
    let found = type_of(expr)?;
    match found.may_be(Type::Bool) {
        true => Ok(()),
        false => Err(Error::expecting(
            at,
            format!("{} is no condition", found.as_str()),
            &["a comparison"],
        )),
    }
}

fn type_of(expr: &Expr) -> Result<Type, Error> {
    match expr {
        Expr::Literal(literal) => Ok(type_of_literal(literal)),
        Expr::Field(field) => Ok(type_of_field(field)),
        Expr::All(terms) | Expr::Any(terms) => {
            terms.iter().try_for_each(|term| expect_bool(term, place(term)))?;
            Ok(Type::Bool)
        }
        Expr::Not(at, operand) => expect_bool(operand, *at).map(|()| Type::Bool),
        Expr::Negate(at, operand) => expect_number(operand, *at),
        Expr::Compare(comparison) => check_comparison(comparison),
        Expr::Match(at, operand, _, _) => {
            let found = type_of(operand)?;
            match found.may_be(Type::Text) {
                true => Ok(Type::Bool),
                false => Err(Error::expecting(
                    *at,
                    format!("a regular expression meets {}", found.as_str()),
                    &["text"],
                )),
            }
        }
        Expr::Arithmetic(arithmetic) => {
            let Arithmetic { at, left, right, .. } = arithmetic.as_ref();
            expect_number(left, *at)?;
            expect_number(right, *at)
        }
    }
}

/// Fails unless the expression can be a number.
pub(super) fn check_number(expr: &Expr, at: Position) -> Result<(), Error> {
    expect_number(expr, at).map(drop)
}

fn expect_number(expr: &Expr, at: Position) -> Result<Type, Error> {
    let found = type_of(expr)?;
    match found.may_be(Type::Number) {
        true => Ok(Type::Number),
        false => Err(Error::expecting(
            at,
            format!("arithmetic meets {}", found.as_str()),
            &["a number or duration"],
        )),
    }
}

fn check_comparison(comparison: &Comparison) -> Result<Type, Error> {
    let (left, right) = (type_of(&comparison.left)?, type_of(&comparison.right)?);
    let operator = comparison.operator;
    let ordered = |found: Type| matches!(found, Type::Any | Type::Number | Type::Text);
    let has_order = ordered(left) && ordered(right);
    if !operator.is_equality() && !has_order {
        let unordered = if ordered(left) { right } else { left };
        let message = format!("`{}` has no meaning for {}", operator.as_str(), unordered.as_str());
        return Err(Error::expecting(comparison.at, message, &["`=`", "`!=`"]));
    }
    let meet = left == right || [left, right].iter().any(|side| matches!(side, Type::Any | Type::Nil));
    match meet {
        true => Ok(Type::Bool),
        false => {
            let message = format!("`{}` compares {} with {}", operator.as_str(), left.as_str(), right.as_str());
            Err(Error::expecting(comparison.at, message, &[left.as_str()]))
        }
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Nil => Type::Nil,
        Literal::Int(_) | Literal::Float(_) | Literal::Duration(_) => Type::Number,
        Literal::Str(_) => Type::Text,
        Literal::Bool(_) => Type::Bool,
        Literal::Status(_) => Type::Status,
        Literal::Kind(_) => Type::Kind,
    }
}

fn type_of_field(field: &Field) -> Type {
    let intrinsic = match field {
        Field::Intrinsic(intrinsic) => intrinsic,
        Field::Parent(field) => return type_of_field(field),
        _ => return Type::Any,
    };
    match intrinsic {
        Intrinsic::Status => Type::Status,
        Intrinsic::Kind => Type::Kind,
        Intrinsic::Duration | Intrinsic::TraceDuration | Intrinsic::EventTimeSinceStart => Type::Number,
        Intrinsic::ChildCount | Intrinsic::NestedSetParent | Intrinsic::NestedSetLeft | Intrinsic::NestedSetRight => Type::Number,
        Intrinsic::EventName | Intrinsic::LinkTraceId | Intrinsic::LinkSpanId => Type::Text,
        Intrinsic::Name | Intrinsic::StatusMessage | Intrinsic::SpanId | Intrinsic::ParentId | Intrinsic::TraceId => Type::Text,
        Intrinsic::RootName | Intrinsic::RootService | Intrinsic::InstrumentationName | Intrinsic::InstrumentationVersion => Type::Text,
    }
}

/// Where an expression is, as far as it knows.
fn place(expr: &Expr) -> Position {
    match expr {
        Expr::Not(at, _) | Expr::Negate(at, _) | Expr::Match(at, _, _, _) => *at,
        Expr::Compare(comparison) => comparison.at,
        Expr::Arithmetic(arithmetic) => arithmetic.at,
        Expr::All(terms) | Expr::Any(terms) => terms.first().map_or(Position::START, place),
        Expr::Literal(_) | Expr::Field(_) => Position::START,
    }
}
