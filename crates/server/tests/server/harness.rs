//! Starts servers, sends requests, builds what is sent.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use serde_json::Value;
use spanflame_server::{Addresses, Config, Running, Server};

/// When everything in these tests happens: 2026-09-21.
pub(crate) const START_NS: u64 = 1_790_000_000_000_000_000;

pub(crate) struct TestServer {
    running: Running,
    client: reqwest::Client,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }
}

/// What listens on free ports and keeps its data in `directory`.
pub(crate) fn config(directory: &Path) -> Config {
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    Config {
        data: directory.join("data").to_str().expect("UTF-8").to_owned(),
        http: anywhere,
        otlp_grpc: anywhere,
        otlp_http: anywhere,
        own_telemetry: false,
        ..Config::default()
    }
}

impl TestServer {
    pub(crate) async fn start(config: Config) -> TestServer {
        let running = Server::start(config).await.expect("starts");
        TestServer {
            running,
            client: reqwest::Client::new(),
        }
    }

    pub(crate) async fn stop(self) {
        self.running.shutdown().await.expect("stops");
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.running.addresses().http
    }

    pub(crate) fn addresses(&self) -> Addresses {
        self.running.addresses()
    }

    pub(crate) fn otlp_http(&self) -> SocketAddr {
        self.running.addresses().otlp_http
    }

    pub(crate) fn otlp_grpc(&self) -> SocketAddr {
        self.running.addresses().otlp_grpc
    }

    pub(crate) async fn get(&self, path_and_query: &str) -> Reply {
        self.get_as(path_and_query, &[]).await
    }

    pub(crate) async fn get_as(&self, path_and_query: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = self.client.get(format!("http://{}{path_and_query}", self.http()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request).await
    }

    /// A `GET` whose parameters are encoded here.
    pub(crate) async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Reply {
        reply(self.client.get(format!("http://{}{path}", self.http())).query(query)).await
    }

    /// A request of any kind to a path of the address of everything.
    pub(crate) fn request_to(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().expect("a method");
        self.client.request(method, format!("http://{}{path}", self.http()))
    }

    pub(crate) async fn post(&self, at: SocketAddr, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
        let mut request = self.client.post(format!("http://{at}{path}")).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request).await
    }

    /// One gRPC call with a frame as it is on the wire; answers the status and the message.
    pub(crate) async fn grpc(&self, at: SocketAddr, path: &str, headers: &[(&str, &str)], frame: Vec<u8>) -> Reply {
        let client = reqwest::Client::builder().http2_prior_knowledge().build().expect("a client");
        let mut request = client.post(format!("http://{at}{path}")).body(frame);
        request = request.header("content-type", "application/grpc").header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request).await
    }

    /// Sends spans or profiles over HTTP as protobuf and expects that all of them are taken.
    pub(crate) async fn send(&self, path: &str, message: &impl Message) {
        let headers = [("content-type", "application/x-protobuf")];
        let reply = self.post(self.otlp_http(), path, &headers, message.encode_to_vec()).await;
        assert_eq!((reply.status, reply.body.as_slice()), (200, &[][..]), "{}", reply.text());
    }

    /// The value of a counter or gauge in `/metrics`, 0 if it has not been touched.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics").await.text();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().expect("a number"))
    }
}

