//! One process per data directory.
//!
//! An advisory lock on a file, held by the open file, so the kernel releases it however the process ends.
//! The file also holds the owner's process id, for the error that the second process shows.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::Error;

const LOCK_FILE: &str = "lock";

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Creates `directory` if needed and takes its lock. Fails with [`Error::Locked`] if another process, or
    /// another store of this process, holds it.
    pub(crate) fn acquire(directory: &Path) -> Result<DirectoryLock, Error> {
        std::fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
        let path = directory.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(directory, &mut file)),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
        }
        let write_pid = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            write!(file, "{}", std::process::id())
        };
        write_pid(&mut file).map_err(Error::io("write", &path))?;
        Ok(DirectoryLock { _file: file })
    }
}

fn locked(directory: &Path, file: &mut File) -> Error {
    let mut holder = String::new();
    // Pids have at most 10 digits; anything longer is not ours.
    let read = file.take(16).read_to_string(&mut holder);
    let known = read.is_ok() && !holder.is_empty() && holder.bytes().all(|b| b.is_ascii_digit());
    Error::Locked {
        directory: directory.display().to_string(),
        holder: if known { holder } else { "unknown".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_holder_learns_who_holds_it() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let held = DirectoryLock::acquire(dir.path()).expect("free");
        let error = DirectoryLock::acquire(dir.path()).expect_err("held").to_string();
        assert!(error.contains(&dir.path().display().to_string()), "{error}");
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        DirectoryLock::acquire(dir.path()).expect("free again");
    }
}
