//! Call trees as Pyroscope's binary tree, and as a graph for Graphviz.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use prost::encoding::encode_varint;

use super::flamegraph::Merged;

/// Functions of a graph where the client names no number: more cannot be read.
pub(super) const GRAPH_NODES_DEFAULT: i64 = 100;

/// Depth first, of each node its name, own cost and number of children; the root has no name, and the children of a node
/// come last one first.
pub(super) fn encode(tree: &Merged<1>) -> Vec<u8> {
    let children = tree.children();
    let mut out = Vec::new();
    let mut pending = vec![0_u32];
    while let Some(index) = pending.pop() {
        let name = if index == 0 { "" } else { tree.name_of(index as usize) };
        encode_varint(name.len() as u64, &mut out);
        out.extend_from_slice(name.as_bytes());
        encode_varint(tree.nodes[index as usize].own[0] as u64, &mut out);
        encode_varint(children[index as usize].len() as u64, &mut out);
        pending.extend(&children[index as usize]);
    }
    out
}

/// A function of the graph.
#[derive(Default)]
struct Function {
    own: i64,
    /// Each stack counts once, however often the function is in it.
    total: i64,
}

/// One node a function, one edge a pair of caller and callee.
pub(super) fn graph(tree: &Merged<1>, unit: &str) -> String {
    let (functions, calls) = fold(tree);
    let all = tree.nodes[0].total[0];
    let number: BTreeMap<&str, usize> = functions.keys().enumerate().map(|(number, name)| (*name, number)).collect();
    let mut text = String::from("digraph \"profile\" {\n  node [shape=box, fontname=\"sans-serif\"]\n");
    // Writing to a string cannot fail.
    for (name, function) in &functions {
        let share = |cost: i64| 100.0 * cost as f64 / all.max(1) as f64;
        let _ = writeln!(
            text,
            "  n{} [label=\"{}\\n{} {unit} ({:.2}%) of {} ({:.2}%)\"]",
            number[name],
            escape(name),
            function.own,
            share(function.own),
            function.total,
            share(function.total),
        );
    }
    for ((caller, callee), cost) in &calls {
        let _ = writeln!(text, "  n{} -> n{} [label=\"{cost} {unit}\"]", number[caller], number[callee]);
    }
    text.push_str("}\n");
    text
}

type Calls<'a> = BTreeMap<(&'a str, &'a str), i64>;

fn fold(tree: &Merged<1>) -> (BTreeMap<&str, Function>, Calls<'_>) {
    let children = tree.children();
    let mut functions: BTreeMap<&str, Function> = BTreeMap::new();
    let mut calls = Calls::new();
    let mut above: HashSet<&str> = HashSet::new();
    // Entered with the name that is new on the way, left when all below it is done.
    let mut pending: Vec<(u32, bool)> = children[0].iter().rev().map(|child| (*child, true)).collect();
    while let Some((index, enter)) = pending.pop() {
        let (node, name) = (&tree.nodes[index as usize], tree.name_of(index as usize));
        if !enter {
            above.remove(name);
            continue;
        }
        let function = functions.entry(name).or_default();
        function.own = function.own.saturating_add(node.own[0]);
        if above.insert(name) {
            function.total = function.total.saturating_add(node.total[0]);
            pending.push((index, false));
        }
        if node.parent > 0 {
            let call = calls.entry((tree.name_of(node.parent as usize), name)).or_default();
            *call = call.saturating_add(node.total[0]);
        }
        pending.extend(children[index as usize].iter().rev().map(|child| (*child, true)));
    }
    (functions, calls)
}

fn escape(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::flamegraph::tests::tree;
    use super::*;

    #[test]
    fn the_binary_tree_begins_with_a_root_and_gives_children_last_first() {
        let bytes = encode(&Merged::of([&tree(&["a;x 300", "b 2"])]).cut(100));
        let expected = [&b"\0\0\x02"[..], b"\x01b\x02\0", b"\x01a\0\x01", b"\x01x\xac\x02\0"].concat();
        assert_eq!(bytes, expected);
        assert_eq!(encode(&Merged::of([&tree(&[])]).cut(100)), b"\0\0\0");
    }

    #[test]
    fn a_function_that_calls_itself_counts_once_in_the_graph() {
        let text = graph(&Merged::of([&tree(&["f;f;g 3", "f 1"])]).cut(100), "count");
        assert!(text.contains("n0 [label=\"f\\n1 count (25.00%) of 4 (100.00%)\"]"), "{text}");
        assert!(text.contains("n0 -> n0 [label=\"3 count\"]"), "{text}");
        assert!(text.contains("n0 -> n1 [label=\"3 count\"]"), "{text}");
    }
}
