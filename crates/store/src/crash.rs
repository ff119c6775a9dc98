//! Points at which tests let the process die.
//!
//! In debug builds, `SPANFLAME_CRASH_AT=POINT:N` ends the process without any clean-up when POINT is passed
//! for the Nth time. Release builds do not look.

/// Dies here if asked to.
#[cfg(debug_assertions)]
pub(crate) fn crash_point(name: &'static str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: LazyLock<Option<(String, u64)>> = LazyLock::new(|| {
        let text = std::env::var("SPANFLAME_CRASH_AT").ok()?;
        let (name, count) = text.split_once(':')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    static PASSED: AtomicU64 = AtomicU64::new(0);

    if let Some((wanted, count)) = &*WANTED
        && wanted == name
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *count
    {
        std::process::abort();
    }
}

/// Nothing in release builds.
#[cfg(not(debug_assertions))]
pub(crate) fn crash_point(_name: &'static str) {}
