//! Two profiles side by side: what costs more in the target than in the base, and how sure that is.
//!
//! A function's cost is compared for each span of a selection, or for each second of a range of profiles. Its
//! observations are taken as counts of a Poisson process, whose score interval is Wilson's for small shares; the
//! interval of the difference is put together from those of both sides (Zou and Donner, Statistics in Medicine 27, 2008,
//! 1693-1702). It is widened for the number of functions (Bonferroni), so that all of a comparison's verdicts hold
//! together with 95 %. What it does not know: that samples inside one span are not independent, and that bytes of one
//! observation are not those of another.
//!
//! Pure: two profiles in, one comparison out. Equal sides differ in nothing.

use std::cmp::Ordering;
use std::collections::HashMap;

use spanflame_model::{ProfileType, Tenant, TimeRange};

use crate::attributes::SpanSet;
use crate::measure::TypeSelector;
use crate::profile::{ProfileAnswer, Scope};
use crate::selected::SelectedSpans;
use crate::selector::LabelSelector;
use crate::stats::{FunctionCost, Interval, PERCENT_SAMPLES_MIN, by_function, together};
use crate::tree::CallTree;

/// What to compare.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// What the target is compared with.
    pub base: CompareSet,
    /// What is looked into; spans like the base, or profiles like the base.
    pub target: CompareSet,
    /// Which values.
    pub profile_type: TypeSelector,
    /// How much around each span: [`Scope::Span`] or [`Scope::Subtree`].
    pub scope: Scope,
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub enum CompareSet {
    /// The samples of some spans.
    Spans(SpanSet),
    /// Everything that some profiles hold.
    Profiles {
        /// Which profiles.
        selector: LabelSelector,
        /// In what time.
        range: TimeRange,
    },
}

/// Two profiles in one tree.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What is compared.
    pub profile_type: ProfileType,
    /// `None` for profiles.
    pub scope: Option<Scope>,
    /// The base.
    pub base: CompareSide,
    /// The target.
    pub target: CompareSide,
    /// Every node of either side, with the base's values.
    pub base_tree: CallTree,
    /// The same nodes and frames with the target's values.
    pub target_tree: CallTree,
    /// Significant ones by difference descending, then the others by difference; ties by name.
    pub functions: Vec<ComparedFunction>,
}

/// One side as a whole.
#[derive(Clone, Debug)]
pub struct CompareSide {
    /// Its own profile.
    pub profile: ProfileAnswer,
    /// Its spans; `None` for profiles.
    pub spans: Option<SelectedSpans>,
    /// Into how many parts its cost is divided: spans, or seconds.
    pub units: f64,
}

/// A function on both sides.
#[derive(Clone, Debug)]
pub struct ComparedFunction {
    /// Index into the frames of both trees.
    pub frame: u32,
    /// In the base.
    pub base: ComparedCost,
    /// In the target.
    pub target: ComparedCost,
    /// Target less base, for each span or second; `None` where a side has none.
    pub difference: Option<f64>,
    /// Where it lies; together with those of all other functions 95 %.
    pub difference_interval: Option<Interval>,
    /// What to make of it.
    pub verdict: Verdict,
}

/// What a function cost on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ComparedCost {
    /// What ended in it.
    pub self_value: i64,
    /// What ended in it or in what it called.
    pub total: i64,
    /// Observations behind `total`.
    pub samples: u64,
    /// `total` of the side's total; `None` below [`PERCENT_SAMPLES_MIN`] samples of the side.
    pub share: Option<f64>,
    /// Where the true share lies, 95 %.
    pub share_interval: Option<Interval>,
    /// `total` for each span or second; `None` without any.
    pub per_unit: Option<f64>,
    /// Where it lies, 95 %.
    pub per_unit_interval: Option<Interval>,
}

/// Whether a function costs more in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More.
    More,
    /// Less.
    Less,
    /// It costs, and only the base has it.
    OnlyInBase,
    /// It costs, and only the target has it.
    OnlyInTarget,
    /// The interval of the difference holds 0.
    NotSignificant,
    /// A side has no samples, or both together have fewer than [`PERCENT_SAMPLES_MIN`] of this function.
    TooFewSamples,
}

impl Verdict {
    /// The word used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::More => "more",
            Verdict::Less => "less",
            Verdict::OnlyInBase => "only_in_base",
            Verdict::OnlyInTarget => "only_in_target",
            Verdict::NotSignificant => "not_significant",
            Verdict::TooFewSamples => "too_few_samples",
        }
    }

    /// Whether the sides differ.
    pub fn is_significant(self) -> bool {
        !matches!(self, Verdict::NotSignificant | Verdict::TooFewSamples)
    }
}

impl Comparison {
    pub(crate) fn new(scope: Option<Scope>, base: CompareSide, target: CompareSide) -> Comparison {
        let (base_tree, target_tree) = merged(&base.profile, &target.profile);
        let of_base = by_frame(&base_tree);
        let of_target = by_frame(&target_tree);
        let frames: Vec<u32> = (1..base_tree.frames.len() as u32).collect();
        let has_enough = |frame: &&u32| {
            let samples = |of: &HashMap<u32, FunctionCost>| of.get(*frame).map_or(0, |function| function.samples);
            samples(&of_base) + samples(&of_target) >= PERCENT_SAMPLES_MIN
        };
        let z = together(frames.iter().filter(has_enough).count());
        let one = |frame: &u32| compared(*frame, (&base, of_base.get(frame)), (&target, of_target.get(frame)), z);
        let mut functions: Vec<ComparedFunction> = frames.iter().map(one).collect();
        // Frames are in order of name, and the sort is stable.
        functions.sort_by(by_weight);
        let known = [&target, &base]
            .into_iter()
            .find(|side| side.profile.samples > 0)
            .unwrap_or(&target);
        Comparison {
            profile_type: known.profile.profile_type.clone(),
            scope,
            base,
            target,
            base_tree,
            target_tree,
            functions,
        }
    }
}

