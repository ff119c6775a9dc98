//! Links in Markdown lead somewhere: to a file of the checkout, and to a heading of it where they name one.
//!
//! Only inline links `[text](target)` outside code are looked at. Addresses of other sites are not called: a check that needs
//! the network fails for reasons that are not ours.

use std::path::{Path, PathBuf};

use crate::Failure;

/// Links that lead nowhere, one line each.
pub(super) fn findings(root: &Path, files: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
        let text = std::fs::read_to_string(root.join(file))?;
        for (line, target) in links(&text) {
            if let Some(fault) = fault_of(root, file, &text, target) {
                found.push(format!("{}:{line}: {target} {fault}", file.display()));
            }
        }
    }
    Ok(found)
}

fn fault_of(root: &Path, file: &Path, text: &str, target: &str) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target
        .split_once('#')
        .map_or((target, None), |(path, heading)| (path, Some(heading)));
    let aim = match path.strip_prefix('/') {
        Some(from_root) => root.join(from_root),
        None => root.join(file.parent().unwrap_or(Path::new(""))).join(path),
    };
    if !path.is_empty() && !aim.exists() {
        return Some("does not exist");
    }
    let heading = heading.filter(|_| path.is_empty() || path.ends_with(".md"))?;
    let other = if path.is_empty() {
        text.to_owned()
    } else {
        std::fs::read_to_string(aim).unwrap_or_default()
    };
    (!anchors(&other).any(|anchor| anchor == heading)).then_some("names a heading that is not there")
}

/// Line number from 1 and target of each link outside code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Odd pieces between backticks are code.
        for piece in line.split('`').step_by(2) {
            found.extend(
                piece
                    .split("](")
                    .skip(1)
                    .filter_map(|rest| rest.split([')', ' ']).next())
                    .map(|target| (number, target)),
            );
        }
    }
    found
}

/// The anchors that renderers derive from headings: lower case, punctuation dropped, spaces as hyphens.
fn anchors(text: &str) -> impl Iterator<Item = String> + '_ {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| line.trim_start_matches('#').trim())
        .map(|heading| {
            let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
}

/// Lines outside fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        (!in_code && !fence).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let targets: Vec<&str> = links(text).into_iter().map(|(_, target)| target).collect();
        assert_eq!(targets, expected);
    }

    #[test]
    fn links_are_found_in_prose_only() {
        check("see [a](a.md) and [b](b.md#c)", &["a.md", "b.md#c"]);
        check("`[a](a.md)` is code", &[]);
        check("```\n[a](a.md)\n```\n[b](b.md)", &["b.md"]);
    }

    #[test]
    fn a_heading_is_reached_by_its_anchor() {
        let text = "# The life of a sample, told\n[up](#the-life-of-a-sample-told) [down](#nowhere)";
        let root = Path::new("/nonexistent");
        assert_eq!(fault_of(root, Path::new("a.md"), text, "#the-life-of-a-sample-told"), None);
        assert_eq!(
            fault_of(root, Path::new("a.md"), text, "#nowhere"),
            Some("names a heading that is not there")
        );
    }

    #[test]
    fn a_missing_file_is_found_and_other_sites_are_left_alone() {
        let root = Path::new("/nonexistent");
        assert_eq!(fault_of(root, Path::new("a.md"), "", "b.md"), Some("does not exist"));
        assert_eq!(fault_of(root, Path::new("a.md"), "", "https://example.com/b.md"), None);
    }
}
