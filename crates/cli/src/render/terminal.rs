//! What the place we write to can show.

use std::io::IsTerminal;

/// Width of text that nobody looks at in a window: wide enough for a table, narrow enough for a mail.
const WIDTH_PLAIN: usize = 110;
const WIDTH_MIN: usize = 60;
const WIDTH_MAX: usize = 240;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    /// Always, for a pager.
    Always,
    /// Never.
    Never,
}

/// What the place we write to can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Columns of a line.
    pub(crate) width: usize,
    /// Whether it understands colours.
    pub(crate) color: bool,
    /// Whether it can draw block characters; else ASCII.
    pub(crate) blocks: bool,
    /// Whether long names are cut to fit. Text for another program keeps them: a search must find them.
    pub(crate) cuts: bool,
}

/// What text is, so that a colour carries a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// A heading or the selected line.
    Strong,
    /// Secondary.
    Faint,
    /// Time on CPU.
    Cpu,
    /// A failed span.
    Failed,
}

impl Terminal {
    /// No colours, no blocks: a file, a pipe, a test.
    pub(crate) const PLAIN: Terminal = Terminal {
        width: WIDTH_PLAIN,
        color: false,
        blocks: false,
        cuts: false,
    };

    /// What standard output is.
    pub(crate) fn of_stdout(choice: ColorChoice) -> Terminal {
        let is_terminal = std::io::stdout().is_terminal();
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !is_set("NO_COLOR") && std::env::var("TERM").as_deref() != Ok("dumb"),
        };
        if !is_terminal {
            return Terminal { color, ..Terminal::PLAIN };
        }
        let width = terminal_size::terminal_size().map_or(WIDTH_PLAIN, |(width, _)| usize::from(width.0));
        Terminal {
            width: width.clamp(WIDTH_MIN, WIDTH_MAX),
            color,
            blocks: speaks_utf8(),
            cuts: true,
        }
    }

    /// The width that a line's last name may take after `used` columns.
    pub(crate) fn rest(&self, used: usize) -> usize {
        const NAME_WIDTH_MIN: usize = 20;
        if self.cuts {
            self.width.saturating_sub(used).max(NAME_WIDTH_MIN)
        } else {
            usize::MAX
        }
    }

    /// `text` in `ink`, or as it is where there are no colours.
    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Strong => "1",
            Ink::Faint => "2",
            Ink::Cpu => "38;5;208",
            Ink::Failed => "31",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn speaks_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find(|name| is_set(name));
    let value = locale.and_then(|name| std::env::var(name).ok()).unwrap_or_default();
    let value = value.to_ascii_lowercase();
    value.contains("utf-8") || value.contains("utf8")
}

/// Text of others made safe to show: control characters cannot move the cursor, direction marks cannot
/// reorder a line.
pub(crate) fn visible(text: &str) -> String {
    let is_hostile = |c: char| c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if is_hostile(c) { '\u{fffd}' } else { c }).collect()
}

/// `text` in at most `width` characters, cut on the right.
pub(crate) fn clip_right(text: &str, width: usize) -> String {
    match text.chars().count() {
        length if length <= width => text.to_owned(),
        _ => text.chars().take(width.saturating_sub(2)).chain("..".chars()).take(width).collect(),
    }
}

/// `text` in at most `width` characters, cut on the left: of a path the end tells most.
pub(crate) fn clip_left(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(2);
    "..".chars().take(width).chain(text.chars().skip(length - kept)).collect()
}

/// A function's name in at most `width` characters, cut at the module path's left.
pub(crate) fn clip_function(name: &str, width: usize) -> String {
    let name = visible(name);
    if name.chars().count() <= width {
        return name;
    }
    // The shortest cut that begins at a path segment outside of brackets.
    let mut depth = 0_i32;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ':' if depth <= 0 && name[at..].starts_with("::") => {
                let tail = &name[at + 2..];
                if tail.chars().count() + 4 <= width {
                    return format!("..::{tail}");
                }
            }
            _ => {}
        }
    }
    clip_left(&name, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_a_path_segment() {
        assert_eq!(clip_function("cart::pricing::line::total", 16), "..::line::total");
        assert_eq!(clip_function("short", 16), "short");
        assert_eq!(clip_function("averyveryverylongname", 10), "..longname");
        assert_eq!(clip_function("a::<b::c as D>::run", 9), "..::run");
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(visible("a\u{1b}[2J\nb\u{202e}"), "a\u{fffd}[2J\u{fffd}b\u{fffd}");
    }

    #[test]
    fn clipping_never_exceeds_the_width() {
        for width in 0..6 {
            assert!(clip_right("abcdefgh", width).chars().count() <= width);
            assert!(clip_left("abcdefgh", width).chars().count() <= width);
        }
    }
}
