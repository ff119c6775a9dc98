//! Why a profile is empty or not what one might expect.
//!
//! Codes are stable: programs compare them, people read text and hint.

use spanflame_model::{Link, ProfileType, Span, Timestamp};
use spanflame_store::StoredSample;

use crate::links::observed;
use crate::measure::{Measure, TypeSelector};
use crate::profile::Scope;
use crate::window::Place;

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
    /// A part of the answer comes from sums by minute, because its samples are no longer kept.
    WholeMinutes,
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
    /// Scope `window` counts samples without ids, and here every sample names a span.
    AllLinked,
    /// The values add up to more than 63 bits hold.
    ValueOverflow,
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
            ReasonCode::WholeMinutes => "whole_minutes",
            ReasonCode::SpanNotReceived => "span_not_received",
            ReasonCode::HeldByLocalRoot => "held_by_local_root",
            ReasonCode::AmbiguousOnly => "ambiguous_only",
            ReasonCode::TypeNotCollected => "type_not_collected",
            ReasonCode::NotRunning => "not_running",
            ReasonCode::AllLinked => "all_samples_linked",
            ReasonCode::ValueOverflow => "value_overflow",
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

/// How far around a span its service's profiles are looked at to tell why it has none.
pub(crate) const AROUND_NS: u64 = 300 * 1_000_000_000;
/// Profilers upload every 10 to 60 seconds: younger spans may still get their samples.
const UNDER_WAY_NS: u64 = 90 * 1_000_000_000;
/// Times that differ by less are no sign of clocks that disagree.
pub(crate) const SKEW_NS: u64 = 1_000_000_000;

/// What the profiles of a span's service look like around it.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings<'a> {
    span: &'a Span,
    place: Place,
    /// Observations of other processes of the service, which tell nothing about this one.
    elsewhere: u64,
    /// Observations of profiles that cover some of the span.
    covering: u64,
    covering_linked: u64,
    /// Observations before and after it, within [`AROUND_NS`].
    before: u64,
    after: u64,
    near_linked: u64,
    /// From the span to the nearest profile that does not cover it.
    gap_ns: Option<u64>,
    period_ns: Option<u64>,
    other_types: Vec<ProfileType>,
}

impl<'a> Surroundings<'a> {
    /// Nothing looked at yet.
    pub(crate) fn of(span: &'a Span) -> Surroundings<'a> {
        Surroundings {
            span,
            place: Place::of_span(span),
            elsewhere: 0,
            covering: 0,
            covering_linked: 0,
            before: 0,
            after: 0,
            near_linked: 0,
            gap_ns: None,
            period_ns: None,
            other_types: Vec::new(),
        }
    }

    /// Counts a sample of the span's service.
    pub(crate) fn add(&mut self, stored: &StoredSample, selector: &TypeSelector) {
        let (info, span) = (&stored.info, self.span);
        let Some(measure) = selector.measure(info) else {
            for measure in Measure::all(info) {
                if !self.other_types.contains(&measure.profile_type) {
                    self.other_types.push(measure.profile_type);
                }
            }
            return;
        };
        let samples = measure.read(info, &stored.sample, None).map_or(0, |reading| reading.samples);
        if self.place.is_elsewhere(stored) {
            self.elsewhere += samples;
            return;
        }
        let linked = matches!(stored.sample.link, Link::One { .. });
        let (when, range) = (info.range().cover(observed(stored)), span.range());
        if when.overlap(range).is_some() {
            self.covering += samples;
            self.covering_linked += if linked { samples } else { 0 };
        } else {
            let is_before = when.end() <= range.start();
            *(if is_before { &mut self.before } else { &mut self.after }) += samples;
            let gap = range.start().nanos_since(when.end()).max(when.start().nanos_since(range.end()));
            self.gap_ns = Some(self.gap_ns.map_or(gap, |known| known.min(gap)));
        }
        self.near_linked += if linked { samples } else { 0 };
        if info.period_type.is_nanoseconds() && info.period > 0 {
            self.period_ns = self.period_ns.max(u64::try_from(info.period).ok());
        }
    }

    fn near(&self) -> u64 {
        self.covering + self.before + self.after
    }

    /// Profiles without a duration cover only their samples: samples on both sides then show that the profiler ran.
    fn is_profiled(&self) -> bool {
        self.covering > 0 || (self.before > 0 && self.after > 0)
    }
}

/// When a question is asked, and how long samples are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) now: Timestamp,
    pub(crate) retention_ns: Option<u64>,
}

/// Why a span has no samples, given how its service is profiled around it.
pub(crate) fn explain(scope: Scope, around: &Surroundings<'_>, clock: Clock) -> Vec<Reason> {
    match around.is_profiled() {
        true => explain_profiled(around.span, scope, around),
        false => explain_unprofiled(around.span, around, clock),
    }
}

