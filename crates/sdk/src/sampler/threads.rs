//! The threads of this process, each with a timer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::signal::{self, SLOTS_MAX, Slot, Timer};
use crate::stats::{Counters, add};

/// A sampled thread.
pub(super) struct Thread {
    /// Read anew every window: runtimes name their threads after they start.
    pub(super) name: Arc<str>,
    slot: usize,
    /// Deleted before the slot is given away.
    _timer: Timer,
}

/// The sampled threads by id.
pub(super) struct Threads {
    armed: HashMap<i32, Thread>,
    free: Vec<usize>,
    period_ns: u64,
    /// State of a small generator for the phases of timers.
    phase: u64,
}

impl Threads {
    pub(super) fn new(period_ns: u64) -> Threads {
        Threads {
            armed: HashMap::new(),
            free: (0..SLOTS_MAX).rev().collect(),
            period_ns,
            phase: u64::from(std::process::id()),
        }
    }

    /// Whether the process has threads that are not sampled yet.
    pub(super) fn has_new(&self, present: &[i32]) -> bool {
        present.iter().any(|tid| !self.armed.contains_key(tid))
    }

    /// Starts timers for new threads among `present`.
    pub(super) fn arm(&mut self, present: &[i32], counters: &Counters) {
        for tid in present {
            if !self.armed.contains_key(tid) && !self.arm_one(*tid) {
                add(&counters.threads_refused, 1);
            }
        }
        counters.threads.store(self.armed.len() as u64, Ordering::Relaxed);
    }

    /// Threads that ended, with what is left in their rings still readable until [`Threads::release`].
    pub(super) fn disarm_absent(&mut self, present: &[i32]) -> Vec<(i32, Thread)> {
        let gone = |tid: &i32| !present.contains(tid);
        let tids: Vec<i32> = self.armed.keys().copied().filter(gone).collect();
        tids.into_iter().filter_map(|tid| self.armed.remove_entry(&tid)).collect()
    }

    /// Gives the slot of a disarmed and drained thread to others.
    pub(super) fn release(&mut self, thread: Thread) {
        self.free.push(thread.slot);
    }

    /// Reads the names of all threads again.
    pub(super) fn refresh_names(&mut self) {
        for (tid, thread) in &mut self.armed {
            if let Some(name) = read_name(*tid).filter(|name| *name != *thread.name) {
                thread.name = name.into();
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, &Thread)> {
        self.armed.iter().map(|(tid, thread)| (*tid, thread))
    }

    fn arm_one(&mut self, tid: i32) -> bool {
        let Some(slot) = self.free.pop() else { return false };
        signal::slot(slot).set_owner(tid);
        let first_ns = 1 + self.random() % self.period_ns;
        match Timer::start(tid, slot, first_ns, self.period_ns) {
            Ok(timer) => {
                let name = read_name(tid).unwrap_or_default().into();
                self.armed.insert(tid, Thread { name, slot, _timer: timer });
                true
            }
            Err(error) => {
                signal::slot(slot).set_owner(0);
                self.free.push(slot);
                // A thread that ended since the scan needs no timer.
                matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ESRCH))
            }
        }
    }

    /// The first expiry is anywhere in the period: else threads that live shorter would never be seen, and
    /// equal threads would be sampled in step. (SplitMix64.)
    fn random(&mut self) -> u64 {
        self.phase = self.phase.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.phase;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Thread {
    pub(super) fn slot(&self) -> &'static Slot {
        signal::slot(self.slot)
    }
}

/// The threads that exist now.
pub(super) fn present() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn read_name(tid: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}
