//! How sure a number is.
//!
//! The rule of small numbers: below [`PERCENT_SAMPLES_MIN`] samples no percentage is shown, below
//! [`INTERVAL_SAMPLES_MIN`] never one without its interval. One sample is no flame.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::tree::CallTree;

/// Below this no percentage.
pub const PERCENT_SAMPLES_MIN: u64 = 5;
/// Below this no share without its interval.
pub const INTERVAL_SAMPLES_MIN: u64 = 20;

/// The 97.5 % quantile of the normal distribution: two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A range that holds the true value with some confidence, 95 % where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Of shares and counts at least 0.
    pub low: f64,
    /// Of shares at most 1.
    pub high: f64,
}

impl Interval {
    /// Wilson's interval of `hits` out of `samples`; everything is possible without samples.
    pub fn wilson(hits: u64, samples: u64) -> Interval {
        if samples == 0 {
            return Interval { low: 0.0, high: 1.0 };
        }
        Interval::of_share(hits.min(samples) as f64 / samples as f64, samples)
    }

    /// Wilson's interval of a share that rests on `samples`, of which there is at least one: a share of a sum of
    /// values need not be a whole number of samples.
    pub fn of_share(share: f64, samples: u64) -> Interval {
        let n = samples as f64;
        let z2 = Z * Z;
        let centre = share + z2 / (2.0 * n);
        let spread = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z2 / n;
        Interval {
            low: ((centre - spread) / scale).max(0.0),
            high: ((centre + spread) / scale).min(1.0),
        }
    }
}

impl Interval {
    /// Where the expected count lies if `count` was seen, for a Poisson process: the score interval, which Wilson's is
    /// for a small share of many. `z` is the number of standard errors to each side.
    pub fn of_count(count: u64, z: f64) -> Interval {
        let (count, half) = (count as f64, z * z / 2.0);
        let spread = z * (count + half / 2.0).sqrt();
        Interval {
            low: (count + half - spread).max(0.0),
            high: count + half + spread,
        }
    }
}

/// How many standard errors to each side make `count` intervals hold together with 95 % (Bonferroni).
pub fn together(count: usize) -> f64 {
    if count <= 1 {
        return Z;
    }
    // Abramowitz and Stegun 26.2.23, for the upper quantile of the normal distribution: at most 4.5e-4 off.
    let t = (-2.0 * (0.025 / count as f64).ln()).sqrt();
    let numerator = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let denominator = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - numerator / denominator
}

/// What one function of a profile cost.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCost {
    /// Index into the tree's frames.
    pub frame: u32,
    /// What ended in it.
    pub self_value: i64,
    /// What ended in it or in what it called; counted once however often it is on a stack.
    pub total: i64,
    /// Observations behind `self_value`.
    pub self_samples: u64,
    /// Observations behind `total`.
    pub samples: u64,
}

/// Every function once, in order of frame. The root, which stands for everything, is none.
pub fn by_function(tree: &CallTree) -> Vec<FunctionCost> {
    let mut found: BTreeMap<u32, FunctionCost> = BTreeMap::new();
    let own_samples = own_samples(tree);
    let repeated = repeated(tree);
    for (node, own_samples) in own_samples.into_iter().enumerate().skip(1) {
        let frame = tree.frame[node];
        let entry = found.entry(frame).or_insert_with(|| FunctionCost::new(frame));
        entry.self_value = entry.self_value.saturating_add(tree.self_value[node]);
        entry.self_samples += own_samples;
        if !repeated.contains(&node) {
            entry.total = entry.total.saturating_add(tree.total[node]);
            entry.samples += tree.samples[node];
        }
    }
    found.into_values().collect()
}

impl FunctionCost {
    fn new(frame: u32) -> FunctionCost {
        FunctionCost {
            frame,
            self_value: 0,
            total: 0,
            self_samples: 0,
            samples: 0,
        }
    }
}

/// Observations that ended in each node.
fn own_samples(tree: &CallTree) -> Vec<u64> {
    let mut own = tree.samples.clone();
    for node in 1..tree.len() {
        let parent = tree.parent[node] as usize;
        own[parent] = own[parent].saturating_sub(tree.samples[node]);
    }
    own
}

/// Nodes whose function is on the way to the root already. Walks the tree depth first, which is the order of its
/// arrays, with the number of times each function is open.
fn repeated(tree: &CallTree) -> HashSet<usize> {
    let mut open: HashMap<u32, u32> = HashMap::new();
    let mut path: Vec<usize> = Vec::new();
    let mut found = HashSet::new();
    for node in 1..tree.len() {
        while path.last().is_some_and(|last| *last != tree.parent[node] as usize) {
            let left = path.pop().map_or(0, |left| tree.frame[left]);
            open.entry(left).and_modify(|count| *count -= 1);
        }
        let count = open.entry(tree.frame[node]).or_default();
        if *count > 0 {
            found.insert(node);
        }
        *count += 1;
        path.push(node);
    }
    found
}

/// Durations by rank: all of them while they are few, then counts in buckets of 2 % width.
pub(crate) struct Durations {
    kept: Vec<u64>,
    buckets: BTreeMap<i32, u64>,
    count: u64,
    max_ns: u64,
}

/// How many durations are kept as they are.
const DURATIONS_KEPT_MAX: usize = 100_000;
/// The ratio of a bucket's bounds: its middle is at most 1 % off.
const BUCKET_RATIO: f64 = 1.02;

impl Default for Durations {
    fn default() -> Durations {
        Durations::new()
    }
}

