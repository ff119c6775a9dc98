//! The log of one table: which files it has.
//!
//! Delta Lake's protocol through `deltalake-core`: a commit is one new object in `_delta_log`, created only
//! if absent, so it happens whole or not at all. A commit of a flush carries this node's id and the flush's
//! number in a transaction action, so that recovery can tell which tables have it. Files carry their tier
//! and statistics as tags: opening the store reads the log and no file.
//!
//! Not here: writing the files themselves (`file.rs`) and deciding which to merge (`compaction.rs`).

mod readable;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{Action, Add, Remove, StructField, Transaction};
use deltalake_core::logstore::{LogStoreRef, StorageConfig, default_logstore};
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableError, TableProperty};
use futures::TryStreamExt;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use spanflame_model::Tenant;
use tokio::sync::Mutex;

use crate::Error;
use crate::day::Day;
use crate::file::FileStats;
use crate::paths::Location;
use crate::schema::Table;
use crate::version::{FileEntry, Tier};

pub(crate) use readable::{LogDamage, ReadableLog};

const TIER_TAG: &str = "spanflame.tier";
const STATS_TAG: &str = "spanflame.stats";
/// Partition columns.
const TENANT: &str = "tenant";
const DAY: &str = "day";
/// Commits between two checkpoints; the log is cleaned up as often.
const CHECKPOINT_COMMITS: u64 = 100;
/// The application id under which the end of the rollup is committed to the table `profiles`.
pub(crate) const ROLLUP: &str = "spanflame.rollup";

/// What a commit does to a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// New files.
    pub(crate) add: Vec<Arc<FileEntry>>,
    /// Files that are no longer part of the table.
    pub(crate) remove: Vec<Arc<FileEntry>>,
    /// Whether rows come or go; a merge only rewrites them.
    pub(crate) data_change: bool,
    /// What to remember with the commit: an application's id and a number that only grows.
    pub(crate) progress: Option<(String, i64)>,
}

/// A file that left the table but may still lie there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tombstone {
    /// Its key below the data directory.
    pub(crate) path: Path,
    /// When it left, in milliseconds since the epoch.
    pub(crate) removed_unix_ms: i64,
}

/// The log of one table. Commits of one process queue up here; those of other processes are met by the
/// protocol's conflict check.
pub(crate) struct TableLog {
    table: Table,
    location: Location,
    delta: Mutex<DeltaTable>,
}

impl TableLog {
    /// Opens the table's log, or creates the table.
    pub(crate) async fn open(location: &Location, table: Table) -> Result<TableLog, Error> {
        let store = log_store(location, table);
        let fail = failed(table, "open");
        let delta = if store.is_delta_table_location().await.map_err(&fail)? {
            let mut delta = DeltaTable::new(store);
            delta.load().await.map_err(&fail)?;
            delta
        } else {
            create(table, store).await.map_err(&fail)?
        };
        let newest = delta.version().unwrap_or(0);
        let log = TableLog {
            table,
            location: location.clone(),
            delta: Mutex::new(delta),
        };
        // The process that made the newest commit may have died before it was durable.
        log.sync(newest).await?;
        Ok(log)
    }

    /// The files that make up the table.
    pub(crate) async fn files(&self) -> Result<Vec<FileEntry>, Error> {
        let delta = self.delta.lock().await;
        let state = delta.snapshot().map_err(failed(self.table, "read"))?;
        let files = state.log_data();
        #[expect(deprecated, reason = "the tags are only in the whole action")]
        let adds = files.iter().map(|file| file.add_action());
        adds.map(|add| self.entry(add)).collect()
    }

    /// The files that make up the table, with what other nodes committed meanwhile.
    pub(crate) async fn newest_files(&self) -> Result<Vec<FileEntry>, Error> {
        let updated = self.delta.lock().await.update_state().await;
        updated.map_err(failed(self.table, "read"))?;
        self.files().await
    }

