//! Stacks -> call tree, the one place where that is done.
//!
//! A tree is flat arrays: node 0 is the root and stands for everything, parents come before their children,
//! children are in order of name, file and module. Frames merge by what is shown of them (function, file and
//! module), so that one function is one node however many lines of it ran; the frame keeps the line that cost
//! most. Equal input gives equal arrays, whatever its order.
//!
//! Values may be negative (a heap that shrank): they are added like any other.

use std::collections::HashMap;

use spanflame_model::{Frame, StackId, StackSet};

/// What one stack cost in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackTotal {
    /// The stack.
    pub stack: StackId,
    /// In the unit of the answer.
    pub value: i64,
    /// Observations behind the value.
    pub samples: u64,
}

/// A function as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownFrame {
    /// Its name; `module+0xaddress` where the client could not name it.
    pub function: String,
    /// Its source file, empty if unknown.
    pub file: String,
    /// The line that cost most, 1-based; 0 if unknown.
    pub line: i64,
    /// Executable or library, empty if unknown.
    pub module: String,
    /// OpenTelemetry's frame type, empty if unknown; `root` for the frame of node 0.
    pub kind: String,
    /// Nobody could name it yet.
    pub unresolved: bool,
}

/// A call tree in flat arrays of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTree {
    /// The functions that nodes name. Frame 0 belongs to the root only.
    pub frames: Vec<ShownFrame>,
    /// Per node: index into `frames`.
    pub frame: Vec<u32>,
    /// Per node: the caller, always a smaller index; 0 for the root itself.
    pub parent: Vec<u32>,
    /// Per node: what ended in it.
    pub self_value: Vec<i64>,
    /// Per node: what ended in it and below.
    pub total: Vec<i64>,
    /// Per node: observations in it and below.
    pub samples: Vec<u64>,
    /// Stacks whose leaves did not fit [`NODES_MAX`]: their cost is the own cost of the last caller that did.
    pub cut_stacks: u64,
}

/// The most nodes of one tree.
pub const NODES_MAX: usize = 4_000_000;

impl CallTree {
    /// The tree of `totals`. A stack that `stacks` lacks is shown as one unknown frame.
    pub fn build(totals: &[StackTotal], stacks: &StackSet) -> CallTree {
        CallTree::build_within(NODES_MAX, totals, stacks)
    }

    fn build_within(nodes_max: usize, totals: &[StackTotal], stacks: &StackSet) -> CallTree {
        let mut builder = Builder::new(nodes_max);
        let mut ordered: Vec<&StackTotal> = totals.iter().collect();
        ordered.sort_unstable_by_key(|total| total.stack);
        for total in ordered {
            builder.add(total, stacks);
        }
        builder.finish()
    }

    /// How many nodes there are, the root included.
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Whether there is no node but the root.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// Finds the frames of single stacks among those of the tree.
    pub(crate) fn frame_index(&self) -> FrameIndex {
        let behind_root = self.frames.iter().enumerate().skip(1);
        FrameIndex {
            by_identity: behind_root.map(|(index, frame)| (shown_identity(frame), index as u32)).collect(),
        }
    }

    /// How many functions of the tree have no name.
    pub fn unresolved_frames(&self) -> u64 {
        self.frames.iter().filter(|frame| frame.unresolved).count() as u64
    }
}

/// The frames of a tree by what is shown of them.
pub(crate) struct FrameIndex {
    by_identity: HashMap<Identity, u32>,
}

/// What frames merge by: function, file, module.
type Identity = (String, String, String);

fn shown_identity(frame: &ShownFrame) -> Identity {
    (frame.function.clone(), frame.file.clone(), frame.module.clone())
}

fn identity(frame: &Frame) -> Identity {
    (frame.display_name(), frame.file.clone(), frame.module.clone())
}

impl FrameIndex {
    /// The frame of another tree among those of this one.
    pub(crate) fn of(&self, frame: &ShownFrame) -> Option<u32> {
        self.by_identity.get(&shown_identity(frame)).copied()
    }

    /// A stack as the tree shows it, root first.
    pub(crate) fn path(&self, stack: StackId, stacks: &StackSet) -> Vec<u32> {
        let unknown = Frame::default();
        frames_of(stack, stacks, &unknown)
            .map_while(|frame| self.by_identity.get(&identity(frame)).copied())
            .collect()
    }
}

/// The frames of a stack, root first; one unknown frame if the stack is missing.
fn frames_of<'a>(stack: StackId, stacks: &'a StackSet, unknown: &'a Frame) -> impl Iterator<Item = &'a Frame> {
    let ids = stacks.stack(stack);
    let found = ids
        .into_iter()
        .flat_map(|ids| ids.iter().rev())
        .map(move |id| stacks.frame(*id).map_or(unknown, |frame| frame));
    found.chain(ids.is_none().then_some(unknown))
}

