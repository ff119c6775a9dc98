//! What an export is answered: responses, and the `Status` messages of failures.

use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsPartialSuccess, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsPartialSuccess, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::profiles::v1development::{ExportProfilesPartialSuccess, ExportProfilesServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message;
use serde_json::json;

use super::Wire;
use crate::failure::Failure;
use crate::ingest::Taken;
use crate::metrics::Signal;

/// What became of an export.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    signal: Signal,
    /// Spans, profiles, data points or log records that were not taken.
    rejected: i64,
    /// Why, or with nothing rejected, a warning; empty on full success.
    message: String,
}

impl Answer {
    pub(super) fn new(signal: Signal, rejected: u64, message: impl Into<String>) -> Answer {
        Answer {
            signal,
            rejected: i64::try_from(rejected).unwrap_or(i64::MAX),
            message: message.into(),
        }
    }

    /// Rejected are whole spans or profiles; lost samples and links are a warning.
    pub(super) fn taken(signal: Signal, taken: &Taken) -> Answer {
        let rejects = &taken.rejects;
        let rejected = match signal {
            Signal::Profiles => rejects.profiles(),
            _ => rejects.spans(),
        };
        Answer::new(signal, rejected, rejects.message().unwrap_or_default())
    }

    fn is_full_success(&self) -> bool {
        self.rejected == 0 && self.message.is_empty()
    }

    pub(super) fn encode(self, wire: Wire) -> Vec<u8> {
        match wire {
            Wire::Protobuf => self.protobuf(),
            Wire::Json => self.json(),
        }
    }

    fn json(self) -> Vec<u8> {
        if self.is_full_success() {
            return b"{}".to_vec();
        }
        let rejected = match self.signal {
            Signal::Traces => "rejectedSpans",
            Signal::Profiles => "rejectedProfiles",
            Signal::Metrics => "rejectedDataPoints",
            Signal::Logs => "rejectedLogRecords",
        };
        let mut partial = serde_json::Map::new();
        if self.rejected > 0 {
            partial.insert(rejected.to_owned(), json!(self.rejected.to_string()));
        }
        if !self.message.is_empty() {
            partial.insert("errorMessage".to_owned(), json!(self.message));
        }
        json!({ "partialSuccess": partial }).to_string().into_bytes()
    }

    fn protobuf(self) -> Vec<u8> {
        let partial = !self.is_full_success();
        let (rejected, error_message) = (self.rejected, self.message);
        match self.signal {
            Signal::Traces => ExportTraceServiceResponse {
                partial_success: partial.then_some(ExportTracePartialSuccess {
                    rejected_spans: rejected,
                    error_message,
                }),
            }
            .encode_to_vec(),
            Signal::Profiles => ExportProfilesServiceResponse {
                partial_success: partial.then_some(ExportProfilesPartialSuccess {
                    rejected_profiles: rejected,
                    error_message,
                }),
            }
            .encode_to_vec(),
            Signal::Metrics => ExportMetricsServiceResponse {
                partial_success: partial.then_some(ExportMetricsPartialSuccess {
                    rejected_data_points: rejected,
                    error_message,
                }),
            }
            .encode_to_vec(),
            Signal::Logs => ExportLogsServiceResponse {
                partial_success: partial.then_some(ExportLogsPartialSuccess {
                    rejected_log_records: rejected,
                    error_message,
                }),
            }
            .encode_to_vec(),
        }
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

const RETRY_INFO_TYPE: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// A failure as a `Status` message.
pub(super) fn encode_status(failure: &Failure, wire: Wire) -> Vec<u8> {
    let code = failure.kind.grpc() as i32;
    match wire {
        Wire::Json => json!({ "code": code, "message": failure.message }).to_string().into_bytes(),
        Wire::Protobuf => {
            let retry = failure.retry_after_seconds().map(|seconds| {
                let delay = Delay {
                    seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
                    nanos: 0,
                };
                Any {
                    type_url: RETRY_INFO_TYPE.to_owned(),
                    value: RetryInfo { retry_delay: Some(delay) }.encode_to_vec(),
                }
            });
            Status {
                code,
                message: failure.message.clone(),
                details: retry.into_iter().collect(),
            }
            .encode_to_vec()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;

    fn check_json(answer: Answer, expected: &str) {
        assert_eq!(String::from_utf8(answer.encode(Wire::Json)).expect("text"), expected);
    }

    #[test]
    fn full_success_leaves_partial_success_unset() {
        check_json(Answer::new(Signal::Traces, 0, ""), "{}");
        assert_eq!(Answer::new(Signal::Profiles, 0, "").encode(Wire::Protobuf), Vec::<u8>::new());
    }

    #[test]
    fn a_warning_rejects_nothing() {
        check_json(
            Answer::new(Signal::Profiles, 0, "2 links dropped"),
            r#"{"partialSuccess":{"errorMessage":"2 links dropped"}}"#,
        );
    }

    #[test]
    fn counts_in_json_are_strings() {
        check_json(
            Answer::new(Signal::Logs, 3, "no logs"),
            r#"{"partialSuccess":{"errorMessage":"no logs","rejectedLogRecords":"3"}}"#,
        );
    }

    #[test]
    fn only_what_may_be_retried_carries_retry_info() {
        let details = |kind| {
            let bytes = encode_status(&Failure::new(kind, "x"), Wire::Protobuf);
            let status = Status::decode(bytes.as_slice()).expect("a Status");
            (status.code, status.details.len())
        };
        let exhausted = tonic::Code::ResourceExhausted as i32;
        assert_eq!(details(FailureKind::Busy), (exhausted, 1));
        assert_eq!(details(FailureKind::TooLarge), (exhausted, 0));
    }
}
