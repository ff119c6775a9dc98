//! A ring of words from one signal handler to one reader: wait-free on both sides, no memory but its own.
//!
//! Entries have any length and lie contiguously, modulo the capacity. A writer that finds no room drops the
//! entry and counts it; nothing is ever overwritten.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words a ring holds, a power of two: about 100 stacks of 30 frames, a second's worth at 100 Hz.
const WORDS: usize = 4096;

pub(super) struct Ring {
    words: Box<[AtomicU64]>,
    /// Words ever written; only the writer moves it.
    written: AtomicUsize,
    /// Words ever read; only the reader moves it.
    read: AtomicUsize,
    dropped: AtomicU64,
}

impl Ring {
    pub(super) fn new() -> Ring {
        Ring {
            words: (0..WORDS).map(|_| AtomicU64::new(0)).collect(),
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Appends `header` and `body` as one entry that stands for `weight` observations. Signal safe.
    pub(super) fn push(&self, header: &[u64], body: &[u64], weight: u64) {
        let written = self.written.load(Ordering::Relaxed);
        let used = written.wrapping_sub(self.read.load(Ordering::Acquire));
        let needed = 1 + header.len() + body.len();
        if needed > WORDS - used {
            self.dropped.fetch_add(weight, Ordering::Relaxed);
            return;
        }
        let entry = [needed as u64]
            .into_iter()
            .chain(header.iter().copied())
            .chain(body.iter().copied());
        for (at, word) in entry.enumerate() {
            self.words[(written.wrapping_add(at)) % WORDS].store(word, Ordering::Relaxed);
        }
        self.written.store(written.wrapping_add(needed), Ordering::Release);
    }

    /// Takes the oldest entry into `into`, which is cleared first. `false` if there is none.
    pub(super) fn pop(&self, into: &mut Vec<u64>) -> bool {
        into.clear();
        let read = self.read.load(Ordering::Relaxed);
        if read == self.written.load(Ordering::Acquire) {
            return false;
        }
        let len = self.words[read % WORDS].load(Ordering::Relaxed) as usize;
        into.extend((1..len).map(|at| self.words[read.wrapping_add(at) % WORDS].load(Ordering::Relaxed)));
        self.read.store(read.wrapping_add(len), Ordering::Release);
        true
    }

    /// Observations dropped since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_as_they_went_in_over_many_rounds() {
        let ring = Ring::new();
        let mut entry = Vec::new();
        for round in 0..5_000_u64 {
            let body: Vec<u64> = (0..round % 37).collect();
            ring.push(&[round, 7], &body, 1);
            assert!(ring.pop(&mut entry));
            assert_eq!((entry[0], entry[1], &entry[2..]), (round, 7, &body[..]));
        }
        assert!(!ring.pop(&mut entry));
        assert_eq!(ring.take_dropped(), 0);
    }

    #[test]
    fn a_full_ring_keeps_what_it_has_and_counts_the_rest() {
        let ring = Ring::new();
        for number in 0..WORDS as u64 {
            ring.push(&[number], &[0; 14], 2);
        }
        let (mut entry, mut kept) = (Vec::new(), 0);
        while ring.pop(&mut entry) {
            assert_eq!(entry[0], kept);
            kept += 1;
        }
        assert_eq!(kept, WORDS as u64 / 16);
        assert_eq!(ring.take_dropped(), 2 * (WORDS as u64 - kept));
    }

    #[test]
    fn a_reader_on_another_thread_sees_whole_entries_only() {
        let ring = Ring::new();
        let total = 50_000_u64;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..total {
                    let body = [number; 9];
                    ring.push(&[number], &body[..(number % 10) as usize], 1);
                }
            });
            let (mut entry, mut seen, mut last) = (Vec::new(), 0, None);
            while seen + ring.dropped.load(Ordering::Relaxed) < total || last.is_none() {
                if ring.pop(&mut entry) {
                    assert!(last < Some(entry[0]));
                    assert_eq!(entry.len() as u64, 1 + entry[0] % 10);
                    assert!(entry.iter().all(|word| *word == entry[0]));
                    last = Some(entry[0]);
                    seen += 1;
                }
            }
        });
    }
}
