//! Tokens -> expression, by precedence: `||`, `&&`, comparison, `+ -`, `* / %`, `^`, then `!` and `-`.

mod spansets;

use spanflame_model::{SpanKind, StatusCode};

use super::ast::{Arithmetic, ArithmeticOperator, Comparator, Comparison, Expr, Field, Intrinsic, Literal};
use super::error::{Error, Position};
use super::lexer::{Token, TokenKind, tokenize};
use super::spanset::Spanset;
use crate::selector::anchored;

/// The deepest nesting of brackets and signs, and the longest chain of arithmetic.
const NESTING_MAX: usize = 100;

/// Reads a query; empty text selects everything.
pub(super) fn parse(text: &str) -> Result<Spanset, Error> {
    let mut parser = Parser {
        tokens: tokenize(text)?,
        next: 0,
        depth: 0,
    };
    if parser.peek().kind == TokenKind::End {
        return Ok(Spanset::Filter(Expr::All(Vec::new())));
    }
    let spanset = parser.pipeline()?;
    parser.end()?;
    Ok(spanset)
}

/// Reads one attribute or intrinsic.
pub(super) fn field(token: &Token) -> Result<Field, Error> {
    let end = Token {
        kind: TokenKind::End,
        at: token.at,
    };
    let mut parser = Parser {
        tokens: vec![token.clone(), end],
        next: 0,
        depth: 0,
    };
    match parser.atom()? {
        Expr::Field(field) => Ok(field),
        _ => Err(Error::expecting(
            token.at,
            format!("{} is not expected here", token.kind.describe()),
            &["an attribute", "an intrinsic"],
        )),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn filter(&mut self) -> Result<Expr, Error> {
        if !self.eat("{") {
            let token = self.peek();
            return Err(match &token.kind {
                TokenKind::Word(_) => Error::expecting(token.at, "a query of scalars is not supported", &["`{`", "`(`"]),
                _ => self.unexpected(&["`{`", "`(`"]),
            });
        }
        if self.eat("}") {
            return Ok(Expr::All(Vec::new()));
        }
        let filter = self.any()?;
        match self.eat("}") {
            true => Ok(filter),
            false => Err(self.unexpected(&["`}`", "an operator"])),
        }
    }

    fn end(&self) -> Result<(), Error> {
        let token = self.peek();
        let what = match &token.kind {
            TokenKind::End => return Ok(()),
            TokenKind::Word(word) if word == "with" => "hints (`with`)".to_owned(),
            _ => return Err(self.unexpected(&["an operator", "`|`", "the end of the query"])),
        };
        Err(Error::expecting(
            token.at,
            format!("{what} is not supported"),
            &["the end of the query"],
        ))
    }

    fn any(&mut self) -> Result<Expr, Error> {
        let first = self.all()?;
        let mut terms = vec![first];
        while self.eat("||") {
            terms.push(self.all()?);
        }
        Ok(single_or(terms, Expr::Any))
    }

    fn all(&mut self) -> Result<Expr, Error> {
        let first = self.comparison()?;
        let mut terms = vec![first];
        while self.eat("&&") {
            terms.push(self.comparison()?);
        }
        Ok(single_or(terms, Expr::All))
    }

    fn comparison(&mut self) -> Result<Expr, Error> {
        let left_at = self.peek().at;
        let mut left = self.sum()?;
        let at = self.peek().at;
        let TokenKind::Symbol(symbol) = self.peek().kind else {
            return Ok(left);
        };
        let operator = match symbol {
            "=~" | "!~" => {
                self.next += 1;
                return self.pattern(at, left, symbol == "=~");
            }
            "=" => Comparator::Equal,
            "!=" => Comparator::NotEqual,
            ">" => Comparator::Greater,
            ">=" => Comparator::GreaterEqual,
            "<" => Comparator::Less,
            "<=" => Comparator::LessEqual,
            _ => return Ok(left),
        };
        self.next += 1;
        let right_at = self.peek().at;
        let mut right = self.sum()?;
        read_id(right_at, &left, &mut right)?;
        read_id(left_at, &right, &mut left)?;
        if let Some(compared) = compared_with_root(at, &left, operator, &right) {
            return Ok(compared);
        }
        Ok(Expr::Compare(Box::new(Comparison { at, left, operator, right })))
    }

    fn pattern(&mut self, at: Position, left: Expr, wanted: bool) -> Result<Expr, Error> {
        let token = self.peek().clone();
        let TokenKind::Str(pattern) = token.kind else {
            return Err(self.unexpected(&["a regular expression in quotes"]));
        };
        self.next += 1;
        let regex = anchored(&pattern).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim();
            Error::new(token.at, format!("regular expression {pattern:?} is invalid: {reason}"))
        })?;
        Ok(Expr::Match(at, Box::new(left), regex, wanted))
    }

    fn sum(&mut self) -> Result<Expr, Error> {
        let operators = [("+", ArithmeticOperator::Add), ("-", ArithmeticOperator::Subtract)];
        self.chain(&operators, Parser::product)
    }

    fn product(&mut self) -> Result<Expr, Error> {
        let operators = [
            ("*", ArithmeticOperator::Multiply),
            ("/", ArithmeticOperator::Divide),
            ("%", ArithmeticOperator::Modulo),
        ];
        self.chain(&operators, Parser::power)
    }

    fn power(&mut self) -> Result<Expr, Error> {
        self.chain(&[("^", ArithmeticOperator::Power)], Parser::unary)
    }

    fn chain(
        &mut self,
        operators: &[(&'static str, ArithmeticOperator)],
        operand: fn(&mut Parser) -> Result<Expr, Error>,
    ) -> Result<Expr, Error> {
        let mut left = operand(self)?;
        for _ in 0..NESTING_MAX {
            let at = self.peek().at;
            let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.peek().kind == TokenKind::Symbol(symbol)) else {
                return Ok(left);
            };
            self.next += 1;
            let right = operand(self)?;
            left = Expr::Arithmetic(Box::new(Arithmetic {
                at,
                left,
                operator: *operator,
                right,
            }));
        }
        Err(Error::new(self.peek().at, format!("more than {NESTING_MAX} operators in a row")))
    }

    fn unary(&mut self) -> Result<Expr, Error> {
        let at = self.peek().at;
        if self.eat("!") {
            return Ok(Expr::Not(at, Box::new(self.nested(Parser::unary)?)));
        }
        if self.eat("-") {
            return Ok(match self.nested(Parser::unary)? {
                Expr::Literal(Literal::Int(number)) => Expr::Literal(Literal::Int(number.wrapping_neg())),
                Expr::Literal(Literal::Duration(number)) => Expr::Literal(Literal::Duration(number.wrapping_neg())),
                Expr::Literal(Literal::Float(number)) => Expr::Literal(Literal::Float(-number)),
                operand => Expr::Negate(at, Box::new(operand)),
            });
        }
        if self.eat("(") {
            let inner = self.nested(Parser::any)?;
            return match self.eat(")") {
                true => Ok(inner),
                false => Err(self.unexpected(&["`)`", "an operator"])),
            };
        }
        self.atom()
    }

    fn nested(&mut self, read: fn(&mut Parser) -> Result<Expr, Error>) -> Result<Expr, Error> {
        if self.depth == NESTING_MAX {
            return Err(Error::new(self.peek().at, format!("nested more than {NESTING_MAX} deep")));
        }
        self.depth += 1;
        let inner = read(self);
        self.depth -= 1;
        inner
    }

    fn atom(&mut self) -> Result<Expr, Error> {
        let token = self.peek().clone();
        let expr = match token.kind {
            TokenKind::Int(number) => Expr::Literal(Literal::Int(number)),
            TokenKind::Float(number) => Expr::Literal(Literal::Float(number)),
            TokenKind::Duration(nanos) => Expr::Literal(Literal::Duration(nanos)),
            TokenKind::Str(text) => Expr::Literal(Literal::Str(text)),
            TokenKind::Attribute(scope, name) => Expr::Field(attribute(token.at, &scope, name)?),
            TokenKind::Scoped(scope, name) => Expr::Field(Field::Intrinsic(scoped(token.at, &scope, &name)?)),
            TokenKind::Word(word) => self.word(token.at, &word)?,
            TokenKind::Symbol(_) | TokenKind::End => return Err(self.unexpected(&["a field", "a value", "`(`"])),
        };
        self.next += 1;
        Ok(expr)
    }

    fn word(&self, at: Position, word: &str) -> Result<Expr, Error> {
        let intrinsic = |intrinsic| Ok(Expr::Field(Field::Intrinsic(intrinsic)));
        let literal = |literal| Ok(Expr::Literal(literal));
        match word {
            "name" => intrinsic(Intrinsic::Name),
            "status" => intrinsic(Intrinsic::Status),
            "statusMessage" => intrinsic(Intrinsic::StatusMessage),
            "kind" => intrinsic(Intrinsic::Kind),
            "duration" => intrinsic(Intrinsic::Duration),
            "traceDuration" => intrinsic(Intrinsic::TraceDuration),
            "rootName" => intrinsic(Intrinsic::RootName),
            "rootServiceName" => intrinsic(Intrinsic::RootService),
            "parent" => intrinsic(Intrinsic::ParentId),
            "nestedSetParent" => intrinsic(Intrinsic::NestedSetParent),
            "nestedSetLeft" => intrinsic(Intrinsic::NestedSetLeft),
            "nestedSetRight" => intrinsic(Intrinsic::NestedSetRight),
            "true" => literal(Literal::Bool(true)),
            "false" => literal(Literal::Bool(false)),
            "nil" => literal(Literal::Nil),
            "minInt" => literal(Literal::Int(i64::MIN)),
            "maxInt" => literal(Literal::Int(i64::MAX)),
            _ => self.word_of_list(at, word),
        }
    }

    fn word_of_list(&self, at: Position, word: &str) -> Result<Expr, Error> {
        if let Some(status) = StatusCode::ALL.into_iter().find(|status| status.as_str() == word) {
            return Ok(Expr::Literal(Literal::Status(status)));
        }
        if let Some(kind) = SpanKind::ALL.into_iter().find(|kind| kind.as_str() == word) {
            return Ok(Expr::Literal(Literal::Kind(kind)));
        }
        let expected = [
            "an intrinsic",
            "`span.` `resource.` or `.` before the name of an attribute",
            "quotes around text",
        ];
        Err(Error::expecting(at, format!("`{word}` is unknown"), &expected))
    }

    fn peek(&self) -> &Token {
        // The last token is the end, which is never passed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn eat(&mut self, symbol: &'static str) -> bool {
        let found = self.peek().kind == TokenKind::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    fn unexpected(&self, expected: &[&str]) -> Error {
        let token = self.peek();
        Error::expecting(token.at, format!("{} is not expected here", token.kind.describe()), expected)
    }
}

/// Text that meets an id must be one: hex in either case, leading zeros left out or not. It becomes the digits that ids are compared by.
fn read_id(at: Position, field: &Expr, text: &mut Expr) -> Result<(), Error> {
    let (Expr::Field(field), Expr::Literal(Literal::Str(text))) = (field, text) else {
        return Ok(());
    };
    let Some(digits) = field.id_digits() else {
        return Ok(());
    };
    if text.is_empty() || text.len() > digits || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let shown: String = text.chars().take(100).collect();
        return Err(Error::expecting(
            at,
            format!("{shown:?} is no id"),
            &[&format!("1 to {digits} hex digits")],
        ));
    }
    *text = format!("{:0>digits$}", text.to_ascii_lowercase());
    Ok(())
}

