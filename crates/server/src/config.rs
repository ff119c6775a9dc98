//! The settings of a server: one table of keys drives file, environment and flags.
//!
//! [`Config`] is a plain struct. [`Key`] rows say how each setting is called, what it means, its unit, and
//! what a larger or smaller value costs; [`Config::load`] reads the three sources by those rows, flags over
//! environment over file, and reports every mistake at once. Nothing here opens a file or asks the
//! environment: the caller hands in what it read.

mod keys;
mod source;
mod value;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use spanflame_store::{Ack, StoreOptions};

pub use keys::{Key, Unit};
pub use source::{Mistake, Mistakes, Origin, Sources};

/// The settings of `spanflame serve`. `Default` is what it uses without flags.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where the tables lie: a local directory or an `object_store` URL.
    pub data: String,
    /// Where the write-ahead log lies; `None` is inside the data directory.
    pub wal: Option<PathBuf>,
    /// Address of everything over HTTP, and of OTLP over gRPC.
    pub http: SocketAddr,
    /// Address of OTLP over gRPC.
    pub otlp_grpc: SocketAddr,
    /// Address of OTLP over HTTP.
    pub otlp_http: SocketAddr,
    /// Address of Tempo's API at the root, HTTP and streaming gRPC; `None` is not served apart.
    pub tempo_http: Option<SocketAddr>,
    /// Address of Jaeger's query API at the root; `None` is not served apart.
    pub jaeger_http: Option<SocketAddr>,
    /// Address of Zipkin's collector; `None` is not served apart.
    pub zipkin_http: Option<SocketAddr>,
    /// Address of Jaeger's collector over gRPC; `None` is not served.
    pub jaeger_grpc: Option<SocketAddr>,
    /// Address of Jaeger's collector for Thrift over HTTP; `None` is not served.
    pub jaeger_thrift_http: Option<SocketAddr>,
    /// Address of Jaeger's agent for compact Thrift over UDP; `None` is not served.
    pub jaeger_thrift_udp: Option<SocketAddr>,
    /// Written with the bound addresses when the server is ready.
    pub ready_file: Option<PathBuf>,
    /// When an append is acknowledged.
    pub ack: Ack,
    /// Rows wait in memory at most this long.
    pub flush_interval: Duration,
    /// The head is flushed early at this size.
    pub flush_bytes: u64,
    /// Appends are refused as busy at this size of the head.
    pub head_bytes_max: u64,
    /// How far back equal spans and profiles are recognised.
    pub recognition: Duration,
    /// Replaced files are deleted this long after they were replaced.
    pub grace: Duration,
    /// How long spans and samples are kept.
    pub retention_raw: Duration,
    /// How long rollups are kept.
    pub retention_rollup: Duration,
    /// Oldest days are dropped above this size of all tables; `None` is no limit.
    pub size_bytes_max: Option<u64>,
    /// Largest request, before and after decompression.
    pub request_bytes_max: u64,
    /// Bytes of requests in memory at one time; more are refused as busy.
    pub in_flight_bytes_max: u64,
    /// Decompressed bytes a tenant may send in a second; `None` is no limit.
    pub rate_bytes_per_second: Option<u64>,
    /// Longest stack; deeper frames are cut at the root's side.
    pub stack_depth_max: u64,
    /// Most strings in the tables of one request.
    pub strings_max: u64,
    /// Most entries in any other table of one request.
    pub table_entries_max: u64,
    /// Spans and profiles that ended longer ago are refused; `None` takes any.
    pub past_max: Option<Duration>,
    /// Spans and profiles that begin further in the future are refused; `None` takes any.
    pub future_max: Option<Duration>,
    /// Origins whose pages may send OTLP over HTTP and ask the API; `*` is any.
    pub cors_origins: Vec<String>,
    /// Whether the server keeps its own traces and profiles in the tenant `spanflame`.
    pub own_telemetry: bool,
    /// What is logged, in the words of `tracing`'s filters.
    pub log_level: String,
    /// How it is logged.
    pub log_format: LogFormat,
    /// How long a shutdown may take before what is still in flight is cut off.
    pub shutdown_timeout: Duration,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Largest value of `request_bytes_max`: a gRPC message has a 32-bit length, and decoding takes several
/// times the size of the request.
pub const REQUEST_BYTES_LIMIT: u64 = 1 << 30;

