//! The text that `perf script` prints: a header a sample, then a line a frame, leaf first.
//!
//! ```text
//! java 25607/25608 [003] 4794564.109216:     250000 cycles:ppp:
//!         7f5113a7b8a4 __memmove_avx_unaligned+0x54 (/usr/lib64/libc-2.17.so)
//!         7f51130f2c3e jbd2_journal_start (/opt/java/libjvm.so)
//! ```
//!
//! One event is one profile. Clocks (`cpu-clock`, `task-clock`) count nanoseconds of CPU, other events
//! themselves. Equal stacks of one thread are one sample with a time per observation. Times are those of
//! the machine's uptime, so they are kept as distances from the first, beginning at the upload's time.

use std::collections::HashMap;
use std::sync::Arc;

use spanflame_model::{Frame, Profile, ProfileInfo, Sample, StackId, Timestamp, ValueType};

use crate::compression::{Encoding, decompress};
use crate::stacks::StackBuilder;
use crate::{Decoded, Error, Limits, Reason, Rejects, Subject, Upload};

const FORMAT: &str = "perf script output";
/// How many different events one file may hold.
const EVENTS_MAX: usize = 64;
/// What stands for a symbol or a module that perf could not tell.
const UNKNOWN: &str = "[unknown]";
/// What stands in the module's place for a function inlined into the next frame.
const INLINED: &str = "inlined";

/// Reads the text of `perf script`, compressed or not.
pub fn decode(bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    let bytes = decompress(Encoding::detect(bytes), bytes, limits.decoded_bytes_max)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut reader = ScriptReader {
        upload,
        limits,
        origin_ns: None,
        events: Vec::new(),
        builder: StackBuilder::new(limits),
        rejects: Rejects::new(),
    };
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(header) = Header::read(line) else {
            reader.rejects.add(Subject::Sample, Reason::Malformed, || {
                format!("line {} is {line:?}, expected `command pid time: event:`", at + 1)
            });
            continue;
        };
        let mut stack: Vec<&str> = Vec::new();
        stack.extend((!header.rest.is_empty()).then_some(header.rest));
        while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with([' ', '\t']) && !line.trim().is_empty()) {
            // Beyond the limit it only has to be known that there are more.
            if stack.len() <= limits.stack_depth_max {
                stack.push(line.trim());
            }
        }
        if let Err(reason) = reader.add(&header, &stack) {
            reader
                .rejects
                .add(Subject::Sample, reason, || format!("the sample at line {}: {reason}", at + 1));
        }
    }
    reader.finish()
}

/// Whether the first line that is no comment is a sample's header.
pub(crate) fn looks_like(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| Header::read(line).is_some())
}

/// The first line of a sample.
#[derive(Debug, PartialEq, Eq)]
struct Header<'a> {
    command: &'a str,
    pid: Option<i64>,
    tid: i64,
    time_ns: u64,
    /// How many events the sample stands for, where perf says it.
    count: Option<i64>,
    event: &'a str,
    /// The frame on the same line, where perf recorded no call chain.
    rest: &'a str,
}

impl<'a> Header<'a> {
    /// Reads `command pid[/tid] [cpu] time: [count] event: [frame]`; the command may hold spaces.
    fn read(line: &'a str) -> Option<Header<'a>> {
        if line.starts_with([' ', '\t']) {
            return None;
        }
        let words = Words::of(line);
        let time_at = words.iter().position(|(_, word)| time_ns(word).is_some())?;
        let id_at = match words.get(time_at.checked_sub(1)?)?.1.starts_with('[') {
            true => time_at.checked_sub(2)?,
            false => time_at - 1,
        };
        let (pid, tid) = match words[id_at].1.split_once('/') {
            Some((pid, tid)) => (Some(pid.parse().ok()?), tid.parse().ok()?),
            None => (None, words[id_at].1.parse().ok()?),
        };
        let count = words.get(time_at + 1).and_then(|(_, word)| word.parse().ok());
        let event_at = time_at + 1 + usize::from(count.is_some());
        let (start, event) = words.get(event_at)?;
        let event_name = event.strip_suffix(':')?;
        Some(Header {
            command: line[..words[id_at].0].trim(),
            pid,
            tid,
            time_ns: time_ns(words[time_at].1)?,
            count,
            event: without_modifiers(event_name),
            rest: line[start + event.len()..].trim(),
        })
    }
}

/// Words of a line with where they begin.
struct Words;

impl Words {
    /// A header has few words; of a longer line the rest is a frame.
    const MAX: usize = 64;

