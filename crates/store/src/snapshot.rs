//! What can be read: a consistent view of head and files at one instant.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{BinaryArray, StringArray};
use arrow::record_batch::RecordBatch;
use futures::{TryStreamExt, stream};
use spanflame_model::{
    Fingerprint, Link, ProfileInfo, ProfileType, Sample, Span, SpanId, SpanKind, StackId, StackSet, StatusCode, Tenant, TimeRange,
    Timestamp, TraceId, Value,
};

use crate::Error;
use crate::file::FileStats;
use crate::head::{Head, HeadRows, HeadView};
use crate::lookup::Lookup;
use crate::reader::Reader;
use crate::rows::{SampleDecoder, SpanDecoder, Unreadable, column};
use crate::schema::{Table, sample, span};
use crate::version::Version;
use crate::{scan, stacks};

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
    /// An attribute of the span equals, or is a list. Numbers are equal across integers and doubles.
    SpanAttribute(String, Value),
    /// An attribute of the resource likewise.
    ResourceAttribute(String, Value),
    /// An attribute of the span or of the resource likewise.
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

/// Whose profiles, and of what types, to visit.
#[derive(Clone, Debug)]
pub struct SenderScan {
    /// Whose; never empty.
    pub tenants: Vec<Tenant>,
    /// Profiles that overlap this; times of single samples are not looked at.
    pub range: TimeRange,
    /// Only these services; `None` is all.
    pub services: Option<Vec<String>>,
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

/// How much is stored of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredVolume {
    /// Files.
    pub files: u64,
    /// Rows in files and in memory.
    pub rows: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// From the first to the last time that a row covers; `None` if there is none.
    pub time: Option<TimeRange>,
}

impl StoredVolume {
    /// Takes in the time of some rows if it overlaps `range`; answers whether it does.
    fn cover(&mut self, range: TimeRange, (first, last): (i64, i64)) -> bool {
        let (first, last) = (Timestamp::from_unix_nanos_signed(first), Timestamp::from_unix_nanos_signed(last));
        let time = first
            .zip(last)
            .and_then(|(first, last)| TimeRange::new(first, last.saturating_add(1)));
        let Some(time) = time.filter(|time| time.overlap(range).is_some()) else {
            return false;
        };
        self.time = Some(self.time.map_or(time, |known| known.cover(time)));
        true
    }
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
    pub(crate) version: Arc<Version>,
    pub(crate) heads: Vec<HeadView>,
    pub(crate) reader: Arc<Reader>,
}

impl Snapshot {
    /// A view of `version` with the rows that its heads hold now.
    pub(crate) fn new(version: Arc<Version>, reader: Arc<Reader>) -> Snapshot {
        let heads = version.heads().iter().map(Head::view).collect();
        Snapshot { version, heads, reader }
    }

    /// Files that this snapshot names and that turned out to be damaged while somebody read them, by name below
    /// the data directory, with what is wrong: answers are without their rows.
    pub fn damaged_files(&self) -> Vec<(String, String)> {
        let files = || Table::ALL.into_iter().flat_map(|table| self.version.files(table));
        let damaged = self.reader.damaged().into_iter();
        let named = damaged.filter(|(path, _)| files().any(|file| file.path == *path));
        named.map(|(path, message)| (path.to_string(), message)).collect()
    }

    /// Every sample received before this is in the rollup; `None` if there is no rollup yet.
    pub fn rollup_until(&self) -> Option<Timestamp> {
        self.version.rollup_until()
    }

    /// Every span of a trace, by start, then span id; equal spans once.
    pub async fn trace_spans(&self, tenants: &[Tenant], trace: TraceId) -> Result<Vec<StoredSpan>, Error> {
        self.trace_spans_with(tenants, trace, SpanFields::ALL).await
    }