impl Default for Config {
    fn default() -> Config {
        let store = StoreOptions::default();
        Config {
            data: store.data,
            wal: store.wal,
            http: SocketAddr::from(([127, 0, 0, 1], 4040)),
            otlp_grpc: SocketAddr::from(([127, 0, 0, 1], 4317)),
            otlp_http: SocketAddr::from(([127, 0, 0, 1], 4318)),
            tempo_http: None,
            jaeger_http: None,
            zipkin_http: None,
            jaeger_grpc: None,
            jaeger_thrift_http: None,
            jaeger_thrift_udp: None,
            ready_file: None,
            ack: store.ack,
            flush_interval: store.flush_interval,
            flush_bytes: store.flush_bytes,
            head_bytes_max: store.head_bytes_max,
            recognition: store.recognition,
            grace: store.grace,
            retention_raw: store.retention_raw,
            retention_rollup: store.retention_rollup,
            size_bytes_max: store.size_bytes_max,
            request_bytes_max: 64 << 20,
            in_flight_bytes_max: 256 << 20,
            rate_bytes_per_second: None,
            stack_depth_max: 1024,
            strings_max: 4 << 20,
            table_entries_max: 2 << 20,
            past_max: None,
            future_max: None,
            cors_origins: Vec::new(),
            own_telemetry: true,
            log_level: "info".to_owned(),
            log_format: LogFormat::Text,
            shutdown_timeout: Duration::from_secs(20),
        }
    }
}

impl Config {
    /// Reads the sources over the defaults: flags over environment over file.
    ///
    /// Fails with every mistake in every source, so that one look is enough to correct them all.
    pub fn load(sources: &Sources) -> Result<Config, Mistakes> {
        source::load(sources)
    }

