//! Spansets: filters that are joined, stand in a relation, or go through a pipeline.
//!
//! All of this is about one trace: which of its spans a query selects is found out from all of them together. Sets
//! are kept as one flag for each span, and every relation is decided in one walk over the trace, however deep it is.

use std::collections::{HashMap, HashSet};

use spanflame_model::{Span, SpanId};
use spanflame_store::{SpanCondition, SpanFields};

use super::TraceFacts;
use super::ast::{Comparator, Expr, Field};
use super::conditions;
use super::eval::{self, Place};

/// Spans of one trace.
#[derive(Clone, Debug)]
pub(super) enum Spanset {
    /// Those for which the condition holds.
    Filter(Expr),
    /// Both sides, where both have spans.
    Both(Box<[Spanset; 2]>),
    /// Either side.
    Either(Box<[Spanset; 2]>),
    /// Spans of the right side by how they relate to the left.
    Related(Relation, Box<[Spanset; 2]>),
    Pipeline(Box<Spanset>, Vec<Stage>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) way: Way,
    pub(super) answers: Answers,
}

/// What a span of the right side is to one of the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Child,
    Parent,
    Descendant,
    Ancestor,
    Sibling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// The right spans that relate to a left one.
    Right,
    /// The right spans that relate to none.
    Others,
    /// The right spans that relate to a left one, and those left ones.
    Union,
}

/// A step of a pipeline.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Filter(Expr),
    /// Goes on with one set for each value.
    By(Field),
    /// Goes on with one set.
    Coalesce,
    /// Changes what is shown, not what is selected.
    Select(Vec<Field>),
    /// Keeps the sets for which it holds.
    Keep(Scalar, Comparator, Scalar),
}

/// A number of a set of spans.
#[derive(Clone, Debug)]
pub(super) enum Scalar {
    Number(f64),
    Count,
    Min(Expr),
    Max(Expr),
    Sum(Expr),
    Avg(Expr),
}

/// What tells the spans of a trace apart, the halves of a shared one too.
pub(super) type SpanKey = (SpanId, u8, i64);

/// The key of a span.
pub(super) fn key(span: &Span) -> SpanKey {
    (span.span_id, span.kind as u8, span.start.unix_nanos())
}

impl Spanset {
    /// The filter, if it is nothing else and can be decided span by span.
    pub(super) fn plain(&self) -> Option<&Expr> {
        match self {
            Spanset::Filter(filter) if !conditions::needs_structure(filter) => Some(filter),
            _ => None,
        }
    }

    /// Whether the rest of the trace may decide that `span` is selected; false if it is not in any case.
    pub(super) fn may_select(&self, span: &Span) -> bool {
        match self {
            Spanset::Filter(filter) => eval::test(filter, span, None) != Some(false),
            Spanset::Both(sides) | Spanset::Either(sides) => sides.iter().any(|side| side.may_select(span)),
            Spanset::Related(relation, sides) if relation.answers == Answers::Union => sides.iter().any(|side| side.may_select(span)),
            Spanset::Related(_, sides) => sides[1].may_select(span),
            Spanset::Pipeline(of, _) => of.may_select(span),
        }
    }

    /// What every selected span meets.
    pub(super) fn conditions(&self) -> Vec<SpanCondition> {
        match self {
            Spanset::Filter(filter) => conditions::of(filter),
            Spanset::Both(_) | Spanset::Either(_) => Vec::new(),
            Spanset::Related(relation, _) if relation.answers == Answers::Union => Vec::new(),
            Spanset::Related(_, sides) => sides[1].conditions(),
            Spanset::Pipeline(of, stages) => {
                let mut all = of.conditions();
                for stage in stages {
                    if let Stage::Filter(filter) = stage {
                        all.extend(conditions::of(filter));
                    }
                }
                all
            }
        }
    }