/// One node while the tree grows.
struct Node {
    frame: u32,
    parent: u32,
    self_value: i64,
    total: i64,
    samples: u64,
}

struct Builder {
    frames: Vec<ShownFrame>,
    frame_by_identity: HashMap<Identity, u32>,
    lines: HashMap<(u32, i64), i128>,
    nodes: Vec<Node>,
    node_by_edge: HashMap<(u32, u32), u32>,
    nodes_max: usize,
    cut_stacks: u64,
}

impl Builder {
    fn new(nodes_max: usize) -> Builder {
        let root = ShownFrame {
            function: "root".to_owned(),
            kind: "root".to_owned(),
            ..ShownFrame::default()
        };
        Builder {
            frames: vec![root],
            frame_by_identity: HashMap::new(),
            lines: HashMap::new(),
            nodes: vec![Node::new(0, 0)],
            node_by_edge: HashMap::new(),
            nodes_max,
            cut_stacks: 0,
        }
    }

    fn add(&mut self, total: &StackTotal, stacks: &StackSet) {
        let unknown = Frame::default();
        let mut node = 0;
        self.nodes[0].count(total);
        for frame in frames_of(total.stack, stacks, &unknown) {
            match self.descend(node, frame, total) {
                Some(child) => node = child,
                None => {
                    self.cut_stacks += 1;
                    break;
                }
            }
        }
        let leaf = &mut self.nodes[node as usize];
        leaf.self_value = leaf.self_value.saturating_add(total.value);
    }

    /// `None` where the tree is full.
    fn descend(&mut self, parent: u32, frame: &Frame, total: &StackTotal) -> Option<u32> {
        let shown = self.shown(frame);
        let next = self.nodes.len() as u32;
        if self.nodes.len() >= self.nodes_max && !self.node_by_edge.contains_key(&(parent, shown)) {
            return None;
        }
        *self.lines.entry((shown, frame.line)).or_default() += i128::from(total.value.unsigned_abs());
        let node = *self.node_by_edge.entry((parent, shown)).or_insert(next);
        if node == next {
            self.nodes.push(Node::new(shown, parent));
        }
        self.nodes[node as usize].count(total);
        Some(node)
    }

    fn shown(&mut self, frame: &Frame) -> u32 {
        let identity = identity(frame);
        if let Some(index) = self.frame_by_identity.get(&identity) {
            let shown = &mut self.frames[*index as usize];
            if shown.kind.is_empty() {
                shown.kind.clone_from(&frame.kind);
            }
            return *index;
        }
        let index = self.frames.len() as u32;
        self.frames.push(ShownFrame {
            function: identity.0.clone(),
            file: identity.1.clone(),
            line: 0,
            module: identity.2.clone(),
            kind: frame.kind.clone(),
            unresolved: frame.is_unresolved(),
        });
        self.frame_by_identity.insert(identity, index);
        index
    }

    fn finish(mut self) -> CallTree {
        self.choose_lines();
        let order = self.sort_frames();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent as usize].push(index as u32);
        }
        for list in &mut children {
            list.sort_unstable_by_key(|child| std::cmp::Reverse(order[self.nodes[*child as usize].frame as usize]));
        }
        let mut tree = CallTree::default();
        // Depth first with an own stack of (node, new index of its parent): stacks can be deep.
        let mut pending = vec![(0, 0)];
        while let Some((index, parent)) = pending.pop() {
            let node = &self.nodes[index as usize];
            let new_index = tree.frame.len() as u32;
            tree.frame.push(order[node.frame as usize]);
            tree.parent.push(parent);
            tree.self_value.push(node.self_value);
            tree.total.push(node.total);
            tree.samples.push(node.samples);
            pending.extend(children[index as usize].iter().map(|child| (*child, new_index)));
        }
        tree.frames = self.frames;
        tree.cut_stacks = self.cut_stacks;
        tree
    }

    /// The line that cost most; of equal ones the smallest.
    fn choose_lines(&mut self) {
        let mut best: HashMap<u32, (i128, std::cmp::Reverse<i64>)> = HashMap::new();
        for ((frame, line), cost) in &self.lines {
            let candidate = (*cost, std::cmp::Reverse(*line));
            let entry = best.entry(*frame).or_insert(candidate);
            *entry = (*entry).max(candidate);
        }
        for (frame, (_, line)) in best {
            self.frames[frame as usize].line = line.0;
        }
    }

    /// Sorts the frames behind the root's; the answer maps old to new indices.
    fn sort_frames(&mut self) -> Vec<u32> {
        let mut sorted: Vec<(ShownFrame, u32)> = std::mem::take(&mut self.frames)
            .into_iter()
            .enumerate()
            .map(|(index, frame)| (frame, index as u32))
            .collect();
        sorted[1..].sort_unstable_by(|(a, _), (b, _)| (&a.function, &a.file, &a.module).cmp(&(&b.function, &b.file, &b.module)));
        let mut order = vec![0; sorted.len()];
        for (new, (frame, old)) in sorted.into_iter().enumerate() {
            order[old as usize] = new as u32;
            self.frames.push(frame);
        }
        order
    }
}