    /// Every key, in the order of the documentation.
    pub fn keys() -> &'static [Key] {
        keys::KEYS
    }

    /// Every key with its meaning, unit, default and present value, as a TOML file that sets exactly this
    /// configuration. Keys at their default are commented out.
    pub fn describe(&self) -> String {
        let default = Config::default();
        let mut text = String::from("# Flags are over SPANFLAME_* variables, those over this file.\n");
        for key in keys::KEYS {
            text.push_str(&key.describe(self, &default));
        }
        text
    }

    /// What a user should know about these settings before serving, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let always = [("http", self.http), ("otlp_grpc", self.otlp_grpc), ("otlp_http", self.otlp_http)];
        let dialects = self.dialect_addresses();
        let asked = dialects.into_iter().filter_map(|(key, address)| Some((key, address?)));
        always
            .into_iter()
            .chain(asked)
            .filter(|(_, address)| !address.ip().is_loopback())
            .map(|(key, address)| format!("{key} is {address}, which other machines may reach: there is no authentication yet"))
            .collect()
    }

    /// The addresses that are off by default, by key.
    pub(crate) fn dialect_addresses(&self) -> [(&'static str, Option<SocketAddr>); 6] {
        [
            ("tempo_http", self.tempo_http),
            ("jaeger_http", self.jaeger_http),
            ("zipkin_http", self.zipkin_http),
            ("jaeger_grpc", self.jaeger_grpc),
            ("jaeger_thrift_http", self.jaeger_thrift_http),
            ("jaeger_thrift_udp", self.jaeger_thrift_udp),
        ]
    }

    /// The part of the settings that the store needs.
    pub fn store_options(&self) -> StoreOptions {
        StoreOptions {
            data: self.data.clone(),
            wal: self.wal.clone(),
            ack: self.ack,
            flush_interval: self.flush_interval,
            flush_bytes: self.flush_bytes,
            head_bytes_max: self.head_bytes_max,
            recognition: self.recognition,
            grace: self.grace,
            retention_raw: self.retention_raw,
            retention_rollup: self.retention_rollup,
            size_bytes_max: self.size_bytes_max,
        }
    }

    /// Mistakes between keys that are each well-formed.
    fn contradictions(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let mut expect = |holds: bool, key: &'static str, value: String, expected: &str| {
            if !holds {
                mistakes.push(Mistake::between(key, value, expected));
            }
        };
        let show = value::show_bytes;
        expect(
            (1..=REQUEST_BYTES_LIMIT).contains(&self.request_bytes_max),
            "request_bytes_max",
            show(self.request_bytes_max),
            "1 B to 1 GiB",
        );
        expect(
            self.in_flight_bytes_max >= self.request_bytes_max,
            "in_flight_bytes_max",
            show(self.in_flight_bytes_max),
            "at least request_bytes_max",
        );
        expect(
            self.head_bytes_max >= self.flush_bytes,
            "head_bytes_max",
            show(self.head_bytes_max),
            "at least flush_bytes",
        );
        expect(
            !self.flush_interval.is_zero(),
            "flush_interval",
            value::show_duration(self.flush_interval),
            "more than 0s",
        );
        expect(
            self.stack_depth_max > 0,
            "stack_depth_max",
            self.stack_depth_max.to_string(),
            "at least 1",
        );
        expect(
            self.wal.is_some() || !self.data.contains("://") || self.data.starts_with("file://"),
            "wal",
            "absent".to_owned(),
            "a local directory, because data is a URL",
        );
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_mistakes(sources: &Sources, expected: &[&str]) {
        let mistakes = Config::load(sources).expect_err("mistakes");
        let texts: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn flags_are_over_environment_over_file() {
        let sources = Sources {
            file: Some((
                "s.toml".to_owned(),
                "http = \"127.0.0.1:1\"\notlp_grpc = \"127.0.0.1:1\"\notlp_http = \"127.0.0.1:1\"".to_owned(),
            )),
            environment: vec![
                ("SPANFLAME_OTLP_GRPC".to_owned(), "127.0.0.1:2".to_owned()),
                ("SPANFLAME_OTLP_HTTP".to_owned(), "127.0.0.1:2".to_owned()),
            ],
            flags: vec![("otlp-http".to_owned(), "localhost:3".to_owned())],
        };
        let config = Config::load(&sources).expect("valid");
        assert_eq!((config.http.port(), config.otlp_grpc.port(), config.otlp_http.port()), (1, 2, 3));
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let sources = Sources {
            file: Some((
                "s.toml".to_owned(),
                "retention_raw = 5\nflush_byte = 1\nown_telemetry = \"yes\"".to_owned(),
            )),
            environment: vec![
                ("SPANFLAME_HTTP".to_owned(), "4040".to_owned()),
                ("SPANFLAME_NO_SUCH_KEY".to_owned(), "1".to_owned()),
            ],
            flags: vec![("head-bytes-max".to_owned(), "1MiB".to_owned())],
        };
        check_mistakes(
            &sources,
            &[
                "retention_raw in s.toml is \"5\", expected a number with ns, us, ms, s, m, h or d, such as 10s",
                "flush_byte in s.toml is no key; did you mean flush_bytes?",
                "own_telemetry in s.toml is \"yes\", expected true or false",
                "SPANFLAME_HTTP is \"4040\", expected IP:PORT such as 127.0.0.1:4040 (port 0 takes a free one)",
                "SPANFLAME_NO_SUCH_KEY is no key",
                "head_bytes_max is 1MiB, expected at least flush_bytes",
            ],
        );
    }

    #[test]
    fn a_file_that_is_no_toml_is_one_mistake() {
        let sources = Sources {
            file: Some(("s.toml".to_owned(), "http = ".to_owned())),
            ..Sources::default()
        };
        assert_eq!(Config::load(&sources).expect_err("no TOML").iter().count(), 1);
    }

    #[test]
    fn the_description_is_a_file_that_sets_the_same() {
        let config = Config {
            http: SocketAddr::from(([0, 0, 0, 0], 0)),
            retention_raw: Duration::from_secs(36 * 3600),
            size_bytes_max: Some(5_000_000_000),
            cors_origins: vec!["https://a.example".to_owned(), "https://b.example".to_owned()],
            ack: Ack::Flush,
            past_max: Some(Duration::from_millis(1500)),
            tempo_http: Some(SocketAddr::from(([127, 0, 0, 1], 3200))),
            own_telemetry: false,
            ..Config::default()
        };
        let sources = Sources {
            file: Some(("described".to_owned(), config.describe())),
            ..Sources::default()
        };
        assert_eq!(Config::load(&sources).expect("valid"), config);
    }

    #[test]
    fn every_key_says_what_it_means_and_what_it_costs() {
        for key in Config::keys() {
            assert!(!key.meaning.is_empty() && key.costs.len() > 10, "{}", key.name);
            assert!(key.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", key.name);
        }
    }

    #[test]
    fn binding_beyond_loopback_warns() {
        let mut config = Config::default();
        assert_eq!(config.warnings(), Vec::<String>::new());
        config.otlp_grpc = SocketAddr::from(([0, 0, 0, 0], 4317));
        assert_eq!(
            config.warnings(),
            ["otlp_grpc is 0.0.0.0:4317, which other machines may reach: there is no authentication yet"]
        );
        config.otlp_grpc = Config::default().otlp_grpc;
        config.jaeger_thrift_udp = Some(SocketAddr::from(([0, 0, 0, 0], 6831)));
        assert_eq!(
            config.warnings(),
            ["jaeger_thrift_udp is 0.0.0.0:6831, which other machines may reach: there is no authentication yet"]
        );
    }
}