    fn of(line: &str) -> Vec<(usize, &str)> {
        let words = line.split_ascii_whitespace().take(Words::MAX);
        words.map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word)).collect()
    }
}

/// Seconds with a fraction, and a colon.
fn time_ns(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(seconds) || !is_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let nanos = fraction.parse::<u64>().ok()? * scale;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// `cycles` of `cycles:ppp`; the colon of `sched:sched_switch` stays.
fn without_modifiers(event: &str) -> &str {
    match event.rsplit_once(':') {
        Some((name, modifiers)) if modifiers.bytes().all(|b| b"ukhGHpPSDIWe".contains(&b)) => name,
        _ => event,
    }
}

/// The samples of one event, by what makes them equal.
struct Event {
    name: String,
    first_count: Option<i64>,
    samples: Vec<Sample>,
    index: HashMap<(StackId, i64, String), usize>,
}

struct ScriptReader<'a> {
    upload: &'a Upload,
    limits: &'a Limits,
    /// The first time seen.
    origin_ns: Option<u64>,
    events: Vec<Event>,
    builder: StackBuilder<'a>,
    rejects: Rejects,
}

impl ScriptReader<'_> {
    fn add(&mut self, header: &Header<'_>, lines: &[&str]) -> Result<(), Reason> {
        let stack = self.stack(lines)?;
        self.builder.budget.take(size_of::<Sample>() + header.command.len())?;
        let origin = *self.origin_ns.get_or_insert(header.time_ns);
        let start = self.upload.time.unwrap_or_default();
        let time = match header.time_ns.checked_sub(origin) {
            Some(later) => start.saturating_add(later),
            None => start.saturating_sub(origin - header.time_ns),
        };
        let event = self.event(header)?;
        let event = &mut self.events[event];
        let key = (stack, header.tid, header.command.to_owned());
        let at = *event.index.entry(key).or_insert_with(|| {
            event.samples.push(Sample {
                thread_id: Some(header.tid),
                thread_name: Some(header.command.to_owned()),
                pid: header.pid,
                ..Sample::new(stack)
            });
            event.samples.len() - 1
        });
        let sample = &mut event.samples[at];
        sample.times.push(time);
        if event.first_count.is_some() {
            sample.values.push(header.count.unwrap_or(0));
        }
        Ok(())
    }

    /// The event's position.
    fn event(&mut self, header: &Header<'_>) -> Result<usize, Reason> {
        if let Some(at) = self.events.iter().position(|event| event.name == header.event) {
            return Ok(at);
        }
        if self.events.len() >= EVENTS_MAX {
            return Err(Reason::TooManyEvents);
        }
        self.events.push(Event {
            name: header.event.to_owned(),
            first_count: header.count,
            samples: Vec::new(),
            index: HashMap::new(),
        });
        Ok(self.events.len() - 1)
    }

    fn stack(&mut self, lines: &[&str]) -> Result<StackId, Reason> {
        let mut frames: Vec<Frame> = Vec::with_capacity(lines.len().min(self.limits.stack_depth_max));
        for line in lines.iter().take(self.limits.stack_depth_max + 1) {
            frames.push(self.frame(line)?);
        }
        // An inlined function lies in the module of the one it was inlined into.
        for at in (0..frames.len().saturating_sub(1)).rev() {
            if frames[at].inlined {
                frames[at].module = frames[at + 1].module.clone();
                frames[at].kind = frames[at + 1].kind.clone();
            }
        }
        let ids = frames.into_iter().map(|frame| self.builder.add_frame(frame));
        let mut ids = ids.collect::<Result<Vec<_>, _>>()?;
        self.builder.add_stack(&mut ids, &mut self.rejects)
    }

    /// Reads `address symbol[+0xoffset] (module)`.
    fn frame(&mut self, line: &str) -> Result<Frame, Reason> {
        let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
        let address = u64::from_str_radix(address, 16).ok();
        let (symbol, module) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            Some((symbol, module)) => (symbol.trim(), module),
            None => (rest.trim(), ""),
        };
        let symbol = match symbol.rsplit_once("+0x") {
            Some((name, offset)) if offset.bytes().all(|b| b.is_ascii_hexdigit()) => name,
            _ => symbol,
        };
        let inlined = module == INLINED;
        let mut frame = Frame {
            inlined,
            ..Frame::default()
        };
        if symbol != UNKNOWN {
            frame.function = self.builder.name(symbol, &mut self.rejects)?;
        }
        if frame.is_unresolved() {
            frame.address = address;
        }
        if module != UNKNOWN && !inlined {
            frame.module = self.builder.name(module, &mut self.rejects)?;
        }
        if module.starts_with("[kernel") || module.starts_with("[guest.kernel") {
            frame.kind = "kernel".to_owned();
        }
        Ok(frame)
    }

    fn finish(mut self) -> Result<Decoded, Error> {
        if self.events.is_empty() {
            return Err(Error::malformed(FORMAT, "it holds no line `command pid time: event:`"));
        }
        let mut decoded = Decoded::default();
        for event in std::mem::take(&mut self.events) {
            let info = Arc::new(self.info(&event));
            let mut samples = event.samples;
            samples.iter_mut().for_each(sort_times);
            decoded.batch.profiles.push(Profile { info, samples });
        }
        decoded.batch.stacks = self.builder.set;
        decoded.rejects = self.rejects;
        Ok(decoded)
    }

    fn info(&self, event: &Event) -> ProfileInfo {
        let own_type = match (event.name.as_str(), event.first_count) {
            ("cpu-clock" | "task-clock", Some(_)) => ValueType::new("cpu", "nanoseconds"),
            (_, None) => ValueType::new("samples", "count"),
            (name, Some(_)) => ValueType::new(name, "count"),
        };
        let period_type = self.upload.period_type.clone().unwrap_or_else(|| own_type.clone());
        let times = || event.samples.iter().flat_map(|s| &s.times);
        let start = times().min().copied().unwrap_or(Timestamp::ZERO);
        let end = times().max().copied().unwrap_or(start);
        let mut info = ProfileInfo::clone(&self.upload.text_info());
        info.types = vec![self.upload.value_type.clone().unwrap_or(own_type)];
        info.period_type = period_type;
        info.period = match self.upload.period {
            0 => event.first_count.unwrap_or(0),
            period => period,
        };
        info.start = start;
        info.duration_ns = end.nanos_since(start) + 1;
        info
    }
}

