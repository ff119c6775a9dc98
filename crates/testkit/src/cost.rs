//! What was spent, by stack.

use std::collections::BTreeMap;

use spanflame_model::StackId;

/// Value and observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// In nanoseconds of CPU.
    pub value: i64,
    /// Observations.
    pub samples: u64,
}

/// What was spent, by stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost(BTreeMap<StackId, Spent>);

impl Cost {
    /// Adds one observation of `value`.
    pub fn add(&mut self, stack: StackId, value: i64) {
        let spent = self.0.entry(stack).or_default();
        spent.value += value;
        spent.samples += 1;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Cost) {
        for (stack, more) in &other.0 {
            let spent = self.0.entry(*stack).or_default();
            spent.value += more.value;
            spent.samples += more.samples;
        }
    }

    /// Everything together.
    pub fn total(&self) -> Spent {
        self.0.values().fold(Spent::default(), |sum, spent| Spent {
            value: sum.value + spent.value,
            samples: sum.samples + spent.samples,
        })
    }

    /// By stack id: stack, value, observations.
    pub fn rows(&self) -> Vec<(StackId, i64, u64)> {
        self.0.iter().map(|(stack, spent)| (*stack, spent.value, spent.samples)).collect()
    }
}
