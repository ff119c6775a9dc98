//! Why a profile is empty or not what one might expect.
//!
//! Codes are stable: programs compare them, people read text and hint.

/// A reason, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Which.
    pub code: ReasonCode,
    /// What happened, with numbers.
    pub text: String,
    /// What to do; empty if nothing can be done.
    pub hint: String,
}

/// The reasons there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReasonCode {
    /// The span is too short for the sampling period.
    ShorterThanPeriod,
    /// No profile of the service covers the span.
    ServiceNotProfiled,
    /// The service is profiled, and its samples name no spans.
    SamplesWithoutLink,
    /// The span ended so recently that its samples may still be under way.
    NotYetArrived,
    /// Clocks disagree: samples or spans lie outside the time they belong to.
    ClockSkew,
    /// Samples of that age are no longer kept.
    Expired,
    /// Samples name the span, the span itself was not received.
    SpanNotReceived,
    /// The client labels the local root only: the samples are there.
    HeldByLocalRoot,
    /// Samples name this span among others, and none for certain.
    AmbiguousOnly,
    /// The span has samples, of other types.
    TypeNotCollected,
    /// The service was sampled with links meanwhile: the span was not running then.
    NotRunning,
}

impl ReasonCode {
    /// The word used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            ReasonCode::ShorterThanPeriod => "shorter_than_period",
            ReasonCode::ServiceNotProfiled => "service_not_profiled",
            ReasonCode::SamplesWithoutLink => "samples_without_link",
            ReasonCode::NotYetArrived => "not_yet_arrived",
            ReasonCode::ClockSkew => "clock_skew",
            ReasonCode::Expired => "expired",
            ReasonCode::SpanNotReceived => "span_not_received",
            ReasonCode::HeldByLocalRoot => "held_by_local_root",
            ReasonCode::AmbiguousOnly => "ambiguous_only",
            ReasonCode::TypeNotCollected => "type_not_collected",
            ReasonCode::NotRunning => "not_running",
        }
    }
}

impl Reason {
    /// A reason with its text and what to do about it.
    pub fn new(code: ReasonCode, text: impl Into<String>, hint: impl Into<String>) -> Reason {
        Reason {
            code,
            text: text.into(),
            hint: hint.into(),
        }
    }
}