    /// The number last committed by an application; `None` if there was none.
    pub(crate) async fn progress(&self, app: &str) -> Result<Option<i64>, Error> {
        let delta = self.delta.lock().await;
        let state = delta.snapshot().map_err(failed(self.table, "read"))?;
        let store = delta.log_store();
        state
            .transaction_version(store.as_ref(), app)
            .await
            .map_err(failed(self.table, "read"))
    }

    /// Files that left the table within the protocol's retention (a day).
    pub(crate) async fn tombstones(&self) -> Result<Vec<Tombstone>, Error> {
        let delta = self.delta.lock().await;
        let fail = failed(self.table, "read");
        let state = delta.snapshot().map_err(&fail)?;
        let store = delta.log_store();
        let views: Vec<_> = state.all_tombstones(store.as_ref()).try_collect().await.map_err(&fail)?;
        let tombstone = |view: &deltalake_core::kernel::TombstoneView| Tombstone {
            path: self.object(&view.path()),
            removed_unix_ms: view.deletion_timestamp().unwrap_or(0),
        };
        Ok(views.iter().map(tombstone).collect())
    }

    /// Commits a change. When this returns, it is durable and every reader sees it.
    pub(crate) async fn commit(&self, change: &Change) -> Result<(), Error> {
        let fail = failed(self.table, "commit to");
        let mut delta = self.delta.lock().await;
        let before = delta.version().unwrap_or(0);
        let now_ms = unix_ms();
        let adds = change
            .add
            .iter()
            .map(|file| Action::Add(self.add(file, change.data_change, now_ms)));
        let removes = change
            .remove
            .iter()
            .map(|file| Action::Remove(self.remove(file, change.data_change, now_ms)));
        // The clean-up lists the whole log, so it runs only where a checkpoint has made commits superfluous.
        let clean_up = (before + 2).is_multiple_of(CHECKPOINT_COMMITS);
        let mut properties = CommitProperties::default().with_cleanup_expired_logs(Some(clean_up));
        if let Some((app, number)) = &change.progress {
            properties = properties.with_application_transaction(Transaction::new(app, *number));
        }
        let store = delta.log_store();
        let committed = {
            let state = delta.snapshot().map_err(&fail)?;
            CommitBuilder::from(properties)
                .with_actions(adds.chain(removes).collect())
                .build(Some(state), store, operation(change))
                .await
        };
        let committed = match committed {
            Ok(committed) => committed,
            Err(error) => {
                // It may have happened nevertheless; the next look at the log should say so.
                let _ = delta.update_state().await;
                return Err(fail(error));
            }
        };
        delta.state = Some(committed.snapshot());
        drop(delta);
        self.sync(committed.version()).await
    }

    /// Makes a commit durable, with the checkpoint that may have followed it; see [`Location::sync`].
    async fn sync(&self, version: u64) -> Result<(), Error> {
        let key = |name: String| Path::from_iter([self.table.name(), "_delta_log", &name]);
        let mut objects = vec![key(format!("{version:020}.json"))];
        if (version + 1).is_multiple_of(CHECKPOINT_COMMITS) {
            for name in [format!("{version:020}.checkpoint.parquet"), "_last_checkpoint".to_owned()] {
                let object = key(name);
                if self.location.store().head(&object).await.is_ok() {
                    objects.push(object);
                }
            }
        }
        self.location.sync(&objects)
    }

    fn object(&self, path_in_table: &str) -> Path {
        Path::from_iter(
            Path::from(self.table.name())
                .parts()
                .chain(Path::parse(path_in_table).unwrap_or_default().parts()),
        )
    }