/// `nestedSetParent < 0` and its like ask for roots, which a span tells by itself.
fn compared_with_root(at: Position, left: &Expr, operator: Comparator, right: &Expr) -> Option<Expr> {
    let (Expr::Field(field), Expr::Literal(Literal::Int(bound))) = (left, right) else {
        return None;
    };
    let operator = match spansets::wants_root(field, operator, *bound)? {
        true => Comparator::Equal,
        false => Comparator::NotEqual,
    };
    let left = Expr::Field(Field::Intrinsic(Intrinsic::ParentId));
    let right = Expr::Literal(Literal::Nil);
    Some(Expr::Compare(Box::new(Comparison { at, left, operator, right })))
}

fn attribute(at: Position, scope: &str, name: String) -> Result<Field, Error> {
    match scope {
        "" => Ok(Field::Any(name)),
        "span" => Ok(Field::Span(name)),
        "resource" => Ok(Field::Resource(name)),
        "instrumentation" => Ok(Field::Instrumentation(name)),
        "event" => Ok(Field::Event(name)),
        "link" => Ok(Field::Link(name)),
        "parent" => Ok(Field::Parent(Box::new(match name.split_once('.') {
            Some(("span", name)) => Field::Span(name.to_owned()),
            Some(("resource", name)) => Field::Resource(name.to_owned()),
            _ => Field::Any(name),
        }))),
        _ => {
            let expected = ["span.", "resource.", "event.", "link.", "instrumentation.", "parent.", "."];
            Err(Error::expecting(
                at,
                format!("attributes of scope `{scope}.` are not supported"),
                &expected,
            ))
        }
    }
}

