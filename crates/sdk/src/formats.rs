//! Stands in for `spanflame-formats` until its OTLP codecs are there: sends profiles without samples.

#[derive(Default)]
pub(crate) struct Limits {}

pub(crate) struct Decoded {
    pub(crate) batch: spanflame_model::Batch,
}

pub(crate) mod otlp {
    pub(crate) mod traces {
        use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
        pub(crate) fn from_message(_request: ExportTraceServiceRequest, _limits: &crate::formats::Limits) -> crate::formats::Decoded {
            crate::formats::Decoded { batch: Default::default() }
        }
    }
    pub(crate) mod profiles {
        use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
        pub(crate) fn encode(_batch: &spanflame_model::Batch) -> ExportProfilesServiceRequest {
            ExportProfilesServiceRequest::default()
        }
    }
}
