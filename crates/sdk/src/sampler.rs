//! Samples what runs on the CPU, in this process, thread by thread.
//!
//! ```text
//!  timer on a thread's CPU clock -> signal -> handler on that thread -> its ring     (`signal`, `unwind`, `ring`)
//!  every 100 ms: find threads (`threads`), empty the rings into the window (`window.rs`)
//!  every few seconds: find libraries (`module`), hand the window to the exporter
//! ```
//!
//! One thread does the second and third; only it changes the tables that handlers read.

mod module;
mod ring;
mod signal;
mod threads;
mod unwind;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use spanflame_model::{SpanId, Timestamp, TraceId};

pub(crate) use module::{Image, Module, find};

use crate::Error;
use crate::export::Outgoing;
use crate::stats::{Counters, add};
use crate::window::{Observation, Window};
use module::Modules;
use signal::HEADER_WORDS;
use threads::{Thread, Threads};
use unwind::UnwindTable;

/// How often threads are looked for and rings emptied.
const SCAN_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for handlers to leave the last table before it is leaked instead.
const QUIET_TRIES: u32 = 1000;

/// What the sampling thread can be asked to do between its scans.
pub(crate) enum Command {
    /// Look for new threads now, and answer when their timers run.
    Scan(SyncSender<()>),
    /// End.
    Stop,
}

/// Waits until the calling thread is sampled: a moment, at most one scan interval.
pub(crate) fn await_scan(commands: &SyncSender<Command>) {
    let (done, answer) = sync_channel(1);
    if commands.try_send(Command::Scan(done)).is_ok() {
        let _ = answer.recv_timeout(SCAN_INTERVAL);
    }
}

/// The state of the sampling thread.
pub(crate) struct Sampler {
    threads: Threads,
    modules: Modules,
    window: Window,
    window_began: Instant,
    interval: Duration,
    /// Tables that handlers may still read.
    #[expect(clippy::vec_box, reason = "handlers hold the address of a table, so it must not move")]
    retired: Vec<Box<UnwindTable>>,
    counters: Arc<Counters>,
    entry: Vec<u64>,
}

impl Sampler {
    /// Installs the handler and starts a timer for every thread there is.
    pub(crate) fn start(period_ns: u64, interval: Duration, counters: Arc<Counters>) -> Result<Sampler, Error> {
        signal::install()?;
        let mut sampler = Sampler {
            threads: Threads::new(period_ns),
            modules: Modules::default(),
            window: Window::new(now()),
            window_began: Instant::now(),
            interval,
            retired: Vec::new(),
            counters,
            entry: Vec::new(),
        };
        sampler.refresh_modules();
        sampler.scan();
        Ok(sampler)
    }

    /// Runs until it is told to stop, then hands over the last window. Afterwards no timer is left.
    pub(crate) fn run(mut self, commands: &Receiver<Command>, windows: &SyncSender<Outgoing>) {
        loop {
            let command = commands.recv_timeout(SCAN_INTERVAL);
            self.scan();
            self.drain();
            let stopping = match command {
                Ok(Command::Scan(done)) => {
                    let _ = done.try_send(());
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => true,
            };
            if stopping {
                self.disarm_all();
            }
            if stopping || self.window_began.elapsed() >= self.interval {
                self.hand_over(windows, stopping);
            }
            if stopping {
                return;
            }
        }
    }

    fn scan(&mut self) {
        let present = threads::present();
        if present.is_empty() {
            return;
        }
        let gone = self.threads.disarm_absent(&present);
        self.release(gone);
        if self.threads.has_new(&present) {
            self.threads.arm(&present, &self.counters);
        }
        if !self.retired.is_empty() && signal::is_quiet() {
            self.retired.clear();
        }
    }

    fn release(&mut self, threads: Vec<(i32, Thread)>) {
        for (tid, thread) in threads {
            // First, so that a late signal cannot fill the ring again after it was emptied.
            thread.slot().set_owner(0);
            self.drain_slot(tid, thread.slot());
            self.window.thread_names.insert(tid, thread.name.clone());
            self.threads.release(thread);
        }
    }

    fn drain(&mut self) {
        let rings: Vec<_> = self.threads.iter().map(|(tid, thread)| (tid, thread.slot())).collect();
        for (tid, slot) in rings {
            self.drain_slot(tid, slot);
        }
    }

    fn drain_slot(&mut self, tid: i32, slot: &'static signal::Slot) {
        while slot.ring.pop(&mut self.entry) {
            let Some(observation) = observation(tid, &self.entry) else {
                continue;
            };
            let weight = observation.weight as u64;
            if self.window.add(&observation) {
                add(&self.counters.observations, weight);
                add(&self.counters.linked, if observation.span.is_some() { weight } else { 0 });
            } else {
                add(&self.counters.dropped_window, weight);
            }
        }
        add(&self.counters.dropped_ring, slot.ring.take_dropped());
        add(&self.counters.handler_ns, slot.take_spent_ns());
    }

    fn hand_over(&mut self, windows: &SyncSender<Outgoing>, wait: bool) {
        self.refresh_modules();
        self.threads.refresh_names();
        let mut window = std::mem::replace(&mut self.window, Window::new(now()));
        self.window_began = Instant::now();
        window.end = self.window.start;
        window.modules = self.modules.list().clone();
        for (tid, thread) in self.threads.iter() {
            window.thread_names.insert(tid, thread.name.clone());
        }
        if window.samples.is_empty() {
            return;
        }
        let observations = window.observations as u64;
        let sent = match wait {
            true => windows.send(Outgoing::Window(window)).is_ok(),
            false => windows.try_send(Outgoing::Window(window)).is_ok(),
        };
        if !sent {
            add(&self.counters.dropped_export, observations);
        }
    }

    fn refresh_modules(&mut self) {
        if self.modules.refresh() {
            let table = Box::new(UnwindTable::new(self.modules.list()));
            self.retired.extend(signal::replace_table(Some(table)));
        }
    }

    fn disarm_all(&mut self) {
        let all = self.threads.disarm_absent(&[]);
        self.release(all);
        self.retired.extend(signal::replace_table(None));
        let quiet = (0..QUIET_TRIES).any(|_| {
            std::thread::yield_now();
            signal::is_quiet()
        });
        if !quiet {
            std::mem::forget(std::mem::take(&mut self.retired));
        }
        self.counters.threads.store(0, std::sync::atomic::Ordering::Relaxed);
    }
}

fn observation(tid: i32, entry: &[u64]) -> Option<Observation<'_>> {
    let (header, stack) = entry.split_at_checked(HEADER_WORDS)?;
    let mut trace = [0; 16];
    trace[..8].copy_from_slice(&header[1].to_ne_bytes());
    trace[8..].copy_from_slice(&header[2].to_ne_bytes());
    Some(Observation {
        tid,
        time: Timestamp::from_unix_nanos(header[0])?,
        span: TraceId::from_bytes(trace).zip(SpanId::from_bytes(header[3].to_ne_bytes())),
        weight: header[4] as usize,
        stack,
    })
}

/// The wall clock, on which samples and spans meet.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)).unwrap_or(Timestamp::MAX)
}
