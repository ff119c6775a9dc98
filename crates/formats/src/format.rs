//! Formats by name and by look.

use std::fmt;

use prost::Message;

use crate::compression::{Encoding, decompress};
use crate::pyroscope::trie;
use crate::wire::{Reader, Wire};
use crate::{Decoded, Error, Export, Limits, Upload, collapsed, jfr, otlp, perf_script, pprof, speedscope};

/// A file format that can be read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// pprof, gzip or plain.
    Pprof,
    /// Collapsed stacks.
    Collapsed,
    /// A recording of the JVM's Flight Recorder.
    Jfr,
    /// Stacks without values, one line each time a stack was seen.
    Lines,
    /// A binary trie of stacks from an older agent of Pyroscope.
    Trie,
    /// A binary tree of stacks from an older agent of Pyroscope.
    Tree,
    /// The text of `perf script`.
    PerfScript,
    /// speedscope's JSON.
    Speedscope,
    /// An OTLP profiles request in protobuf.
    OtlpProfiles,
    /// An OTLP profiles request in JSON.
    OtlpProfilesJson,
    /// An OTLP trace request in protobuf.
    OtlpTraces,
    /// An OTLP trace request in JSON.
    OtlpTracesJson,
}

/// How much of a file is looked at to tell its format.
const DETECT_BYTES_MAX: usize = 1 << 20;

impl Format {
    /// Every format.
    pub const ALL: [Format; 12] = [
        Format::Pprof,
        Format::Collapsed,
        Format::Jfr,
        Format::Lines,
        Format::Trie,
        Format::Tree,
        Format::PerfScript,
        Format::Speedscope,
        Format::OtlpProfiles,
        Format::OtlpProfilesJson,
        Format::OtlpTraces,
        Format::OtlpTracesJson,
    ];

    /// Whether it holds profiles, and not traces.
    pub fn is_profile(self) -> bool {
        !matches!(self, Format::OtlpTraces | Format::OtlpTracesJson)
    }

    /// The names of the formats that hold profiles, for texts.
    pub fn profile_names() -> String {
        let names = Format::ALL.into_iter().filter(|format| format.is_profile()).map(Format::as_str);
        names.collect::<Vec<_>>().join(", ")
    }

