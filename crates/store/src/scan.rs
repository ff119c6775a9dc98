//! Visits all rows of a table that meet conditions, head first, then files.
//!
//! A file is skipped by its statistics, a row group by its bounds; what is left is filtered in stages, cheap
//! columns first, and only rows that pass all stages are read in full. Head rows go through the same stages.
//! Files are read by tasks that hand batches to the caller's closure; when it breaks, they stop.

mod arrived;
mod rollup;
mod samples;
mod senders;
mod spans;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicate, ArrowPredicateFn};
use spanflame_model::{Tenant, TimeRange, Timestamp};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::file::FileStats;
use crate::reader::{OpenFile, Part};
use crate::rows::Unreadable;
use crate::schema::Table;
use crate::version::FileEntry;
use crate::{Error, ScanStats, Snapshot};
pub(crate) use arrived::Arrived;

/// Files that one scan reads at the same time: decoding is bound by cores, waiting by the medium.
const FILES_AT_ONCE_MAX: usize = 8;
/// Batches that wait for the caller's closure.
const BATCHES_WAITING_MAX: usize = 4;

/// One kind of scan.
pub(crate) trait Scan: Send + Sync + 'static {
    /// What a row becomes.
    type Item: Send + 'static;
    /// Where the rows are.
    const TABLE: Table;

    /// Whose.
    fn tenants(&self) -> &[Tenant];
    /// Whether a file may hold a wanted row.
    fn wants_file(&self, stats: &FileStats) -> bool;
    /// Whether a row group may.
    fn wants_row_group(&self, file: &OpenFile, row_group: usize) -> bool;
    /// The filters, cheap ones first.
    fn stages(&self) -> Vec<Stage>;
    /// The columns that decoding needs; `None` is all.
    fn columns(&self) -> Option<Vec<&'static str>>;
    /// Whether a stage looks for an attribute of spans.
    fn by_attribute(&self) -> bool {
        false
    }
    /// Decodes the rows of one tenant; keeps between calls what rows share.
    fn decoder(&self, tenant: &Tenant) -> Decoder<Self::Item>;
}

/// Decodes all rows of a batch.
pub(crate) type Decoder<T> = Box<dyn FnMut(&RecordBatch) -> Result<Vec<T>, Unreadable> + Send>;

type Mask = dyn FnMut(&RecordBatch) -> Result<BooleanArray, Unreadable> + Send;

/// A filter and the columns it looks at.
pub(crate) struct Stage {
    columns: Vec<&'static str>,
    mask: Box<Mask>,
}

impl Stage {
    fn new(columns: Vec<&'static str>, mask: impl FnMut(&RecordBatch) -> Result<BooleanArray, Unreadable> + Send + 'static) -> Stage {
        Stage {
            columns,
            mask: Box::new(mask),
        }
    }
}

/// Runs a scan.
pub(crate) async fn run<S: Scan>(
    snapshot: &Snapshot,
    scan: S,
    mut visit: impl FnMut(Vec<S::Item>) -> ControlFlow<()> + Send,
) -> Result<ScanStats, Error> {
    let mut stats = ScanStats::default();
    let scan = Arc::new(scan);
    if scan_heads(snapshot, &*scan, &mut stats, &mut visit)?.is_break() {
        return Ok(stats);
    }
    let (sender, mut batches) = mpsc::channel(BATCHES_WAITING_MAX);
    let mut tasks = JoinSet::new();
    let permits = Arc::new(Semaphore::new(FILES_AT_ONCE_MAX));
    for file in snapshot.version.files(S::TABLE) {
        if scan.tenants().contains(&file.tenant) && scan.wants_file(&file.stats) {
            let (snapshot, scan, file) = (snapshot.clone(), Arc::clone(&scan), Arc::clone(file));
            let (sender, permits) = (sender.clone(), Arc::clone(&permits));
            tasks.spawn(async move {
                let _permit = permits.acquire_owned().await;
                let reader = Arc::clone(&snapshot.reader);
                let scanned = scan_file(snapshot, scan, &file, &sender).await;
                // Rows that were read before the damage are in the answer already.
                let end = scanned.or_else(|error| reader.pass_damage(error).map(|()| Progress::Done { rows: 0 }));
                // A send fails only when the caller has seen enough.
                let _ = sender.send(end).await;
            });
        }
    }
    drop(sender);
    while let Some(message) = batches.recv().await {
        match message? {
            Progress::Rows(items) => {
                if visit(items).is_break() {
                    break;
                }
            }
            Progress::Done { rows } => {
                stats.rows += rows;
                stats.files += 1;
            }
        }
    }
    drop(batches);
    finish(tasks).await?;
    Ok(stats)
}

