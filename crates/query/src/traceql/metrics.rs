//! Metrics queries: `{ filter } | rate() by(attribute, ...) | topk(5) with(hints)`.
//!
//! The text is cut at the first metrics function of its pipeline. What is left of it is a [`Query`] that selects spans,
//! and what is right of it is read here.

use spanflame_model::{Span, Value};
use spanflame_store::SpanFields;

use super::ast::{Comparator, Expr, Field, Intrinsic};
use super::error::{Error, Position};
use super::lexer::{Token, TokenKind, tokenize};
use super::{Query, conditions, eval, parser};

/// A parsed metrics query.
#[derive(Clone, Debug)]
pub struct MetricsQuery {
    selection: Query,
    pub(crate) function: Function,
    by: Vec<Operand>,
    pub(crate) then: Vec<Then>,
}

/// What is computed of the spans of one series and step.
#[derive(Clone, Debug)]
pub(crate) enum Function {
    Rate,
    Count,
    Min(Operand),
    Max(Operand),
    Sum(Operand),
    Avg(Operand),
    /// Each between 0 and 1.
    Quantiles(Operand, Vec<f64>),
    Histogram(Operand),
}

/// What is done with the series.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// At each step only so many, the largest.
    Top(usize),
    /// At each step only so many, the smallest.
    Bottom(usize),
    /// Only values for which it holds.
    Filter(Comparator, f64),
}

/// A field with the text it was read from.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) text: String,
    field: Field,
}

/// Metrics functions, as they are written.
pub(super) const FUNCTIONS: [&str; 9] = [
    "rate",
    "count_over_time",
    "min_over_time",
    "max_over_time",
    "sum_over_time",
    "avg_over_time",
    "quantile_over_time",
    "histogram_over_time",
    "compare",
];

/// Most attributes that one query groups by, and most quantiles.
const OPERANDS_MAX: usize = 10;

impl MetricsQuery {
    /// Reads a query.
    pub fn parse(text: &str) -> Result<MetricsQuery, Error> {
        if text.len() > Query::BYTES_MAX {
            // It says how many are read.
            Query::parse(text)?;
        }
        let tokens = tokenize(text)?;
        let Some(at) = cut(&tokens) else {
            Query::parse(text)?;
            let end = tokens.last().map_or(Position::START, |token| token.at);
            return Err(Error::expecting(
                end,
                "the query has no metrics function",
                &["`| rate()`", "another one"],
            ));
        };
        let selection = Query::parse(&text[..offset(text, tokens[at].at)])?;
        let mut reader = Reader {
            tokens: &tokens,
            next: at + 1,
        };
        let function = reader.function()?;
        let by = reader.by()?;
        let then = reader.then()?;
        Ok(MetricsQuery {
            selection,
            function,
            by,
            then,
        })
    }

    /// The spans that count.
    pub fn selection(&self) -> &Query {
        &self.selection
    }

    /// By what series are told apart, as it was written.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &str> {
        self.by.iter().map(|operand| operand.text.as_str())
    }

    /// The values of a span under [`MetricsQuery::labels`].
    pub(crate) fn group(&self, span: &Span) -> Vec<Option<Value>> {
        self.by.iter().map(|operand| eval::value(&operand.field, span, None)).collect()
    }

    /// The parts of a span that are read.
    pub fn fields(&self) -> SpanFields {
        let measured = self.function.operand();
        let operands = self.by.iter().chain(measured);
        let each = operands.map(|operand| conditions::fields(&Expr::Field(operand.field.clone())));
        each.fold(self.selection.fields(), |all, one| SpanFields {
            attributes: all.attributes || one.attributes,
            resource: all.resource || one.resource,
            events: all.events || one.events,
        })
    }
}

impl Function {
    /// What is measured; `None` where spans are counted.
    pub(crate) fn operand(&self) -> Option<&Operand> {
        match self {
            Function::Rate | Function::Count => None,
            Function::Min(operand) | Function::Max(operand) | Function::Sum(operand) | Function::Avg(operand) => Some(operand),
            Function::Quantiles(operand, _) | Function::Histogram(operand) => Some(operand),
        }
    }

    /// The name, as it is written.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Function::Rate => "rate",
            Function::Count => "count_over_time",
            Function::Min(_) => "min_over_time",
            Function::Max(_) => "max_over_time",
            Function::Sum(_) => "sum_over_time",
            Function::Avg(_) => "avg_over_time",
            Function::Quantiles(..) => "quantile_over_time",
            Function::Histogram(_) => "histogram_over_time",
        }
    }
}

impl Operand {
    /// The number that a span has there; durations in nanoseconds.
    pub(crate) fn number(&self, span: &Span) -> Option<f64> {
        match eval::value(&self.field, span, None)? {
            Value::Int(number) => Some(number as f64),
            Value::Double(number) => Some(number),
            _ => None,
        }
    }

    /// Whether [`Operand::number`] is a duration.
    pub(crate) fn is_duration(&self) -> bool {
        self.field == Field::Intrinsic(Intrinsic::Duration)
    }
}

