//! A call tree as what people ask of it: the functions that cost most, and the path that leads there.
//!
//! A function's total counts a stack once however often the function is on it, so recursion never exceeds the
//! whole.

use std::collections::HashMap;

use super::quantity;
use super::share::Share;
use super::table::{Column, Table};
use super::terminal::{Ink, Terminal, clip_function, visible};
use crate::client::answer::Profile;

/// Deepest line of a printed tree.
const TREE_DEPTH_MAX: usize = 64;

/// What one function cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// `file:line`, empty if unknown.
    pub(crate) place: String,
    /// What ended in it.
    pub(crate) own: i64,
    /// Observations that ended in it.
    pub(crate) own_samples: u64,
    /// What ended in it or below it.
    pub(crate) total: i64,
    /// Observations that ended in it or below it.
    pub(crate) total_samples: u64,
}

/// Every function of a profile, the one with the largest self first, ties by total, then name.
pub(crate) fn functions(profile: &Profile) -> Vec<Function> {
    let tree = &profile.tree;
    let own_samples = own_samples(profile);
    let same = same_function(profile);
    let mut by_frame: HashMap<usize, Function> = HashMap::new();
    for (node, frame) in tree.frame.iter().copied().enumerate().skip(1) {
        let function = by_frame.entry(same[frame]).or_insert_with(|| costless(profile, same[frame]));
        function.own = function.own.saturating_add(tree.own[node]);
        function.own_samples += own_samples[node];
        if !is_recursion(profile, &same, node) {
            function.total = function.total.saturating_add(tree.total[node]);
            function.total_samples += tree.samples[node];
        }
    }
    let mut functions: Vec<Function> = by_frame.into_values().collect();
    functions.sort_by(|a, b| {
        (b.own, b.total)
            .cmp(&(a.own, a.total))
            .then_with(|| (&a.name, &a.place).cmp(&(&b.name, &b.place)))
    });
    functions
}

/// Nodes from the root's child to the hottest leaf: at each node the child with the largest total.
pub(crate) fn hottest_path(profile: &Profile) -> Vec<usize> {
    let children = children(profile);
    let mut path = Vec::new();
    let mut node = 0;
    while let Some(next) = children[node].first() {
        node = *next;
        path.push(node);
    }
    path
}

/// The hottest path with totals, at most `rows` frames from the leaf; callers left out are counted.
pub(crate) fn path_lines(profile: &Profile, rows: usize, terminal: &Terminal) -> Vec<String> {
    let path = hottest_path(profile);
    let skipped = path.len().saturating_sub(rows);
    let mut lines = vec![terminal.paint(Ink::Faint, "hottest path, callers first")];
    if skipped > 0 {
        lines.push(terminal.paint(
            Ink::Faint,
            &format!("{:>10}  {}", "", quantity::counted(skipped as u64, "more caller")),
        ));
    }
    lines.extend(path[skipped..].iter().map(|node| {
        let head = format!("{:>10}  ", quantity::value(profile.tree.total[*node], &profile.unit));
        let name = &profile.frames[profile.tree.frame[*node]].function;
        let name = clip_function(name, terminal.rest(head.len()));
        head + &name
    }));
    lines
}

/// The functions with the largest self, at most `rows` of them, and a line about the rest.
pub(crate) fn top_lines(profile: &Profile, rows: usize, terminal: &Terminal) -> Vec<String> {
    // A function that only calls is worth a line where most of the whole passes through it.
    let is_telling = |function: &Function| function.own != 0 || profile.total / 2 < function.total;
    let functions = functions(profile);
    let (functions, others): (Vec<Function>, Vec<Function>) = functions.into_iter().partition(is_telling);
    let mut table = Table::new(&[
        ("self", Column::Right),
        ("share", Column::Right),
        ("samples", Column::Right),
        ("total", Column::Right),
        ("function", Column::Function),
        ("at", Column::Place),
    ]);
    for function in functions.iter().take(rows) {
        table.row([
            quantity::value(function.own, &profile.unit),
            share(function.own, profile),
            quantity::count(function.own_samples as i64),
            share(function.total, profile),
            function.name.clone(),
            function.place.clone(),
        ]);
    }
    let mut lines = table.lines(terminal);
    let left_out = functions.iter().skip(rows).chain(&others);
    let rest: i64 = left_out.clone().map(|function| function.own).fold(0, i64::saturating_add);
    let left_out = left_out.count();
    if left_out > 0 {
        let count = quantity::counted(left_out as u64, "more function");
        lines.push(terminal.paint(
            Ink::Faint,
            &format!("{count} with {} of self", quantity::value(rest, &profile.unit)),
        ));
    }
    lines
}

/// The call tree, heaviest child first, at most `rows` nodes; what is left out is counted.
pub(crate) fn tree_lines(profile: &Profile, rows: usize, terminal: &Terminal) -> Vec<String> {
    let children = children(profile);
    let shown = heaviest(profile, &children, rows);
    let mut lines = vec![terminal.paint(Ink::Faint, &format!("{:>10}  {:>14}  {:>7}  function", "total", "share", "samples"))];
    let mut waiting = vec![(0_usize, 0_usize)];
    while let Some((node, depth)) = waiting.pop() {
        if node > 0 {
            lines.push(tree_line(profile, node, depth - 1, terminal));
        }
        waiting.extend(
            children[node]
                .iter()
                .rev()
                .filter(|child| shown[**child])
                .map(|child| (*child, depth + 1)),
        );
    }
    let left_out = shown.iter().filter(|shown| !**shown).count();
    if left_out > 0 {
        lines.push(terminal.paint(Ink::Faint, &quantity::counted(left_out as u64, "smaller node")));
    }
    lines
}

