//! Call trees as Pyroscope draws them: functions of one name are one, and rows of bars.
//!
//! ```text
//! level 0  | total                     |
//! level 1  | main           | other    |     a bar: offset from the end of the bar before it, total, self, name
//! level 2  | a    | b  |
//! ```
//!
//! Children are in order of name. What is smaller than the `max_nodes` largest is one bar `other` below its caller,
//! last; a function that is really called so, or `total`, stays what it is. Costs below zero (a heap that shrank) cannot
//! be drawn and are left out. Without cost there are no levels: clients take the first one for data.

use std::collections::HashMap;

use spanflame_proto::pyroscope as wire;
use spanflame_query::CallTree;

/// Nodes where the client names no number.
const NODES_DEFAULT: i64 = 8192;
/// The most nodes that are drawn, whatever the client says.
const NODES_MAX: i64 = 1 << 20;

/// How many nodes a client wants.
pub(super) fn nodes(max_nodes: Option<i64>) -> usize {
    let wanted = max_nodes.filter(|nodes| *nodes > 0).unwrap_or(NODES_DEFAULT);
    wanted.min(NODES_MAX) as usize
}

/// A call tree by function name, with `N` costs on every node.
pub(super) struct Merged<const N: usize> {
    names: Vec<String>,
    name_index: HashMap<String, u32>,
    /// Node 0 stands for everything; parents come before their children.
    pub(super) nodes: Vec<MergedNode<N>>,
    by_edge: HashMap<(u32, u32), u32>,
}

/// A node of a [`Merged`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MergedNode<const N: usize> {
    pub(super) name: u32,
    pub(super) parent: u32,
    pub(super) own: [i64; N],
    pub(super) total: [i64; N],
}

/// The names of the root and of what is too small.
const TOTAL: u32 = 0;
const OTHER: u32 = 1;

impl<const N: usize> Merged<N> {
    /// Trees side by side, the first one's costs first.
    pub(super) fn of(trees: [&CallTree; N]) -> Merged<N> {
        let mut merged = Merged {
            names: vec!["total".to_owned(), "other".to_owned()],
            name_index: HashMap::new(),
            nodes: vec![MergedNode {
                name: TOTAL,
                parent: 0,
                own: [0; N],
                total: [0; N],
            }],
            by_edge: HashMap::new(),
        };
        for (side, tree) in trees.into_iter().enumerate() {
            merged.add(side, tree);
        }
        // Children come after their parents, so going backwards every total is complete when it is passed on.
        for node in (1..merged.nodes.len()).rev() {
            let MergedNode { parent, total, .. } = merged.nodes[node].clone();
            let above = &mut merged.nodes[parent as usize].total;
            above.iter_mut().zip(total).for_each(|(sum, part)| *sum = sum.saturating_add(part));
        }
        merged
    }

    fn add(&mut self, side: usize, tree: &CallTree) {
        let mut place = vec![0_u32; tree.len()];
        for node in 0..tree.len() {
            if node > 0 {
                let name = self.name(&tree.frames[tree.frame[node] as usize].function);
                place[node] = self.child(place[tree.parent[node] as usize], name);
            }
            let cost = tree.self_value[node].max(0);
            let at = &mut self.nodes[place[node] as usize];
            at.own[side] = at.own[side].saturating_add(cost);
            at.total[side] = at.total[side].saturating_add(cost);
        }
    }

    fn name(&mut self, name: &str) -> u32 {
        if let Some(index) = self.name_index.get(name) {
            return *index;
        }
        let index = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.name_index.insert(name.to_owned(), index);
        index
    }

    fn child(&mut self, parent: u32, name: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let node = *self.by_edge.entry((parent, name)).or_insert(next);
        if node == next {
            self.nodes.push(MergedNode {
                name,
                parent,
                own: [0; N],
                total: [0; N],
            });
        }
        node
    }

    /// The name of a node.
    pub(super) fn name_of(&self, node: usize) -> &str {
        &self.names[self.nodes[node].name as usize]
    }

