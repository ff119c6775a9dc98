//! speedscope's file format (<https://www.speedscope.app/file-format-schema.json>).
//!
//! A file holds several profiles over one list of frames. `sampled` profiles list stacks, root first, with
//! weights; `evented` ones say when a frame opens and closes, from which the time of each stack follows.
//! Times in it have no date. On the way out every type becomes a profile named by its full profile type,
//! which is understood on the way in.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spanflame_model::{Frame, FrameId, Profile, ProfileInfo, ProfileType, Sample, StackId, ValueType};

use crate::compression::{Encoding, decompress};
use crate::stacks::StackBuilder;
use crate::{Decoded, Error, Export, Limits, Reason, Rejects, Subject, Upload};

const FORMAT: &str = "speedscope file";
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Debug, Serialize, Deserialize)]
struct File {
    #[serde(rename = "$schema", default)]
    schema: String,
    shared: Shared,
    profiles: Vec<FileProfile>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    exporter: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Shared {
    frames: Vec<FileFrame>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct FileFrame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    col: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum FileProfile {
    #[serde(rename_all = "camelCase")]
    Sampled {
        #[serde(default)]
        name: String,
        #[serde(default)]
        unit: String,
        #[serde(default)]
        start_value: f64,
        #[serde(default)]
        end_value: f64,
        samples: Vec<Vec<usize>>,
        weights: Vec<f64>,
    },
    #[serde(rename_all = "camelCase")]
    Evented {
        #[serde(default)]
        name: String,
        #[serde(default)]
        unit: String,
        #[serde(default)]
        start_value: f64,
        #[serde(default)]
        end_value: f64,
        events: Vec<FileEvent>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct FileEvent {
    #[serde(rename = "type")]
    kind: EventKind,
    frame: usize,
    at: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum EventKind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

/// Reads a speedscope file, compressed or not; each of its profiles becomes one.
pub fn decode(bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    let bytes = decompress(Encoding::detect(bytes), bytes, limits.decoded_bytes_max)?;
    let file: File = serde_json::from_slice(&bytes).map_err(|e| Error::malformed(FORMAT, e))?;
    if file.shared.frames.len() > limits.table_entries_max {
        return Err(Error::TooLarge {
            what: "frames",
            max: limits.table_entries_max,
        });
    }
    let mut reader = FileReader::new(file.shared.frames, limits)?;
    let mut profiles = Vec::new();
    for (at, profile) in file.profiles.into_iter().enumerate() {
        match reader.profile(profile, upload) {
            Ok(profile) if profile.samples.is_empty() => {}
            Ok(profile) => profiles.push(profile),
            Err(text) => reader
                .rejects
                .add(Subject::Profile, Reason::Malformed, || format!("profile {at}: {text}")),
        }
    }
    let mut decoded = Decoded::default();
    decoded.batch.profiles = profiles;
    decoded.batch.stacks = reader.builder.set;
    decoded.rejects = reader.rejects;
    Ok(decoded)
}

struct FileReader<'a> {
    limits: &'a Limits,
    frames: Vec<FrameId>,
    builder: StackBuilder<'a>,
    rejects: Rejects,
}

impl<'a> FileReader<'a> {
    fn new(frames: Vec<FileFrame>, limits: &'a Limits) -> Result<FileReader<'a>, Error> {
        let (mut builder, mut rejects) = (StackBuilder::new(limits), Rejects::new());
        let add = |frame: FileFrame| {
            let frame = Frame {
                function: builder.name(&frame.name, &mut rejects)?,
                file: builder.name(&frame.file.unwrap_or_default(), &mut rejects)?,
                line: frame.line.unwrap_or(0).max(0),
                column: frame.col.unwrap_or(0).max(0),
                ..Frame::default()
            };
            builder.add_frame(frame)
        };
        let frames = frames.into_iter().map(add).collect::<Result<Vec<_>, _>>();
        Ok(FileReader {
            frames: frames.map_err(|_| Error::TooLarge {
                what: "bytes of frames",
                max: limits.expanded_bytes_max,
            })?,
            limits,
            builder,
            rejects,
        })
    }

    fn profile(&mut self, profile: FileProfile, upload: &Upload) -> Result<Profile, String> {
        let (name, unit, length, samples) = match profile {
            FileProfile::Sampled {
                name,
                unit,
                start_value,
                end_value,
                samples,
                weights,
            } => {
                let samples = self.sampled(&samples, &weights, scale(&unit))?;
                (name, unit, end_value - start_value, samples)
            }
            FileProfile::Evented {
                name,
                unit,
                start_value,
                end_value,
                events,
            } => {
                let samples = self.evented(&events, start_value, scale(&unit))?;
                (name, unit, end_value - start_value, samples)
            }
        };
        let info = Arc::new(info(&name, &unit, length, upload));
        Ok(Profile { info, samples })
    }

    fn sampled(&mut self, stacks: &[Vec<usize>], weights: &[f64], scale: f64) -> Result<Vec<Sample>, String> {
        if stacks.len() != weights.len() {
            return Err(format!("it has {} samples and {} weights", stacks.len(), weights.len()));
        }
        let mut samples = Vec::with_capacity(stacks.len().min(self.limits.samples_per_profile_max));
        for (stack, weight) in stacks.iter().zip(weights) {
            self.push(&mut samples, stack, weight * scale);
        }
        Ok(samples)
    }

    fn evented(&mut self, events: &[FileEvent], start: f64, scale: f64) -> Result<Vec<Sample>, String> {
        let mut tree = OpenStacks::default();
        let mut last = start;
        for event in events {
            tree.spend(event.at - last);
            last = event.at;
            let done = match event.kind {
                EventKind::Open => tree.open(event.frame, self.limits.stack_depth_max),
                EventKind::Close => tree.close(event.frame),
            };
            done.map_err(|text| format!("at {}: {text}", event.at))?;
        }
        let mut samples = Vec::new();
        for node in 1..tree.nodes.len() {
            if tree.nodes[node].weight > 0.0 {
                self.push(&mut samples, &tree.root_first(node), tree.nodes[node].weight * scale);
            }
        }
        Ok(samples)
    }

    /// Adds a stack, root first, with its value.
    fn push(&mut self, samples: &mut Vec<Sample>, root_first: &[usize], value: f64) {
        let value_is_kept = value.is_finite() && value.abs() < i64::MAX as f64;
        let refused = if samples.len() >= self.limits.samples_per_profile_max {
            Some(Reason::TooManySamples)
        } else if !value_is_kept {
            Some(Reason::InvalidValue)
        } else if root_first.iter().any(|at| *at >= self.frames.len()) {
            Some(Reason::IndexOutOfRange)
        } else {
            None
        };
        let added = refused.map_or_else(|| self.add(root_first), Err);
        match added {
            Ok(stack) => samples.push(Sample {
                values: vec![value.round() as i64],
                ..Sample::new(stack)
            }),
            Err(reason) => self.rejects.add(Subject::Sample, reason, || {
                format!("a stack of {} frames with value {value}: {reason}", root_first.len())
            }),
        }
    }

    fn add(&mut self, root_first: &[usize]) -> Result<StackId, Reason> {
        let leaf_first = root_first.iter().rev().take(self.limits.stack_depth_max + 1);
        let mut ids: Vec<FrameId> = leaf_first.map(|at| self.frames[*at]).collect();
        self.builder.budget.take(size_of::<Sample>())?;
        self.builder.add_stack(&mut ids, &mut self.rejects)
    }
}

/// The stacks that were open, as a tree: one node a stack, so that a deep stack costs what opened it.
struct OpenStacks {
    /// Node 0 is the empty stack.
    nodes: Vec<OpenStack>,
    index: HashMap<(usize, usize), usize>,
    current: usize,
    depth: usize,
}

#[derive(Default)]
struct OpenStack {
    parent: usize,
    frame: usize,
    weight: f64,
}

impl Default for OpenStacks {
    fn default() -> OpenStacks {
        OpenStacks {
            nodes: vec![OpenStack::default()],
            index: HashMap::new(),
            current: 0,
            depth: 0,
        }
    }
}

impl OpenStacks {
    fn spend(&mut self, weight: f64) {
        if weight > 0.0 {
            self.nodes[self.current].weight += weight;
        }
    }

    fn open(&mut self, frame: usize, depth_max: usize) -> Result<(), String> {
        if self.depth >= depth_max {
            return Err(format!("more than {depth_max} frames are open"));
        }
        let parent = self.current;
        self.depth += 1;
        self.current = *self.index.entry((parent, frame)).or_insert_with(|| {
            self.nodes.push(OpenStack {
                parent,
                frame,
                weight: 0.0,
            });
            self.nodes.len() - 1
        });
        Ok(())
    }

    fn close(&mut self, frame: usize) -> Result<(), String> {
        if self.current == 0 || self.nodes[self.current].frame != frame {
            return Err(format!("frame {frame} closes but is not the innermost"));
        }
        self.depth -= 1;
        self.current = self.nodes[self.current].parent;
        Ok(())
    }

    fn root_first(&self, mut node: usize) -> Vec<usize> {
        let mut frames = Vec::new();
        while node != 0 {
            frames.push(self.nodes[node].frame);
            node = self.nodes[node].parent;
        }
        frames.reverse();
        frames
    }
}

/// What a weight is multiplied by: times become nanoseconds.
fn scale(unit: &str) -> f64 {
    match unit {
        "microseconds" => 1e3,
        "milliseconds" => 1e6,
        "seconds" => 1e9,
        _ => 1.0,
    }
}

fn info(name: &str, unit: &str, length: f64, upload: &Upload) -> ProfileInfo {
    let mut info = ProfileInfo::clone(&upload.text_info());
    let own_type: Option<ProfileType> = name.parse().ok();
    let is_time = matches!(unit, "nanoseconds" | "microseconds" | "milliseconds" | "seconds");
    match (&upload.value_type, own_type) {
        (None, Some(own)) => {
            info.types = vec![own.sample];
            info.period_type = own.period;
            if info.name.is_empty() {
                info.name = own.name;
            }
        }
        (None, None) => info.types = vec![type_of_unit(unit, is_time)],
        (Some(_), _) => {}
    }
    if upload.duration_ns.is_none() && is_time {
        // The cast saturates, so neither a negative nor an endless length does harm.
        info.duration_ns = (length * scale(unit)) as u64;
    }
    info
}

fn type_of_unit(unit: &str, is_time: bool) -> ValueType {
    match unit {
        _ if is_time => ValueType::new("time", "nanoseconds"),
        "bytes" => ValueType::new("space", "bytes"),
        _ => ValueType::new("samples", "count"),
    }
}

/// Writes every type as a profile over one list of frames.
pub fn encode(export: &Export) -> String {
    let mut frames = Vec::new();
    let mut index: HashMap<FrameId, usize> = HashMap::new();
    let samples: Vec<Vec<usize>> = export
        .rows
        .iter()
        .map(|row| {
            let ids = export.stacks.stack(row.stack).map(|ids| &ids[..]).unwrap_or_default();
            let add = |id: &FrameId| {
                *index.entry(*id).or_insert_with(|| {
                    frames.push(file_frame(export.stacks.frame(*id).map(Arc::as_ref)));
                    frames.len() - 1
                })
            };
            ids.iter().rev().map(add).collect()
        })
        .collect();
    let profiles = (0..export.types.len())
        .map(|at| file_profile(export, at, samples.clone()))
        .collect();
    let file = File {
        schema: SCHEMA.to_owned(),
        shared: Shared { frames },
        profiles,
        exporter: "spanflame".to_owned(),
    };
    serde_json::to_string(&file).expect("the file has only string keys")
}

fn file_frame(frame: Option<&Frame>) -> FileFrame {
    let unknown = Frame::default();
    let frame = frame.unwrap_or(&unknown);
    FileFrame {
        name: frame.display_name(),
        file: (!frame.file.is_empty()).then(|| frame.file.clone()),
        line: (frame.line != 0).then_some(frame.line),
        col: (frame.column != 0).then_some(frame.column),
    }
}

fn file_profile(export: &Export, at: usize, samples: Vec<Vec<usize>>) -> FileProfile {
    let value_type = &export.types[at];
    let weights: Vec<f64> = export
        .rows
        .iter()
        .map(|row| row.values.get(at).copied().unwrap_or(0) as f64)
        .collect();
    let mut name = export.profile_type.clone();
    name.sample = value_type.clone();
    let unit = match value_type.unit.as_str() {
        _ if value_type.is_nanoseconds() => "nanoseconds",
        "bytes" => "bytes",
        _ => "none",
    };
    FileProfile::Sampled {
        name: name.to_string(),
        unit: unit.to_owned(),
        start_value: 0.0,
        end_value: weights.iter().sum(),
        samples,
        weights,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collapsed;

    fn check(json: &str, expected: &[&str]) -> Decoded {
        let decoded = decode(json.as_bytes(), &Upload::default(), &Limits::default()).expect("valid");
        let texts: Vec<String> = Export::of_batch(&decoded.batch).iter().map(collapsed::encode).collect();
        assert_eq!(texts, expected);
        decoded
    }

    const FRAMES: &str = r#""shared":{"frames":[{"name":"a","file":"a.rs","line":3},{"name":"b"}]}"#;

    #[test]
    fn sampled_and_evented_profiles_are_read() {
        let sampled = r#"{"type":"sampled","unit":"milliseconds","samples":[[0,1],[0]],"weights":[1.5,2]}"#;
        let evented = r#"{"type":"evented","name":"t","unit":"none","startValue":0,"endValue":9,"events":[
            {"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":2},{"type":"C","frame":1,"at":5},{"type":"C","frame":0,"at":9}]}"#;
        check(
            &format!("{{{FRAMES},\"profiles\":[{sampled},{evented}]}}"),
            &["a;b 1500000\na 2000000\n", "a 6\na;b 3\n"],
        );
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        let name = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        let sampled = format!(r#"{{"type":"sampled","name":"{name}","unit":"nanoseconds","samples":[[0,1],[0]],"weights":[1,2]}}"#);
        let decoded = check(&format!("{{{FRAMES},\"profiles\":[{sampled}]}}"), &["a;b 1\na 2\n"]);
        let written = encode(&Export::of_batch(&decoded.batch)[0]);
        let again = check(&written, &["a;b 1\na 2\n"]);
        assert_eq!(again.batch.profiles[0].info.profile_type(0).to_string(), name);
        assert_eq!(again.batch.profiles[0].samples, decoded.batch.profiles[0].samples);
    }

    #[test]
    fn a_bad_profile_or_sample_costs_itself_only() {
        let bad = r#"{"type":"sampled","samples":[[0]],"weights":[]}"#;
        let good = r#"{"type":"sampled","samples":[[7],[0]],"weights":[1,2]}"#;
        let decoded = check(&format!("{{{FRAMES},\"profiles\":[{bad},{good}]}}"), &["a 2\n"]);
        assert_eq!((decoded.rejects.profiles(), decoded.rejects.samples()), (1, 1));
    }
}
