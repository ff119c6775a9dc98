//! What the signal handler may not do.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use spanflame_sdk::{ErrorKind, Sdk};

/// Counts what each thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec and a clock that every thread has.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[inline(never)]
fn recurse(depth: u32, until: Duration) -> u64 {
    if depth > 0 {
        return std::hint::black_box(recurse(depth - 1, until)) + 1;
    }
    let mut word = 1_u64;
    while thread_cpu() < until {
        word = std::hint::black_box(word.rotate_left(5) ^ 77);
    }
    word
}

fn ignoring() -> spanflame_sdk::Builder {
    Sdk::builder("handler").exporter(Box::new(|_| {}))
}

/// One test, because the SDK is one per process: what it does is told by its steps.
#[test]
fn an_interrupted_thread_allocates_nothing_and_the_sdk_starts_once_at_a_time() {
    let sdk = ignoring().rate_hz(100).start().expect("no other profiler");
    let again = ignoring().start().err().expect("refused");
    assert_eq!(again.kind(), ErrorKind::Busy);

    let hook = sdk.thread_hook();
    let busy = std::thread::spawn(move || {
        hook();
        let before = ALLOCATIONS.get();
        // Shallow, deep, and deeper than a sample can hold.
        for depth in [1, 100, 400] {
            std::hint::black_box(recurse(depth, thread_cpu() + Duration::from_millis(500)));
        }
        ALLOCATIONS.get() - before
    });
    let allocated = busy.join().expect("no panic");
    let stats = sdk.shutdown();
    assert!(stats.observations >= 100, "{stats:?}");
    assert_eq!(allocated, 0, "while {} times interrupted", stats.observations);
    // Kernels without checkpoint support have no such file.
    if let Ok(timers) = std::fs::read_to_string("/proc/self/timers") {
        assert_eq!(timers, "", "timers that outlive the SDK");
    }

    let sdk = ignoring().start().expect("the first one is gone");
    assert!(sdk.stats().threads >= 2, "{:?}", sdk.stats());
    assert_eq!(sdk.shutdown().threads, 0);
}

#[test]
fn settings_without_meaning_are_refused_with_what_is_possible() {
    let error = ignoring().rate_hz(0).start().err().expect("refused");
    assert_eq!(error.to_string(), "rate_hz is \"0\", expected 1 to 1000");
    let error = ignoring().interval(Duration::ZERO).start().err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = Sdk::builder("x").endpoint("localhost:4317").start().err().expect("refused");
    assert_eq!(
        error.to_string(),
        "endpoint is \"localhost:4317\", expected a URL such as http://127.0.0.1:4317"
    );
}
