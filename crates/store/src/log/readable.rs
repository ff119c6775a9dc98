//! A table's log as far as it can be read: what `verify.rs` and `repair.rs` begin with.
//!
//! [`TableLog::open`] takes a log whole or not at all, as a server must. Here a log with a damaged commit is
//! opened at the last version before it. Nothing is written.

use std::sync::Arc;

use deltalake_core::DeltaTable;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::sync::Mutex;

use super::TableLog;
use crate::Error;
use crate::paths::Location;
use crate::schema::Table;

/// How far a log can be read.
pub(crate) struct ReadableLog {
    /// The log at the newest version that can be read; `None` if no version can, or there is no log.
    pub(crate) log: Option<TableLog>,
    /// What hinders reading the rest.
    pub(crate) damage: Option<LogDamage>,
}

/// A commit or checkpoint that cannot be read.
#[derive(Clone, Debug)]
pub(crate) struct LogDamage {
    /// The object, or the folder where no object is to blame.
    pub(crate) object: Path,
    /// What is wrong with it.
    pub(crate) message: String,
    /// Objects of the log that have to go, so that the version before it is the newest.
    pub(crate) beyond: Vec<Path>,
}

/// An object of a log: `{version}.json`, `{version}.checkpoint...parquet`, `_last_checkpoint`.
struct LogObject {
    path: Path,
    version: Option<u64>,
    is_commit: bool,
}

impl TableLog {
    /// Opens a log as far as it can be read; creates nothing.
    pub(crate) async fn open_readable(location: &Location, table: Table) -> Result<ReadableLog, Error> {
        let objects = list(location, table).await?;
        let commits: Vec<&LogObject> = objects.iter().filter(|object| object.is_commit).collect();
        let Some(newest) = commits.last().and_then(|commit| commit.version) else {
            let log = None;
            return Ok(ReadableLog { log, damage: None });
        };
        let found = first_damage(location, &objects).await?;
        let mut damage = found.map(|(version, object, message)| (version.checked_sub(1), object, message));
        let mut version = damage.as_ref().map_or(Some(newest), |(keep, ..)| *keep);
        while let Some(at) = version {
            let mut delta = DeltaTable::new(super::log_store(location, table));
            match delta.load_version(at).await {
                Ok(()) => {
                    let log = TableLog {
                        table,
                        location: location.clone(),
                        delta: Mutex::new(delta),
                    };
                    return Ok(readable(Some(log), damage, &objects));
                }
                Err(error) => {
                    version = at
                        .checked_sub(1)
                        .filter(|at| commits.iter().any(|commit| commit.version == Some(*at)));
                    let folder = || Path::from_iter([table.name(), "_delta_log"]);
                    let (object, message) = damage.map_or_else(|| (folder(), error.to_string()), |(_, object, message)| (object, message));
                    damage = Some((version, object, message));
                }
            }
        }
        Ok(readable(None, damage, &objects))
    }
}

fn readable(log: Option<TableLog>, damage: Option<(Option<u64>, Path, String)>, objects: &[LogObject]) -> ReadableLog {
    let damage = damage.map(|(keep, object, message)| {
        // The pointer to a checkpoint may name one that goes; readers do without it.
        let goes = |object: &&LogObject| object.version.is_none_or(|version| keep.is_none_or(|keep| version > keep));
        LogDamage {
            object,
            message,
            beyond: objects.iter().filter(goes).map(|object| object.path.clone()).collect(),
        }
    });
    ReadableLog { log, damage }
}

/// The first commit since the last checkpoint that is missing or no JSON: its version, the object, what is wrong.
async fn first_damage(location: &Location, objects: &[LogObject]) -> Result<Option<(u64, Path, String)>, Error> {
    let checkpoints = objects.iter().filter(|object| !object.is_commit);
    let base = checkpoints.filter_map(|object| object.version).max();
    let mut expected = base.map_or(0, |base| base + 1);
    for commit in objects.iter().filter(|object| object.is_commit) {
        let Some(version) = commit.version.filter(|version| *version >= expected) else {
            continue;
        };
        if version > expected {
            let message = format!("commit {expected} is missing, {version} is there");
            return Ok(Some((expected, commit.path.clone(), message)));
        }
        let bytes = location
            .store()
            .get(&commit.path)
            .await
            .map_err(Error::storage("read", &commit.path))?;
        let bytes = bytes.bytes().await.map_err(Error::storage("read", &commit.path))?;
        if let Err(message) = check_commit(&bytes) {
            return Ok(Some((version, commit.path.clone(), message)));
        }
        expected = version + 1;
    }
    Ok(None)
}

/// A commit is one JSON object a line.
fn check_commit(bytes: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("it is no UTF-8: {error}"))?;
    let mut lines = 0;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(line);
        value.map_err(|error| format!("line {} is no JSON object: {error}", number + 1))?;
        lines += 1;
    }
    if lines == 0 {
        return Err(format!("it has {} bytes and no action, expected at least one", bytes.len()));
    }
    Ok(())
}

/// The objects of a log by version.
async fn list(location: &Location, table: Table) -> Result<Vec<LogObject>, Error> {
    let folder = Path::from_iter([table.name(), "_delta_log"]);
    let listing: Arc<dyn ObjectStore> = Arc::clone(location.store());
    let found: Vec<_> = listing
        .list(Some(&folder))
        .try_collect()
        .await
        .map_err(Error::storage("list", &folder))?;
    let object = |path: Path| {
        let name = path.filename().unwrap_or_default();
        LogObject {
            version: name.split_once('.').and_then(|(version, _)| version.parse().ok()),
            is_commit: name.ends_with(".json") && !name.contains("checkpoint"),
            path,
        }
    };
    let mut objects: Vec<_> = found.into_iter().map(|meta| object(meta.location)).collect();
    objects.retain(|object| object.version.is_some() || object.path.filename() == Some("_last_checkpoint"));
    objects.sort_by_key(|object| object.version);
    Ok(objects)
}