    /// Leaves out nodes without cost, and makes one leaf `other` of the children of a node that are smaller than the
    /// `nodes_max` largest nodes.
    pub(super) fn cut(mut self, nodes_max: usize) -> Merged<N> {
        let weights: Vec<i64> = self.nodes.iter().map(MergedNode::weight).collect();
        let smallest = match weights.len() > nodes_max {
            true => {
                let mut sorted = weights.clone();
                let (_, smallest, _) = sorted.select_nth_unstable_by_key(nodes_max - 1, |weight| std::cmp::Reverse(*weight));
                (*smallest).max(1)
            }
            false => 1,
        };
        let mut kept = Vec::new();
        let mut place: Vec<Option<u32>> = vec![None; self.nodes.len()];
        let mut others: HashMap<u32, MergedNode<N>> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            // Parents weigh at least what their children do, so a kept node has a kept parent.
            let Some(parent) = place[node.parent as usize].or((index == 0).then_some(0)) else {
                continue;
            };
            if index == 0 || node.weight() >= smallest {
                place[index] = Some(kept.len() as u32);
                kept.push(MergedNode { parent, ..node.clone() });
            } else if node.weight() > 0 {
                let other = others.entry(parent).or_insert_with(|| MergedNode {
                    name: OTHER,
                    parent,
                    own: [0; N],
                    total: [0; N],
                });
                for side in 0..N {
                    other.own[side] = other.own[side].saturating_add(node.total[side]);
                    other.total[side] = other.own[side];
                }
            }
        }
        let mut others: Vec<MergedNode<N>> = others.into_values().collect();
        others.sort_unstable_by_key(|other| other.parent);
        kept.extend(others);
        self.nodes = kept;
        self
    }

    /// The children of every node, in order of name, `other` last.
    pub(super) fn children(&self) -> Vec<Vec<u32>> {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent as usize].push(index as u32);
        }
        let key = |node: &u32| {
            let name = self.nodes[*node as usize].name;
            (name == OTHER, self.names[name as usize].as_str())
        };
        for list in &mut children {
            list.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        }
        children
    }

    /// Rows of bars: for each side offset, total and self, then the name.
    fn levels(&self) -> Vec<wire::Level> {
        if self.nodes[0].weight() == 0 {
            return Vec::new();
        }
        let children = self.children();
        let mut levels = Vec::new();
        let mut row: Vec<(u32, [i64; N])> = vec![(0, [0; N])];
        while !row.is_empty() {
            let mut values = Vec::with_capacity(row.len() * (3 * N + 1));
            let mut below = Vec::new();
            let mut end = [0; N];
            for (index, start) in row {
                let node = &self.nodes[index as usize];
                let mut at = start;
                for side in 0..N {
                    values.extend([start[side] - end[side], node.total[side], node.own[side]]);
                    end[side] = start[side] + node.total[side];
                }
                values.push(i64::from(node.name));
                for child in &children[index as usize] {
                    below.push((*child, at));
                    let total = &self.nodes[*child as usize].total;
                    at.iter_mut().zip(total).for_each(|(at, total)| *at += total);
                }
            }
            levels.push(wire::Level { values });
            row = below;
        }
        levels
    }

    fn max_own(&self) -> i64 {
        self.nodes.iter().flat_map(|node| node.own).max().unwrap_or(0)
    }

    /// The names, unless nothing names them.
    fn into_names(self, levels: &[wire::Level]) -> Vec<String> {
        if levels.is_empty() { Vec::new() } else { self.names }
    }
}

impl<const N: usize> MergedNode<N> {
    fn weight(&self) -> i64 {
        self.total.iter().fold(0, |sum: i64, total| sum.saturating_add(*total))
    }
}

impl Merged<1> {
    /// As Grafana draws it.
    pub(super) fn into_flamegraph(self) -> wire::FlameGraph {
        let levels = self.levels();
        wire::FlameGraph {
            total: self.nodes[0].total[0],
            max_self: self.max_own(),
            names: self.into_names(&levels),
            levels,
        }
    }
}

