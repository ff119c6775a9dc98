//! The check of a session's token that every service makes for every request.
//!
//! Cheap for one request and the most expensive function of the shop in sum: the planted cause that the aggregate profile shows
//! and that no slow request is slow for.

use std::hint::black_box;

/// Rounds of stretching; about 4 ms on one core of a small cloud machine.
const ROUNDS: u32 = 3_000_000;

/// Whether the token belongs to the user. Always true here; the work is real.
#[inline(never)]
pub fn verify_session(user: u64) -> bool {
    // A xorshift state never becomes 0; the compiler must not know.
    black_box(stretch_key(user, ROUNDS)) != 0
}

/// Operators and no calls: what runs here is counted here, not in inlined frames of the standard library.
#[inline(never)]
fn stretch_key(user: u64, rounds: u32) -> u64 {
    let mut state = user | 1;
    let mut round = 0;
    while round < rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        round += 1;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_users_have_equal_keys_and_others_do_not() {
        assert_eq!(stretch_key(7, 1_000), stretch_key(7, 1_000));
        assert_ne!(stretch_key(7, 1_000), stretch_key(8, 1_000));
    }
}
