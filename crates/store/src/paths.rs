//! Where everything lies: the one place that knows names of folders, files and objects.
//!
//! ```text
//! data (directory or URL)            wal (local, default <data>/wal)
//!   spans/                             lock              held by the process
//!     _delta_log/                      node              this node's id in the tables' logs
//!     tenant=a/day=2026-11-30/*.parquet  00000000000000000007.wal   a segment
//!   samples/ profiles/ stacks/ frames/ 00000000000000000006.seen  what a flushed segment held
//! ```

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use spanflame_model::Tenant;
use url::Url;

use crate::day::Day;
use crate::schema::Table;
use crate::version::Tier;
use crate::{Error, StoreOptions};

/// Prefixes of environment variables that configure object stores.
const STORAGE_VARIABLES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// Where the tables lie.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// As an address, with a slash at its end.
    url: Url,
    /// The whole bucket or file system.
    root: Arc<dyn ObjectStore>,
    /// The data directory in it.
    data: Arc<dyn ObjectStore>,
    /// The data directory, if it is local.
    directory: Option<PathBuf>,
}

impl Location {
    /// A local directory, created if needed, or an `object_store` URL, configured by its environment variables.
    pub(crate) fn open(data: &str) -> Result<Location, Error> {
        if let Some(url) = Url::parse(data).ok().filter(|_| data.contains("://")) {
            if url.scheme() != "file" {
                return Location::remote(url, None);
            }
            let directory = url.to_file_path().map_err(|()| Error::Invalid {
                message: format!("data is {data}, expected an absolute file URL"),
            })?;
            return Location::local(&directory);
        }
        Location::local(FilePath::new(data))
    }

    /// Tables below the path of `url` in an object store that the caller made; its root is the bucket.
    pub(crate) fn remote(mut url: Url, root: Option<Arc<dyn ObjectStore>>) -> Result<Location, Error> {
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        let invalid = |error: object_store::Error| Error::Invalid {
            message: format!("data is {url}, expected a directory or the URL of an object store: {error}"),
        };
        let variables = std::env::vars()
            .filter(|(key, _)| STORAGE_VARIABLES.iter().any(|prefix| key.starts_with(prefix)))
            .map(|(key, value)| (key.to_ascii_lowercase(), value));
        let root: Arc<dyn ObjectStore> = match root {
            Some(root) => root,
            None => object_store::parse_url_opts(&url, variables).map_err(invalid)?.0.into(),
        };
        let prefix = Path::from_url_path(url.path()).map_err(|error| invalid(error.into()))?;
        Ok(Location {
            data: Arc::new(PrefixStore::new(Arc::clone(&root), prefix)),
            root,
            url,
            directory: None,
        })
    }

    fn local(directory: &FilePath) -> Result<Location, Error> {
        std::fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
        let directory = directory.canonicalize().map_err(Error::io("resolve", directory))?;
        let url = Url::from_directory_path(&directory).map_err(|()| Error::Invalid {
            message: format!("data is {}, expected a directory", directory.display()),
        })?;
        let data = LocalFileSystem::new_with_prefix(&directory).map_err(Error::storage("open", &Path::default()))?;
        Ok(Location {
            url,
            root: Arc::new(LocalFileSystem::new()),
            data: Arc::new(data),
            directory: Some(directory),
        })
    }

    /// A tenant as keys name it: what some file system or object store would not take is replaced.
    pub(crate) fn tenant_in_path(tenant: &Tenant) -> String {
        tenant.as_str().chars().map(|c| if "!*'()".contains(c) { '_' } else { c }).collect()
    }

