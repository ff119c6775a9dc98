//! The one thread that orders appends: log, sync, head, acknowledge.
//!
//! ```text
//! append (many) --encode--> Sequencer --in order of arrival--> committer --frozen heads--> flush
//! ```
//!
//! Appends encode their rows in parallel, then go through in the order of their arrival times. The thread
//! takes all that wait, writes and syncs once, pushes the rows to the head and answers. So arrival times
//! become visible in order, a segment of the log and a head hold exactly the same rows, and a segment holds
//! rows of one day.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use spanflame_model::{Fingerprint, Timestamp};
use tokio::sync::{oneshot, watch};

use crate::Error;
use crate::crash::crash_point;
use crate::current::SharedVersion;
use crate::day::Day;
use crate::head::Head;
use crate::recognition::Recognition;
use crate::schema::Table;
use crate::stats::Counters;

use crate::wal::{Record, SegmentWriter, Tables};

/// Most bytes that one sync makes durable; more wait for the next.
const GROUP_BYTES_MAX: usize = 64 << 20;

/// An append that is encoded.
pub(crate) struct Commit {
    /// What goes to log and head.
    pub(crate) record: Record,
    /// Its bytes in the log.
    pub(crate) encoded: Vec<u8>,
    /// Told the number of the segment when it is durable and visible.
    pub(crate) done: oneshot::Sender<Result<u64, Error>>,
}

/// A head that takes no more rows, and the segment that holds the same rows.
pub(crate) struct Frozen {
    /// Number of the segment and of the flush.
    pub(crate) number: u64,
    /// The day on which all of it arrived.
    pub(crate) day: Day,
    /// Its latest arrival.
    pub(crate) last: Timestamp,
    /// Its rows.
    pub(crate) head: Arc<Head>,
    /// Identities of its spans and profiles.
    pub(crate) fingerprints: Vec<Fingerprint>,
}

enum Message {
    Append(Commit),
    /// Freeze what there is; answered with the number of the last frozen segment.
    Rotate(oneshot::Sender<u64>),
}

/// Gives out arrival times and lets appends through in their order.
pub(crate) struct Sequencer {
    state: Mutex<Sequence>,
    recognition: Arc<Recognition>,
}

struct Sequence {
    last: Timestamp,
    /// Appends that have a time; `None` while they encode.
    waiting: BTreeMap<Timestamp, Option<Commit>>,
    messages: Option<mpsc::Sender<Message>>,
}

impl Sequencer {
    /// Arrival times will be after `last`.
    fn new(last: Timestamp, messages: mpsc::Sender<Message>, recognition: Arc<Recognition>) -> Sequencer {
        Sequencer {
            state: Mutex::new(Sequence {
                last,
                waiting: BTreeMap::new(),
                messages: Some(messages),
            }),
            recognition,
        }
    }

    /// An arrival time, later than every one before. Appends behind it wait until the ticket is used or dropped.
    pub(crate) fn begin(self: &Arc<Sequencer>) -> Result<Ticket, Error> {
        let now = now();
        let mut state = self.state.lock();
        if state.messages.is_none() {
            return Err(Error::Closed);
        }
        state.last = now.max(state.last.saturating_add(1));
        let received = state.last;
        state.waiting.insert(received, None);
        Ok(Ticket {
            received,
            claimed: Vec::new(),
            used: false,
            sequencer: Arc::clone(self),
        })
    }

    /// Freezes the head; returns the number of the last frozen segment.
    pub(crate) async fn rotate(&self) -> Result<u64, Error> {
        let (done, answer) = oneshot::channel();
        let messages = self.state.lock().messages.clone();
        let messages = messages.ok_or(Error::Closed)?;
        messages.send(Message::Rotate(done)).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)
    }

    /// Refuses further appends. The thread ends when it has done what waits.
    pub(crate) fn close(&self) {
        self.state.lock().messages = None;
    }

    fn settle(&self, received: Timestamp, commit: Option<Commit>) {
        let mut state = self.state.lock();
        match commit {
            Some(commit) => state.waiting.insert(received, Some(commit)),
            None => state.waiting.remove(&received),
        };
        while let Some(entry) = state.waiting.first_entry() {
            if entry.get().is_none() {
                break;
            }
            let Some(commit) = entry.remove() else { break };
            if let Some(messages) = &state.messages {
                // If the thread is gone, dropping `done` tells the append.
                let _ = messages.send(Message::Append(commit));
            }
        }
    }
}

/// A place in the order of arrival.
pub(crate) struct Ticket {
    received: Timestamp,
    claimed: Vec<Fingerprint>,
    used: bool,
    sequencer: Arc<Sequencer>,
}

impl Ticket {
    /// The arrival time.
    pub(crate) fn received(&self) -> Timestamp {
        self.received
    }

    /// Fingerprints to release if the append is given up before it is submitted.
    pub(crate) fn claim(&mut self, fingerprints: Vec<Fingerprint>) {
        self.claimed = fingerprints;
    }

    /// Hands the append over.
    pub(crate) fn submit(mut self, commit: Commit) {
        self.used = true;
        self.sequencer.settle(self.received, Some(commit));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.used {
            self.sequencer.recognition.release(&self.claimed);
            self.sequencer.settle(self.received, None);
        }
    }
}

/// What the thread works with.
pub(crate) struct Committer {
    /// Directory of the segments.
    pub(crate) directory: PathBuf,
    /// Number of the next segment.
    pub(crate) next: u64,
    /// Number of the last segment that was frozen.
    pub(crate) last_frozen: u64,
    /// Freeze the head when it holds this much.
    pub(crate) flush_bytes: u64,
    /// Where heads become visible.
    pub(crate) version: Arc<SharedVersion>,
    /// Where failed appends give back what they claimed.
    pub(crate) recognition: Arc<Recognition>,
    /// Where to count.
    pub(crate) counters: Arc<Counters>,
    /// Where frozen heads go.
    pub(crate) frozen: tokio::sync::mpsc::UnboundedSender<Frozen>,
    /// Told the latest arrival that was decided: durable or failed.
    pub(crate) decided: watch::Sender<Timestamp>,
}