    /// Visits every expression in order of appearance.
    pub(super) fn each_expression<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        match self {
            Spanset::Filter(filter) => visit(filter),
            Spanset::Both(sides) | Spanset::Either(sides) | Spanset::Related(_, sides) => {
                sides.iter().for_each(|side| side.each_expression(visit));
            }
            Spanset::Pipeline(of, stages) => {
                of.each_expression(visit);
                for stage in stages {
                    match stage {
                        Stage::Filter(filter) => visit(filter),
                        Stage::Keep(left, _, right) => [left, right].into_iter().filter_map(Scalar::measured).for_each(&mut *visit),
                        Stage::By(_) | Stage::Coalesce | Stage::Select(_) => {}
                    }
                }
            }
        }
    }

    /// The fields that stages name, in order of appearance.
    pub(super) fn stage_fields(&self) -> Vec<&Field> {
        match self {
            Spanset::Filter(_) => Vec::new(),
            Spanset::Both(sides) | Spanset::Either(sides) | Spanset::Related(_, sides) => {
                sides.iter().flat_map(Spanset::stage_fields).collect()
            }
            Spanset::Pipeline(of, stages) => {
                let mut found = of.stage_fields();
                for stage in stages {
                    match stage {
                        Stage::By(field) => found.push(field),
                        Stage::Select(fields) => found.extend(fields),
                        Stage::Filter(_) | Stage::Coalesce | Stage::Keep(..) => {}
                    }
                }
                found
            }
        }
    }

    /// The parts of a span that are read.
    pub(super) fn fields(&self) -> SpanFields {
        let mut fields = SpanFields::default();
        let mut add = |more: SpanFields| {
            fields.attributes |= more.attributes;
            fields.resource |= more.resource;
            fields.events |= more.events;
        };
        self.each_expression(&mut |expr| add(conditions::fields(expr)));
        self.stage_fields()
            .into_iter()
            .for_each(|field| add(conditions::fields(&Expr::Field(field.clone()))));
        fields
    }
}

impl Scalar {
    fn measured(&self) -> Option<&Expr> {
        match self {
            Scalar::Number(_) | Scalar::Count => None,
            Scalar::Min(expr) | Scalar::Max(expr) | Scalar::Sum(expr) | Scalar::Avg(expr) => Some(expr),
        }
    }
}

/// All spans of one trace and where each is.
pub(super) struct Traced<'a> {
    spans: Vec<&'a Span>,
    places: Vec<Place<'a>>,
    by_id: HashMap<SpanId, Vec<usize>>,
    children: HashMap<SpanId, Vec<usize>>,
    facts: &'a TraceFacts,
}

/// One flag for each span.
type Set = Vec<bool>;