impl Durations {
    pub(crate) fn new() -> Durations {
        Durations {
            kept: Vec::new(),
            buckets: BTreeMap::new(),
            count: 0,
            max_ns: 0,
        }
    }

    pub(crate) fn add(&mut self, duration_ns: u64) {
        self.count += 1;
        self.max_ns = self.max_ns.max(duration_ns);
        if self.buckets.is_empty() && self.kept.len() < DURATIONS_KEPT_MAX {
            self.kept.push(duration_ns);
            return;
        }
        for kept in self.kept.drain(..).chain([duration_ns]) {
            *self.buckets.entry(bucket_of(kept)).or_default() += 1;
        }
    }

    /// `None` without durations.
    pub(crate) fn quantiles(mut self) -> Option<crate::catalog::Quantiles> {
        if self.count == 0 {
            return None;
        }
        self.kept.sort_unstable();
        Some(crate::catalog::Quantiles {
            p50_ns: self.at(50),
            p90_ns: self.at(90),
            p99_ns: self.at(99),
            max_ns: self.max_ns,
            exact: self.buckets.is_empty(),
        })
    }

    /// The smallest duration that `percent` of all do not exceed.
    fn at(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1) as u64;
        if self.buckets.is_empty() {
            return self.kept[rank as usize - 1];
        }
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return middle_of(*bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

fn bucket_of(duration_ns: u64) -> i32 {
    match duration_ns {
        0 => -1,
        nanos => ((nanos as f64).ln() / BUCKET_RATIO.ln()).floor() as i32,
    }
}

fn middle_of(bucket: i32) -> u64 {
    match bucket {
        -1 => 0,
        bucket => BUCKET_RATIO.powf(f64::from(bucket) + 0.5).round() as u64,
    }
}

#[cfg(test)]
mod tests {
    use spanflame_model::{Frame, StackSet};

    use super::*;
    use crate::tree::StackTotal;

    fn check_wilson(hits: u64, samples: u64, percent: (u32, u32)) {
        let interval = Interval::wilson(hits, samples);
        let rounded = ((interval.low * 100.0).round() as u32, (interval.high * 100.0).round() as u32);
        assert_eq!(rounded, percent, "{hits} of {samples}");
    }

    #[test]
    fn intervals_are_wilsons() {
        check_wilson(1, 1, (21, 100));
        check_wilson(3, 5, (23, 88));
        check_wilson(10, 20, (30, 70));
        check_wilson(30, 100, (22, 40));
        check_wilson(300, 1000, (27, 33));
        check_wilson(0, 0, (0, 100));
    }

    #[test]
    fn counts_have_the_score_interval_of_a_poisson_process() {
        for (count, low, high) in [(0, 0.0, 3.84), (1, 0.18, 5.67), (10, 5.43, 18.41), (100, 82.23, 121.61)] {
            let found = Interval::of_count(count, together(1));
            assert!(
                (found.low - low).abs() < 0.006 && (found.high - high).abs() < 0.006,
                "{count}: {found:?}"
            );
        }
    }

    #[test]
    fn many_intervals_are_wider_each() {
        for (count, z) in [(1, 1.9600), (2, 2.2414), (10, 2.8070), (1000, 4.0556)] {
            assert!((together(count) - z).abs() < 1e-3, "{count}: {}", together(count));
        }
    }

    fn functions(stacks: &[(&str, i64, u64)]) -> Vec<(String, i64, i64, u64, u64)> {
        let mut set = StackSet::new();
        let mut totals = Vec::new();
        for (stack, value, samples) in stacks {
            let frame = |name: &str| Frame {
                function: name.to_owned(),
                ..Frame::default()
            };
            let ids: Vec<_> = stack.split(';').rev().map(|name| set.add_frame(frame(name))).collect();
            totals.push(StackTotal {
                stack: set.add_stack(&ids),
                value: *value,
                samples: *samples,
            });
        }
        let tree = CallTree::build(&totals, &set);
        let name = |frame: u32| tree.frames[frame as usize].function.clone();
        let functions = by_function(&tree).into_iter();
        functions
            .map(|f| (name(f.frame), f.self_value, f.total, f.self_samples, f.samples))
            .collect()
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let found = functions(&[("main;f;g;f", 10, 1), ("main;f", 5, 2), ("main;g;h", 1, 1)]);
        let expected = [("f", 15, 15, 3, 3), ("g", 0, 11, 0, 2), ("h", 1, 1, 1, 1), ("main", 0, 16, 0, 4)];
        assert_eq!(found, expected.map(|(name, own, total, a, b)| (name.to_owned(), own, total, a, b)));
    }

    #[test]
    fn quantiles_are_exact_until_there_are_many() {
        let quantiles = |count: u64| {
            let mut durations = Durations::new();
            (1..=count).for_each(|nanos| durations.add(nanos));
            durations.quantiles().expect("not empty")
        };
        let few = quantiles(1000);
        assert_eq!(
            (few.p50_ns, few.p90_ns, few.p99_ns, few.max_ns, few.exact),
            (500, 900, 990, 1000, true)
        );
        let many = quantiles(200_000);
        assert!(!many.exact);
        for (found, exact) in [(many.p50_ns, 100_000.0), (many.p90_ns, 180_000.0), (many.p99_ns, 198_000.0)] {
            assert!((found as f64 / exact - 1.0).abs() <= 0.0101, "{found} is not within 1 % of {exact}");
        }
    }
}
