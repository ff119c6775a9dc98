//! Rules about files that no lint knows.

use std::path::{Path, PathBuf};

use crate::Failure;

/// Folders of one developer's machine; split so that this file does not find itself.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "target")];

/// Files with these endings are ours to read as text.
const TEXT_ENDINGS: &[&str] = &["rs", "toml", "md", "py", "proto", "json", "yaml", "yml", "sh", "c", "h"];

/// What every checkout has.
const REQUIRED: &[&str] = &["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "Cargo.lock", ".ci/run"];

/// Violations in the files of the checkout, one line each.
pub(super) fn findings(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut found: Vec<String> = REQUIRED
        .iter()
        .filter(|name| !root.join(name).is_file())
        .map(|name| format!("{name} is missing"))
        .collect();
    for file in files {
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if file.starts_with("testdata") || !TEXT_ENDINGS.contains(&ending) {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(root.join(file))?).into_owned();
        found.extend(machine_paths(&text).map(|at| format!("{}:{at}: a path of one machine", file.display())));
        if ending == "rs" {
            found.extend(non_ascii(&text).map(|at| format!("{}:{at}: not ASCII", file.display())));
            if lacks_module_doc(file, &text) {
                found.push(format!("{}: does not begin with a module doc", file.display()));
            }
        }
    }
    Ok(found)
}

/// Line numbers, from 1.
fn machine_paths(text: &str) -> impl Iterator<Item = usize> + '_ {
    lines_where(text, |line| MACHINE_PATHS.iter().any(|path| starts_a_path(line, path)))
}

/// Whether `path` stands in the line as the beginning of a path, not in the middle of a longer one.
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || "._-/}*$".contains(letter))
    })
}

fn non_ascii(text: &str) -> impl Iterator<Item = usize> + '_ {
    lines_where(text, |line| !line.is_ascii())
}

fn lines_where<'a>(text: &'a str, rule: impl Fn(&str) -> bool + 'a) -> impl Iterator<Item = usize> + 'a {
    text.lines()
        .enumerate()
        .filter(move |(_, line)| rule(line))
        .map(|(index, _)| index + 1)
}

/// Tests need no module doc: their names are claims.
fn lacks_module_doc(file: &Path, text: &str) -> bool {
    let in_src = file.components().any(|part| part.as_os_str() == "src");
    let is_tests = file.file_name().is_some_and(|name| name == "tests.rs");
    in_src && !is_tests && !text.starts_with("//!")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: bool) {
        assert_eq!(machine_paths(line).next().is_some(), expected, "{line}");
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        check(concat!("see /wo", "rk/shared"), true);
        check(concat!("(/ro", "ot/.cargo)"), true);
    }

    #[test]
    fn longer_paths_that_contain_the_same_words_are_not() {
        check(concat!("github.com/wo", "rk/shared"), false);
        check("the root of the work", false);
    }

    #[test]
    fn letters_beyond_ascii_are_found_by_line() {
        assert_eq!(non_ascii("a\nb\u{e9}\n").collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_source_begins_with_its_doc_and_a_test_need_not() {
        assert!(lacks_module_doc(Path::new("crates/model/src/time.rs"), "use std;\n"));
        assert!(!lacks_module_doc(Path::new("crates/model/src/time.rs"), "//! Time.\n"));
        assert!(!lacks_module_doc(Path::new("crates/model/tests/time.rs"), "use std;\n"));
    }
}