impl Then {
    /// Whether a value stays, where that depends on nothing else.
    pub(crate) fn keeps(self, value: f64) -> bool {
        match self {
            Then::Filter(Comparator::Equal, bound) => value == bound,
            Then::Filter(Comparator::NotEqual, bound) => value != bound,
            Then::Filter(Comparator::Greater, bound) => value > bound,
            Then::Filter(Comparator::GreaterEqual, bound) => value >= bound,
            Then::Filter(Comparator::Less, bound) => value < bound,
            Then::Filter(Comparator::LessEqual, bound) => value <= bound,
            Then::Top(_) | Then::Bottom(_) => true,
        }
    }
}

/// The `|` before the first metrics function outside of brackets.
fn cut(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0;
    tokens.windows(2).position(|pair| {
        match pair[0].kind {
            TokenKind::Symbol("{" | "(") => depth += 1,
            TokenKind::Symbol("}" | ")") => depth -= 1,
            TokenKind::Symbol("|") if depth == 0 => {
                return matches!(&pair[1].kind, TokenKind::Word(word) if FUNCTIONS.contains(&word.as_str()));
            }
            _ => {}
        }
        false
    })
}

/// Where in the text a place is, in bytes.
fn offset(text: &str, at: Position) -> usize {
    let before: usize = text.split_inclusive('\n').take(at.line as usize - 1).map(str::len).sum();
    let column = text[before..].char_indices().nth(at.column as usize - 1);
    column.map_or(text.len(), |(offset, _)| before + offset)
}

struct Reader<'a> {
    tokens: &'a [Token],
    next: usize,
}

