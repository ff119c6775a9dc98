//! OTLP over gRPC: the two requests and the client that sends them.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::profiles_service_client::ProfilesServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use spanflame_model::Batch;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::Error;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
/// How long one request may take, connecting included.
pub(super) const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// One request, kept as a message: a receiver that is away gets it again.
pub(super) enum Request {
    /// Profiles, and how many observations they hold.
    Profiles {
        message: ExportProfilesServiceRequest,
        observations: u64,
    },
    /// Spans, and how many.
    Traces { message: ExportTraceServiceRequest, spans: u64 },
}

/// Why a request did not arrive.
pub(super) enum Failure {
    /// Trying again may help.
    Away(Status),
    /// It will never be taken.
    Refused(Status),
}

impl Request {
    pub(super) fn profiles(batch: &Batch, observations: u64) -> Request {
        Request::Profiles {
            message: spanflame_formats::otlp::profiles::encode(batch),
            observations,
        }
    }

    pub(super) fn traces(message: ExportTraceServiceRequest, spans: u64) -> Request {
        Request::Traces { message, spans }
    }

    pub(super) fn encoded_bytes(&self) -> usize {
        match self {
            Request::Profiles { message, .. } => message.encoded_len(),
            Request::Traces { message, .. } => message.encoded_len(),
        }
    }
}

/// A connection that is made when it is first needed. Owns a small runtime: the application's may be busy, and
/// in a synchronous program there is none.
pub(crate) struct Client {
    /// Present until it is dropped.
    runtime: Option<tokio::runtime::Runtime>,
    profiles: ProfilesServiceClient<Channel>,
    traces: TraceServiceClient<Channel>,
}

impl Client {
    pub(crate) fn new(endpoint: &str) -> Result<Client, Error> {
        let invalid = || Error::Setting {
            setting: "endpoint",
            value: endpoint.to_owned(),
            expected: "a URL such as http://127.0.0.1:4317",
        };
        if !endpoint.starts_with("http://") {
            return Err(invalid());
        }
        let address = Endpoint::from_shared(endpoint.to_owned()).map_err(|_| invalid())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::System {
                call: "starting a runtime",
                source,
            })?;
        let channel = {
            let _entered = runtime.enter();
            address.connect_timeout(CONNECT_TIME_MAX).connect_lazy()
        };
        Ok(Client {
            runtime: Some(runtime),
            profiles: ProfilesServiceClient::new(channel.clone()),
            traces: TraceServiceClient::new(channel),
        })
    }

    /// Sends and waits for the answer, at most `time_max`.
    pub(super) fn send(&mut self, request: &Request, time_max: Duration) -> Result<(), Failure> {
        let runtime = self.runtime.as_ref().expect("present until dropped");
        let (profiles, traces) = (&mut self.profiles, &mut self.traces);
        let answer = runtime.block_on(async {
            let sent = async {
                match request {
                    Request::Profiles { message, .. } => profiles.export(message.clone()).await.map(|_| ()),
                    Request::Traces { message, .. } => traces.export(message.clone()).await.map(|_| ()),
                }
            };
            let late = |_| Err(Status::deadline_exceeded("no answer in time"));
            tokio::time::timeout(time_max, sent).await.unwrap_or_else(late)
        });
        answer.map_err(|status| match status.code() {
            // What the OTLP specification calls retryable, and connections that broke in the middle.
            Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
            | Code::ResourceExhausted
            | Code::Unknown => Failure::Away(status),
            _ => Failure::Refused(status),
        })
    }
}

impl Drop for Client {
    /// The SDK may fail to start inside an async function, where a runtime must not be waited for.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