fn explain_profiled(span: &Span, scope: Scope, around: &Surroundings<'_>) -> Vec<Reason> {
    let service = span.resource.service();
    let mut reasons = Vec::new();
    if scope == Scope::Window {
        if around.near_linked == around.near() {
            let text = format!("every sample of {service} around this span names a span, and scope window counts samples without ids");
            reasons.push(Reason::new(ReasonCode::AllLinked, text, "ask for scope span, subtree or trace"));
        }
    } else if around.near_linked == 0 {
        let text = format!(
            "{service} is profiled, {} samples around this span, and none of them names a span",
            around.near()
        );
        let hint = "enable span labels in the profiler, or ask for scope window, which goes by time and place";
        reasons.push(Reason::new(ReasonCode::SamplesWithoutLink, text, hint));
        return reasons;
    }
    let duration = text_of_ns(span.duration_ns);
    match around.period_ns {
        Some(period) if span.duration_ns < period => {
            let expected = span.duration_ns as f64 / period as f64;
            let text = format!(
                "the span ran {duration}, samples are {} apart: {expected:.2} expected even if it was busy",
                text_of_ns(period)
            );
            let hint = "look at many such spans together, or sample more often";
            reasons.push(Reason::new(ReasonCode::ShorterThanPeriod, text, hint));
        }
        _ if scope != Scope::Window => {
            let expected = around.period_ns.map_or(String::new(), |period| {
                format!(", where a busy thread would have had {}", span.duration_ns / period)
            });
            let text =
                format!("samples of {service} name other spans and none this one in {duration}{expected}: it waited or ran very little");
            reasons.push(Reason::new(
                ReasonCode::NotRunning,
                text,
                "look at its children, or at profiles of waiting time",
            ));
        }
        _ => {}
    }
    if scope != Scope::Window && around.near_linked * 2 < around.near() {
        let text = format!(
            "only {} of {} samples of {service} around this span name a span",
            around.near_linked,
            around.near()
        );
        reasons.push(Reason::new(
            ReasonCode::SamplesWithoutLink,
            text,
            "ask for scope window, which goes by time and place",
        ));
    }
    reasons
}

fn explain_unprofiled(span: &Span, around: &Surroundings<'_>, clock: Clock) -> Vec<Reason> {
    let service = span.resource.service();
    let age = clock.now.nanos_since(span.range().end());
    let mut reasons = Vec::new();
    if let Some(kept) = clock.retention_ns.filter(|kept| age > *kept) {
        let text = format!("the span ended {} ago, samples are kept {}", text_of_ns(age), text_of_ns(kept));
        reasons.push(Reason::new(ReasonCode::Expired, text, "keep samples longer"));
    }
    if age < UNDER_WAY_NS {
        let text = format!("the span ended {} ago, and profilers send every 10 to 60 seconds", text_of_ns(age));
        reasons.push(Reason::new(ReasonCode::NotYetArrived, text, "ask again in a minute"));
    }
    if around.near() == 0 && !around.other_types.is_empty() {
        let types: Vec<String> = around.other_types.iter().map(ToString::to_string).collect();
        let text = format!("{service} is profiled around this span, but only {}", types.join(", "));
        reasons.push(Reason::new(ReasonCode::TypeNotCollected, text, "ask for one of these types"));
        return reasons;
    }
    let text = match around.gap_ns {
        _ if around.near() == 0 && around.elsewhere > 0 => format!(
            "{service} is profiled around this span in other processes only: {} samples, none from where the span ran",
            around.elsewhere
        ),
        Some(gap) => format!("no profile of {service} covers the span, the nearest lies {} away", text_of_ns(gap)),
        None => format!("no profile of {service} within {} of the span", text_of_ns(AROUND_NS)),
    };
    let hint = "profile this service, under the same service.name as its spans";
    reasons.push(Reason::new(ReasonCode::ServiceNotProfiled, text, hint));
    reasons
}

/// A duration for people, e.g. `52.6ms`.
pub(crate) fn text_of_ns(nanos: u64) -> String {
    let value = nanos as f64;
    let (scaled, unit) = match nanos {
        0..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => (value / 1e3, "us"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        1_000_000_000..120_000_000_000 => (value / 1e9, "s"),
        120_000_000_000..7_200_000_000_000 => (value / 60e9, "min"),
        7_200_000_000_000..172_800_000_000_000 => (value / 3600e9, "h"),
        _ => (value / 86_400e9, "d"),
    };
    let text = format!("{scaled:.1}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests;
