//! A matcher that backtracks, as the regular expressions of many languages do and Rust's `regex` does not.
//!
//! It knows literals and `x*` (any number of `x`, greedy) and matches the whole text. `a*a*a*b` against a run of `a`s tries every
//! way to split the run: cubic in its length. That is the planted cause of slow coupons.

/// Whether the whole text matches.
#[inline(never)]
pub fn matches(pattern: &str, text: &str) -> bool {
    match_from(pattern.as_bytes(), text.as_bytes())
}

/// Depth of recursion: at most the number of pieces of the pattern.
#[inline(never)]
fn match_from(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [letter, b'*', rest @ ..] => {
            let mut taken = 0;
            while taken < text.len() && text[taken] == *letter {
                taken += 1;
            }
            loop {
                if match_from(rest, &text[taken..]) {
                    return true;
                }
                if taken == 0 {
                    return false;
                }
                taken -= 1;
            }
        }
        [letter, rest @ ..] => text.first() == Some(letter) && match_from(rest, &text[1..]),
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
