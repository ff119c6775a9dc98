//! Which spans and profiles arrived before.
//!
//! Fingerprints of what is in the write-ahead log lie in a map with their arrival, so that a duplicate of an
//! append in flight can wait for it. When a segment is flushed, its fingerprints become a sorted run, in
//! memory and in a file beside the log, and live on for the time of recognition. Runs that are close in
//! time and size are merged in memory, so a look-up touches few of them. No fingerprint is ever only
//! probable: all 128 bits are compared.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use spanflame_model::{Fingerprint, Timestamp};

use crate::Error;
use crate::paths::write_durably;

const MAGIC: &[u8; 8] = b"SPFSEEN\x01";
const SUFFIX: &str = "seen";
/// Magic, latest arrival, count, checksum.
const HEADER_LEN: usize = 28;
/// Flushed fingerprints kept in memory, 16 bytes each; beyond it the oldest are forgotten early.
const KEYS_MAX: usize = 16_000_000;
/// Runs merge while they cover less than this part of the time of recognition, so that expiry is not coarser.
const RUN_SPANS: u32 = 8;

/// What is known of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing: from now on it belongs to the append that asked.
    New,
    /// It belongs to the append that arrived then, which may still be in flight.
    Recent(Timestamp),
    /// It was flushed.
    Flushed,
}

/// All that is recognised.
#[derive(Debug)]
pub(crate) struct Recognition {
    directory: PathBuf,
    reach: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    recent: HashMap<u128, Timestamp, BuildHasherDefault<Folded>>,
    /// Oldest first.
    runs: Vec<Run>,
    forgotten: u64,
}

impl Recognition {
    /// Loads what was flushed within `reach` before `now` and deletes files older than that.
    pub(crate) fn open(directory: &Path, reach: Duration, now: Timestamp) -> Result<Recognition, Error> {
        let oldest = now.saturating_sub(nanos(reach));
        let mut state = State::default();
        for (_, path) in run_files(directory)? {
            match Run::read(&path)? {
                Some(run) if run.last >= oldest => state.push(run, reach),
                Some(_) => std::fs::remove_file(&path).map_err(Error::io("delete", &path))?,
                None => {
                    tracing::warn!(file = %path.display(), "recognition file is damaged, its duplicates are not recognised");
                    std::fs::remove_file(&path).map_err(Error::io("delete", &path))?;
                }
            }
        }
        Ok(Recognition {
            directory: directory.to_owned(),
            reach,
            state: Mutex::new(state),
        })
    }

    /// Looks fingerprints up and claims the new ones for the append that arrived at `received`.
    pub(crate) fn claim(&self, fingerprints: &[Fingerprint], received: Timestamp) -> Vec<Seen> {
        let mut state = self.state.lock();
        let State { recent, runs, .. } = &mut *state;
        let mut look = |fingerprint: &Fingerprint| match recent.entry(fingerprint.0) {
            std::collections::hash_map::Entry::Occupied(entry) => Seen::Recent(*entry.get()),
            std::collections::hash_map::Entry::Vacant(_) if runs.iter().rev().any(|run| run.contains(fingerprint.0)) => Seen::Flushed,
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(received);
                Seen::New
            }
        };
        fingerprints.iter().map(&mut look).collect()
    }

    /// Whether the append that arrived at `received` holds a fingerprint; false if it failed.
    pub(crate) fn holds(&self, fingerprint: Fingerprint, received: Timestamp) -> bool {
        let state = self.state.lock();
        match state.recent.get(&fingerprint.0) {
            Some(owner) => *owner == received,
            None => state.runs.iter().any(|run| run.contains(fingerprint.0)),
        }
    }

    /// Takes back what a failed append claimed.
    pub(crate) fn release(&self, fingerprints: &[Fingerprint]) {
        let mut state = self.state.lock();
        for fingerprint in fingerprints {
            state.recent.remove(&fingerprint.0);
        }
    }

    /// Writes down what a segment held before it is deleted. `last` is its latest arrival.
    pub(crate) fn settle(&self, segment: u64, fingerprints: &[Fingerprint], last: Timestamp) -> Result<(), Error> {
        if fingerprints.is_empty() {
            return Ok(());
        }
        let run = Run::new(fingerprints.iter().map(|f| f.0).collect(), last);
        write_durably(&self.directory.join(format!("{segment:020}.{SUFFIX}")), &run.encode())?;
        let mut state = self.state.lock();
        for fingerprint in fingerprints {
            state.recent.remove(&fingerprint.0);
        }
        state.push(run, self.reach);
        // The map grew for the segment that is gone; what is left fits in less.
        let spare = state.recent.capacity() / 4;
        if state.recent.len() < spare {
            let keep = state.recent.len() * 2;
            state.recent.shrink_to(keep);
        }
        Ok(())
    }

    /// Forgets what arrived too long ago.
    pub(crate) fn expire(&self, now: Timestamp) -> Result<(), Error> {
        let oldest = now.saturating_sub(nanos(self.reach));
        self.state.lock().runs.retain(|run| run.last >= oldest);
        for (_, path) in run_files(&self.directory)? {
            let age = std::fs::metadata(&path)
                .and_then(|m| m.modified())
                .ok()
                .and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > self.reach) {
                std::fs::remove_file(&path).map_err(Error::io("delete", &path))?;
            }
        }
        Ok(())
    }

    /// Fingerprints held, and how many were forgotten before their time.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let state = self.state.lock();
        let flushed: usize = state.runs.iter().map(|run| run.keys.len()).sum();
        ((state.recent.len() + flushed) as u64, state.forgotten)
    }

    /// The highest segment number that a file bears.
    pub(crate) fn last_segment(&self) -> Result<u64, Error> {
        Ok(run_files(&self.directory)?.last().map_or(0, |(number, _)| *number))
    }
}