    /// The object store whose root is the data directory.
    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.data
    }

    /// Whether reading goes over a network.
    pub(crate) fn is_remote(&self) -> bool {
        self.directory.is_none()
    }

    /// The object store whose root is the bucket or file system.
    pub(crate) fn root(&self) -> &Arc<dyn ObjectStore> {
        &self.root
    }

    /// A table's folder as an address.
    pub(crate) fn table_url(&self, table: Table) -> Url {
        self.url
            .join(&format!("{}/", table.name()))
            .expect("a table's name is a relative address")
    }

    /// The object store whose root is a table's folder.
    pub(crate) fn table_store(&self, table: Table) -> Arc<dyn ObjectStore> {
        Arc::new(PrefixStore::new(Arc::clone(&self.data), Path::from(table.name())))
    }

    /// The directory of the write-ahead log and of this node's state.
    pub(crate) fn wal_directory(&self, options: &StoreOptions) -> PathBuf {
        match (&options.wal, &self.directory) {
            (Some(wal), _) => wal.clone(),
            (None, Some(directory)) => directory.join("wal"),
            (None, None) => state_directory(&self.url),
        }
    }

    /// Makes objects durable that were written before, with the folders on the way to them. Object stores
    /// answer only when that is so; a file system waits to be asked.
    pub(crate) fn sync(&self, objects: &[Path]) -> Result<(), Error> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let mut folders = std::collections::BTreeSet::new();
        for object in objects {
            let file = directory.join(object.as_ref());
            let handle = std::fs::File::open(&file).map_err(Error::io("open", &file))?;
            handle.sync_all().map_err(Error::io("sync", &file))?;
            folders.extend(file.ancestors().skip(1).take_while(|f| f.starts_with(directory)).map(PathBuf::from));
        }
        folders.iter().try_for_each(|folder| sync_directory(folder))
    }
}

/// Makes names in a directory durable.
pub(crate) fn sync_directory(directory: &FilePath) -> Result<(), Error> {
    std::fs::File::open(directory)
        .and_then(|handle| handle.sync_all())
        .map_err(Error::io("sync", directory))
}

/// Where a user's state lies, per data address: `$XDG_STATE_HOME/spanflame/<address>`.
fn state_directory(url: &Url) -> PathBuf {
    let home = || std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    let state = std::env::var_os("XDG_STATE_HOME").map_or_else(|| home().join(".local/state"), PathBuf::from);
    let name: String = url
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .collect();
    state.join("spanflame").join(name)
}

/// This node's id in the tables' logs, made once per write-ahead log.
pub(crate) fn node_id(wal: &FilePath) -> Result<String, Error> {
    let path = wal.join("node");
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().len() == 16 => return Ok(text.trim().to_owned()),
        Ok(text) => {
            return Err(Error::Corrupt {
                file: path.display().to_string(),
                offset: 0,
                message: format!("node id has {} characters, expected 16", text.trim().len()),
            });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("read", &path)(error)),
    }
    let id = format!("{:016x}", random());
    write_durably(&path, id.as_bytes())?;
    Ok(id)
}

/// Writes a file whole or not at all, and makes it durable.
pub(crate) fn write_durably(path: &FilePath, bytes: &[u8]) -> Result<(), Error> {
    let draft = path.with_extension("draft");
    let write = || {
        let mut file = std::fs::File::create(&draft)?;
        std::io::Write::write_all(&mut file, bytes)?;
        file.sync_all()
    };
    write().map_err(Error::io("write", &draft))?;
    std::fs::rename(&draft, path).map_err(Error::io("rename", &draft))?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// Names for table files that no process has used.
#[derive(Debug)]
pub(crate) struct FileNames {
    run: u64,
    next: AtomicU64,
}

impl FileNames {
    /// Names of a new run.
    pub(crate) fn new() -> FileNames {
        FileNames {
            run: random(),
            next: AtomicU64::new(0),
        }
    }

    /// The key of a new file below the data directory. Whose it is, the table's log says.
    pub(crate) fn next(&self, table: Table, tenant: &Tenant, day: Day, tier: Tier) -> Path {
        let tenant = Location::tenant_in_path(tenant);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{:016x}-{number}.parquet", tier.as_str(), self.run);
        Path::from_iter([table.name(), &format!("tenant={tenant}"), &format!("day={day}"), &name])
    }
}

/// A number that no other process has; seeded by the operating system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
