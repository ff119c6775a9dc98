//! The table of keys.

use super::Config;
use super::value::{
    read_ack, read_address, read_bool, read_bytes, read_count, read_duration, read_log_format, read_optional, read_origins, read_path,
    read_text, show_ack, show_address, show_bytes, show_duration, show_log_format, show_optional, show_path,
};

/// In what a setting is measured, and so how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `IP:PORT`.
    Address,
    /// A local path.
    Path,
    /// A local path or a URL.
    Place,
    /// A size, such as `64MiB`.
    Bytes,
    /// A size per second.
    BytesPerSecond,
    /// A length of time, such as `10s` or `14d`.
    Duration,
    /// A whole number.
    Count,
    /// `true` or `false`.
    Bool,
    /// One of a few words, or free text.
    Word,
    /// Values separated by commas; a list in the file.
    List,
}

impl Unit {
    /// What a help text shows in place of the value.
    pub fn placeholder(self) -> &'static str {
        match self {
            Unit::Address => "IP:PORT",
            Unit::Path => "PATH",
            Unit::Place => "DIR_OR_URL",
            Unit::Bytes => "BYTES",
            Unit::BytesPerSecond => "BYTES_PER_SECOND",
            Unit::Duration => "DURATION",
            Unit::Count => "COUNT",
            Unit::Bool => "BOOL",
            Unit::Word => "WORD",
            Unit::List => "LIST",
        }
    }
}

/// One setting: its name in the file; upper case after `SPANFLAME_` in the environment; with dashes as a flag.
pub struct Key {
    /// Lower case with underscores.
    pub name: &'static str,
    /// In what it is measured.
    pub unit: Unit,
    /// What it sets, one sentence.
    pub meaning: &'static str,
    /// What a larger and what a smaller value costs, or what each choice does.
    pub costs: &'static str,
    read: fn(&mut Config, &str) -> Result<(), String>,
    show: fn(&Config) -> String,
}