impl State {
    fn push(&mut self, run: Run, reach: Duration) {
        self.runs.push(run);
        let width = nanos(reach / RUN_SPANS);
        while let [.., older, newer] = &self.runs[..] {
            let close = newer.last.nanos_since(older.first) <= width;
            if !close || older.keys.len() > 2 * newer.keys.len() {
                break;
            }
            let newer = self.runs.pop().expect("there are two");
            let older = self.runs.pop().expect("there are two");
            self.runs.push(older.merge(newer));
        }
        let mut held: usize = self.runs.iter().map(|run| run.keys.len()).sum();
        while held > KEYS_MAX && self.runs.len() > 1 {
            let lost = self.runs.remove(0).keys.len();
            held -= lost;
            self.forgotten += lost as u64;
            tracing::warn!(
                fingerprints = lost,
                limit = KEYS_MAX,
                "duplicates are recognised for a shorter time than asked for"
            );
        }
    }
}

/// Sorted fingerprints of one stretch of arrival.
#[derive(Debug)]
struct Run {
    first: Timestamp,
    last: Timestamp,
    keys: Box<[u128]>,
    /// Where keys with the same top bits begin; one more than there are buckets.
    starts: Box<[u32]>,
    shift: u32,
}

impl Run {
    fn new(mut keys: Vec<u128>, last: Timestamp) -> Run {
        keys.sort_unstable();
        Run::sorted(keys, last, last)
    }