impl<'a> Traced<'a> {
    pub(super) fn new(spans: Vec<&'a Span>, facts: &'a TraceFacts) -> Traced<'a> {
        let mut by_id: HashMap<SpanId, Vec<usize>> = HashMap::new();
        let mut children: HashMap<SpanId, Vec<usize>> = HashMap::new();
        for (index, span) in spans.iter().enumerate() {
            by_id.entry(span.span_id).or_default().push(index);
            if let Some(parent) = span.parent_span_id.filter(|parent| *parent != span.span_id) {
                children.entry(parent).or_default().push(index);
            }
        }
        let place = |span: &&Span| Place {
            parent: span
                .parent_span_id
                .and_then(|parent| by_id.get(&parent))
                .map(|found| spans[found[0]]),
            children: children.get(&span.span_id).map_or(0, |children| children.len() as i64),
            nested_set: [0; 3],
        };
        let places = spans.iter().map(place).collect();
        let mut traced = Traced {
            spans,
            places,
            by_id,
            children,
            facts,
        };
        traced.number();
        traced
    }

    /// The keys of the selected spans.
    pub(super) fn select(&self, spanset: &Spanset) -> HashSet<SpanKey> {
        let set = self.evaluate(spanset);
        let selected = self.spans.iter().zip(set).filter(|(_, selected)| *selected);
        selected.map(|(span, _)| key(span)).collect()
    }

    /// Left and right of the nested set, from 1, in one walk that needs no recursion.
    fn number(&mut self) {
        let mut next = 1;
        let mut seen = vec![false; self.spans.len()];
        for root in 0..self.spans.len() {
            if self.places[root].parent.is_some() || seen[root] {
                continue;
            }
            let above = if self.spans[root].parent_span_id.is_none() { -1 } else { 0 };
            let mut pending = vec![(root, above, false)];
            while let Some((index, above, is_left)) = pending.pop() {
                if is_left {
                    self.places[index].nested_set[1] = next;
                    next += 1;
                    continue;
                }
                if std::mem::replace(&mut seen[index], true) {
                    continue;
                }
                let left = next;
                next += 1;
                self.places[index].nested_set = [left, 0, above];
                pending.push((index, above, true));
                let below = self.children.get(&self.spans[index].span_id).into_iter().flatten();
                pending.extend(below.rev().map(|child| (*child, left, false)));
            }
        }
    }

    fn evaluate(&self, spanset: &Spanset) -> Set {
        match spanset {
            Spanset::Filter(filter) => self.filter(filter),
            Spanset::Both(sides) => {
                let [left, right] = self.sides(sides);
                match left.contains(&true) && right.contains(&true) {
                    true => union(left, &right),
                    false => vec![false; self.spans.len()],
                }
            }
            Spanset::Either(sides) => {
                let [left, right] = self.sides(sides);
                union(left, &right)
            }
            Spanset::Related(relation, sides) => {
                let [left, right] = self.sides(sides);
                self.related(*relation, &left, &right)
            }
            Spanset::Pipeline(of, stages) => self.pipeline(self.evaluate(of), stages),
        }
    }

    fn sides(&self, sides: &[Spanset; 2]) -> [Set; 2] {
        [self.evaluate(&sides[0]), self.evaluate(&sides[1])]
    }

    fn filter(&self, filter: &Expr) -> Set {
        let each = self.spans.iter().zip(&self.places);
        each.map(|(span, place)| eval::test_in_trace(filter, span, self.facts, *place))
            .collect()
    }

    fn related(&self, relation: Relation, left: &Set, right: &Set) -> Set {
        let reached = self.reach(relation.way, left);
        let wanted = relation.answers != Answers::Others;
        let found: Set = right.iter().zip(&reached).map(|(is_in, hit)| *is_in && *hit == wanted).collect();
        match relation.answers {
            Answers::Right | Answers::Others => found,
            Answers::Union => {
                let back = self.reach(relation.way.flipped(), &found);
                let partners: Set = left.iter().zip(&back).map(|(is_in, hit)| *is_in && *hit).collect();
                union(found, &partners)
            }
        }
    }

    /// Every span that is a child, a parent, ... of one in `from`.
    fn reach(&self, way: Way, from: &Set) -> Set {
        let mut reached = vec![false; self.spans.len()];
        let starts: Vec<usize> = (0..from.len()).filter(|index| from[*index]).collect();
        if way == Way::Sibling {
            return self.siblings(from);
        }
        let mut pending = starts;
        while let Some(index) = pending.pop() {
            let span = self.spans[index];
            let next = match way {
                Way::Child | Way::Descendant => self.children.get(&span.span_id),
                _ => span
                    .parent_span_id
                    .filter(|parent| *parent != span.span_id)
                    .and_then(|parent| self.by_id.get(&parent)),
            };
            for found in next.into_iter().flatten() {
                if !std::mem::replace(&mut reached[*found], true) && matches!(way, Way::Descendant | Way::Ancestor) {
                    pending.push(*found);
                }
            }
        }
        reached
    }

    fn siblings(&self, from: &Set) -> Set {
        let mut by_parent: HashMap<SpanId, u32> = HashMap::new();
        for (span, is_in) in self.spans.iter().zip(from) {
            if let Some(parent) = span.parent_span_id.filter(|_| *is_in) {
                *by_parent.entry(parent).or_default() += 1;
            }
        }
        let has_other = |(span, is_in): (&&Span, &bool)| {
            let parent = span.parent_span_id.and_then(|parent| by_parent.get(&parent));
            parent.is_some_and(|count| *count > u32::from(*is_in))
        };
        self.spans.iter().zip(from).map(has_other).collect()
    }

    /// Sets share no span, so that all of them together take no more room than the trace.
    fn pipeline(&self, of: Set, stages: &[Stage]) -> Set {
        let mut sets: Vec<Vec<usize>> = vec![(0..of.len()).filter(|index| of[*index]).collect()];
        for stage in stages {
            match stage {
                Stage::Filter(filter) => sets.iter_mut().for_each(|set| {
                    set.retain(|index| eval::test_in_trace(filter, self.spans[*index], self.facts, self.places[*index]));
                }),
                Stage::By(field) => sets = sets.iter().flat_map(|set| self.groups(set, field)).collect(),
                Stage::Coalesce => sets = vec![sets.concat()],
                Stage::Select(_) => {}
                Stage::Keep(left, operator, right) => sets.retain(|set| self.holds(set, left, *operator, right)),
            }
            sets.retain(|set| !set.is_empty());
        }
        let mut selected = vec![false; self.spans.len()];
        sets.iter().flatten().for_each(|index| selected[*index] = true);
        selected
    }

    /// One set for each value; spans that have none are a set too.
    fn groups(&self, of: &[usize], field: &Field) -> Vec<Vec<usize>> {
        let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
        for index in of {
            let value = eval::value_in_trace(field, self.spans[*index], self.facts, self.places[*index]);
            groups.entry(format!("{value:?}")).or_default().push(*index);
        }
        groups.into_values().collect()
    }

    /// Whether the comparison holds for a set that is not empty.
    fn holds(&self, set: &[usize], left: &Scalar, operator: Comparator, right: &Scalar) -> bool {
        let (Some(left), Some(right)) = (self.number_of(set, left), self.number_of(set, right)) else {
            return false;
        };
        match operator {
            Comparator::Equal => left == right,
            Comparator::NotEqual => left != right,
            Comparator::Greater => left > right,
            Comparator::GreaterEqual => left >= right,
            Comparator::Less => left < right,
            Comparator::LessEqual => left <= right,
        }
    }

    /// `None` where no span of the set has the number that is measured.
    fn number_of(&self, set: &[usize], scalar: &Scalar) -> Option<f64> {
        let numbers = |expr| {
            let each = set.iter();
            each.filter_map(move |index| eval::number_in_trace(expr, self.spans[*index], self.facts, self.places[*index]))
        };
        match scalar {
            Scalar::Number(number) => Some(*number),
            Scalar::Count => Some(set.len() as f64),
            Scalar::Min(expr) => numbers(expr).reduce(f64::min),
            Scalar::Max(expr) => numbers(expr).reduce(f64::max),
            Scalar::Sum(expr) => numbers(expr).reduce(|a, b| a + b),
            Scalar::Avg(expr) => {
                let sum = numbers(expr).reduce(|a, b| a + b)?;
                Some(sum / numbers(expr).count() as f64)
            }
        }
    }
}

fn union(mut all: Set, more: &Set) -> Set {
    all.iter_mut().zip(more).for_each(|(flag, more)| *flag |= *more);
    all
}

impl Way {
    fn flipped(self) -> Way {
        match self {
            Way::Child => Way::Parent,
            Way::Parent => Way::Child,
            Way::Descendant => Way::Ancestor,
            Way::Ancestor => Way::Descendant,
            Way::Sibling => Way::Sibling,
        }
    }
}