/// A part of a profile's total, as text.
fn share(part: i64, profile: &Profile) -> String {
    Share::new(part, profile.total, profile.samples).map_or_else(|| "-".to_owned(), Share::text)
}

fn tree_line(profile: &Profile, node: usize, depth: usize, terminal: &Terminal) -> String {
    let tree = &profile.tree;
    let total = quantity::value(tree.total[node], &profile.unit);
    let share = share(tree.total[node], profile);
    let indent = " ".repeat(depth.min(TREE_DEPTH_MAX));
    let head = format!(
        "{total:>10}  {share:>14}  {:>7}  {indent}",
        quantity::count(tree.samples[node] as i64)
    );
    let name = &profile.frames[tree.frame[node]].function;
    let name = clip_function(name, terminal.rest(head.chars().count()));
    head + &name
}

/// Marks the root and the `rows` nodes with the largest totals. A parent never has less than its child where
/// values are positive; where they are not, ancestors are marked too.
fn heaviest(profile: &Profile, children: &[Vec<usize>], rows: usize) -> Vec<bool> {
    let tree = &profile.tree;
    let mut nodes: Vec<usize> = (1..children.len()).collect();
    nodes.sort_by_key(|node| (std::cmp::Reverse(tree.total[*node]), *node));
    let mut shown = vec![false; children.len()];
    shown[0] = true;
    for mut node in nodes.into_iter().take(rows) {
        while !shown[node] {
            shown[node] = true;
            node = tree.parent[node];
        }
    }
    shown
}

/// Per node its children, heaviest first.
fn children(profile: &Profile) -> Vec<Vec<usize>> {
    let tree = &profile.tree;
    let mut children = vec![Vec::new(); tree.frame.len().max(1)];
    for node in 1..tree.frame.len() {
        children[tree.parent[node]].push(node);
    }
    for siblings in &mut children {
        siblings.sort_by_key(|node| (std::cmp::Reverse(tree.total[*node]), *node));
    }
    children
}

fn own_samples(profile: &Profile) -> Vec<u64> {
    let tree = &profile.tree;
    let mut own = tree.samples.clone();
    for node in 1..tree.frame.len() {
        let parent = tree.parent[node];
        own[parent] = own[parent].saturating_sub(tree.samples[node]);
    }
    own
}

/// For each frame the first one of the same function. Frames differ by module too, but a function of one
/// source file that is linked into three services is one function to whoever reads the table.
fn same_function(profile: &Profile) -> Vec<usize> {
    let mut first = HashMap::new();
    let mut same = Vec::with_capacity(profile.frames.len());
    for (at, frame) in profile.frames.iter().enumerate() {
        same.push(match &frame.file {
            Some(file) => *first.entry((&frame.function, file)).or_insert(at),
            None => at,
        });
    }
    same
}

fn is_recursion(profile: &Profile, same: &[usize], node: usize) -> bool {
    let tree = &profile.tree;
    let mut at = tree.parent[node];
    while at != 0 {
        if same[tree.frame[at]] == same[tree.frame[node]] {
            return true;
        }
        at = tree.parent[at];
    }
    false
}

fn costless(profile: &Profile, frame: usize) -> Function {
    let names = &profile.frames[frame];
    let file = names.file.as_deref().unwrap_or_default();
    let place = match names.line {
        _ if file.is_empty() => String::new(),
        Some(line) if line > 0 => format!("{file}:{line}"),
        _ => file.to_owned(),
    };
    Function {
        name: visible(&names.function),
        place,
        own: 0,
        own_samples: 0,
        total: 0,
        total_samples: 0,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// root -> a(5) -> b(10) -> a(20), root -> c(1); ten nanoseconds a sample are one sample.
    pub(crate) fn profile() -> Profile {
        let answer = r#"{
            "type": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "unit": "nanoseconds", "total": 36, "samples": 36,
            "frames": [{"function": "root"}, {"function": "a", "file": "a.rs", "line": 3}, {"function": "b"}, {"function": "c"}],
            "tree": {"frame": [0, 1, 2, 1, 3], "parent": [0, 0, 1, 2, 0], "self": [0, 5, 10, 20, 1],
                     "total": [36, 35, 30, 20, 1], "samples": [36, 35, 30, 20, 1]}
        }"#;
        serde_json::from_str(answer).expect("an answer")
    }

    #[test]
    fn recursion_counts_once() {
        let functions = functions(&profile());
        let rows: Vec<_> = functions
            .iter()
            .map(|f| (f.name.as_str(), f.own, f.own_samples, f.total, f.total_samples))
            .collect();
        assert_eq!(rows, [("a", 25, 25, 35, 35), ("b", 10, 10, 30, 30), ("c", 1, 1, 1, 1)]);
    }

    #[test]
    fn a_function_linked_into_two_services_is_one() {
        let mut profile = profile();
        profile.frames[3] = serde_json::from_str(r#"{"function": "a", "file": "a.rs", "line": 9}"#).expect("a frame");
        let rows: Vec<_> = functions(&profile).iter().map(|f| (f.name.clone(), f.own, f.total)).collect();
        assert_eq!(rows, [("a".to_owned(), 26, 36), ("b".to_owned(), 10, 30)]);
    }

    #[test]
    fn the_hottest_path_follows_the_heaviest_child() {
        assert_eq!(hottest_path(&profile()), [1, 2, 3]);
    }

    #[test]
    fn a_cut_tree_counts_what_it_leaves_out() {
        let lines = tree_lines(&profile(), 2, &Terminal::PLAIN);
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[3].starts_with("2 smaller nodes"), "{lines:?}");
    }
}
