//! The signal handler, and the timers that raise its signal.
//!
//! A timer runs on the CPU clock of one thread and signals that thread alone, with the number of its [`Slot`]
//! in the signal. The handler copies the thread context record and the stack into the slot's ring. It
//! allocates nothing, takes no lock and touches no memory that another thread could free under it: slots are
//! never freed, and the unwind table is freed only when no slot is busy after it was replaced.
//!
//! The handler stays installed for ever, since a signal that is still pending when the last timer is deleted
//! would end the process if the default action were back. Without timers and table it does nothing.

use std::cell::UnsafeCell;
use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

use spanflame_context::thread;

use super::ring::Ring;
use super::unwind::{Registers, Scratch, UnwindTable};
use crate::Error;

/// Threads sampled at a time; further ones are counted as refused.
pub(super) const SLOTS_MAX: usize = 1024;
/// Words of an entry before its addresses: time, trace id (2), span id, weight.
pub(super) const HEADER_WORDS: usize = 5;
/// No expiry of a timer stands for more observations than this, however long its signal was held up.
const WEIGHT_MAX: u64 = 64;

/// Raised by CPU-clock timers of profilers since ever, and ignored by debuggers.
const SIGNAL: libc::c_int = libc::SIGPROF;

static SLOTS: [AtomicPtr<Slot>; SLOTS_MAX] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS_MAX];
static TABLE: AtomicPtr<UnwindTable> = AtomicPtr::new(ptr::null_mut());

/// Where one thread's samples go. Used by one thread at a time, kept for ever, reused.
pub(super) struct Slot {
    /// The thread, 0 for none. A late signal for an earlier owner finds another number and is ignored.
    tid: AtomicI32,
    /// Whether a handler may hold the table.
    busy: AtomicBool,
    pub(super) ring: Ring,
    /// Time spent in the handler since it was last asked for.
    spent_ns: AtomicU64,
    scratch: UnsafeCell<Scratch>,
}

// SAFETY: everything but `scratch` is atomic. `scratch` is used by the handler only, on the thread whose number
// is in `tid`, where the signal is blocked while the handler runs.
unsafe impl Sync for Slot {}

/// The slot with this number, made if it does not exist; `number` is below [`SLOTS_MAX`].
pub(super) fn slot(number: usize) -> &'static Slot {
    let found = SLOTS[number].load(Ordering::Acquire);
    if !found.is_null() {
        // SAFETY: only this function stores into `SLOTS`, and only leaked boxes.
        return unsafe { &*found };
    }
    let slot: &'static Slot = Box::leak(Box::new(Slot {
        tid: AtomicI32::new(0),
        busy: AtomicBool::new(false),
        ring: Ring::new(),
        spent_ns: AtomicU64::new(0),
        scratch: UnsafeCell::new(Scratch::new()),
    }));
    SLOTS[number].store(ptr::from_ref(slot).cast_mut(), Ordering::Release);
    slot
}

impl Slot {
    /// Gives the slot to a thread, or takes it back with 0.
    pub(super) fn set_owner(&self, tid: i32) {
        self.tid.store(tid, Ordering::SeqCst);
    }

    /// Time spent in the handler since the last call.
    pub(super) fn take_spent_ns(&self) -> u64 {
        self.spent_ns.swap(0, Ordering::Relaxed)
    }
}

