//! What there is: services, profile types, labels.

use spanflame_model::{ProfileType, Tenant, TimeRange};

/// What to list.
#[derive(Clone, Debug)]
pub struct CatalogRequest {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// What was there in this time.
    pub range: TimeRange,
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
