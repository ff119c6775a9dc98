//! The expression inside a filter.

use regex::Regex;
use spanflame_model::{SpanKind, StatusCode};

use super::Position;

/// An expression. `&&` and `||` are flat lists, so that long chains are not deep.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Literal(Literal),
    Field(Field),
    /// All of them; true if empty.
    All(Vec<Expr>),
    /// Any of them.
    Any(Vec<Expr>),
    Not(Position, Box<Expr>),
    Negate(Position, Box<Expr>),
    Compare(Box<Comparison>),
    /// `=~` (true) or `!~` (false).
    Match(Position, Box<Expr>, Regex, bool),
    Arithmetic(Box<Arithmetic>),
}

#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) at: Position,
    pub(super) left: Expr,
    pub(super) operator: Comparator,
    pub(super) right: Expr,
}

#[derive(Clone, Debug)]
pub(super) struct Arithmetic {
    pub(super) at: Position,
    pub(super) left: Expr,
    pub(super) operator: ArithmeticOperator,
    pub(super) right: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Nil,
    Int(i64),
    Float(f64),
    /// Nanoseconds.
    Duration(i64),
    Str(String),
    Bool(bool),
    Status(StatusCode),
    Kind(SpanKind),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Of the span, else of its resource.
    Any(String),
    Span(String),
    Resource(String),
    Instrumentation(String),
    /// Of any event of the span.
    Event(String),
    /// Of any link of the span.
    Link(String),
    /// Of the span's parent.
    Parent(Box<Field>),
    Intrinsic(Intrinsic),
}

impl Field {
    /// Under what key an answer shows it; `None` for what every answer has anyway.
    pub(super) fn key(&self) -> Option<String> {
        match self {
            Field::Any(name) | Field::Span(name) | Field::Resource(name) | Field::Instrumentation(name) => Some(name.clone()),
            Field::Event(name) | Field::Link(name) => Some(name.clone()),
            Field::Parent(field) => Some(format!("parent.{}", field.key()?)),
            Field::Intrinsic(intrinsic) => intrinsic.key().map(str::to_owned),
        }
    }

    /// How many hex digits an id has; `None` for what is no id.
    pub(super) fn id_digits(&self) -> Option<usize> {
        match self {
            Field::Parent(field) => field.id_digits(),
            Field::Intrinsic(Intrinsic::TraceId | Intrinsic::LinkTraceId) => Some(32),
            Field::Intrinsic(Intrinsic::SpanId | Intrinsic::ParentId | Intrinsic::LinkSpanId) => Some(16),
            _ => None,
        }
    }

    /// Whether it is about the trace around the span and cannot be told from the span.
    pub(super) fn is_of_trace(&self) -> bool {
        self.is_of_structure() || matches!(self, Field::Intrinsic(intrinsic) if intrinsic.is_of_trace())
    }

    /// Whether it is about the place of the span among the others of its trace.
    pub(super) fn is_of_structure(&self) -> bool {
        match self {
            Field::Parent(_) => true,
            Field::Intrinsic(intrinsic) => intrinsic.is_of_structure(),
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intrinsic {
    Name,
    Status,
    StatusMessage,
    Kind,
    Duration,
    SpanId,
    ParentId,
    TraceId,
    TraceDuration,
    RootName,
    RootService,
    InstrumentationName,
    InstrumentationVersion,
    EventName,
    /// Nanoseconds from the start of the span.
    EventTimeSinceStart,
    LinkTraceId,
    LinkSpanId,
    ChildCount,
    NestedSetParent,
    NestedSetLeft,
    NestedSetRight,
}

impl Intrinsic {
    fn key(self) -> Option<&'static str> {
        match self {
            Intrinsic::Status => Some("status"),
            Intrinsic::StatusMessage => Some("statusMessage"),
            Intrinsic::Kind => Some("kind"),
            Intrinsic::ParentId => Some("span:parentID"),
            Intrinsic::InstrumentationName => Some("instrumentation:name"),
            Intrinsic::InstrumentationVersion => Some("instrumentation:version"),
            Intrinsic::EventName => Some("event:name"),
            Intrinsic::EventTimeSinceStart => Some("event:timeSinceStart"),
            Intrinsic::LinkTraceId => Some("link:traceID"),
            Intrinsic::LinkSpanId => Some("link:spanID"),
            Intrinsic::ChildCount => Some("span:childCount"),
            Intrinsic::NestedSetParent => Some("nestedSetParent"),
            Intrinsic::NestedSetLeft => Some("nestedSetLeft"),
            Intrinsic::NestedSetRight => Some("nestedSetRight"),
            Intrinsic::Name | Intrinsic::Duration | Intrinsic::SpanId => None,
            Intrinsic::TraceId | Intrinsic::TraceDuration | Intrinsic::RootName | Intrinsic::RootService => None,
        }
    }

    /// Whether it is about the trace around the span and cannot be told from the span.
    pub(super) fn is_of_trace(self) -> bool {
        self.is_of_structure() || matches!(self, Intrinsic::TraceDuration | Intrinsic::RootName | Intrinsic::RootService)
    }

    fn is_of_structure(self) -> bool {
        matches!(
            self,
            Intrinsic::ChildCount | Intrinsic::NestedSetParent | Intrinsic::NestedSetLeft | Intrinsic::NestedSetRight
        )
    }
}

impl Comparator {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Comparator::Equal => "=",
            Comparator::NotEqual => "!=",
            Comparator::Greater => ">",
            Comparator::GreaterEqual => ">=",
            Comparator::Less => "<",
            Comparator::LessEqual => "<=",
        }
    }

    pub(super) fn is_equality(self) -> bool {
        matches!(self, Comparator::Equal | Comparator::NotEqual)
    }

    /// The same comparison with its sides exchanged.
    pub(super) fn flipped(self) -> Comparator {
        match self {
            Comparator::Greater => Comparator::Less,
            Comparator::GreaterEqual => Comparator::LessEqual,
            Comparator::Less => Comparator::Greater,
            Comparator::LessEqual => Comparator::GreaterEqual,
            same => same,
        }
    }
}
