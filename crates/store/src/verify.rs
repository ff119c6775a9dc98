//! Reads everything that is stored and says what the medium lost or changed.
//!
//! ```text
//! table log   every commit since the last checkpoint is there and is JSON
//! table file  is there, has its length and its checksums, every row decodes, and there are as many as promised
//! other files rows that no file of the table has: a commit was lost
//! segment     records have their checksums
//! ```
//!
//! Changes nothing; needs a directory that no server holds. [`repair`](crate::repair) acts on what it finds.

mod file;
mod orphans;

use std::path::Path;

use spanflame_model::Tenant;

pub(crate) use file::{Condition, condition, readable_rows};
pub(crate) use orphans::{Accounted, Orphan, is_leftover, orphan, orphans, unaccounted_rows};

use crate::lock::DirectoryLock;
use crate::log::{LogDamage, ReadableLog, TableLog};
use crate::paths::Location;
use crate::reader::Reader;
use crate::schema::Table;
use crate::version::FileEntry;
use crate::wal::{Damage, list_segments, read_segment, segment_path};
use crate::{Error, StoreOptions};

/// What reading everything found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Files of tables that were read.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their size.
    pub size_bytes: u64,
    /// Segments of the write-ahead log.
    pub segments: u64,
    /// What is wrong: logs first, then files by name, then segments.
    pub findings: Vec<Finding>,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// The file or object, below the data directory or, for segments, as a path.
    pub file: String,
    /// Whose rows it holds, where that is known.
    pub tenant: Option<Tenant>,
    /// What was found and what was expected.
    pub message: String,
    /// Rows that it is to hold; `None` where that is unknown.
    pub rows: Option<u64>,
    /// Rows of it that can still be read.
    pub rows_readable: u64,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A commit or checkpoint of a table's log cannot be read.
    DamagedLog,
    /// A table names a file that is not there.
    MissingFile,
    /// A file of a table is shorter, changed or unreadable.
    DamagedFile,
    /// A file holds rows that its table does not have: its commit is gone.
    UncommittedRows,
    /// A segment of the write-ahead log has damaged records between good ones.
    DamagedSegment,
    /// A segment ends in a record that was never acknowledged: what a power cut leaves. No damage.
    TornSegment,
}

impl FindingKind {
    /// A stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::DamagedLog => "damaged_log",
            FindingKind::MissingFile => "missing_file",
            FindingKind::DamagedFile => "damaged_file",
            FindingKind::UncommittedRows => "uncommitted_rows",
            FindingKind::DamagedSegment => "damaged_segment",
            FindingKind::TornSegment => "torn_segment",
        }
    }

    /// What [`repair`](crate::repair) does about it.
    pub fn remedy(self) -> &'static str {
        match self {
            FindingKind::DamagedLog => "set aside the commits from there on; rows that only they named are committed again",
            FindingKind::MissingFile => "take the file out of the table: its rows are gone",
            FindingKind::DamagedFile => "write the rows that can be read to a new file and set the damaged one aside",
            FindingKind::UncommittedRows => "commit these rows to the table",
            FindingKind::DamagedSegment => "replay the good records and keep the segment aside",
            FindingKind::TornSegment => "replay the records before it",
        }
    }

    /// Whether something that was acknowledged may be lost or invisible.
    pub fn is_damage(self) -> bool {
        self != FindingKind::TornSegment
    }
}

/// Reads everything in a data directory that no server holds.
///
/// # Errors
///
/// [`Error::Locked`] if a server holds it, and where the medium does not answer. Damage is no error.
pub async fn verify(options: &StoreOptions) -> Result<Verification, Error> {
    let location = Location::open(&options.data)?;
    let wal = location.wal_directory(options);
    let _lock = DirectoryLock::acquire(&wal)?;
    Ok(examine(&location, &wal).await?.verification)
}

