//! Visits all rows of a table that meet conditions, head first, then files.
//!
//! A file is skipped by its statistics, a row group by its bounds; what is left is filtered in stages, on encoded pages where
//! these tell, cheap columns first, and only rows that pass all stages are read in full. Head rows go through the same
//! stages. Row groups are read by tasks that hand batches to the caller's closure; when it breaks, they stop.

mod arrived;
mod rollup;
mod samples;
mod senders;
mod spans;

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{BooleanArray, StringArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use futures::TryStreamExt;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicate, ArrowPredicateFn};
use spanflame_model::{Tenant, TimeRange, Timestamp};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinError, JoinSet};

use crate::file::FileStats;
use crate::reader::{OpenFile, Part, Positions};
use crate::rows::{Unreadable, column};
use crate::schema::Table;
use crate::version::FileEntry;
use crate::{Error, ScanStats, Snapshot};
pub(crate) use arrived::Arrived;

/// Row groups that one scan reads at the same time: decoding is bound by cores, waiting by the medium.
const ROW_GROUPS_AT_ONCE_MAX: usize = 8;
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
    /// The filters, cheap ones first. Those that every row of a row group passes by its bounds are left out.
    fn stages(&self, row_group: Option<(&OpenFile, usize)>) -> Vec<Stage>;
    /// The columns that decoding needs; `None` is all.
    fn columns(&self) -> Option<Vec<&'static str>>;
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
    /// The same on encoded pages, which is cheaper by far; `None` where only decoded rows tell.
    on_pages: Option<PageTest>,
}