    fn sorted(keys: Vec<u128>, first: Timestamp, last: Timestamp) -> Run {
        // About 8 keys a bucket: half a byte a key for the index, one or two cache lines a look-up.
        let bits = (keys.len() / 8).max(1).ilog2().max(1);
        let shift = 128 - bits;
        let mut starts = vec![0u32; (1 << bits) + 1];
        for key in &keys {
            starts[(key >> shift) as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Run {
            first,
            last,
            keys: keys.into(),
            starts: starts.into(),
            shift,
        }
    }

    fn contains(&self, key: u128) -> bool {
        let bucket = (key >> self.shift) as usize;
        let range = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        self.keys[range].binary_search(&key).is_ok()
    }

    fn merge(self, newer: Run) -> Run {
        let mut keys = Vec::with_capacity(self.keys.len() + newer.keys.len());
        keys.extend_from_slice(&self.keys);
        keys.extend_from_slice(&newer.keys);
        // A stable sort finds the two sorted runs and merges them.
        keys.sort();
        Run::sorted(keys, self.first, newer.last)
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.keys.len() * 16);
        self.keys.iter().for_each(|key| body.extend_from_slice(&key.to_le_bytes()));
        let mut bytes = Vec::with_capacity(HEADER_LEN + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.last.unix_nanos().to_le_bytes());
        bytes.extend_from_slice(&(self.keys.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    fn read(path: &Path) -> Result<Option<Run>, Error> {
        let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
        Ok(Run::decode(&bytes))
    }

    /// `None` if damaged. Losing a run costs recognition of duplicates, never data.
    fn decode(bytes: &[u8]) -> Option<Run> {
        let (header, body) = bytes.split_at_checked(HEADER_LEN)?;
        let last = i64::from_le_bytes(header[8..16].try_into().ok()?);
        let count = u64::from_le_bytes(header[16..24].try_into().ok()?);
        let crc = u32::from_le_bytes(header[24..28].try_into().ok()?);
        let whole = &header[..8] == MAGIC && count.checked_mul(16)? == body.len() as u64 && crc32fast::hash(body) == crc;
        let keys = body.chunks_exact(16).map(|c| u128::from_le_bytes(c.try_into().expect("16 bytes")));
        whole.then(|| Timestamp::from_unix_nanos_signed(last).map(|last| Run::new(keys.collect(), last)))?
    }
}

fn run_files(directory: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let path = entry.map_err(Error::io("list", directory))?.path();
        let number: Option<u64> = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        if let (Some(number), Some(true)) = (number, path.extension().map(|e| e == SUFFIX)) {
            files.push((number, path));
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Fingerprints are hashes already: the map needs no second one.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64 ^ (key >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACH: Duration = Duration::from_secs(3600);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_unix_nanos(seconds * 1_000_000_000).expect("small")
    }

    fn prints(range: std::ops::Range<u64>) -> Vec<Fingerprint> {
        let hash = |n: u64| {
            let mut h = spanflame_model::Hasher::new();
            h.number(n);
            h.finish()
        };
        range.map(hash).collect()
    }

    #[test]
    fn what_is_flushed_is_recognised_after_a_restart_until_its_time_is_over() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let open = |now| Recognition::open(dir.path(), REACH, now).expect("opened");
        let recognition = open(at(0));
        for segment in 0..50 {
            let mine = prints(segment * 100..segment * 100 + 100);
            assert!(recognition.claim(&mine, at(segment)).iter().all(|s| *s == Seen::New));
            recognition.settle(segment + 1, &mine, at(segment)).expect("written");
        }
        let all = prints(0..5000);
        assert!(recognition.claim(&all, at(60)).iter().all(|s| *s == Seen::Flushed));
        assert!(open(at(60)).claim(&all, at(60)).iter().all(|s| *s == Seen::Flushed));
        assert_eq!(open(at(60)).last_segment().expect("listed"), 50);
        let later = open(at(3600 + 25));
        let known = later.claim(&all, at(3700)).iter().filter(|s| **s == Seen::Flushed).count();
        assert_eq!(known, 2500);
    }

    #[test]
    fn a_duplicate_in_flight_names_the_append_it_must_wait_for() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let recognition = Recognition::open(dir.path(), REACH, at(0)).expect("opened");
        let one = prints(1..2);
        assert_eq!(recognition.claim(&[one[0], one[0]], at(1)), [Seen::New, Seen::Recent(at(1))]);
        assert_eq!(recognition.claim(&one, at(2)), [Seen::Recent(at(1))]);
        assert!(recognition.holds(one[0], at(1)));
        recognition.release(&one);
        assert!(!recognition.holds(one[0], at(1)));
        assert_eq!(recognition.claim(&one, at(3)), [Seen::New]);
    }

    #[test]
    fn a_damaged_file_costs_recognition_and_nothing_else() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mine = prints(0..10);
        let recognition = Recognition::open(dir.path(), REACH, at(0)).expect("opened");
        recognition.settle(1, &mine, at(1)).expect("written");
        let path = dir.path().join("00000000000000000001.seen");
        let mut bytes = std::fs::read(&path).expect("read");
        bytes[40] ^= 1;
        std::fs::write(&path, bytes).expect("written");
        let recognition = Recognition::open(dir.path(), REACH, at(2)).expect("opened");
        assert!(recognition.claim(&mine, at(2)).iter().all(|s| *s == Seen::New));
    }
}