/// A verification with what a repair needs beside it.
pub(crate) struct Examined {
    pub(crate) verification: Verification,
    pub(crate) logs: Vec<LogDamage>,
}

/// [`verify`] for who holds the lock.
pub(crate) async fn examine(location: &Location, wal: &Path) -> Result<Examined, Error> {
    let reader = Reader::of(location);
    let mut verification = Verification::default();
    let mut logs = Vec::new();
    let mut open = Vec::new();
    for table in Table::ALL {
        let ReadableLog { log, damage } = TableLog::open_readable(location, table).await?;
        if let Some(damage) = damage {
            verification.findings.push(log_finding(&damage));
            logs.push(damage);
        }
        open.push((table, log));
    }
    for (table, log) in &open {
        let mut files = match log {
            Some(log) => log.files().await?,
            None => Vec::new(),
        };
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut accounted = Accounted::of_segments(wal, *table)?;
        for file in &files {
            let condition = condition(&reader, file).await?;
            verification.files += 1;
            verification.size_bytes += file.stats.size_bytes;
            verification.rows += file.stats.rows;
            match condition {
                Condition::Whole => accounted.add_file(&reader, file).await?,
                damaged => verification.findings.push(file_finding(&reader, file, damaged).await),
            }
        }
        for orphan in orphans(location, *table, log.as_ref()).await? {
            let rows = unaccounted_rows(&reader, &orphan, &mut accounted).await;
            verification.findings.extend(orphan_finding(&orphan, rows));
        }
    }
    segment_findings(wal, &mut verification)?;
    Ok(Examined { verification, logs })
}

fn log_finding(damage: &LogDamage) -> Finding {
    Finding {
        kind: FindingKind::DamagedLog,
        file: damage.object.to_string(),
        tenant: None,
        message: damage.message.clone(),
        rows: None,
        rows_readable: 0,
    }
}

async fn file_finding(reader: &Reader, file: &FileEntry, condition: Condition) -> Finding {
    let (kind, message) = match &condition {
        Condition::Damaged { message, .. } => (FindingKind::DamagedFile, message.clone()),
        _ => (FindingKind::MissingFile, "it is not there".to_owned()),
    };
    let readable = readable_rows(reader, file, &condition).await;
    Finding {
        kind,
        file: file.path.to_string(),
        tenant: Some(file.tenant.clone()),
        message,
        rows: Some(file.stats.rows),
        rows_readable: readable.iter().map(|rows| rows.num_rows() as u64).sum(),
    }
}

/// A file that no log names and that cannot be read is what a crash leaves while it is written.
fn orphan_finding(orphan: &Orphan, rows: Result<Vec<arrow::record_batch::RecordBatch>, Error>) -> Option<Finding> {
    let rows = rows.ok()?.iter().map(|rows| rows.num_rows() as u64).sum();
    (rows > 0).then(|| Finding {
        kind: FindingKind::UncommittedRows,
        file: orphan.file.path.to_string(),
        tenant: Some(orphan.file.tenant.clone()),
        message: format!("{rows} rows are in no file that the log of the table names"),
        rows: Some(rows),
        rows_readable: rows,
    })
}

fn segment_findings(wal: &Path, verification: &mut Verification) -> Result<(), Error> {
    for number in list_segments(wal)? {
        verification.segments += 1;
        for damage in read_segment(wal, number, |_, _| Ok(()))? {
            let (kind, message) = match damage {
                Damage::TornTail { offset, len } => (
                    FindingKind::TornSegment,
                    format!("its last {len} bytes, from byte {offset}, are no whole record"),
                ),
                Damage::Corrupt { offset, message } => (FindingKind::DamagedSegment, format!("at byte {offset}: {message}")),
            };
            verification.findings.push(Finding {
                kind,
                file: segment_path(wal, number).display().to_string(),
                tenant: None,
                message,
                rows: None,
                rows_readable: 0,
            });
        }
    }
    Ok(())
}