fn scoped(at: Position, scope: &str, name: &str) -> Result<Intrinsic, Error> {
    Ok(match (scope, name) {
        ("span", "name") => Intrinsic::Name,
        ("span", "status") => Intrinsic::Status,
        ("span", "statusMessage") => Intrinsic::StatusMessage,
        ("span", "kind") => Intrinsic::Kind,
        ("span", "duration") => Intrinsic::Duration,
        ("span", "id") => Intrinsic::SpanId,
        ("span", "parentID") => Intrinsic::ParentId,
        ("trace", "id") => Intrinsic::TraceId,
        ("trace", "duration") => Intrinsic::TraceDuration,
        ("trace", "rootName") => Intrinsic::RootName,
        ("trace", "rootService") => Intrinsic::RootService,
        ("instrumentation", "name") => Intrinsic::InstrumentationName,
        ("instrumentation", "version") => Intrinsic::InstrumentationVersion,
        ("span", "childCount") => Intrinsic::ChildCount,
        ("event", "name") => Intrinsic::EventName,
        ("event", "timeSinceStart") => Intrinsic::EventTimeSinceStart,
        ("link", "traceID") => Intrinsic::LinkTraceId,
        ("link", "spanID") => Intrinsic::LinkSpanId,
        _ => return Err(Error::new(at, format!("`{scope}:{name}` is unknown"))),
    })
}

fn single_or(mut terms: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    match (terms.len(), terms.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            terms.push(last);
            join(terms)
        }
        (_, None) => join(terms),
    }
}
