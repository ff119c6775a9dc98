//! The table `profiles`: sums of samples by minute, kept far longer than the samples.
//!
//! Samples are rolled up by arrival, one window after the other, some minutes late so that most of their
//! spans have come and lend their names. The rows of a window and the end of the window are one commit:
//! every sample that arrived before that end is in the rollup, once, and none that arrived later.
//!
//! Memory holds the ids of the linked samples of a window and at most [`ROWS_MAX`] sums.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, BinaryArray, Int64Array, RecordBatch, StringArray};
use futures::TryStreamExt;
use spanflame_model::{Fingerprint, Hasher, ProfileInfo, ProfileType, SpanId, StackId, Timestamp, TraceId};

use crate::compaction::partition;
use crate::log::{Change, ROLLUP};
use crate::reader::{Part, Reader};
use crate::rows::{SampleDecoder, column, encode_rollup};
use crate::schema::{RECEIVED, Table, sample, span};
use crate::tables::{Partition, Tables};
use crate::version::{FileEntry, Tier, Version};
use crate::{Error, RollupRow, StoredSample};

/// How old the samples of a window are at least, and how much time a window covers, roughly.
const DELAY: Duration = Duration::from_secs(600);
/// A span may arrive this long before or after its samples to lend its name.
const SPAN_SLACK: Duration = Duration::from_secs(600);
/// Sums held in memory; more make a further file.
const ROWS_MAX: usize = 500_000;
/// Linked samples whose span names are looked up; the others count as not knowing their span.
const LINKS_MAX: usize = 4_000_000;
const NANOS_PER_MINUTE: i64 = 60 * 1_000_000_000;

/// Arrival times to roll up, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    from: i64,
    until: i64,
}

impl Window {
    fn holds(self, received: i64) -> bool {
        self.from <= received && received < self.until
    }

    fn touches(self, file: &FileEntry, slack: Duration) -> bool {
        let slack = i64::try_from(slack.as_nanos()).unwrap_or(i64::MAX);
        let (first, last) = file.stats.received_unix_nano;
        first < self.until.saturating_add(slack) && last >= self.from.saturating_sub(slack)
    }
}

/// The window that is due at `now`. `flushed` is the latest arrival before which everything is in files.
/// With `all`, everything that is in files.
pub(crate) fn due(version: &Version, flushed: Timestamp, now: Timestamp, all: bool) -> Option<Window> {
    let from = version.rollup_until().unwrap_or(Timestamp::ZERO).unix_nanos();
    let delay = u64::try_from(DELAY.as_nanos()).unwrap_or(u64::MAX);
    let settled = if all { Timestamp::MAX } else { now.saturating_sub(delay) };
    let until = flushed.saturating_add(1).min(settled).unix_nanos();
    let window = Window { from, until };
    let oldest = version
        .files(Table::Samples)
        .iter()
        .filter(|file| window.touches(file, Duration::ZERO))
        .map(|file| file.stats.received_unix_nano.0.max(from))
        .min()?;
    let ripe = all || now.saturating_sub(2 * delay).unix_nanos() >= oldest;
    ripe.then_some(window)
}

/// Rolls a window up, commits it and shows it to readers. Returns the bytes written.
pub(crate) async fn roll(tables: &Tables, reader: &Arc<Reader>, window: Window) -> Result<u64, Error> {
    let version = tables.version().get();
    let mut partitions: BTreeMap<Partition, Vec<Arc<FileEntry>>> = BTreeMap::new();
    for file in version.files(Table::Samples) {
        if window.touches(file, Duration::ZERO) {
            partitions.entry(partition(file)).or_default().push(Arc::clone(file));
        }
    }
    let until = Timestamp::from_unix_nanos_signed(window.until).unwrap_or(Timestamp::MAX);
    let mut add = Vec::new();
    for (samples, files) in partitions {
        let names = SpanNames::load(reader, &version, &samples, &files, window).await?;
        let target = Partition {
            table: Table::Profiles,
            ..samples.clone()
        };
        let mut sums = Sums::default();
        for file in files {
            let mut decoder = SampleDecoder::new(file.tenant.clone());
            let mut rows = reader.rows(&file).await?;
            while let Some(batch) = rows.try_next().await? {
                let mut decoded = Vec::new();
                let wanted = rows_in(&batch, window, &file)?;
                decoder
                    .decode(&batch, wanted, &mut decoded)
                    .map_err(|error| error.in_file(file.path.as_ref()))?;
                decoded.iter().for_each(|sample| sums.add(sample, &names));
                if sums.sums.len() >= ROWS_MAX {
                    let rows = sums.take(until)?;
                    add.push(tables.write(target.clone(), vec![rows], Tier::Flush).await?);
                }
            }
        }
        if !sums.sums.is_empty() {
            add.push(tables.write(target, vec![sums.take(until)?], Tier::Flush).await?);
        }
    }
    let bytes = add.iter().map(|file| file.stats.size_bytes).sum();
    let change = Change {
        add,
        data_change: true,
        progress: Some((ROLLUP.to_owned(), window.until)),
        ..Change::default()
    };
    tables.commit(Table::Profiles, &change).await?;
    tables
        .version()
        .update(|version| version.with_files(&change.add, &[]).with_rollup_until(Some(until)));
    Ok(bytes)
}

