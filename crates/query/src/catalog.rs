//! What there is: services, profile types, labels.

use spanflame_model::{ProfileType, Tenant, TimeRange, Timestamp};

/// What to list.
#[derive(Clone, Debug)]
pub struct CatalogRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// What was there in this time.
    pub range: TimeRange,
}

/// Equal steps of a range of time, of which the last one may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The range that is cut.
    pub range: TimeRange,
    /// How long a step is, in nanoseconds.
    pub step_ns: u64,
}

impl Steps {
    /// The most steps of a series.
    pub const MAX: usize = 1000;

    /// `range` in at most `count` steps of whole nanoseconds; `count` is at least 1.
    pub fn new(range: TimeRange, count: usize) -> Steps {
        let step_ns = range.duration_ns().div_ceil(count.max(1) as u64).max(1);
        Steps { range, step_ns }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.range.duration_ns().div_ceil(self.step_ns).max(1) as usize
    }

    /// The step of a time; what lies outside the range is in the first or last one.
    pub fn of(&self, time: Timestamp) -> usize {
        let step = (time.nanos_since(self.range.start()) / self.step_ns) as usize;
        step.min(self.count() - 1)
    }
}

/// A service and how it fares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Spans that overlap the range.
    pub spans: u64,
    /// Spans through which requests entered it: kind server or consumer, a remote parent, or none.
    pub requests: u64,
    /// Requests with status error.
    pub errors: u64,
    /// Requests by duration; `None` without requests.
    pub duration: Option<Quantiles>,
    /// Observations of its CPU profiles in the range.
    pub samples: u64,
    /// Those of them that name a span or a trace and are still kept.
    pub linked_samples: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: i64,
    /// Its requests over time, if steps were asked for.
    pub series: Option<ServiceSeries>,
}

/// The requests of a service in equal steps of time, by when they began; one that began before the range is in the
/// first step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceSeries {
    /// Requests.
    pub requests: Vec<u64>,
    /// Those with status error.
    pub errors: Vec<u64>,
    /// 99 in 100 are at most this long; `None` without requests.
    pub p99_ns: Vec<Option<u64>>,
}

impl Service {
    /// Requests in a second.
    pub fn requests_per_second(&self, range: TimeRange) -> f64 {
        self.requests as f64 / (range.duration_ns() as f64 / 1e9)
    }

    /// CPU time for each request; `None` without requests or samples.
    pub fn cpu_ns_per_request(&self) -> Option<f64> {
        (self.requests > 0 && self.samples > 0).then(|| self.cpu_ns as f64 / self.requests as f64)
    }
}

/// Durations by rank, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Half are at most this long.
    pub p50_ns: u64,
    /// 90 in 100 are at most this long.
    pub p90_ns: u64,
    /// 99 in 100 are at most this long.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Every duration was kept; otherwise values are at most 1 % off.
    pub exact: bool,
}

/// A profile type and who collects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// The type.
    pub profile_type: ProfileType,
    /// Services that send it, by name.
    pub services: Vec<String>,
    /// Observations in the range.
    pub samples: u64,
}

/// The labels of some profiles, and the types that they measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSeries {
    /// Name and value, by name; the service as `service.name`, always there.
    pub labels: Vec<(String, String)>,
    /// Every type that can be asked for, in order.
    pub types: Vec<ProfileType>,
}
