//! The two binary forms in which Pyroscope's older agents send stacks.
//!
//! Both are trees written parents before children, each node as length of its name, name, value and number of
//! children, the numbers as varints. In a *tree* every node is a frame and its value the time spent in itself. In a
//! *trie* the names on the way to a node, joined, are the stack as text: root first, `;` between frames.

use spanflame_model::{FrameId, Profile, Sample};

use crate::compression::{Encoding, decompress};
use crate::stacks::{StackBuilder, named};
use crate::{Decoded, Error, Limits, Reason, Rejects, Subject, Upload};

/// Reads a tree, compressed or not.
pub fn decode_tree(bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    decode(bytes, upload, limits, "tree of stacks", |reader, path| reader.tree_frames(path))
}

/// Reads a trie, compressed or not.
pub fn decode_trie(bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    decode(bytes, upload, limits, "trie of stacks", |reader, path| reader.trie_frames(path))
}

/// The names from the root to a node, end to end.
#[derive(Default)]
struct Path<'a> {
    names: Vec<&'a str>,
}

struct StackReader<'a> {
    builder: StackBuilder<'a>,
    rejects: Rejects,
    depth_max: usize,
}

impl StackReader<'_> {
    fn frame(&mut self, name: &str) -> Result<FrameId, Reason> {
        let name = self.builder.name(name, &mut self.rejects)?;
        self.builder.add_frame(named(name))
    }

    /// Leaf first, as many as a stack may have and one more.
    fn tree_frames(&mut self, path: &Path<'_>) -> Result<Vec<FrameId>, Reason> {
        let leaf_first = path.names.iter().rev().filter(|name| !name.is_empty());
        leaf_first.take(self.depth_max + 1).map(|name| self.frame(name)).collect()
    }

    fn trie_frames(&mut self, path: &Path<'_>) -> Result<Vec<FrameId>, Reason> {
        let bytes: usize = path.names.iter().map(|name| name.len()).sum();
        self.builder.budget.take(bytes)?;
        let stack = path.names.concat();
        let leaf_first = stack.rsplit(';').filter(|name| !name.is_empty());
        leaf_first.take(self.depth_max + 1).map(|name| self.frame(name)).collect()
    }
}

type Frames = fn(&mut StackReader<'_>, &Path<'_>) -> Result<Vec<FrameId>, Reason>;

fn decode(bytes: &[u8], upload: &Upload, limits: &Limits, format: &'static str, frames: Frames) -> Result<Decoded, Error> {
    let bytes = decompress(Encoding::detect(bytes), bytes, limits.decoded_bytes_max)?;
    let mut reader = StackReader {
        builder: StackBuilder::new(limits),
        rejects: Rejects::new(),
        depth_max: limits.stack_depth_max,
    };
    let mut nodes = Nodes {
        rest: &bytes,
        path: Path::default(),
        open: Vec::new(),
        started: false,
    };
    let mut samples = Vec::new();
    while let Some(value) = nodes.next().map_err(|detail| Error::malformed(format, detail))? {
        if value == 0 {
            continue;
        }
        let added = match samples.len() < limits.samples_per_profile_max {
            true => read_sample(&mut reader, &nodes.path, value, frames),
            false => Err(Reason::TooManySamples),
        };
        match added {
            Ok(sample) => samples.push(sample),
            Err(reason) => {
                reader
                    .rejects
                    .add(Subject::Sample, reason, || format!("a stack with value {value}: {reason}"));
                // What follows would fail as well, and cost the time of trying.
                if matches!(reason, Reason::ExpansionLimit | Reason::TooManySamples) {
                    break;
                }
            }
        }
    }
    let mut decoded = Decoded::default();
    if !samples.is_empty() {
        let info = upload.text_info();
        decoded.batch.profiles = vec![Profile { info, samples }];
    }
    decoded.batch.stacks = reader.builder.set;
    decoded.rejects = reader.rejects;
    Ok(decoded)
}

/// The sample of a node.
fn read_sample(reader: &mut StackReader<'_>, path: &Path<'_>, value: u64, frames: Frames) -> Result<Sample, Reason> {
    let value = i64::try_from(value).map_err(|_| Reason::InvalidValue)?;
    let mut frames = frames(reader, path)?;
    let stack = reader.builder.add_stack(&mut frames, &mut reader.rejects)?;
    reader.builder.budget.take(size_of::<Sample>())?;
    Ok(Sample {
        values: vec![value],
        ..Sample::new(stack)
    })
}