/// The segment that is being written.
struct Open {
    writer: SegmentWriter,
    frozen: Frozen,
}

impl Committer {
    /// Starts the thread. Arrival times will be after `last`.
    pub(crate) fn start(self, last: Timestamp) -> Result<(Arc<Sequencer>, std::thread::JoinHandle<()>), Error> {
        let (messages, inbox) = mpsc::channel();
        let sequencer = Arc::new(Sequencer::new(last, messages, Arc::clone(&self.recognition)));
        let thread = std::thread::Builder::new()
            .name("store-committer".to_owned())
            .spawn(move || self.run(&inbox))
            .map_err(Error::io("start a thread for", std::path::Path::new("the write-ahead log")))?;
        Ok((sequencer, thread))
    }

    fn run(mut self, inbox: &mpsc::Receiver<Message>) {
        let mut open: Option<Open> = None;
        let mut put_back = None;
        while let Some(message) = put_back.take().or_else(|| inbox.recv().ok()) {
            match message {
                Message::Append(first) => {
                    let mut size = first.encoded.len();
                    let mut group = vec![first];
                    while size < GROUP_BYTES_MAX
                        && let Ok(message) = inbox.try_recv()
                    {
                        match message {
                            Message::Append(next) if day(&next) == day(&group[0]) => {
                                size += next.encoded.len();
                                group.push(next);
                            }
                            other => {
                                put_back = Some(other);
                                break;
                            }
                        }
                    }
                    self.commit(&mut open, group);
                }
                Message::Rotate(done) => {
                    self.rotate(&mut open);
                    let _ = done.send(self.last_frozen);
                }
            }
        }
        self.rotate(&mut open);
    }

    /// Makes a group of one day durable and visible, and answers.
    fn commit(&mut self, open: &mut Option<Open>, group: Vec<Commit>) {
        let last = group.last().map_or(Timestamp::ZERO, |commit| commit.record.received);
        match self.write(open, &group) {
            Ok(segment) => {
                crash_point("after-wal");
                for commit in &group {
                    segment.frozen.fingerprints.extend_from_slice(&commit.record.fingerprints);
                    let rows = commit.record.batches.iter();
                    let rows = rows.map(|(table, batch)| (Table::ALL[*table], batch.clone())).collect();
                    segment.frozen.head.push(&commit.record.tenant, rows);
                }
                segment.frozen.last = last;
                self.decided.send_replace(last);
                let number = segment.frozen.number;
                let full = segment.frozen.head.bytes() >= self.flush_bytes;
                self.counters.wal_bytes.set(segment.writer.len());
                for commit in group {
                    let _ = commit.done.send(Ok(number));
                }
                if full {
                    self.rotate(open);
                }
            }
            Err(error) => {
                tracing::error!(%error, appends = group.len(), "write-ahead log failed");
                // Nobody knows what of the group is on the medium, so the segment takes no more. What it
                // holds of this group, if anything, is no longer needed once its head is flushed. If it is
                // replayed before that, what was sent again and acknowledged wins.
                self.rotate(open);
                for commit in &group {
                    self.recognition.release(&commit.record.fingerprints);
                }
                self.decided.send_replace(last);
                for commit in group {
                    let _ = commit.done.send(Err(error.clone()));
                }
            }
        }
    }

    fn write<'a>(&mut self, open: &'a mut Option<Open>, group: &[Commit]) -> Result<&'a mut Open, Error> {
        let day = day(&group[0]);
        if open.as_ref().is_some_and(|open| open.frozen.day != day) {
            self.rotate(open);
        }
        if open.is_none() {
            *open = Some(self.open_segment(day)?);
        }
        let segment = open.as_mut().expect("opened above");
        for commit in group {
            segment.writer.write(&commit.encoded)?;
        }
        let begin = Instant::now();
        segment.writer.sync()?;
        self.counters.wal_syncs.add(1);
        self.counters.wal_sync_time.add_time(begin.elapsed());
        Ok(segment)
    }

    fn open_segment(&mut self, day: Day) -> Result<Open, Error> {
        let number = self.next;
        // Taken even if creation fails half-way: a number is never used twice.
        self.next += 1;
        let writer = SegmentWriter::create(&self.directory, number, &tables())?;
        let head = Arc::new(Head::new());
        self.version.update(|version| {
            let heads = version.heads().iter().cloned().chain([Arc::clone(&head)]).collect();
            version.with_heads(heads)
        });
        Ok(Open {
            writer,
            frozen: Frozen {
                number,
                day,
                last: Timestamp::ZERO,
                head,
                fingerprints: Vec::new(),
            },
        })
    }

    fn rotate(&mut self, open: &mut Option<Open>) {
        if let Some(open) = open.take() {
            self.counters.wal_bytes.set(0);
            self.last_frozen = open.frozen.number;
            // If nobody flushes any more, the segment stays and is replayed.
            let _ = self.frozen.send(open.frozen);
        }
    }
}

/// The tables as the log numbers them.
pub(crate) fn tables() -> Tables {
    Tables::new(Table::ALL.map(|table| (table.name().to_owned(), table.schema())))
}

fn day(commit: &Commit) -> Day {
    Day::of(commit.record.received)
}

/// The present, by the clock of this machine.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos())
        .ok()
        .and_then(Timestamp::from_unix_nanos)
        .unwrap_or(Timestamp::MAX)
}