/// A test of text. What it cannot read it lets pass: the rows are looked at again.
pub(crate) type TextTest = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What rows must hold, as encoded pages can tell.
#[derive(Clone)]
pub(crate) struct PageTest {
    /// A column whose text passes.
    text: Option<(&'static str, TextTest)>,
    /// Or a map with an entry of this key whose value passes.
    entry: Option<(&'static str, String, TextTest)>,
}

impl Stage {
    fn new(columns: Vec<&'static str>, mask: impl FnMut(&RecordBatch) -> Result<BooleanArray, Unreadable> + Send + 'static) -> Stage {
        Stage {
            columns,
            mask: Box::new(mask),
            on_pages: None,
        }
    }

    /// Rows with one of some texts in a column that is never null.
    fn one_of(column_name: &'static str, texts: Vec<String>) -> Stage {
        let wanted: Arc<[String]> = texts.into();
        let is_wanted = |wanted: Arc<[String]>| move |text: &str| wanted.iter().any(|wanted| wanted == text);
        let passes = is_wanted(Arc::clone(&wanted));
        let stage = Stage::new(vec![column_name], move |rows| {
            let texts: &StringArray = column(rows, column_name)?;
            let mask = BooleanBuffer::collect_bool(rows.num_rows(), |row| passes(texts.value(row)));
            Ok(BooleanArray::new(mask, None))
        });
        stage.on_pages(PageTest {
            text: Some((column_name, Arc::new(is_wanted(wanted)))),
            entry: None,
        })
    }

    fn on_pages(self, test: PageTest) -> Stage {
        Stage {
            on_pages: Some(test),
            ..self
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
    let permits = Arc::new(Semaphore::new(ROW_GROUPS_AT_ONCE_MAX));
    for file in snapshot.version.files(S::TABLE) {
        if scan.tenants().contains(&file.tenant) && scan.wants_file(&file.stats) {
            let (snapshot, scan, file) = (snapshot.clone(), Arc::clone(&scan), Arc::clone(file));
            let (sender, permits) = (sender.clone(), Arc::clone(&permits));
            tasks.spawn(async move {
                let reader = Arc::clone(&snapshot.reader);
                let scanned = scan_file(snapshot, scan, file, &sender, permits).await;
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
        ended.map_err(unexpected_end)?;
    }
    Ok(())
}

fn unexpected_end(error: JoinError) -> Error {
    Error::Internal {
        message: format!("reading a file of a scan ended unexpectedly: {error}"),
    }
}

/// Where what was read goes.
type Sender<S> = mpsc::Sender<Result<Progress<<S as Scan>::Item>, Error>>;

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
    let mut stages = scan.stages(None);
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
    file: Arc<FileEntry>,
    sender: &Sender<S>,
    permits: Arc<Semaphore>,
) -> Result<Progress<S::Item>, Error> {
    let open = {
        let _permit = permits.acquire().await;
        snapshot.reader.open(&file).await?
    };
    let row_groups: Vec<usize> = open
        .row_groups()
        .into_iter()
        .filter(|group| scan.wants_row_group(&open, *group))
        .collect();
    let done = Progress::Done {
        rows: open.rows_in(&row_groups),
    };
    let mut tasks = JoinSet::new();
    for row_group in row_groups {
        let (snapshot, scan, file, open) = (snapshot.clone(), Arc::clone(&scan), Arc::clone(&file), Arc::clone(&open));
        let (sender, permits) = (sender.clone(), Arc::clone(&permits));
        tasks.spawn(async move {
            let _permit = permits.acquire_owned().await;
            scan_row_group(&snapshot, &*scan, &file, (&open, row_group), &sender).await
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(unexpected_end)??;
    }
    Ok(done)
}

async fn scan_row_group<S: Scan>(
    snapshot: &Snapshot,
    scan: &S,
    file: &FileEntry,
    (open, row_group): (&OpenFile, usize),
    sender: &Sender<S>,
) -> Result<(), Error> {
    let mut found: Option<Positions> = None;
    let mut stages = Vec::new();
    for stage in scan.stages(Some((open, row_group))) {
        let on_pages = match &stage.on_pages {
            Some(test) => find_on_pages(snapshot, file, (open, row_group), test).await?,
            None => None,
        };
        let Some(rows) = on_pages else {
            stages.push(stage);
            continue;
        };
        let rows = match found.take() {
            Some(others) => others.and(&rows),
            None => rows,
        };
        if rows.is_empty() {
            return Ok(());
        }
        found = Some(rows);
    }
    let row_count = open.row_count(row_group) as usize;
    let views = stages
        .iter()
        .any(|stage| stage.on_pages.as_ref().is_some_and(|test| test.entry.is_some()));
    let part = Part {
        row_groups: vec![row_group],
        rows: found.map(|rows| rows.selection(row_count)),
        columns: scan.columns(),
        predicates: stages.into_iter().map(|stage| predicate(stage, open, file)).collect(),
    };
    let mut decode = scan.decoder(&file.tenant);
    let mut batches = match views {
        true => snapshot.reader.read_by_attribute(file, open, part).await?,
        false => snapshot.reader.read(file, open, part).await?,
    };
    loop {
        let rows = match batches.try_next().await {
            Ok(Some(rows)) => rows,
            Ok(None) => return Ok(()),
            Err(source) => return Err(snapshot.reader.explain(file, source).await),
        };
        let items = decode(&rows).map_err(|unreadable| unreadable.in_file(file.path.as_ref()))?;
        if !items.is_empty() && sender.send(Ok(Progress::Rows(items))).await.is_err() {
            return Ok(());
        }
    }
}

/// The rows of a row group that pass a test on encoded pages; `None` if these do not tell.
async fn find_on_pages(
    snapshot: &Snapshot,
    file: &FileEntry,
    (open, row_group): (&OpenFile, usize),
    test: &PageTest,
) -> Result<Option<Positions>, Error> {
    let reader = &snapshot.reader;
    let mut found = Positions::default();
    if let Some((column, passes)) = &test.text {
        match reader.rows_with_text(file, (open, row_group), column, &**passes).await? {
            Some(rows) => found = found.or(&rows),
            None => return Ok(None),
        }
    }
    if let Some((map, key, passes)) = &test.entry {
        match reader.rows_with_entry(file, (open, row_group), map, (key, &**passes)).await? {
            Some(rows) => found = found.or(&rows),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
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