fn by_weight(a: &ComparedFunction, b: &ComparedFunction) -> Ordering {
    let weight = |function: &ComparedFunction| function.difference.map_or(0.0, f64::abs);
    let significant = b.verdict.is_significant().cmp(&a.verdict.is_significant());
    significant.then_with(|| weight(b).total_cmp(&weight(a)))
}

type SideOf<'a> = (&'a CompareSide, Option<&'a FunctionCost>);

/// `z` is how many standard errors the interval of the difference is wide to each side.
fn compared(frame: u32, base: SideOf<'_>, target: SideOf<'_>, z: f64) -> ComparedFunction {
    let (in_base, in_target) = (cost(base), cost(target));
    let difference = in_base.per_unit.zip(in_target.per_unit).map(|(base, target)| target - base);
    let wide = rate_interval(base, z).zip(rate_interval(target, z));
    let difference_interval = difference.zip(wide).map(|(difference, (of_base, of_target))| {
        let (b, t) = (in_base.per_unit.unwrap_or(0.0), in_target.per_unit.unwrap_or(0.0));
        Interval {
            low: difference - (t - of_target.low).hypot(of_base.high - b),
            high: difference + (of_target.high - t).hypot(b - of_base.low),
        }
    });
    let lacks_samples = base.0.profile.samples == 0 || target.0.profile.samples == 0;
    let verdict = match difference_interval {
        _ if lacks_samples || in_base.samples + in_target.samples < PERCENT_SAMPLES_MIN => Verdict::TooFewSamples,
        Some(Interval { low, .. }) if low > 0.0 && in_base.samples == 0 => Verdict::OnlyInTarget,
        Some(Interval { low, .. }) if low > 0.0 => Verdict::More,
        Some(Interval { high, .. }) if high < 0.0 && in_target.samples == 0 => Verdict::OnlyInBase,
        Some(Interval { high, .. }) if high < 0.0 => Verdict::Less,
        _ => Verdict::NotSignificant,
    };
    ComparedFunction {
        frame,
        base: in_base,
        target: in_target,
        difference,
        difference_interval,
        verdict,
    }
}

fn cost((side, function): SideOf<'_>) -> ComparedCost {
    let (all, samples) = (side.profile.total, side.profile.samples);
    let total = function.map_or(0, |function| function.total);
    let share = (samples >= PERCENT_SAMPLES_MIN && all > 0).then(|| (total as f64 / all as f64).clamp(0.0, 1.0));
    ComparedCost {
        self_value: function.map_or(0, |function| function.self_value),
        total,
        samples: function.map_or(0, |function| function.samples),
        share,
        share_interval: share.map(|share| Interval::of_share(share, samples)),
        per_unit: (side.units > 0.0).then(|| total as f64 / side.units),
        per_unit_interval: rate_interval((side, function), together(1)),
    }
}

/// Where the cost for each span or second lies; `None` where the side says nothing about it.
fn rate_interval((side, function): SideOf<'_>, z: f64) -> Option<Interval> {
    let (samples, total) = function.map_or((0, 0), |function| (function.samples, function.total));
    // What one observation is worth: the function's own, else the side's.
    let (count, value) = match samples {
        0 => (side.profile.samples, side.profile.total),
        _ => (samples, total),
    };
    if count == 0 || value < 0 || side.units <= 0.0 {
        return None;
    }
    let scale = value as f64 / count as f64 / side.units;
    let expected = Interval::of_count(samples, z);
    Some(Interval {
        low: expected.low * scale,
        high: expected.high * scale,
    })
}

fn by_frame(tree: &CallTree) -> HashMap<u32, FunctionCost> {
    by_function(tree).into_iter().map(|function| (function.frame, function)).collect()
}

/// Both trees over the nodes and frames of both.
fn merged(base: &ProfileAnswer, target: &ProfileAnswer) -> (CallTree, CallTree) {
    let mut stacks = base.stacks.clone();
    stacks.merge(target.stacks.clone());
    let totals = [base.totals.as_slice(), &target.totals].concat();
    let both = CallTree::build(&totals, &stacks);
    (both.with_values_of(&base.tree), both.with_values_of(&target.tree))
}

impl CallTree {
    /// The nodes of this tree with the values of another, whose nodes are among them. What was cut from this tree is
    /// the own cost of the last caller that is left.
    fn with_values_of(&self, other: &CallTree) -> CallTree {
        let frames = self.frame_index();
        let nodes: HashMap<(u32, u32), u32> = (1..self.len())
            .map(|node| ((self.parent[node], self.frame[node]), node as u32))
            .collect();
        let mut tree = CallTree {
            self_value: vec![0; self.len()],
            total: vec![0; self.len()],
            samples: vec![0; self.len()],
            ..self.clone()
        };
        let mut here: Vec<u32> = vec![0; other.len()];
        for node in 0..other.len() {
            let parent = here[other.parent[node] as usize];
            let frame = frames.of(&other.frames[other.frame[node] as usize]);
            let found = frame.and_then(|frame| nodes.get(&(parent, frame)).copied());
            let at = if node == 0 { 0 } else { found.unwrap_or(parent) };
            here[node] = at;
            tree.self_value[at as usize] = tree.self_value[at as usize].saturating_add(other.self_value[node]);
            if node == 0 || found.is_some() {
                tree.total[at as usize] += other.total[node];
                tree.samples[at as usize] += other.samples[node];
            }
        }
        tree
    }
}

#[cfg(test)]
mod tests;
