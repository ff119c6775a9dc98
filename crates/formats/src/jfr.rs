//! JFR: recordings of the JVM's Flight Recorder, as the JDK, async-profiler and its forks write them.
//!
//! ```text
//! file = chunk* ; chunk = header, events; two of the events are tables:
//!   metadata: the fields of every type          constant pools: stacks, methods, classes, threads by key
//! ```
//!
//! A chunk stands for itself and describes itself, so nothing but the names of a few types and fields is known here
//! (`events.rs` lists them). Each kind of event becomes a profile of its own:
//!
//! | event | profile type |
//! |---|---|
//! | `jdk.ExecutionSample`, `datadog.ExecutionSample` | `process_cpu:samples:count:cpu:nanoseconds` |
//! | the same of a recording of wall-clock time, `profiler.WallClockSample`, `datadog.MethodSample` | `wall:wall:nanoseconds:wall:nanoseconds` |
//! | `jdk.ObjectAllocationInNewTLAB` | `memory:alloc_in_new_tlab_objects:count`, `..bytes:bytes` |
//! | `jdk.ObjectAllocationOutsideTLAB` | `memory:alloc_outside_tlab_objects:count`, `..bytes:bytes` |
//! | `jdk.ObjectAllocationSample` | `memory:alloc_sample_objects:count`, `..bytes:bytes` |
//! | `profiler.LiveObject` | `memory:live:count` |
//! | `jdk.JavaMonitorEnter` | `mutex:contentions:count`, `mutex:delay:nanoseconds` |
//! | `jdk.ThreadPark` | `block:contentions:count`, `block:delay:nanoseconds` |
//!
//! The forks of async-profiler add `spanId` (signed), `traceIdHi`, `traceIdLo`, `spanName` and `contextId` to events; the
//! last two are numbers that a second file, the labels, spells out (`labels.rs`).
//!
//! Not read: JFR's own statistics, settings beyond the sampling period, system properties.

mod chunk;
mod cursor;
mod events;
mod labels;
mod metadata;
mod pools;
mod profiles;
mod symbols;
mod value;

use self::chunk::Chunk;
use self::labels::Labels;
use self::profiles::Collector;
use crate::compression::{Encoding, decompress};
use crate::{Decoded, Error, Limits, Reason, Subject, Upload};

const FORMAT: &str = "JFR file";

/// Whether the bytes begin as a chunk does.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    bytes.starts_with(chunk::MAGIC)
}

/// Reads a recording, compressed or not.
///
/// Events know their own time, so `time` and `duration_ns` of `upload` are not used; `period`, in nanoseconds, is where
/// the recording does not say how far apart samples lie.
pub fn decode(bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    decode_with_labels(bytes, &[], upload, limits)
}

/// Reads a recording with the file of labels that belongs to it, each compressed or not. Labels that cannot be read are
/// counted, and the recording is kept.
pub fn decode_with_labels(bytes: &[u8], labels: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
    let bytes = decompress(Encoding::detect(bytes), bytes, limits.decoded_bytes_max)?;
    let mut collector = Collector::new(upload, limits);
    let labels = Labels::read(labels, limits).unwrap_or_else(|error| {
        collector.rejects.add(Subject::Detail, Reason::Malformed, || error.to_string());
        Labels::default()
    });
    let mut rest = &bytes[..];
    let mut index = 0;
    while !rest.is_empty() {
        let chunk = Chunk::split(&mut rest).and_then(|chunk| events::read(&chunk, &labels, &mut collector));
        match chunk {
            Ok(()) => {}
            Err(error) if collector.is_empty() => return Err(error),
            Err(error) => {
                // Where a chunk ends is in its header, so after a broken one nothing is certain.
                collector
                    .rejects
                    .add(Subject::Profile, Reason::Malformed, || format!("chunk {index}: {error}"));
                break;
            }
        }
        index += 1;
    }
    if index == 0 {
        return Err(Error::malformed(FORMAT, "it has no chunk"));
    }
    Ok(collector.finish())
}