impl Key {
    /// The key of this name.
    pub fn find(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Its name as a flag, without the leading dashes.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Its name in the environment.
    pub fn variable(&self) -> String {
        format!("SPANFLAME_{}", self.name.to_ascii_uppercase())
    }

    /// Its value in `config`, as a flag would write it; `off` for one that is absent.
    pub fn show(&self, config: &Config) -> String {
        (self.show)(config)
    }

    /// Sets it; fails with what was expected.
    pub fn read(&self, config: &mut Config, text: &str) -> Result<(), String> {
        (self.read)(config, text)
    }

    pub(super) fn describe(&self, config: &Config, default: &Config) -> String {
        let (value, default) = (self.show(config), self.show(default));
        let comment = if value == default { "# " } else { "" };
        let text = toml::Value::String(value);
        format!(
            "\n# {}\n# {}\n# unit {}, default {default}, flag --{}, variable {}\n{comment}{} = {text}\n",
            self.meaning,
            self.costs,
            self.unit.placeholder(),
            self.flag(),
            self.variable(),
            self.name,
        )
    }
}

/// A row of the table; `$read` and `$show` convert the field of the key's name.
macro_rules! key {
    ($field:ident, $unit:ident, $read:expr, $show:expr, $meaning:literal, $costs:literal) => {
        Key {
            name: stringify!($field),
            unit: Unit::$unit,
            meaning: $meaning,
            costs: $costs,
            read: |config, text| {
                config.$field = $read(text)?;
                Ok(())
            },
            show: |config| $show(config.$field.clone()),
        }
    };
}

/// Every key, in the order of the documentation.
#[rustfmt::skip]
pub(super) static KEYS: &[Key] = &[
    key!(data, Place, read_text, |s: String| s,
        "Where the tables lie: a local directory or a URL (s3://, gs://, az://, file://).",
        "One process holds a directory at a time; a URL needs wal set."),
    key!(wal, Path, |t: &str| read_optional(t, read_path), |v| show_optional(v, show_path),
        "Directory of the write-ahead log; off: inside a local data directory.",
        "A disk of its own makes acknowledgements steadier; losing it loses what was not flushed yet."),
    key!(http, Address, read_address, show_address,
        "Address of the API, of OTLP over HTTP and gRPC, and of the other dialects, on one port.",
        "An address beyond loopback lets other machines read and write everything: there is no authentication yet."),
    key!(otlp_grpc, Address, read_address, show_address,
        "Address of OTLP over gRPC.",
        "As for http."),
    key!(otlp_http, Address, read_address, show_address,
        "Address of OTLP over HTTP.",
        "As for http."),
    key!(tempo_http, Address, |t: &str| read_optional(t, read_address), |v| show_optional(v, show_address),
        "Address of Tempo's API at the root, over HTTP and streaming gRPC (customarily 127.0.0.1:3200); off: only under /tempo of http.",
        "As for http."),
    key!(jaeger_http, Address, |t: &str| read_optional(t, read_address), |v| show_optional(v, show_address),
        "Address of Jaeger's query API at the root (customarily 127.0.0.1:16686); off: only under /jaeger of http.",
        "As for http."),
    key!(zipkin_http, Address, |t: &str| read_optional(t, read_address), |v| show_optional(v, show_address),
        "Address of Zipkin's collector (customarily 127.0.0.1:9411); off: only on http.",
        "As for http."),
    key!(jaeger_grpc, Address, |t: &str| read_optional(t, read_address), |v| show_optional(v, show_address),
        "Address of Jaeger's collector over gRPC (customarily 127.0.0.1:14250); off: not served.",
        "As for http."),
    key!(jaeger_thrift_http, Address, |t: &str| read_optional(t, read_address), |v| show_optional(v, show_address),
        "Address of Jaeger's collector for Thrift over HTTP (customarily 127.0.0.1:14268); off: not served.",
        "As for http."),
    key!(jaeger_thrift_udp, Address, |t: &str| read_optional(t, read_address), |v| show_optional(v, show_address),
        "Address of Jaeger's agent for compact Thrift over UDP (customarily 127.0.0.1:6831); off: not served.",
        "As for http; a datagram that is lost is lost without a word."),
    key!(ready_file, Path, |t: &str| read_optional(t, read_path), |v| show_optional(v, show_path),
        "Written with the bound addresses as JSON when the server is ready, removed when it stops.",
        "off writes nothing; a file lets scripts wait for port 0."),
    key!(ack, Word, read_ack, show_ack,
        "When a request is acknowledged: wal (in the synced log) or flush (committed to the tables).",
        "flush survives the loss of the log's disk and makes every request wait for up to flush_interval."),
    key!(flush_interval, Duration, read_duration, show_duration,
        "Rows wait in memory at most this long before they are written to table files.",
        "Larger: fewer small files, a longer log to replay. Smaller: more files to merge."),
    key!(flush_bytes, Bytes, read_bytes, show_bytes,
        "Memory is flushed early when it holds this much.",
        "Larger: more memory, fewer files. Smaller: more files to merge."),
    key!(head_bytes_max, Bytes, read_bytes, show_bytes,
        "Appends are refused as busy when unflushed data holds this much.",
        "Larger: longer bursts are taken, more memory. Smaller: clients are told to retry sooner."),
    key!(recognition, Duration, read_duration, show_duration,
        "How far back equal spans and profiles are recognised as sent twice, by arrival.",
        "Larger: later retries are caught, about 20 bytes of memory per span and profile. Smaller: retries slip through until compaction."),
    key!(grace, Duration, read_duration, show_duration,
        "Replaced table files are deleted this long after they were replaced.",
        "Larger: more disk. Smaller: a query that runs longer fails."),
    key!(retention_raw, Duration, read_duration, show_duration,
        "How long spans and samples are kept, by arrival.",
        "Larger: more disk. Smaller: single requests can be explained for a shorter time."),
    key!(retention_rollup, Duration, read_duration, show_duration,
        "How long rollups by service and minute are kept, by arrival.",
        "Larger: more disk, little. Smaller: shorter comparisons of deployments."),
    key!(size_bytes_max, Bytes, |t: &str| read_optional(t, read_bytes), |v| show_optional(v, show_bytes),
        "Oldest days are dropped first when the tables hold more than this.",
        "off: only age limits them. Smaller: data may go before its retention is over; the log says so."),
    key!(request_bytes_max, Bytes, read_bytes, show_bytes,
        "Largest request, before and after decompression.",
        "Larger: one request may take several times this much memory. Smaller: agents that batch much are refused."),
    key!(in_flight_bytes_max, Bytes, read_bytes, show_bytes,
        "Requests that arrive while this many bytes of others are being taken in are refused as busy.",
        "Larger: more memory under load. Smaller: clients are told to retry sooner."),
    key!(rate_bytes_per_second, BytesPerSecond, |t: &str| read_optional(t, read_bytes), |v| show_optional(v, show_bytes),
        "Decompressed bytes that one tenant may send in a second, with bursts of one second.",
        "off: no limit. Smaller: more requests are answered with 429 and a time to wait."),
    key!(stack_depth_max, Count, read_count, |n: u64| n.to_string(),
        "Longest stack in frames; what lies deeper is cut and counted.",
        "Larger: endless recursion costs memory. Smaller: deep stacks lose their roots."),
    key!(strings_max, Count, read_count, |n: u64| n.to_string(),
        "Most strings in the tables of one request.",
        "Larger: more memory for one request. Smaller: large profiles are refused."),
    key!(table_entries_max, Count, read_count, |n: u64| n.to_string(),
        "Most entries in any other table of one request (functions, locations, stacks, ...).",
        "As for strings_max."),
    key!(past_max, Duration, |t: &str| read_optional(t, read_duration), |v| show_optional(v, show_duration),
        "Spans and profiles that ended longer ago than this are refused and counted.",
        "off: any time is taken. Smaller: replays and broken clocks are kept out."),
    key!(future_max, Duration, |t: &str| read_optional(t, read_duration), |v| show_optional(v, show_duration),
        "Spans and profiles that begin further in the future than this are refused and counted.",
        "As for past_max."),
    key!(cors_origins, List, read_origins, |v: Vec<String>| v.join(","),
        "Origins whose pages may send OTLP over HTTP and ask the API; * is any.",
        "Empty: no page of another origin may. *: every page a user opens may."),
    key!(own_telemetry, Bool, read_bool, |b: bool| b.to_string(),
        "Whether the server keeps its own traces and profiles in the tenant spanflame.",
        "true costs under one percent of CPU and some disk; false leaves a slow server unexplained."),
    key!(log_level, Word, read_text, |s: String| s,
        "What is logged: error, warn, info, debug, trace, or a filter such as info,spanflame_store=debug.",
        "More: larger logs. Less: nothing to look at when something is wrong."),
    key!(log_format, Word, read_log_format, show_log_format,
        "How it is logged: text or json.",
        "json is for machines, text for people."),
    key!(shutdown_timeout, Duration, read_duration, show_duration,
        "How long a shutdown waits for requests in flight and for the last flush.",
        "Larger: a stuck client delays the end. Smaller: requests are cut off; nothing acknowledged is lost either way."),
];
