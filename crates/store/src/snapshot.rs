//! What can be read: a consistent view of head and files at one instant.

use std::ops::ControlFlow;
use std::sync::Arc;

use spanflame_model::{
    Fingerprint, ProfileInfo, ProfileType, Sample, Span, SpanId, SpanKind, StackId, StackSet, StatusCode, Tenant, TimeRange, Timestamp,
    TraceId, Value,
};

use crate::Error;
use crate::reader::Reader;
use crate::version::Version;

/// A span with what the store knows about it.
#[derive(Clone, Debug)]
pub struct StoredSpan {
    /// Whose it is.
    pub tenant: Tenant,
    /// When it arrived. Strictly ascending by request within one store.
    pub received: Timestamp,
    /// The span; fields not asked for in a scan are empty.
    pub span: Span,
}

/// A sample with its profile.
#[derive(Clone, Debug)]
pub struct StoredSample {
    /// Whose it is.
    pub tenant: Tenant,
    /// When it arrived.
    pub received: Timestamp,
    /// Identity of its profile.
    pub profile: Fingerprint,
    /// What it shares with the other samples of its profile; one allocation for all of them in a batch.
    pub info: Arc<ProfileInfo>,
    /// The sample.
    pub sample: Sample,
}

/// Which parts of a span a scan needs besides ids, times, name, kind, status and service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanFields {
    /// The span's attributes.
    pub attributes: bool,
    /// Resource attributes (the service name is always there) and scope.
    pub resource: bool,
    /// Events and links.
    pub events: bool,
}

impl SpanFields {
    /// Everything.
    pub const ALL: SpanFields = SpanFields {
        attributes: true,
        resource: true,
        events: true,
    };
}

/// A condition that every wanted span meets. Conditions are joined by "and"; they prune, and the caller
/// checks what it really wants on what is returned.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanCondition {
    /// The service name equals.
    Service(String),
    /// The operation name equals.
    Name(String),
    /// The kind equals.
    Kind(SpanKind),
    /// The status equals.
    Status(StatusCode),
    /// The duration is at least this many nanoseconds.
    DurationMin(u64),
    /// The duration is at most this many nanoseconds.
    DurationMax(u64),
    /// An attribute of the span equals.
    SpanAttribute(String, Value),
    /// An attribute of the resource equals.
    ResourceAttribute(String, Value),
    /// An attribute of the span or of the resource equals.
    AnyAttribute(String, Value),
}

/// Which spans to visit.
#[derive(Clone, Debug)]
pub struct SpanScan {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Spans that overlap this.
    pub range: TimeRange,
    /// Joined by "and".
    pub conditions: Vec<SpanCondition>,
    /// What to fill in.
    pub fields: SpanFields,
    /// Only what arrived before this, so that a walk over pages sees what was there when it began.
    pub received_before: Option<Timestamp>,
}

/// Which samples to visit.
#[derive(Clone, Debug)]
pub struct SampleScan {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Samples whose times, or whose profile where they have none, overlap this.
    pub range: TimeRange,
    /// Only these services; `None` is all.
    pub services: Option<Vec<String>>,
    /// Only samples that name no trace and no span (they may name candidates).
    pub unlinked_only: bool,
    /// Only what arrived before this.
    pub received_before: Option<Timestamp>,
}

/// Which rollup rows to visit.
#[derive(Clone, Debug)]
pub struct RollupScan {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Minutes that overlap this.
    pub range: TimeRange,
    /// Only these services; `None` is all.
    pub services: Option<Vec<String>>,
}

/// One row of the rollup.
#[derive(Clone, Debug)]
pub struct RollupRow {
    /// Resource attributes that are series labels, service included.
    pub info: Arc<ProfileInfo>,
    /// What `sum` measures.
    pub profile_type: ProfileType,
    /// Start of the minute.
    pub minute: Timestamp,
    /// Name of the span that ran; `None` where no span is known.
    pub span_name: Option<String>,
    /// The stack.
    pub stack: StackId,
    /// Sum of the values.
    pub sum: i64,
    /// Number of observations.
    pub count: u64,
}

/// What a scan cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanStats {
    /// Rows looked at.
    pub rows: u64,
    /// Files opened.
    pub files: u64,
}

/// A consistent view of head and files. Cheap to take and to clone; files it names outlive it by the grace
/// period of the store.
#[derive(Clone)]
pub struct Snapshot {
    _version: Arc<Version>,
    _reader: Arc<Reader>,
}

impl Snapshot {
    /// A view of `version` with the rows that its heads hold now.
    pub(crate) fn new(version: Arc<Version>, reader: Arc<Reader>) -> Snapshot {
        Snapshot {
            _version: version,
            _reader: reader,
        }
    }

    /// Every sample received before this is in the rollup; `None` if there is no rollup yet.
    pub fn rollup_until(&self) -> Option<Timestamp> {
        unimplemented!()
    }

    /// Every span of a trace, by start, then span id; equal spans once.
    pub async fn trace_spans(&self, _tenants: &[Tenant], _trace: TraceId) -> Result<Vec<StoredSpan>, Error> {
        unimplemented!()
    }

    /// Every sample whose link names the trace (candidates included).
    pub async fn trace_samples(&self, _tenants: &[Tenant], _trace: TraceId) -> Result<Vec<StoredSample>, Error> {
        unimplemented!()
    }

    /// Every sample that names one of `spans` and no trace, and every one that has one of them among its
    /// candidates, with a time that overlaps `near`.
    pub async fn samples_by_span(&self, _tenants: &[Tenant], _spans: &[SpanId], _near: TimeRange) -> Result<Vec<StoredSample>, Error> {
        unimplemented!()
    }

    /// Visits every span that a scan asks for, in no order, in batches, until `visit` breaks.
    pub async fn scan_spans(
        &self,
        _scan: &SpanScan,
        _visit: impl FnMut(Vec<StoredSpan>) -> ControlFlow<()> + Send,
    ) -> Result<ScanStats, Error> {
        unimplemented!()
    }

    /// Visits every sample that a scan asks for, in no order, in batches, until `visit` breaks.
    pub async fn scan_samples(
        &self,
        _scan: &SampleScan,
        _visit: impl FnMut(Vec<StoredSample>) -> ControlFlow<()> + Send,
    ) -> Result<ScanStats, Error> {
        unimplemented!()
    }

    /// Visits every rollup row that a scan asks for. A minute that the rollup does not hold yet is not there:
    /// the caller scans samples received after [`Snapshot::rollup_until`].
    pub async fn scan_rollup(
        &self,
        _scan: &RollupScan,
        _visit: impl FnMut(Vec<RollupRow>) -> ControlFlow<()> + Send,
    ) -> Result<ScanStats, Error> {
        unimplemented!()
    }

    /// The stacks asked for, with their frames. What is not stored is not there.
    pub async fn stacks(&self, _tenants: &[Tenant], _ids: &[StackId]) -> Result<StackSet, Error> {
        unimplemented!()
    }

    /// The latest arrival in this view; `None` if it holds nothing.
    pub fn last_received(&self) -> Option<Timestamp> {
        unimplemented!()
    }
}