    /// The name used in the API and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Pprof => "pprof",
            Format::Collapsed => "collapsed",
            Format::Jfr => "jfr",
            Format::Lines => "lines",
            Format::Trie => "trie",
            Format::Tree => "tree",
            Format::PerfScript => "perf-script",
            Format::Speedscope => "speedscope",
            Format::OtlpProfiles => "otlp-profiles",
            Format::OtlpProfilesJson => "otlp-profiles-json",
            Format::OtlpTraces => "otlp-traces",
            Format::OtlpTracesJson => "otlp-traces-json",
        }
    }

    /// The format of a name, by any spelling in use.
    pub fn from_name(name: &str) -> Result<Format, Error> {
        let normal = name.trim().to_ascii_lowercase().replace('_', "-");
        let by_name = Format::ALL.into_iter().find(|format| format.as_str() == normal);
        by_name.map_or_else(|| by_alias(&normal).ok_or_else(|| unknown(name)), Ok)
    }

    /// The format of a file by its content, and by its name where several fit.
    pub fn detect(bytes: &[u8], file_name: &str) -> Result<Format, Error> {
        let plain = head(bytes)?;
        if jfr::looks_like(&plain) {
            return Ok(Format::Jfr);
        }
        // The legacy format of gperftools is not read: the decoder of its successor says so.
        if pprof::is_legacy(&plain) {
            return Ok(Format::Pprof);
        }
        let text = text_of(&plain);
        match text.trim_start().as_bytes().first() {
            Some(b'{') => detect_json(text).ok_or_else(|| unknown(file_name)),
            Some(_) if perf_script::looks_like(text) => Ok(Format::PerfScript),
            Some(_) if text.len() == plain.len() && collapsed::looks_like(text) => Ok(Format::Collapsed),
            _ => detect_binary(&plain, file_name).ok_or_else(|| unknown(file_name)),
        }
    }

    /// Reads a file in this format. OTLP says itself what `upload` says for others.
    pub fn decode(self, bytes: &[u8], upload: &Upload, limits: &Limits) -> Result<Decoded, Error> {
        let plain = || decompress(Encoding::detect(bytes), bytes, limits.decoded_bytes_max);
        match self {
            Format::Pprof => pprof::decode(bytes, upload, limits),
            Format::Collapsed => collapsed::decode(bytes, upload, limits),
            Format::Jfr => jfr::decode(bytes, upload, limits),
            Format::Lines => collapsed::decode_lines(bytes, upload, limits),
            Format::Trie => trie::decode_trie(bytes, upload, limits),
            Format::Tree => trie::decode_tree(bytes, upload, limits),
            Format::PerfScript => perf_script::decode(bytes, upload, limits),
            Format::Speedscope => speedscope::decode(bytes, upload, limits),
            Format::OtlpProfiles => otlp::profiles::decode_protobuf(&plain()?, limits),
            Format::OtlpProfilesJson => otlp::profiles::decode_json(&plain()?, limits),
            Format::OtlpTraces => otlp::traces::decode_protobuf(&plain()?, limits),
            Format::OtlpTracesJson => otlp::traces::decode_json(&plain()?, limits),
        }
    }

    /// Writes an export in this format; `None` for formats that an export cannot be written in.
    pub fn encode(self, export: &Export) -> Option<Vec<u8>> {
        match self {
            Format::Pprof => Some(pprof::encode(export)),
            Format::Collapsed => Some(collapsed::encode(export).into_bytes()),
            Format::Speedscope => Some(speedscope::encode(export).into_bytes()),
            Format::OtlpProfiles => Some(otlp::profiles::encode(&export.to_batch()).encode_to_vec()),
            Format::Jfr | Format::Lines | Format::Trie | Format::Tree | Format::PerfScript => None,
            Format::OtlpProfilesJson | Format::OtlpTraces | Format::OtlpTracesJson => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn by_alias(name: &str) -> Option<Format> {
    Some(match name {
        "folded" | "groups" | "txt" => Format::Collapsed,
        "perf" => Format::PerfScript,
        "otlp" | "otlp-profile" => Format::OtlpProfiles,
        "otlp-json" => Format::OtlpProfilesJson,
        "traces" | "otlp-trace" => Format::OtlpTraces,
        "traces-json" => Format::OtlpTracesJson,
        _ => return None,
    })
}

fn unknown(name: &str) -> Error {
    Error::UnknownFormat {
        file_name: name.chars().take(200).collect(),
        known: Format::profile_names(),
    }
}

/// The content, decompressed as far as it has to be looked at.
fn head(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    use std::io::Read;

    let mut out = Vec::new();
    let mut read = |reader: &mut dyn Read| reader.take(DETECT_BYTES_MAX as u64).read_to_end(&mut out);
    let encoding = Encoding::detect(bytes);
    let result = match encoding {
        Encoding::Identity => read(&mut &bytes[..bytes.len().min(DETECT_BYTES_MAX)]),
        Encoding::Gzip => read(&mut flate2::read::MultiGzDecoder::new(bytes)),
        Encoding::Zstd => zstd::stream::read::Decoder::with_buffer(bytes).and_then(|mut decoder| read(&mut decoder)),
    };
    match result {
        Ok(_) => Ok(out),
        Err(source) => Err(Error::Compression {
            encoding: encoding.as_str(),
            source,
        }),
    }
}

/// The text at the beginning.
fn text_of(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A cut in the middle of a character is no fault of the text.
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

fn detect_json(text: &str) -> Option<Format> {
    let has = |key: &str| text.contains(key);
    if has("resourceSpans") || has("resource_spans") {
        Some(Format::OtlpTracesJson)
    } else if has("resourceProfiles") || has("resource_profiles") {
        Some(Format::OtlpProfilesJson)
    } else if has("speedscope") {
        Some(Format::Speedscope)
    } else {
        None
    }
}

fn detect_binary(bytes: &[u8], file_name: &str) -> Option<Format> {
    if pprof::looks_like(bytes) {
        return Some(Format::Pprof);
    }
    let mut fields = Reader::new(bytes);
    let (mut first, mut has_dictionary) = (false, false);
    while let Ok(Some((field, wire))) = fields.next() {
        match (field, wire) {
            (1, Wire::Bytes(_)) => first = true,
            (2, Wire::Bytes(_)) => has_dictionary = true,
            _ => return by_extension(file_name),
        }
    }
    match (first, has_dictionary) {
        (_, true) => Some(Format::OtlpProfiles),
        (true, false) => by_extension(file_name).or(Some(Format::OtlpTraces)),
        (false, false) => by_extension(file_name),
    }
}

fn by_extension(file_name: &str) -> Option<Format> {
    let name = file_name.to_ascii_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    match name.rsplit_once('.')?.1 {
        "pprof" | "prof" | "pb" => Some(Format::Pprof),
        "otlp" => Some(Format::OtlpProfiles),
        _ => None,
    }
}