/// Replaces the unwind table, `None` to stop sampling. The returned one may be in use for some microseconds
/// more: see [`is_quiet`].
pub(super) fn replace_table(table: Option<Box<UnwindTable>>) -> Option<Box<UnwindTable>> {
    let new = table.map_or(ptr::null_mut(), Box::into_raw);
    let old = TABLE.swap(new, Ordering::SeqCst);
    // SAFETY: `TABLE` holds pointers made by `Box::into_raw` above, each returned once.
    (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
}

/// Whether no handler runs at some moment during this call, so that what was replaced before is unused.
pub(super) fn is_quiet() -> bool {
    SLOTS.iter().all(|entry| {
        let slot = entry.load(Ordering::Acquire);
        // SAFETY: slots are never freed.
        slot.is_null() || unsafe { !(*slot).busy.load(Ordering::SeqCst) }
    })
}

/// Installs the handler, unless it is there already.
pub(super) fn install() -> Result<(), Error> {
    // SAFETY: both structures are valid; all-zero is a valid `sigaction`.
    unsafe {
        let mut present: libc::sigaction = mem::zeroed();
        if libc::sigaction(SIGNAL, ptr::null(), &mut present) != 0 {
            return Err(Error::last_os("sigaction"));
        }
        let ours = handle as extern "C" fn(_, _, _) as usize;
        if present.sa_sigaction == ours {
            return Ok(());
        }
        if present.sa_sigaction != libc::SIG_DFL && present.sa_sigaction != libc::SIG_IGN {
            return Err(Error::SignalTaken);
        }
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = ours;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        match libc::sigaction(SIGNAL, &action, ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(Error::last_os("sigaction")),
        }
    }
}

/// A timer on the CPU clock of one thread; deleted when dropped.
pub(super) struct Timer(libc::timer_t);

// SAFETY: a timer id belongs to the process and may be deleted by any of its threads.
unsafe impl Send for Timer {}

impl Timer {
    /// Signals thread `tid` with `slot` every `period_ns` of its CPU time, first after `first_ns`.
    pub(super) fn start(tid: i32, slot: usize, first_ns: u64, period_ns: u64) -> io::Result<Timer> {
        // SAFETY: all structures are valid, all-zero is a valid `sigevent`; the kernel copies them.
        unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_value.sival_ptr = slot as *mut libc::c_void;
            event.sigev_notify_thread_id = tid;
            let mut timer: libc::timer_t = ptr::null_mut();
            if libc::timer_create(thread_cpu_clock(tid), &mut event, &mut timer) != 0 {
                return Err(io::Error::last_os_error());
            }
            let timer = Timer(timer);
            let setting = libc::itimerspec {
                it_interval: timespec(period_ns),
                it_value: timespec(first_ns.max(1)),
            };
            match libc::timer_settime(timer.0, 0, &setting, ptr::null_mut()) {
                0 => Ok(timer),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `timer_create` and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// The kernel's number for the scheduler clock of a thread of ours, as `pthread_getcpuclockid` makes it.
fn thread_cpu_clock(tid: i32) -> libc::clockid_t {
    const PER_THREAD: i32 = 4;
    const SCHEDULER: i32 = 2;
    (!tid << 3) | PER_THREAD | SCHEDULER
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// The kernel's `siginfo_t` for a timer; `libc` has no access to the overrun count.
#[repr(C)]
struct TimerInfo {
    signal: libc::c_int,
    error: libc::c_int,
    code: libc::c_int,
    #[cfg(target_pointer_width = "64")]
    padding: libc::c_int,
    timer: libc::c_int,
    overrun: libc::c_int,
    value: *mut libc::c_void,
}

extern "C" fn handle(_signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes both for SA_SIGINFO; for SI_TIMER the info has the layout of `TimerInfo`.
    let (number, weight) = unsafe {
        let info = info.cast::<TimerInfo>();
        if (*info).code != libc::SI_TIMER {
            return;
        }
        ((*info).value as usize, 1 + u64::try_from((*info).overrun).unwrap_or(0))
    };
    let Some(entry) = SLOTS.get(number) else { return };
    let slot = entry.load(Ordering::Acquire);
    // SAFETY: slots are never freed; `gettid` is a system call.
    let (slot, tid) = unsafe {
        if slot.is_null() {
            return;
        }
        (&*slot, libc::gettid())
    };
    if slot.tid.load(Ordering::SeqCst) != tid {
        return;
    }
    // SAFETY: the interrupted code must find its own error number again.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: `errno` is this thread's; `context` is the machine context that the kernel saved.
    unsafe {
        let saved = *errno;
        slot.busy.store(true, Ordering::SeqCst);
        record(slot, &*context.cast::<libc::ucontext_t>(), weight.min(WEIGHT_MAX));
        slot.busy.store(false, Ordering::SeqCst);
        *errno = saved;
    }
}

fn record(slot: &Slot, context: &libc::ucontext_t, weight: u64) {
    let table = TABLE.load(Ordering::SeqCst);
    if table.is_null() {
        return;
    }
    // SAFETY: the table was loaded while the slot is busy, so it is freed only after this returns; `scratch`
    // is this thread's alone, see `Slot`.
    let (table, scratch) = unsafe { (&*table, &mut *slot.scratch.get()) };
    let begin_ns = now_unix_ns();
    let active = thread::current();
    let depth = table.walk(registers(context), scratch);
    let trace = active.map_or([0; 16], |active| *active.trace_id.as_bytes());
    let span = active.map_or([0; 8], |active| *active.span_id.as_bytes());
    let half = |at: usize| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| trace[at + byte]));
    let header: [u64; HEADER_WORDS] = [begin_ns, half(0), half(8), u64::from_ne_bytes(span), weight];
    slot.ring.push(&header, &scratch.frames[..depth], weight);
    slot.spent_ns.fetch_add(now_unix_ns().saturating_sub(begin_ns), Ordering::Relaxed);
}

fn now_unix_ns() -> u64 {
    let mut time = timespec(0);
    // SAFETY: a valid timespec; on the list of signal-safe functions.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
pub(super) fn registers(context: &libc::ucontext_t) -> Registers {
    let general = |index: libc::c_int| context.uc_mcontext.gregs[index as usize] as u64;
    Registers {
        pc: general(libc::REG_RIP),
        sp: general(libc::REG_RSP),
        fp: general(libc::REG_RBP),
        lr: 0,
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) fn registers(context: &libc::ucontext_t) -> Registers {
    let machine = &context.uc_mcontext;
    Registers {
        pc: machine.pc,
        sp: machine.sp,
        fp: machine.regs[29],
        lr: machine.regs[30],
    }
}