impl Node {
    fn new(frame: u32, parent: u32) -> Node {
        Node {
            frame,
            parent,
            self_value: 0,
            total: 0,
            samples: 0,
        }
    }

    fn count(&mut self, total: &StackTotal) {
        self.total = self.total.saturating_add(total.value);
        self.samples = self.samples.saturating_add(total.samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a;b;c:12 5` is a stack, root first, with a line for the leaf, and its value.
    fn tree(lines: &[&str]) -> CallTree {
        let mut stacks = StackSet::new();
        let totals: Vec<StackTotal> = lines
            .iter()
            .map(|line| {
                let (stack, value) = line.rsplit_once(' ').expect("stack and value");
                let mut ids: Vec<_> = stack
                    .split(';')
                    .filter(|name| !name.is_empty())
                    .map(|name| stacks.add_frame(frame(name)))
                    .collect();
                ids.reverse();
                StackTotal {
                    stack: stacks.add_stack(&ids),
                    value: value.parse().expect("a number"),
                    samples: 1,
                }
            })
            .collect();
        CallTree::build(&totals, &stacks)
    }

    fn frame(text: &str) -> Frame {
        let (function, line) = text.split_once(':').unwrap_or((text, "0"));
        Frame {
            function: function.to_owned(),
            line: line.parse().expect("a line"),
            ..Frame::default()
        }
    }

    /// One line a node: depth as dots, name, line, self, total, samples.
    fn check(lines: &[&str], expected: &[&str]) {
        let tree = tree(lines);
        let mut depth = vec![0; tree.len()];
        let shown: Vec<String> = (0..tree.len())
            .map(|node| {
                if node > 0 {
                    assert!((tree.parent[node] as usize) < node, "parents come first");
                    depth[node] = depth[tree.parent[node] as usize] + 1;
                }
                let frame = &tree.frames[tree.frame[node] as usize];
                let numbers = format!("{} {} {}", tree.self_value[node], tree.total[node], tree.samples[node]);
                format!("{}{}:{} {numbers}", ".".repeat(depth[node]), frame.function, frame.line)
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn children_are_in_order_of_name_and_totals_add_up() {
        check(
            &["main;b 2", "main;a;x 3", "main;a 4", "other 1"],
            &[
                "root:0 0 10 4",
                ".main:0 0 9 3",
                "..a:0 4 7 2",
                "...x:0 3 3 1",
                "..b:0 2 2 1",
                ".other:0 1 1 1",
            ],
        );
    }

    #[test]
    fn lines_of_one_function_are_one_node_that_keeps_the_hottest_line() {
        check(
            &["main;f:10 2", "main;f:20 5", "main;f:30 1"],
            &["root:0 0 8 3", ".main:0 0 8 3", "..f:20 8 8 3"],
        );
    }

    #[test]
    fn recursion_keeps_its_depth() {
        check(&["f;f;f 1"], &["root:0 0 1 1", ".f:0 0 1 1", "..f:0 0 1 1", "...f:0 1 1 1"]);
    }

    #[test]
    fn negative_values_are_added() {
        check(&["a -5", "a;b 2"], &["root:0 0 -3 2", ".a:0 -5 -3 2", "..b:0 2 2 1"]);
    }

    #[test]
    fn an_empty_stack_is_the_roots_own() {
        check(&[" 7"], &["root:0 7 7 1"]);
    }

    #[test]
    fn a_full_tree_keeps_the_cost_at_the_last_caller_that_fits() {
        let mut stacks = StackSet::new();
        let ids = ["c", "b", "a"].map(|name| stacks.add_frame(frame(name)));
        let total = StackTotal {
            stack: stacks.add_stack(&ids),
            value: 7,
            samples: 1,
        };
        let tree = CallTree::build_within(3, &[total], &stacks);
        assert_eq!((tree.len(), tree.self_value[2], tree.total[0], tree.cut_stacks), (3, 7, 7, 1));
    }

    #[test]
    fn the_order_of_input_does_not_matter() {
        assert_eq!(tree(&["a;b:1 1", "a;c 2", "b:2 1"]), tree(&["b:2 1", "a;c 2", "a;b:1 1"]));
    }

    #[test]
    fn a_missing_stack_is_shown_as_unknown() {
        let total = StackTotal {
            stack: StackId(1),
            value: 3,
            samples: 1,
        };
        let tree = CallTree::build(&[total], &StackSet::new());
        assert_eq!(tree.frames[tree.frame[1] as usize].function, "[unknown]");
        assert_eq!((tree.total[0], tree.unresolved_frames()), (3, 1));
    }
}
