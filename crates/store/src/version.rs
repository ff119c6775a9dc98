//! What the store holds at one instant: files and heads.
//!
//! A version never changes: a flush or a compaction makes the next one and swaps it in, so a reader that
//! holds an old one sees neither half of a change.

use std::sync::Arc;

use object_store::path::Path;
use spanflame_model::{Tenant, Timestamp};

use crate::day::Day;
use crate::file::FileStats;
use crate::head::Head;
use crate::schema::Table;

/// How often a file's rows were rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Tier {
    /// Written by a flush: seconds of arrival.
    Flush,
    /// Merged from flush files.
    Minutes,
    /// Merged from files of minutes; stays as it is until it expires.
    Hours,
}

impl Tier {
    /// Every tier, young to old.
    pub(crate) const ALL: [Tier; 3] = [Tier::Flush, Tier::Minutes, Tier::Hours];

    /// The word in file names and the table's log.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Tier::Flush => "flush",
            Tier::Minutes => "minutes",
            Tier::Hours => "hours",
        }
    }

    /// The tier of a word, if it is one.
    pub(crate) fn from_word(word: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.as_str() == word)
    }
}

/// A file of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileEntry {
    /// Where it lies in the object store.
    pub(crate) path: Path,
    /// The table it belongs to.
    pub(crate) table: Table,
    /// Whose rows it holds.
    pub(crate) tenant: Tenant,
    /// The day on which they arrived.
    pub(crate) day: Day,
    /// How often they were rewritten.
    pub(crate) tier: Tier,
    /// What is in it.
    pub(crate) stats: FileStats,
}

/// The files of all tables and the heads whose rows are in no file yet.
#[derive(Clone, Default)]
pub(crate) struct Version {
    files: [Vec<Arc<FileEntry>>; 5],
    heads: Vec<Arc<Head>>,
    rollup_until: Option<Timestamp>,
}

impl Version {
    /// A version of `files` and `heads`, oldest head first. Of samples received before `rollup_until` every
    /// one is in the rollup.
    pub(crate) fn new(files: impl IntoIterator<Item = Arc<FileEntry>>, heads: Vec<Arc<Head>>, rollup_until: Option<Timestamp>) -> Version {
        let mut version = Version {
            heads,
            rollup_until,
            ..Version::default()
        };
        files.into_iter().for_each(|file| version.files[file.table as usize].push(file));
        version
    }

    /// The files of a table, in no order.
    pub(crate) fn files(&self, table: Table) -> &[Arc<FileEntry>] {
        &self.files[table as usize]
    }

    /// Whether a file is part of its table.
    pub(crate) fn names(&self, path: &Path) -> bool {
        self.files.iter().flatten().any(|file| file.path == *path)
    }

    /// The heads, oldest first.
    pub(crate) fn heads(&self) -> &[Arc<Head>] {
        &self.heads
    }

    /// Samples received before this are in the rollup, all of them.
    pub(crate) fn rollup_until(&self) -> Option<Timestamp> {
        self.rollup_until
    }

    /// The same files and rollup with other heads.
    pub(crate) fn with_heads(&self, heads: Vec<Arc<Head>>) -> Version {
        Version { heads, ..self.clone() }
    }

    /// This version with the outcome of a flush, merge or deletion.
    pub(crate) fn with_files(&self, added: &[Arc<FileEntry>], removed: &[Path]) -> Version {
        let gone: std::collections::HashSet<&Path> = removed.iter().collect();
        let mut next = self.clone();
        if !gone.is_empty() {
            next.files
                .iter_mut()
                .for_each(|files| files.retain(|file| !gone.contains(&file.path)));
        }
        added.iter().for_each(|file| next.files[file.table as usize].push(Arc::clone(file)));
        next
    }

    /// The same files and heads with a rollup that reaches further.
    pub(crate) fn with_rollup_until(&self, rollup_until: Option<Timestamp>) -> Version {
        Version {
            rollup_until,
            ..self.clone()
        }
    }
}