pub(crate) async fn reply(request: reqwest::RequestBuilder) -> Reply {
    let response = request.send().await.expect("an answer");
    Reply {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.bytes().await.expect("a body").to_vec(),
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

/// A gRPC frame around a message.
pub(crate) fn frame(compressed: bool, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![u8::from(compressed)];
    frame.extend((message.len() as u32).to_be_bytes());
    frame.extend(message);
    frame
}

pub(crate) fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

fn resource(service: &str) -> Option<Resource> {
    Some(Resource {
        attributes: vec![attribute("service.name", service)],
        ..Resource::default()
    })
}

/// A span of 100 ms that begins `at_ms` after [`START_NS`].
pub(crate) fn span(trace: u8, id: u8, parent: u8, name: &str, at_ms: u64) -> Span {
    let start = START_NS + at_ms * 1_000_000;
    Span {
        trace_id: vec![trace; 16],
        span_id: vec![id; 8],
        parent_span_id: if parent == 0 { Vec::new() } else { vec![parent; 8] },
        name: name.to_owned(),
        kind: if parent == 0 { 2 } else { 1 },
        start_time_unix_nano: start,
        end_time_unix_nano: start + 100_000_000,
        ..Span::default()
    }
}

pub(crate) fn traces(service: &str, spans: Vec<Span>) -> ExportTraceServiceRequest {
    traces_with(vec![attribute("service.name", service)], spans)
}

/// Spans of a resource with these attributes.
pub(crate) fn traces_with(resource: Vec<KeyValue>, spans: Vec<Span>) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: resource,
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
}

/// A CPU profile of one second with a period of 10 ms: `count` observations of `main;work` 1 ms apart from
/// `at_ms` after [`START_NS`], linked to a span.
pub(crate) fn profiles(service: &str, trace: u8, span: u8, at_ms: u64, count: u64) -> ExportProfilesServiceRequest {
    profiles_of(service, &[trace; 16], &[span; 8], at_ms, count)
}

/// The same with whole ids.
pub(crate) fn profiles_of(service: &str, trace: &[u8], span: &[u8], at_ms: u64, count: u64) -> ExportProfilesServiceRequest {
    let text = ["", "cpu", "nanoseconds", "samples", "count", "main", "work", "main.rs"];
    let function = |name: i32| otlp::Function {
        name_strindex: name,
        filename_strindex: 7,
        ..otlp::Function::default()
    };
    let location = |function_index: i32, line: i64| otlp::Location {
        lines: vec![otlp::Line {
            function_index,
            line,
            ..otlp::Line::default()
        }],
        ..otlp::Location::default()
    };
    let value_type = |kind: i32, unit: i32| {
        Some(otlp::ValueType {
            type_strindex: kind,
            unit_strindex: unit,
        })
    };
    let times = (0..count).map(|n| START_NS + (at_ms + n) * 1_000_000);
    ExportProfilesServiceRequest {
        dictionary: Some(otlp::ProfilesDictionary {
            mapping_table: vec![otlp::Mapping::default()],
            location_table: vec![otlp::Location::default(), location(1, 10), location(2, 20)],
            function_table: vec![otlp::Function::default(), function(5), function(6)],
            link_table: vec![
                otlp::Link::default(),
                otlp::Link {
                    trace_id: trace.to_vec(),
                    span_id: span.to_vec(),
                },
            ],
            string_table: text.map(str::to_owned).to_vec(),
            attribute_table: vec![otlp::KeyValueAndUnit::default()],
            stack_table: vec![
                otlp::Stack::default(),
                otlp::Stack {
                    location_indices: vec![2, 1],
                },
            ],
        }),
        resource_profiles: vec![otlp::ResourceProfiles {
            resource: resource(service),
            scope_profiles: vec![otlp::ScopeProfiles {
                profiles: vec![otlp::Profile {
                    sample_type: value_type(3, 4),
                    samples: vec![otlp::Sample {
                        stack_index: 1,
                        link_index: 1,
                        timestamps_unix_nano: times.collect(),
                        ..otlp::Sample::default()
                    }],
                    time_unix_nano: START_NS,
                    duration_nano: 1_000_000_000,
                    period_type: value_type(1, 2),
                    period: 10_000_000,
                    ..otlp::Profile::default()
                }],
                ..otlp::ScopeProfiles::default()
            }],
            ..otlp::ResourceProfiles::default()
        }],
    }
}

/// The hex of an id of equal bytes.
pub(crate) fn hex(byte: u8, bytes: usize) -> String {
    format!("{byte:02x}").repeat(bytes)
}