/// Waits for tasks that have nothing left to say; one that panicked read something that nobody foresaw.
async fn finish(mut tasks: JoinSet<()>) -> Result<(), Error> {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            return Err(Error::Internal {
                message: format!("reading a file of a scan ended unexpectedly: {error}"),
            });
        }
    }
    Ok(())
}

enum Progress<T> {
    Rows(Vec<T>),
    Done { rows: u64 },
}

fn scan_heads<S: Scan>(
    snapshot: &Snapshot,
    scan: &S,
    stats: &mut ScanStats,
    visit: &mut impl FnMut(Vec<S::Item>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Error> {
    let in_head = |unreadable: Unreadable| unreadable.in_file("head");
    let mut stages = scan.stages();
    for head in &snapshot.heads {
        for batch in head.batches(scan.tenants(), S::TABLE) {
            stats.rows += batch.rows.num_rows() as u64;
            let mut rows = batch.rows.clone();
            for stage in &mut stages {
                if rows.num_rows() > 0 {
                    let mask = (stage.mask)(&rows).map_err(in_head)?;
                    // Filtering copies all columns, which is most of the cost where every row passes.
                    if mask.true_count() == rows.num_rows() {
                        continue;
                    }
                    rows = filter_record_batch(&rows, &mask).map_err(Error::arrow("filter rows"))?;
                }
            }
            if rows.num_rows() > 0 && visit(scan.decoder(&batch.tenant)(&rows).map_err(in_head)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

async fn scan_file<S: Scan>(
    snapshot: Snapshot,
    scan: Arc<S>,
    file: &FileEntry,
    sender: &mpsc::Sender<Result<Progress<S::Item>, Error>>,
) -> Result<Progress<S::Item>, Error> {
    let open = snapshot.reader.open(file).await?;
    let row_groups: Vec<usize> = open
        .row_groups()
        .into_iter()
        .filter(|group| scan.wants_row_group(&open, *group))
        .collect();
    let done = Progress::Done {
        rows: open.rows_in(&row_groups),
    };
    if row_groups.is_empty() {
        return Ok(done);
    }
    let part = Part {
        row_groups,
        rows: None,
        columns: scan.columns(),
        predicates: scan.stages().into_iter().map(|stage| predicate(stage, &open, file)).collect(),
    };
    let mut decode = scan.decoder(&file.tenant);
    let mut batches = match scan.by_attribute() {
        true => snapshot.reader.read_by_attribute(file, &open, part).await?,
        false => snapshot.reader.read(file, &open, part).await?,
    };
    loop {
        let rows = match batches.try_next().await {
            Ok(Some(rows)) => rows,
            Ok(None) => return Ok(done),
            Err(source) => return Err(snapshot.reader.explain(file, source).await),
        };
        let items = decode(&rows).map_err(|unreadable| unreadable.in_file(file.path.as_ref()))?;
        if !items.is_empty() && sender.send(Ok(Progress::Rows(items))).await.is_err() {
            return Ok(done);
        }
    }
}

fn predicate(mut stage: Stage, open: &OpenFile, file: &FileEntry) -> Box<dyn ArrowPredicate> {
    let mask = ProjectionMask::columns(open.metadata.parquet_schema(), stage.columns.iter().copied());
    let path = file.path.to_string();
    Box::new(ArrowPredicateFn::new(mask, move |rows| {
        (stage.mask)(&rows).map_err(|unreadable| ArrowError::ExternalError(Box::new(unreadable.in_file(&path))))
    }))
}

/// Whether `first..=last` has an instant in common with `range`.
fn overlaps(first: i64, last: i64, range: TimeRange) -> bool {
    first < range.end().unix_nanos() && last >= range.start().unix_nanos()
}

/// Whether rows of which the earliest arrived at `first` include one from before `bound`; unknown is yes.
fn arrived_before(first: Option<i64>, bound: Option<Timestamp>) -> bool {
    first.zip(bound).is_none_or(|(first, bound)| first < bound.unix_nanos())
}

/// Whether the services of a file include a wanted one; a file that lists none may hold all.
fn lists_service(stats: &FileStats, wanted: &str) -> bool {
    stats
        .services
        .as_ref()
        .is_none_or(|services| services.iter().any(|service| service == wanted))
}