/// perf prints by time only within a CPU's buffer.
fn sort_times(sample: &mut Sample) {
    if sample.times.is_sorted() {
        return;
    }
    if sample.values.is_empty() {
        sample.times.sort_unstable();
        return;
    }
    let mut pairs: Vec<(Timestamp, i64)> = sample.times.iter().copied().zip(sample.values.iter().copied()).collect();
    pairs.sort_by_key(|(time, _)| *time);
    (sample.times, sample.values) = pairs.into_iter().unzip();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command, thread, time, count, event and the rest of the line.
    type Parts<'a> = (&'a str, i64, u64, Option<i64>, &'a str, &'a str);

    fn check_header(line: &str, expected: Option<Parts<'_>>) {
        let found = Header::read(line);
        let found = found.as_ref().map(|h| (h.command, h.tid, h.time_ns, h.count, h.event, h.rest));
        assert_eq!(found, expected);
    }

    #[test]
    fn headers_are_read_in_every_form() {
        check_header(
            "java 25607/25608 [003] 4794564.109216:     250000 cycles:ppp:",
            Some(("java", 25608, 4_794_564_109_216_000, Some(250_000), "cycles", "")),
        );
        check_header(
            "lto cgu.05  12 10.5: sched:sched_switch: ffff __schedule ([kernel.kallsyms])",
            Some((
                "lto cgu.05",
                12,
                10_500_000_000,
                None,
                "sched:sched_switch",
                "ffff __schedule ([kernel.kallsyms])",
            )),
        );
        check_header("  7f5113a7b8a4 main (/bin/x)", None);
        check_header("a;b 12", None);
    }

    #[test]
    fn inlined_frames_take_the_module_of_the_next() {
        let text = "x 1 1.0: 10 cpu-clock:\n\t1 leaf (inlined)\n\t1 outer+0x4 (/bin/x)\n\t2 [unknown] ([unknown])\n\n";
        let decoded = decode(text.as_bytes(), &Upload::default(), &Limits::default()).expect("valid");
        let stacks = &decoded.batch.stacks;
        let sample = &decoded.batch.profiles[0].samples[0];
        let frames: Vec<&Frame> = stacks
            .stack(sample.stack)
            .expect("there")
            .iter()
            .map(|id| &**stacks.frame(*id).expect("there"))
            .collect();
        let texts: Vec<_> = frames.iter().map(|f| (f.display_name(), f.module.as_str(), f.inlined)).collect();
        let expected = [
            ("leaf".to_owned(), "/bin/x", true),
            ("outer".to_owned(), "/bin/x", false),
            ("0x2".to_owned(), "", false),
        ];
        assert_eq!(texts, expected);
        assert_eq!(sample.values, [10]);
    }
}
