//! Stacks and frames that today's files hold already.
//!
//! A stack is written once per tenant and day of arrival: every day holds all that its own samples name, so
//! a day can be dropped without looking at others. The set is forgotten when the day ends, when it grows too
//! large, and on restart; then stacks are written again and merges drop the copies.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use spanflame_model::{StackSet, Tenant};

use crate::day::Day;

/// Ids remembered, over all tenants.
const IDS_MAX: usize = 4_000_000;

/// What is durable for the present day.
#[derive(Debug, Default)]
pub(crate) struct KnownStacks {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    day: Option<Day>,
    count: usize,
    tenants: HashMap<Tenant, Ids>,
}

#[derive(Debug, Default)]
struct Ids {
    stacks: HashSet<u64>,
    frames: HashSet<u64>,
}

impl KnownStacks {
    /// What of `stacks` is not known to be durable for `day`.
    pub(crate) fn unknown(&self, tenant: &Tenant, day: Day, stacks: StackSet) -> StackSet {
        let state = self.state.lock();
        let Some(ids) = state.tenants.get(tenant).filter(|_| state.day == Some(day)) else {
            return stacks;
        };
        let mut unknown = StackSet::new();
        for (id, stack) in stacks.stacks().filter(|(id, _)| !ids.stacks.contains(&id.0)) {
            unknown.insert_stack(id, stack.clone());
        }
        for (id, frame) in stacks.frames().filter(|(id, _)| !ids.frames.contains(&id.0)) {
            unknown.insert_frame(id, frame.clone());
        }
        unknown
    }

    /// Remembers what became durable.
    pub(crate) fn remember(&self, tenant: &Tenant, day: Day, stacks: &StackSet) {
        let mut state = self.state.lock();
        if state.day != Some(day) || state.count > IDS_MAX {
            *state = State {
                day: Some(day),
                ..State::default()
            };
        }
        let ids = state.tenants.entry(tenant.clone()).or_default();
        let before = ids.stacks.len() + ids.frames.len();
        ids.stacks.extend(stacks.stacks().map(|(id, _)| id.0));
        ids.frames.extend(stacks.frames().map(|(id, _)| id.0));
        let grown = ids.stacks.len() + ids.frames.len() - before;
        state.count += grown;
    }
}

#[cfg(test)]
mod tests {
    use spanflame_model::Frame;

    use super::*;

    #[test]
    fn a_stack_is_written_once_a_day_and_tenant() {
        let known = KnownStacks::default();
        let mut stacks = StackSet::new();
        let frame = stacks.add_frame(Frame::default());
        stacks.add_stack(&[frame]);
        let (a, b) = (Tenant::anonymous(), Tenant::own());
        let unknown = |tenant: &Tenant, day| known.unknown(tenant, Day(day), stacks.clone()).stacks().len();
        assert_eq!(unknown(&a, 1), 1);
        known.remember(&a, Day(1), &stacks);
        assert_eq!((unknown(&a, 1), unknown(&b, 1), unknown(&a, 2)), (0, 1, 1));
        known.remember(&a, Day(2), &stacks);
        assert_eq!((unknown(&a, 1), unknown(&a, 2)), (1, 0));
    }
}