    fn path_in_table<'a>(&self, file: &'a FileEntry) -> &'a str {
        file.path
            .as_ref()
            .strip_prefix(self.table.name())
            .map_or(file.path.as_ref(), |path| path.trim_start_matches('/'))
    }

    fn entry(&self, add: Add) -> Result<FileEntry, Error> {
        let corrupt = |message: String| Error::Corrupt {
            file: format!("{}/{}", self.table.name(), add.path),
            offset: 0,
            message,
        };
        let partition = |key: &str| add.partition_values.get(key).cloned().flatten().unwrap_or_default();
        let tag = |key: &str| add.tags.as_ref().and_then(|tags| tags.get(key).cloned().flatten());
        Ok(FileEntry {
            path: self.object(&add.path),
            table: self.table,
            tenant: partition(TENANT).parse::<Tenant>().map_err(|e| corrupt(e.to_string()))?,
            day: partition(DAY).parse::<Day>().map_err(|e| corrupt(e.to_string()))?,
            tier: tag(TIER_TAG)
                .and_then(|word| Tier::from_word(&word))
                .ok_or_else(|| corrupt(format!("its tag {TIER_TAG} names no tier")))?,
            stats: tag(STATS_TAG)
                .and_then(|text| FileStats::from_tag(&text))
                .ok_or_else(|| corrupt(format!("its tag {STATS_TAG} cannot be read")))?,
        })
    }

    fn add(&self, file: &FileEntry, data_change: bool, now_ms: i64) -> Add {
        Add {
            path: self.path_in_table(file).to_owned(),
            partition_values: partition_values(file),
            size: file.stats.size_bytes as i64,
            modification_time: now_ms,
            data_change,
            stats: Some(file.stats.to_delta_stats_json()),
            tags: Some(HashMap::from([
                (TIER_TAG.to_owned(), Some(file.tier.as_str().to_owned())),
                (STATS_TAG.to_owned(), Some(file.stats.to_tag())),
            ])),
            ..Add::default()
        }
    }

    fn remove(&self, file: &FileEntry, data_change: bool, now_ms: i64) -> Remove {
        Remove {
            path: self.path_in_table(file).to_owned(),
            data_change,
            deletion_timestamp: Some(now_ms),
            extended_file_metadata: Some(true),
            partition_values: Some(partition_values(file)),
            size: Some(file.stats.size_bytes as i64),
            ..Remove::default()
        }
    }
}

fn log_store(location: &Location, table: Table) -> LogStoreRef {
    default_logstore(
        location.table_store(table),
        Arc::clone(location.root()),
        &location.table_url(table),
        &StorageConfig::default(),
    )
}

fn partition_values(file: &FileEntry) -> HashMap<String, Option<String>> {
    HashMap::from([
        (TENANT.to_owned(), Some(file.tenant.as_str().to_owned())),
        (DAY.to_owned(), Some(file.day.to_string())),
    ])
}

fn operation(change: &Change) -> DeltaOperation {
    match (change.add.is_empty(), change.remove.is_empty()) {
        (true, false) => DeltaOperation::Delete { predicate: None },
        (false, false) => DeltaOperation::Optimize {
            predicate: None,
            target_size: 0,
        },
        _ => DeltaOperation::Write {
            mode: SaveMode::Append,
            partition_by: Some(vec![TENANT.to_owned(), DAY.to_owned()]),
            predicate: None,
        },
    }
}

async fn create(table: Table, store: LogStoreRef) -> Result<DeltaTable, DeltaTableError> {
    let schema: deltalake_core::kernel::StructType = table.schema().as_ref().try_into_kernel()?;
    let partitions = [
        StructField::not_null(TENANT, deltalake_core::kernel::DataType::STRING),
        StructField::not_null(DAY, deltalake_core::kernel::DataType::DATE),
    ];
    CreateBuilder::new()
        .with_log_store(store)
        .with_table_name(table.name())
        .with_columns(partitions.into_iter().chain(schema.fields().cloned()))
        .with_partition_columns([TENANT, DAY])
        .with_configuration_property(TableProperty::CheckpointInterval, Some(CHECKPOINT_COMMITS.to_string()))
        .with_configuration_property(TableProperty::LogRetentionDuration, Some("interval 1 hours"))
        .with_configuration_property(TableProperty::DeletedFileRetentionDuration, Some("interval 1 days"))
        .with_save_mode(SaveMode::ErrorIfExists)
        .await
}

fn failed(table: Table, action: &'static str) -> impl Fn(DeltaTableError) -> Error {
    move |source| Error::Log {
        action,
        table: table.name(),
        source: Arc::new(source),
    }
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