impl Merged<2> {
    /// As Grafana draws a comparison.
    pub(super) fn into_diff(self) -> wire::FlameGraphDiff {
        let levels = self.levels();
        let [left, right] = self.nodes[0].total;
        wire::FlameGraphDiff {
            total: left.saturating_add(right),
            max_self: self.max_own(),
            left_ticks: left,
            right_ticks: right,
            names: self.into_names(&levels),
            levels,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use spanflame_model::{Frame, StackSet};
    use spanflame_query::StackTotal;

    use super::*;

    /// A tree of lines like `main;work 5`, root first.
    pub(in super::super) fn tree(lines: &[&str]) -> CallTree {
        let mut stacks = StackSet::new();
        let total = |line: &&str| {
            let (stack, value) = line.rsplit_once(' ').expect("stack and value");
            let frame = |name: &str| Frame {
                function: name.split('@').next().unwrap_or_default().to_owned(),
                file: name.split('@').nth(1).unwrap_or("f").to_owned(),
                ..Frame::default()
            };
            let mut ids: Vec<_> = stack.split(';').map(|name| stacks.add_frame(frame(name))).collect();
            ids.reverse();
            StackTotal {
                stack: stacks.add_stack(&ids),
                value: value.parse().expect("a number"),
                samples: 1,
            }
        };
        let totals: Vec<StackTotal> = lines.iter().map(total).collect();
        CallTree::build(&totals, &stacks)
    }

    /// Every level as `name offset total self`, bars joined by `|`.
    fn check(lines: &[&str], nodes_max: usize, expected: &[&str]) {
        let graph = Merged::of([&tree(lines)]).cut(nodes_max).into_flamegraph();
        let bar = |bar: &[i64]| format!("{} {} {} {}", graph.names[bar[3] as usize], bar[0], bar[1], bar[2]);
        let shown: Vec<String> = graph
            .levels
            .iter()
            .map(|level| level.values.chunks(4).map(bar).collect::<Vec<_>>().join("|"))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn offsets_count_from_the_end_of_the_bar_before() {
        check(
            &["main;a;x 3", "main;a 4", "main;b 2", "run 1", "run;y 5"],
            100,
            &["total 0 15 0", "main 0 9 0|run 0 6 1", "a 0 7 4|b 0 2 2|y 0 5 5", "x 0 3 3"],
        );
        check(
            &["a;x 1", "b 2", "c;y 3"],
            100,
            &["total 0 6 0", "a 0 1 0|b 0 2 2|c 0 3 0", "x 0 1 1|y 2 3 3"],
        );
    }

    #[test]
    fn functions_of_one_name_are_one_whatever_their_file() {
        check(&["main@a;x 1", "main@b;x 2"], 100, &["total 0 3 0", "main 0 3 0", "x 0 3 3"]);
    }

    #[test]
    fn what_is_too_small_is_one_bar_and_real_names_stay() {
        check(
            &["main;a 10", "main;b 2", "main;other;z 20", "total 30"],
            5,
            &[
                "total 0 62 0",
                "main 0 32 0|total 0 30 30",
                "other 0 20 0|other 0 12 12",
                "z 0 20 20",
            ],
        );
        let names = Merged::of([&tree(&["total 1"])]).into_flamegraph().names;
        assert_eq!(names.iter().filter(|name| *name == "total").count(), 2);
    }

    #[test]
    fn without_cost_there_are_no_levels() {
        check(&[], 100, &[]);
        check(&["main 0"], 100, &[]);
        check(&["main;a -5"], 100, &[]);
        check(&["main;a -5", "main;b 3"], 100, &["total 0 3 0", "main 0 3 0", "b 0 3 3"]);
    }

    #[test]
    fn a_comparison_has_both_sides_on_every_bar() {
        let diff = Merged::of([&tree(&["main;a 3"]), &tree(&["main;a 1", "main;b 4"])])
            .cut(100)
            .into_diff();
        let shown: Vec<&[i64]> = diff.levels.iter().map(|level| level.values.as_slice()).collect();
        let name = |text: &str| diff.names.iter().position(|name| name == text).expect("named") as i64;
        let (main, a, b) = (name("main"), name("a"), name("b"));
        assert_eq!(
            shown,
            [
                &[0, 3, 0, 0, 5, 0, 0][..],
                &[0, 3, 0, 0, 5, 0, main],
                &[0, 3, 3, 0, 1, 1, a, 0, 0, 0, 0, 4, 4, b],
            ]
        );
        assert_eq!((diff.left_ticks, diff.right_ticks, diff.total, diff.max_self), (3, 5, 8, 4));
    }
}