    /// Like [`Snapshot::trace_spans`], with only `fields` filled in: the rest is not read. Spans that differ in
    /// nothing else are returned once.
    pub async fn trace_spans_with(&self, tenants: &[Tenant], trace: TraceId, fields: SpanFields) -> Result<Vec<StoredSpan>, Error> {
        let mut found = Vec::new();
        let mut decoders = Decoders::new(|tenant| SpanDecoder::new(tenant, fields));
        for part in self.heads.iter().flat_map(|head| head.trace_spans(tenants, trace.as_bytes())) {
            let decoder = decoders.of(&part.batch.tenant);
            decoder.decode(&part.batch.rows, part.rows, &mut found).map_err(in_head)?;
        }
        let lookup = Lookup::ids(Table::Spans, span::TRACE_ID, vec![trace.as_bytes().to_vec()]);
        let mut batches = lookup.reading(SpanDecoder::columns(fields)).run(self, tenants);
        while let Some((file, rows)) = batches.try_next().await? {
            let decoder = decoders.of(&file.tenant);
            let all = 0..rows.num_rows();
            decoder
                .decode(&rows, all, &mut found)
                .map_err(|error| error.in_file(file.path.as_ref()))?;
        }
        found.sort_by_key(|stored| (stored.span.start, stored.span.span_id, stored.received));
        let mut seen = HashSet::new();
        found.retain(|stored| seen.insert(stored.span.fingerprint(&stored.tenant)));
        Ok(found)
    }

    /// Every sample whose link names the trace (candidates included), in no order.
    pub async fn trace_samples(&self, tenants: &[Tenant], trace: TraceId) -> Result<Vec<StoredSample>, Error> {
        let heads = self.heads.iter().flat_map(|head| head.trace_samples(tenants, trace.as_bytes()));
        let lookups = vec![
            Lookup::ids(Table::Samples, sample::TRACE_ID, vec![trace.as_bytes().to_vec()]),
            Lookup::containing(Table::Samples, sample::CANDIDATES, vec![trace.to_string()]),
        ];
        let named = |link: &Link| match link {
            Link::One { trace_id, .. } => *trace_id == Some(trace),
            Link::Candidates { trace_ids, .. } => trace_ids.contains(&trace),
            Link::None => false,
        };
        self.find_samples(tenants, heads.collect(), lookups, |stored| named(&stored.sample.link))
            .await
    }

    /// Every sample that names one of `spans` and no trace, and every one that has one of them among its
    /// candidates, with a time that overlaps `near`; in no order.
    pub async fn samples_by_span(&self, tenants: &[Tenant], spans: &[SpanId], near: TimeRange) -> Result<Vec<StoredSample>, Error> {
        let heads = self.heads.iter().flat_map(|head| head.loose_samples(tenants, spans));
        let ids = spans.iter().map(|span| span.as_bytes().to_vec()).collect();
        let texts = spans.iter().map(ToString::to_string).collect();
        let lookups = vec![
            Lookup::ids(Table::Samples, sample::SPAN_ID, ids)
                .without(sample::TRACE_ID)
                .near(near),
            Lookup::containing(Table::Samples, sample::CANDIDATES, texts).near(near),
        ];
        let wanted: HashSet<&SpanId> = spans.iter().collect();
        let is_wanted = |stored: &StoredSample| {
            let named = match &stored.sample.link {
                Link::One { trace_id, span_id, .. } => trace_id.is_none() && span_id.as_ref().is_some_and(|id| wanted.contains(id)),
                Link::Candidates { span_ids, .. } => span_ids.iter().any(|id| wanted.contains(id)),
                Link::None => false,
            };
            named && overlaps(stored, near)
        };
        self.find_samples(tenants, heads.collect(), lookups, is_wanted).await
    }

    /// The traces of `spans`: every pair of one of them and a trace that a sample names together, for those without any
    /// that a span has, of files with rows near in time. Sorted.
    pub async fn traces_of_spans(&self, tenants: &[Tenant], spans: &[SpanId], near: TimeRange) -> Result<Vec<(SpanId, TraceId)>, Error> {
        let mut missing: HashSet<SpanId> = spans.iter().copied().collect();
        let mut found = HashSet::new();
        for table in [Table::Samples, Table::Spans] {
            found.extend(self.named_together(tenants, table, &missing, near).await?);
            missing.retain(|span| !found.iter().any(|(known, _)| known == span));
            if missing.is_empty() {
                break;
            }
        }
        let mut found: Vec<(SpanId, TraceId)> = found.into_iter().collect();
        found.sort_unstable();
        Ok(found)
    }

