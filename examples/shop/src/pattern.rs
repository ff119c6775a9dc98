//! A matcher that backtracks, as the regular expressions of many languages do and Rust's `regex` does not.
//!
//! It knows literals and `x*` (any number of `x`, greedy) and matches the whole text. `a*a*a*b` against a run of `a`s tries every
//! way to split the run: cubic in its length. That is the planted cause of slow coupons.

/// Whether the whole text matches.
pub fn matches(pattern: &str, text: &str) -> bool {
    match_from(pattern.as_bytes(), text.as_bytes(), 0, 0)
}

/// Whether the pattern from `p` on matches the text from `t` on. Recursion is at most as deep as the pattern is long.
///
/// Positions instead of slices: what runs here is counted here, not in inlined frames of the standard library.
#[inline(never)]
fn match_from(pattern: &[u8], text: &[u8], p: usize, t: usize) -> bool {
    if p == pattern.len() {
        return t == text.len();
    }
    if p + 1 == pattern.len() || pattern[p + 1] != b'*' {
        return t < text.len() && text[t] == pattern[p] && match_from(pattern, text, p + 1, t + 1);
    }
    let mut taken = t;
    while taken < text.len() && text[taken] == pattern[p] {
        taken += 1;
    }
    loop {
        if match_from(pattern, text, p + 2, taken) {
            return true;
        }
        if taken == t {
            return false;
        }
        taken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(matches(pattern, text), expected, "{pattern} against {text}");
    }

    #[test]
    fn literals_match_themselves_only() {
        check("abc", "abc", true);
        check("abc", "abcd", false);
        check("abc", "ab", false);
    }

    #[test]
    fn a_star_gives_back_what_the_rest_needs() {
        check("a*ab", "aaab", true);
        check("a*a*a*b", "aab", true);
        check("a*", "", true);
    }

    #[test]
    fn a_run_without_its_end_does_not_match() {
        check("a*a*a*b", "aaaaaaaac", false);
    }
}