impl Reader<'_> {
    fn function(&mut self) -> Result<Function, Error> {
        let token = self.peek().clone();
        self.next += 1;
        let name = match &token.kind {
            TokenKind::Word(word) => word.as_str(),
            _ => return Err(self.unexpected(&["a metrics function"])),
        };
        if name == "compare" {
            return Err(Error::new(token.at, "`compare()` is not supported"));
        }
        self.expect("(")?;
        let function = match name {
            "rate" => Function::Rate,
            "count_over_time" => Function::Count,
            "min_over_time" => Function::Min(self.operand()?),
            "max_over_time" => Function::Max(self.operand()?),
            "sum_over_time" => Function::Sum(self.operand()?),
            "avg_over_time" => Function::Avg(self.operand()?),
            "quantile_over_time" => {
                let operand = self.operand()?;
                Function::Quantiles(operand, self.quantiles()?)
            }
            _ => Function::Histogram(self.operand()?),
        };
        self.expect(")")?;
        Ok(function)
    }

    fn quantiles(&mut self) -> Result<Vec<f64>, Error> {
        let mut quantiles = Vec::new();
        while self.eat(",") {
            let at = self.peek().at;
            let quantile = self.number()?;
            if !(0.0..=1.0).contains(&quantile) || quantiles.len() == OPERANDS_MAX {
                let message = format!("quantile {quantile} is not between 0 and 1, or there are more than {OPERANDS_MAX}");
                return Err(Error::new(at, message));
            }
            quantiles.push(quantile);
        }
        match quantiles.is_empty() {
            true => Err(self.unexpected(&["`,` and a quantile such as 0.9"])),
            false => Ok(quantiles),
        }
    }

    fn by(&mut self) -> Result<Vec<Operand>, Error> {
        let mut by = Vec::new();
        if !self.eat_word("by") {
            return Ok(by);
        }
        self.expect("(")?;
        loop {
            if by.len() == OPERANDS_MAX {
                let message = format!("more than {OPERANDS_MAX} attributes to group by");
                return Err(Error::new(self.peek().at, message));
            }
            by.push(self.operand()?);
            if !self.eat(",") {
                self.expect(")")?;
                return Ok(by);
            }
        }
    }

    /// What follows up to the end: stages, then hints, which change nothing here.
    fn then(&mut self) -> Result<Vec<Then>, Error> {
        let mut then = Vec::new();
        while self.eat("|") {
            then.push(self.stage()?);
            if then.len() > OPERANDS_MAX {
                return Err(Error::new(self.peek().at, format!("more than {OPERANDS_MAX} stages")));
            }
        }
        if let Some(comparator) = self.comparator() {
            then.push(Then::Filter(comparator, self.number()?));
        }
        if self.eat_word("with") {
            self.expect("(")?;
            while !self.eat(")") {
                if self.peek().kind == TokenKind::End {
                    return Err(self.unexpected(&["`)`"]));
                }
                self.next += 1;
            }
        }
        match &self.peek().kind {
            TokenKind::End => Ok(then),
            TokenKind::Symbol("+" | "-" | "*" | "/") => {
                let message = "arithmetic between metrics is not supported";
                Err(Error::expecting(self.peek().at, message, &["the end of the query"]))
            }
            _ => Err(self.unexpected(&["`by`", "`|`", "`with`", "the end of the query"])),
        }
    }

    fn stage(&mut self) -> Result<Then, Error> {
        if let Some(comparator) = self.comparator() {
            return Ok(Then::Filter(comparator, self.number()?));
        }
        let top = match &self.peek().kind {
            TokenKind::Word(word) if word == "topk" => true,
            TokenKind::Word(word) if word == "bottomk" => false,
            _ => return Err(self.unexpected(&["`topk`", "`bottomk`", "a comparison"])),
        };
        self.next += 1;
        self.expect("(")?;
        let at = self.peek().at;
        let count = self.number()?;
        if count.fract() != 0.0 || !(1.0..=1_000.0).contains(&count) {
            return Err(Error::expecting(
                at,
                format!("{count} is no count"),
                &["a whole number from 1 to 1000"],
            ));
        }
        self.expect(")")?;
        Ok(if top {
            Then::Top(count as usize)
        } else {
            Then::Bottom(count as usize)
        })
    }

    fn comparator(&mut self) -> Option<Comparator> {
        let comparator = match self.peek().kind {
            TokenKind::Symbol("=") => Comparator::Equal,
            TokenKind::Symbol("!=") => Comparator::NotEqual,
            TokenKind::Symbol(">") => Comparator::Greater,
            TokenKind::Symbol(">=") => Comparator::GreaterEqual,
            TokenKind::Symbol("<") => Comparator::Less,
            TokenKind::Symbol("<=") => Comparator::LessEqual,
            _ => return None,
        };
        self.next += 1;
        Some(comparator)
    }

    fn operand(&mut self) -> Result<Operand, Error> {
        let token = self.peek();
        let text = match &token.kind {
            TokenKind::Attribute(scope, name) => format!("{scope}.{name}"),
            TokenKind::Scoped(scope, name) => format!("{scope}:{name}"),
            TokenKind::Word(word) => word.clone(),
            _ => return Err(self.unexpected(&["an attribute", "an intrinsic"])),
        };
        let field = parser::field(token)?;
        if field.is_of_trace() {
            return Err(Error::new(token.at, format!("`{text}` is not supported in metrics")));
        }
        self.next += 1;
        Ok(Operand { text, field })
    }

    /// A number; a duration is seconds, as metrics of durations are.
    fn number(&mut self) -> Result<f64, Error> {
        let sign = if self.eat("-") { -1.0 } else { 1.0 };
        let number = match &self.peek().kind {
            TokenKind::Int(number) => *number as f64,
            TokenKind::Float(number) => *number,
            TokenKind::Duration(nanos) => *nanos as f64 / 1e9,
            // `.5` reads like an attribute.
            TokenKind::Attribute(scope, digits) if scope.is_empty() => match format!("0.{digits}").parse() {
                Ok(number) => number,
                Err(_) => return Err(self.unexpected(&["a number"])),
            },
            _ => return Err(self.unexpected(&["a number"])),
        };
        self.next += 1;
        Ok(sign * number)
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

    fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(&self.peek().kind, TokenKind::Word(found) if found == word);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), Error> {
        match self.eat(symbol) {
            true => Ok(()),
            false => Err(self.unexpected(&[&format!("`{symbol}`")])),
        }
    }

    fn unexpected(&self, expected: &[&str]) -> Error {
        let token = self.peek();
        Error::expecting(token.at, format!("{} is not expected here", token.kind.describe()), expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(text: &str, expected: &str) {
        assert_eq!(MetricsQuery::parse(text).expect_err(text).to_string(), expected);
    }

    #[test]
    fn every_function_is_read_with_what_follows() {
        for text in [
            "{} | rate()",
            "{ name = \"a | rate()\" && (.b = 1 || .c = 2) } | count_over_time() by(resource.service.name, span.http.route)",
            "{ status = error }\n | rate() by (name) with(exemplars=true, sample=0.1)",
            "{} | min_over_time(duration)",
            "{} | max_over_time(span:duration) by(.x)",
            "{} | sum_over_time(span.\"a b\") | topk(5)",
            "{} | avg_over_time(.size) | bottomk(3) | > 5",
            "{} | quantile_over_time(duration, .5, 0.9, .99) by(name)",
            "{} | histogram_over_time(duration) > 100ms",
        ] {
            MetricsQuery::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn what_is_not_supported_is_named_with_its_place() {
        check_error(
            "{ name = } | rate()",
            "line 1, column 10: `}` is not expected here, expected a field or a value or `(`",
        );
        check_error(
            "{}",
            "line 1, column 3: the query has no metrics function, expected `| rate()` or another one",
        );
        check_error("{} | compare({status=error})", "line 1, column 6: `compare()` is not supported");
        check_error(
            "{} |\n rate() by(rootName)",
            "line 2, column 12: `rootName` is not supported in metrics",
        );
        check_error(
            "{} | quantile_over_time(duration, 2)",
            "line 1, column 35: quantile 2 is not between 0 and 1, or there are more than 10",
        );
        check_error(
            "{} | rate() / 5",
            "line 1, column 13: arithmetic between metrics is not supported, expected the end of the query",
        );
        check_error(
            "{} | rate() | topk(0)",
            "line 1, column 20: 0 is no count, expected a whole number from 1 to 1000",
        );
    }
}