    async fn named_together(
        &self,
        tenants: &[Tenant],
        table: Table,
        spans: &HashSet<SpanId>,
        near: TimeRange,
    ) -> Result<Vec<(SpanId, TraceId)>, Error> {
        let (trace_column, span_column) = match table {
            Table::Spans => (span::TRACE_ID, span::SPAN_ID),
            _ => (sample::TRACE_ID, sample::SPAN_ID),
        };
        let mut found = Vec::new();
        let mut read = |batch: &RecordBatch, rows: &mut dyn Iterator<Item = usize>| -> Result<(), Unreadable> {
            let (traces, ids): (&BinaryArray, &BinaryArray) = (column(batch, trace_column)?, column(batch, span_column)?);
            let pair = |row: usize| Some((SpanId::from_slice(ids.value(row))?, TraceId::from_slice(traces.value(row))?));
            found.extend(rows.filter_map(pair));
            Ok(())
        };
        for part in self.heads.iter().flat_map(|head| head.naming_spans(tenants, table, spans)) {
            read(&part.batch.rows, &mut part.rows.into_iter()).map_err(in_head)?;
        }
        let ids = spans.iter().map(|span| span.as_bytes().to_vec()).collect();
        let lookup = Lookup::ids(table, span_column, ids)
            .near(near)
            .reading(vec![trace_column, span_column]);
        let mut batches = lookup.run(self, tenants);
        while let Some((file, rows)) = batches.try_next().await? {
            read(&rows, &mut (0..rows.num_rows())).map_err(|error| error.in_file(file.path.as_ref()))?;
        }
        Ok(found)
    }

    /// Visits every span that a scan asks for, in no order, in batches, until `visit` breaks.
    ///
    /// A span that was sent again after the store's recognition had forgotten it is visited once for each
    /// file that holds it, until these files are merged.
    pub async fn scan_spans(
        &self,
        scan: &SpanScan,
        visit: impl FnMut(Vec<StoredSpan>) -> ControlFlow<()> + Send,
    ) -> Result<ScanStats, Error> {
        scan::run(self, scan.clone(), visit).await
    }

    /// Like [`Snapshot::scan_spans`], only what arrived after `after`: what came in since, read once.
    pub async fn scan_spans_after(
        &self,
        scan: &SpanScan,
        after: Timestamp,
        visit: impl FnMut(Vec<StoredSpan>) -> ControlFlow<()> + Send,
    ) -> Result<ScanStats, Error> {
        let scan = scan.clone();
        scan::run(self, scan::Arrived { scan, after }, visit).await
    }

    /// Visits every sample that a scan asks for, in no order, in batches, until `visit` breaks.
    pub async fn scan_samples(
        &self,
        scan: &SampleScan,
        visit: impl FnMut(Vec<StoredSample>) -> ControlFlow<()> + Send,
    ) -> Result<ScanStats, Error> {
        scan::run(self, scan.clone(), visit).await
    }

    /// Visits what profiles say of sender and types, every different one at least once, with the times of one of its
    /// profiles; in no order. Reads a fraction of what a scan of samples reads.
    pub async fn scan_senders(
        &self,
        scan: &SenderScan,
        visit: impl FnMut(Vec<Arc<ProfileInfo>>) -> ControlFlow<()> + Send,
    ) -> Result<ScanStats, Error> {
        scan::run(self, scan.clone(), visit).await
    }

    /// Visits every rollup row that a scan asks for. A minute that the rollup does not hold yet is not there:
    /// the caller scans samples received after [`Snapshot::rollup_until`].
    pub async fn scan_rollup(
        &self,
        scan: &RollupScan,
        visit: impl FnMut(Vec<RollupRow>) -> ControlFlow<()> + Send,
    ) -> Result<ScanStats, Error> {
        scan::run(self, scan.clone(), visit).await
    }

    /// The stacks asked for, with their frames. What is not stored is not there.
    pub async fn stacks(&self, tenants: &[Tenant], ids: &[StackId]) -> Result<StackSet, Error> {
        stacks::read(self, tenants, ids).await
    }

    /// Every service that sent spans, in order, without reading a file; `None` if a file has too many to list them.
    pub fn span_services(&self, tenants: &[Tenant]) -> Result<Option<BTreeSet<String>>, Error> {
        let mut services = BTreeSet::new();
        for file in self
            .version
            .files(Table::Spans)
            .iter()
            .filter(|file| tenants.contains(&file.tenant))
        {
            match &file.stats.services {
                Some(listed) => services.extend(listed.iter().cloned()),
                None => return Ok(None),
            }
        }
        for batch in self.heads.iter().flat_map(|head| head.batches(tenants, Table::Spans)) {
            let names: &StringArray = column(&batch.rows, span::SERVICE).map_err(|unreadable| unreadable.in_file("head"))?;
            for name in names.iter().flatten() {
                if !services.contains(name) {
                    services.insert(name.to_owned());
                }
            }
        }
        Ok(Some(services))
    }

