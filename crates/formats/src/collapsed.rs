//! Collapsed stacks: one line a stack, root first, `;` between frames, a space, the value.
//!
//! ```text
//! main;serve;parse 12
//! ```
//!
//! A frame is its function's name. Names may hold neither `;` nor a line break, which would make other
//! stacks of them: on the way out `;` becomes `:` and every control character a space.

use std::collections::HashMap;
use std::fmt::Write;

use spanflame_model::{Profile, Sample, StackId};

use crate::compression::{Encoding, decompress};
use crate::stacks::{StackBuilder, named};
use crate::{Decoded, Error, Export, Limits, Reason, Rejects, Subject, Upload};

const FORMAT: &str = "file of collapsed stacks";

/// Reads collapsed stacks, compressed or not. Lines without a value at their end are counted as rejects.
pub fn decode(bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    decode_by(bytes, upload, limits, read_line)
}

/// Reads stacks without values, one line each time a stack was seen, compressed or not.
pub fn decode_lines(bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    decode_by(bytes, upload, limits, |line| Some((line, 1)))
}

fn decode_by(bytes: &[u8], upload: &Upload, limits: &Limits, read_line: fn(&str) -> Option<(&str, i64)>) -> Result<Decoded, Error> {
    let bytes = decompress(Encoding::detect(bytes), bytes, limits.decoded_bytes_max)?;
    let text = std::str::from_utf8(&bytes).map_err(|e| Error::malformed(FORMAT, e))?;
    let mut decoded = Decoded::default();
    let mut builder = StackBuilder::new(limits);
    let mut samples = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() {
            continue;
        }
        match read_line(line) {
            _ if samples.len() >= limits.samples_per_profile_max => decoded.rejects.add(Subject::Sample, Reason::TooManySamples, || {
                format!("line {}: the limit is {} stacks", at + 1, limits.samples_per_profile_max)
            }),
            None => decoded.rejects.add(Subject::Sample, Reason::Malformed, || {
                format!("line {} is {line:?}, expected frames, a space and a whole number", at + 1)
            }),
            Some(line) => match read_stack(line, &mut builder, limits, &mut decoded.rejects) {
                Ok(sample) => samples.push(sample),
                Err(reason) => decoded
                    .rejects
                    .add(Subject::Sample, reason, || format!("line {}: {reason}", at + 1)),
            },
        }
    }
    if samples.is_empty() {
        return Err(Error::malformed(FORMAT, "no line ends in a space and a whole number"));
    }
    let info = upload.text_info();
    decoded.batch.profiles = vec![Profile { info, samples }];
    decoded.batch.stacks = builder.set;
    Ok(decoded)
}

/// Stack and value of a line.
fn read_line(line: &str) -> Option<(&str, i64)> {
    let (stack, value) = line.rsplit_once(char::is_whitespace)?;
    let stack = stack.trim_end();
    (!stack.is_empty()).then_some((stack, value.parse().ok()?))
}

fn read_stack(
    (stack, value): (&str, i64),
    builder: &mut StackBuilder<'_>,
    limits: &Limits,
    rejects: &mut Rejects,
) -> Result<Sample, Reason> {
    let names = stack.rsplit(';').take(limits.stack_depth_max + 1);
    let frames = names.map(|name| builder.name(name, rejects).and_then(|name| builder.add_frame(named(name))));
    let mut frames = frames.collect::<Result<Vec<_>, _>>()?;
    let stack = builder.add_stack(&mut frames, rejects)?;
    builder.budget.take(size_of::<Sample>())?;
    Ok(Sample {
        values: vec![value],
        ..Sample::new(stack)
    })
}