/// Walks the nodes in the order in which they are written.
struct Nodes<'a> {
    rest: &'a [u8],
    /// The node that was read last.
    path: Path<'a>,
    /// How many children each node of `path` still has.
    open: Vec<u64>,
    started: bool,
}

impl Nodes<'_> {
    /// The value of the next node, whose names are then `path`; `None` after the last.
    fn next(&mut self) -> Result<Option<u64>, String> {
        while self.open.last() == Some(&0) {
            self.open.pop();
            self.path.names.pop();
        }
        match self.open.last_mut() {
            Some(children) => *children -= 1,
            None if self.started => return Ok(None),
            None => self.started = true,
        }
        let length = usize::try_from(self.varint()?).map_err(|_| "a name is longer than the file".to_owned())?;
        let (name, rest) = self.rest.split_at_checked(length).ok_or("it ends inside a name")?;
        self.rest = rest;
        let name = std::str::from_utf8(name).map_err(|_| "a name is not UTF-8".to_owned())?;
        let value = self.varint()?;
        let children = self.varint()?;
        // The smallest node has three bytes, so more children than bytes are a lie.
        if children > self.rest.len() as u64 {
            return Err(format!("a node has {children} children, {} bytes follow", self.rest.len()));
        }
        self.path.names.push(name);
        self.open.push(children);
        Ok(Some(value))
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for (at, byte) in self.rest.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(number);
            }
        }
        Err("it ends inside a number".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Export, collapsed};

    /// A node: name, value, number of children.
    fn bytes(nodes: &[(&str, u8, u8)]) -> Vec<u8> {
        let node = |(name, value, children): &(&str, u8, u8)| [&[name.len() as u8], name.as_bytes(), &[*value, *children]].concat();
        nodes.iter().flat_map(node).collect()
    }

    fn check(decoded: Result<Decoded, Error>, expected: &str) {
        let batch = decoded.expect("valid").batch;
        let export = Export::of_profile(&batch.profiles[0], &batch.stacks);
        assert_eq!(collapsed::encode(&export), expected);
    }

    const NODES: [(&str, u8, u8); 5] = [("", 0, 1), ("main", 1, 2), ("a", 2, 0), ("b", 0, 1), ("c", 3, 0)];

    #[test]
    fn every_node_of_a_tree_is_a_frame() {
        let bytes = bytes(&NODES);
        check(
            decode_tree(&bytes, &Upload::default(), &Limits::default()),
            "main 1\nmain;a 2\nmain;b;c 3\n",
        );
    }

    #[test]
    fn the_names_of_a_trie_join_to_stacks() {
        let nodes = [("", 0, 1), ("main;", 0, 2), ("fo", 0, 2), ("o", 1, 0), ("r;x", 2, 0), ("bar", 4, 0)];
        check(
            decode_trie(&bytes(&nodes), &Upload::default(), &Limits::default()),
            "main;foo 1\nmain;for;x 2\nmain;bar 4\n",
        );
    }

    #[test]
    fn truncated_and_lying_trees_are_refused() {
        let whole = bytes(&NODES);
        for end in 0..whole.len() {
            assert!(decode_tree(&whole[..end], &Upload::default(), &Limits::default()).is_err(), "{end}");
        }
        assert!(decode_tree(&bytes(&[("", 0, 100)]), &Upload::default(), &Limits::default()).is_err());
    }

    #[test]
    fn a_deep_tree_keeps_its_leaves() {
        let mut nodes: Vec<(&str, u8, u8)> = vec![("f", 0, 1); 5000];
        nodes.push(("leaf", 1, 0));
        let decoded = decode_tree(&bytes(&nodes), &Upload::default(), &Limits::default()).expect("valid");
        let stack = decoded.batch.stacks.stacks().next().expect("one stack").1.len();
        assert_eq!(stack, Limits::default().stack_depth_max);
        assert_eq!(decoded.rejects.count_of(Subject::Detail, Reason::StackTooDeep), 1);
    }
}