    /// How much is stored of samples, in files that overlap `range` and in memory. Opens nothing.
    pub fn sample_volume(&self, tenants: &[Tenant], range: TimeRange) -> Result<StoredVolume, Error> {
        let mut volume = StoredVolume::default();
        for file in self.version.files(Table::Samples) {
            let stats = &file.stats;
            if tenants.contains(&file.tenant) && stats.time_unix_nano.is_some_and(|time| volume.cover(range, time)) {
                volume.files += 1;
                volume.rows += stats.rows;
                volume.bytes += stats.size_bytes;
            }
        }
        for batch in self.heads.iter().flat_map(|head| head.batches(tenants, Table::Samples)) {
            let time = FileStats::time_of(Table::Samples, &batch.rows).map_err(in_head)?;
            if time.is_some_and(|time| volume.cover(range, time)) {
                volume.rows += batch.rows.num_rows() as u64;
            }
        }
        Ok(volume)
    }

    /// The latest arrival in this view; `None` if it holds nothing.
    pub fn last_received(&self) -> Option<Timestamp> {
        let in_files = [Table::Spans, Table::Samples]
            .into_iter()
            .flat_map(|table| self.version.files(table));
        let in_files = in_files.filter_map(|file| Timestamp::from_unix_nanos_signed(file.stats.received_unix_nano.1));
        in_files.chain(self.heads.iter().filter_map(HeadView::last_received)).max()
    }

    async fn find_samples(
        &self,
        tenants: &[Tenant],
        heads: Vec<HeadRows>,
        lookups: Vec<Lookup>,
        is_wanted: impl Fn(&StoredSample) -> bool,
    ) -> Result<Vec<StoredSample>, Error> {
        let mut found = Vec::new();
        let mut decoders = Decoders::new(SampleDecoder::new);
        for part in heads {
            let decoder = decoders.of(&part.batch.tenant);
            decoder.decode(&part.batch.rows, part.rows, &mut found).map_err(in_head)?;
        }
        let mut batches = stream::select_all(lookups.iter().map(|lookup| lookup.run(self, tenants)));
        while let Some((file, rows)) = batches.try_next().await? {
            let decoder = decoders.of(&file.tenant);
            let all = 0..rows.num_rows();
            decoder
                .decode(&rows, all, &mut found)
                .map_err(|error| error.in_file(file.path.as_ref()))?;
        }
        found.retain(is_wanted);
        keep_first_arrival(&mut found);
        Ok(found)
    }
}

/// One decoder for each tenant: what rows share must not be shared between tenants.
struct Decoders<D, F: Fn(Tenant) -> D> {
    new: F,
    by_tenant: HashMap<Tenant, D>,
}

impl<D, F: Fn(Tenant) -> D> Decoders<D, F> {
    fn new(new: F) -> Decoders<D, F> {
        Decoders {
            new,
            by_tenant: HashMap::new(),
        }
    }

    fn of(&mut self, tenant: &Tenant) -> &mut D {
        self.by_tenant.entry(tenant.clone()).or_insert_with(|| (self.new)(tenant.clone()))
    }
}

/// A profile that was sent again after the store's recognition had forgotten it lies there twice, until its
/// files are merged: of each profile only what arrived first counts.
fn keep_first_arrival(found: &mut Vec<StoredSample>) {
    let mut first: HashMap<(Tenant, Fingerprint), Timestamp> = HashMap::new();
    for stored in &*found {
        let arrival = first.entry((stored.tenant.clone(), stored.profile)).or_insert(stored.received);
        *arrival = stored.received.min(*arrival);
    }
    found.retain(|stored| first.get(&(stored.tenant.clone(), stored.profile)) == Some(&stored.received));
}

/// Whether a sample's times, or its profile where it has none, overlap a range.
fn overlaps(stored: &StoredSample, range: TimeRange) -> bool {
    match stored.sample.times.as_slice() {
        [] => stored.info.range().overlap(range).is_some(),
        times => times.iter().any(|time| range.contains(*time)),
    }
}

fn in_head(unreadable: Unreadable) -> Error {
    unreadable.in_file("head")
}

#[cfg(test)]
mod tests;