/// Writes the first value of every stack, in the order of the rows. An export without rows is empty text.
///
/// Stacks that differ only in lines, files or modules read the same here, so they are one line with their sum.
pub fn encode(export: &Export) -> String {
    let mut lines: Vec<(String, i64)> = Vec::new();
    let mut place: HashMap<String, usize> = HashMap::new();
    for row in &export.rows {
        let stack = stack_text(export, row.stack);
        let value = row.values.first().copied().unwrap_or(0);
        match place.get(&stack) {
            Some(at) => lines[*at].1 = lines[*at].1.saturating_add(value),
            None => {
                place.insert(stack.clone(), lines.len());
                lines.push((stack, value));
            }
        }
    }
    let mut out = String::new();
    for (stack, value) in lines {
        writeln!(out, "{stack} {value}").expect("writing to a string does not fail");
    }
    out
}

fn stack_text(export: &Export, stack: StackId) -> String {
    let frames = export.stacks.stack(stack).map(|frames| &frames[..]).unwrap_or_default();
    if frames.is_empty() {
        return "[unknown]".to_owned();
    }
    let mut text = String::new();
    for (at, id) in frames.iter().rev().enumerate() {
        if at > 0 {
            text.push(';');
        }
        let name = export
            .stacks
            .frame(*id)
            .map_or_else(|| "[unknown]".to_owned(), |frame| frame.display_name());
        text.extend(name.chars().map(harmless));
    }
    text
}

fn harmless(c: char) -> char {
    match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    }
}

/// Whether the text looks like collapsed stacks: its first lines end in a space and a whole number.
pub(crate) fn looks_like(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(5).peekable();
    lines.peek().is_some() && lines.any(|line| read_line(line.trim_end()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &str) -> Rejects {
        let decoded = decode(input.as_bytes(), &Upload::default(), &Limits::default()).expect("valid");
        let export = Export::of_profile(&decoded.batch.profiles[0], &decoded.batch.stacks);
        assert_eq!(encode(&export), expected);
        decoded.rejects
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        assert!(check("a;b;c 3\na;b 1\n", "a;b;c 3\na;b 1\n").is_empty());
        assert!(check("a;b 1\r\n\r\na 2\r\n", "a;b 1\na 2\n").is_empty());
        assert!(check("std::vec<int, 3>;operator new 7", "std::vec<int, 3>;operator new 7\n").is_empty());
    }

    #[test]
    fn lines_without_values_count_one_each() {
        let decoded = decode_lines(b"a;b\na;c 7\na;b\n", &Upload::default(), &Limits::default()).expect("valid");
        let export = Export::of_profile(&decoded.batch.profiles[0], &decoded.batch.stacks);
        assert_eq!(encode(&export), "a;b 2\na;c 7 1\n");
    }

    #[test]
    fn a_bad_line_costs_itself_only() {
        let rejects = check("a;b 1\nnothing here\n 5\na 2\n", "a;b 1\na 2\n");
        assert_eq!(rejects.samples(), 2);
    }

    #[test]
    fn separators_in_names_are_replaced() {
        let mut decoded = decode(b"x 1", &Upload::default(), &Limits::default()).expect("valid");
        let frame = decoded.batch.stacks.add_frame(named("a;b\nc"));
        let stack = decoded.batch.stacks.add_stack(&[frame]);
        decoded.batch.profiles[0].samples[0].stack = stack;
        let export = Export::of_profile(&decoded.batch.profiles[0], &decoded.batch.stacks);
        assert_eq!(encode(&export), "a:b c 1\n");
    }

    #[test]
    fn stacks_that_read_the_same_are_one_line() {
        let mut decoded = decode(b"x 1\ny 5\nx 2", &Upload::default(), &Limits::default()).expect("valid");
        let mut other_line = named("x");
        other_line.line = 7;
        let frame = decoded.batch.stacks.add_frame(other_line);
        let stack = decoded.batch.stacks.add_stack(&[frame]);
        decoded.batch.profiles[0].samples[2].stack = stack;
        let export = Export::of_profile(&decoded.batch.profiles[0], &decoded.batch.stacks);
        assert_eq!(encode(&export), "x 3\ny 5\n");
    }

    #[test]
    fn text_without_stacks_is_refused() {
        let error = decode(b"hello\nworld\n", &Upload::default(), &Limits::default()).expect_err("no stacks");
        assert!(error.to_string().contains("no line ends"), "{error}");
    }
}
