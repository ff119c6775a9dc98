//! Spansets and pipelines: `||`, then `&&`, then relations, each from the left; a pipeline around them.

use super::super::ast::{Comparator, Expr, Field, Intrinsic};
use super::super::check;
use super::super::error::Error;
use super::super::lexer::TokenKind;
use super::super::metrics;
use super::super::spanset::{Answers, Relation, Scalar, Spanset, Stage, Way};
use super::{NESTING_MAX, Parser};

/// Most steps of one pipeline, and fields of one `select`.
const STAGES_MAX: usize = 50;

impl Parser {
    pub(super) fn pipeline(&mut self) -> Result<Spanset, Error> {
        let of = self.either()?;
        let mut stages = Vec::new();
        while self.eat("|") {
            if stages.len() == STAGES_MAX {
                return Err(Error::new(self.peek().at, format!("more than {STAGES_MAX} steps in a pipeline")));
            }
            stages.push(self.stage()?);
        }
        match stages.is_empty() {
            true => Ok(of),
            false => Ok(Spanset::Pipeline(Box::new(of), stages)),
        }
    }

    fn either(&mut self) -> Result<Spanset, Error> {
        let operator = |symbol: &str| (symbol == "||").then_some(Spanset::Either as fn(_) -> _);
        self.spansets(operator, Parser::both)
    }

    fn both(&mut self) -> Result<Spanset, Error> {
        let operator = |symbol: &str| (symbol == "&&").then_some(Spanset::Both as fn(_) -> _);
        self.spansets(operator, Parser::related)
    }

    fn related(&mut self) -> Result<Spanset, Error> {
        let operator = |symbol: &str| relation(symbol).map(|relation| move |sides| Spanset::Related(relation, sides));
        self.spansets(operator, Parser::spanset)
    }

    fn spansets<J: FnOnce(Box<[Spanset; 2]>) -> Spanset>(
        &mut self,
        operator: impl Fn(&str) -> Option<J>,
        operand: fn(&mut Parser) -> Result<Spanset, Error>,
    ) -> Result<Spanset, Error> {
        let mut left = operand(self)?;
        for _ in 0..NESTING_MAX {
            let TokenKind::Symbol(symbol) = self.peek().kind else {
                return Ok(left);
            };
            let Some(join) = operator(symbol) else {
                return Ok(left);
            };
            self.next += 1;
            left = join(Box::new([left, operand(self)?]));
        }
        Err(Error::new(self.peek().at, format!("more than {NESTING_MAX} operators in a row")))
    }

    fn spanset(&mut self) -> Result<Spanset, Error> {
        if !self.eat("(") {
            return self.checked_filter().map(Spanset::Filter);
        }
        if self.depth == NESTING_MAX {
            return Err(Error::new(self.peek().at, format!("nested more than {NESTING_MAX} deep")));
        }
        self.depth += 1;
        let inner = self.pipeline()?;
        self.depth -= 1;
        match self.eat(")") {
            true => Ok(inner),
            false => Err(self.unexpected(&["`)`", "an operator", "`|`"])),
        }
    }

    fn stage(&mut self) -> Result<Stage, Error> {
        if self.peek().kind == TokenKind::Symbol("{") {
            return self.checked_filter().map(Stage::Filter);
        }
        let word = match &self.peek().kind {
            TokenKind::Word(word) => word.clone(),
            _ => String::new(),
        };
        match word.as_str() {
            "by" => {
                self.next += 1;
                let mut fields = self.fields()?;
                match (fields.pop(), fields.is_empty()) {
                    (Some(field), true) => Ok(Stage::By(field)),
                    _ => Err(Error::new(self.peek().at, "`by` takes one field in a pipeline of spans")),
                }
            }
            "select" => {
                self.next += 1;
                Ok(Stage::Select(self.fields()?))
            }
            "coalesce" => {
                self.next += 1;
                self.expect("(")?;
                self.expect(")")?;
                Ok(Stage::Coalesce)
            }
            _ => self.keep(),
        }
    }

    fn checked_filter(&mut self) -> Result<Expr, Error> {
        let at = self.peek().at;
        let filter = self.filter()?;
        check::check(&filter, at)?;
        Ok(filter)
    }