fn rows_in(batch: &RecordBatch, window: Window, file: &FileEntry) -> Result<Vec<usize>, Error> {
    let received = column::<Int64Array>(batch, RECEIVED).map_err(|error| error.in_file(file.path.as_ref()))?;
    Ok((0..batch.num_rows()).filter(|row| window.holds(received.value(*row))).collect())
}

type LinkKey = ([u8; 16], [u8; 8]);

/// Names of the spans that samples are linked to.
#[derive(Default)]
struct SpanNames {
    names: Vec<Arc<str>>,
    spans: HashMap<LinkKey, Option<u32>>,
}

impl SpanNames {
    async fn load(
        reader: &Arc<Reader>,
        version: &Version,
        samples: &Partition,
        files: &[Arc<FileEntry>],
        window: Window,
    ) -> Result<SpanNames, Error> {
        let mut found = SpanNames::default();
        for file in files {
            let columns = vec![sample::TRACE_ID, sample::SPAN_ID, RECEIVED];
            each_batch(reader, file, columns, |batch| {
                for row in rows_in(batch, window, file)? {
                    if found.spans.len() < LINKS_MAX
                        && let Some(key) = link_key(batch, row, file)?
                    {
                        found.spans.insert(key, None);
                    }
                }
                Ok(())
            })
            .await?;
        }
        if found.spans.is_empty() {
            return Ok(found);
        }
        let mut numbers: HashMap<Arc<str>, u32> = HashMap::new();
        let of_tenant = |file: &&Arc<FileEntry>| file.tenant == samples.tenant && window.touches(file, SPAN_SLACK);
        for file in version.files(Table::Spans).iter().filter(of_tenant) {
            each_batch(reader, file, vec![span::TRACE_ID, span::SPAN_ID, span::NAME], |batch| {
                let names = column::<StringArray>(batch, span::NAME).map_err(|error| error.in_file(file.path.as_ref()))?;
                for row in 0..batch.num_rows() {
                    let Some(key) = link_key(batch, row, file)? else { continue };
                    let Some(slot) = found.spans.get_mut(&key) else { continue };
                    let name: Arc<str> = names.value(row).into();
                    let number = numbers.entry(Arc::clone(&name)).or_insert_with(|| {
                        found.names.push(name);
                        (found.names.len() - 1) as u32
                    });
                    *slot = Some(*number);
                }
                Ok(())
            })
            .await?;
        }
        Ok(found)
    }

    fn of(&self, trace: Option<TraceId>, span: Option<SpanId>) -> Option<u32> {
        *self.spans.get(&(*trace?.as_bytes(), *span?.as_bytes()))?
    }
}