    fn keep(&mut self) -> Result<Stage, Error> {
        let left = self.scalar()?;
        let operator = match self.peek().kind {
            TokenKind::Symbol("=") => Comparator::Equal,
            TokenKind::Symbol("!=") => Comparator::NotEqual,
            TokenKind::Symbol(">") => Comparator::Greater,
            TokenKind::Symbol(">=") => Comparator::GreaterEqual,
            TokenKind::Symbol("<") => Comparator::Less,
            TokenKind::Symbol("<=") => Comparator::LessEqual,
            _ => return Err(self.unexpected(&["a comparison"])),
        };
        self.next += 1;
        Ok(Stage::Keep(left, operator, self.scalar()?))
    }

    fn scalar(&mut self) -> Result<Scalar, Error> {
        let sign = if self.eat("-") { -1.0 } else { 1.0 };
        let token = self.peek().clone();
        self.next += 1;
        let number = match &token.kind {
            TokenKind::Int(number) | TokenKind::Duration(number) => *number as f64,
            TokenKind::Float(number) => *number,
            TokenKind::Word(word) if sign > 0.0 => return self.aggregate(word),
            _ => {
                self.next -= 1;
                return Err(self.no_stage());
            }
        };
        Ok(Scalar::Number(sign * number))
    }

    fn aggregate(&mut self, word: &str) -> Result<Scalar, Error> {
        let join = match word {
            "count" => {
                self.expect("(")?;
                self.expect(")")?;
                return Ok(Scalar::Count);
            }
            "min" => Scalar::Min,
            "max" => Scalar::Max,
            "sum" => Scalar::Sum,
            "avg" => Scalar::Avg,
            _ => {
                self.next -= 1;
                return Err(self.no_stage());
            }
        };
        self.expect("(")?;
        let at = self.peek().at;
        let expr = self.sum()?;
        check::check_number(&expr, at)?;
        self.expect(")")?;
        Ok(join(expr))
    }

    fn fields(&mut self) -> Result<Vec<Field>, Error> {
        self.expect("(")?;
        let mut fields = Vec::new();
        loop {
            match self.atom()? {
                Expr::Field(field) if fields.len() < STAGES_MAX => fields.push(field),
                Expr::Field(_) => return Err(Error::new(self.peek().at, format!("more than {STAGES_MAX} fields"))),
                _ => {
                    self.next -= 1;
                    return Err(self.unexpected(&["a field"]));
                }
            }
            if !self.eat(",") {
                self.expect(")")?;
                return Ok(fields);
            }
        }
    }

    fn no_stage(&self) -> Error {
        let token = self.peek();
        match &token.kind {
            TokenKind::Word(word) if metrics::FUNCTIONS.contains(&word.as_str()) => {
                let message = format!("`{word}` makes this a metrics query, which a search of spans does not answer");
                Error::expecting(token.at, message, &["a range query of metrics", STAGES[1]])
            }
            _ => self.unexpected(&STAGES),
        }
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), Error> {
        match self.eat(symbol) {
            true => Ok(()),
            false => Err(self.unexpected(&[&format!("`{symbol}`")])),
        }
    }
}

/// What a step of a pipeline begins with.
const STAGES: [&str; 5] = ["`{`", "`count()`, `min`, `max`, `sum` or `avg`", "`by`", "`select`", "`coalesce()`"];

/// The relation that a symbol stands for.
fn relation(symbol: &str) -> Option<Relation> {
    let (answers, way) = match symbol {
        // The lexer knows it as the sign of regular expressions.
        "!~" => (Answers::Others, "~"),
        _ if symbol.starts_with('!') => (Answers::Others, &symbol[1..]),
        _ if symbol.starts_with('&') => (Answers::Union, &symbol[1..]),
        way => (Answers::Right, way),
    };
    let way = match way {
        ">" => Way::Child,
        "<" => Way::Parent,
        ">>" => Way::Descendant,
        "<<" => Way::Ancestor,
        "~" => Way::Sibling,
        _ => return None,
    };
    Some(Relation { way, answers })
}

/// Whether a comparison of `nestedSetParent` with a number only tells roots from others, and if so, whether it wants
/// roots: these have -1, all others at least 0. It is then decided without the rest of the trace.
pub(super) fn wants_root(field: &Field, operator: Comparator, bound: i64) -> Option<bool> {
    if *field != Field::Intrinsic(Intrinsic::NestedSetParent) {
        return None;
    }
    match (operator, bound) {
        (Comparator::Less, 0) | (Comparator::LessEqual | Comparator::Equal, -1) => Some(true),
        (Comparator::GreaterEqual, 0) | (Comparator::Greater | Comparator::NotEqual, -1) => Some(false),
        _ => None,
    }
}