/// Calls `visit` for some columns of all rows of a file; a damaged one is left out.
async fn each_batch(
    reader: &Arc<Reader>,
    file: &FileEntry,
    columns: Vec<&'static str>,
    visit: impl FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<(), Error> {
    let visited = each_readable_batch(reader, file, columns, visit).await;
    visited.or_else(|error| reader.pass_damage(error))
}

async fn each_readable_batch(
    reader: &Arc<Reader>,
    file: &FileEntry,
    columns: Vec<&'static str>,
    mut visit: impl FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<(), Error> {
    let open = reader.open(file).await?;
    let part = Part {
        row_groups: open.row_groups(),
        rows: None,
        columns: Some(columns),
        predicates: Vec::new(),
    };
    let mut rows = reader.read(file, &open, part).await?;
    loop {
        match rows.try_next().await {
            Ok(Some(batch)) => visit(&batch)?,
            Ok(None) => return Ok(()),
            Err(source) => return Err(reader.explain(file, source).await),
        }
    }
}

/// Trace and span of a row, if it has both.
fn link_key(batch: &RecordBatch, row: usize, file: &FileEntry) -> Result<Option<LinkKey>, Error> {
    let ids = |name| column::<BinaryArray>(batch, name).map_err(|error| error.in_file(file.path.as_ref()));
    let (traces, spans) = (ids(span::TRACE_ID)?, ids(span::SPAN_ID)?);
    if traces.is_null(row) || spans.is_null(row) {
        return Ok(None);
    }
    Ok(traces.value(row).try_into().ok().zip(spans.value(row).try_into().ok()))
}

/// What is summed up: series and type, minute, span name, stack.
type SumKey = (Fingerprint, i64, Option<u32>, StackId);

/// Sums of samples.
#[derive(Default)]
struct Sums {
    series: HashMap<Fingerprint, (Arc<ProfileInfo>, ProfileType)>,
    names: Vec<Arc<str>>,
    sums: HashMap<SumKey, (i64, u64)>,
    /// The series of the profile seen last, by type.
    last: Option<(Arc<ProfileInfo>, Vec<Fingerprint>)>,
}

impl Sums {
    fn add(&mut self, stored: &StoredSample, names: &SpanNames) {
        if self.names.len() != names.names.len() {
            self.names = names.names.clone();
        }
        let sample = &stored.sample;
        let name = names.of(sample.link.trace_id(), sample.link.span_id());
        let series = self.series_of(&stored.info);
        let (times, values) = (&sample.times, &sample.values);
        let one_type = series.len() == 1;
        if one_type && !times.is_empty() && (values.is_empty() || values.len() == times.len()) {
            // Every observation has its own time and value; without values each counts 1.
            for (at, time) in times.iter().enumerate() {
                let value = values.get(at).copied().unwrap_or(1);
                self.sum((series[0], minute(*time), name, sample.stack), value, 1);
            }
            return;
        }
        // One value for all observations belongs to the first of them.
        let at = minute(times.first().copied().unwrap_or(stored.info.start));
        for (series, value) in series.into_iter().zip(values) {
            self.sum((series, at, name, sample.stack), *value, sample.observations());
        }
    }

    fn sum(&mut self, key: SumKey, value: i64, count: u64) {
        let sum = self.sums.entry(key).or_default();
        sum.0 = sum.0.saturating_add(value);
        sum.1 = sum.1.saturating_add(count);
    }

    fn series_of(&mut self, info: &Arc<ProfileInfo>) -> Vec<Fingerprint> {
        if let Some((last, series)) = &self.last
            && Arc::ptr_eq(last, info)
        {
            return series.clone();
        }
        let series: Vec<Fingerprint> = (0..info.types.len())
            .map(|index| {
                let profile_type = info.profile_type(index);
                let mut h = Hasher::new();
                h.attributes(info.resource.attributes());
                h.text(&profile_type.to_string());
                h.number(info.period as u64);
                let key = h.finish();
                self.series.entry(key).or_insert_with(|| (Arc::clone(info), profile_type));
                key
            })
            .collect();
        self.last = Some((Arc::clone(info), series.clone()));
        series
    }

    /// The rows so far; begins anew.
    fn take(&mut self, received: Timestamp) -> Result<RecordBatch, Error> {
        let rows: Vec<RollupRow> = std::mem::take(&mut self.sums)
            .into_iter()
            .map(|((series, minute, name, stack), (sum, count))| {
                let (info, profile_type) = &self.series[&series];
                RollupRow {
                    info: Arc::clone(info),
                    profile_type: profile_type.clone(),
                    minute: Timestamp::from_unix_nanos_signed(minute).unwrap_or(Timestamp::ZERO),
                    span_name: name.map(|name| self.names[name as usize].to_string()),
                    stack,
                    sum,
                    count,
                }
            })
            .collect();
        encode_rollup(&rows, received)
    }
}

fn minute(at: Timestamp) -> i64 {
    at.unix_nanos() / NANOS_PER_MINUTE * NANOS_PER_MINUTE
}
