//! Files and standard input, read whole and within a limit.

use std::io::Read;
use std::path::Path;

use spanflame_formats::Format;

use crate::error::Error;

/// Larger inputs are refused: a profile of this size does not fit into memory several times over.
pub(super) const INPUT_BYTES_MAX: u64 = 1 << 30;

/// An input and what to call it.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Input {
    /// Reads a file, or standard input for `-`.
    pub(super) fn read(path: &Path) -> Result<Input, Error> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let mut bytes = Vec::new();
        let read = if is_stdin {
            std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes))
        };
        read.map_err(|source| Error::Read {
            path: name.clone().into(),
            source,
        })?;
        if bytes.len() as u64 > INPUT_BYTES_MAX {
            return Err(Error::Usage(format!(
                "{name} is larger than 1 GiB, which is the limit for one input"
            )));
        }
        Ok(Input { name, bytes })
    }

    /// The format that was named, else the one of its content.
    pub(super) fn format(&self, named: Option<Format>) -> Result<Format, Error> {
        let unknown = |source| Error::Decode {
            name: self.name.clone(),
            format: "a profile",
            source,
        };
        named.map_or_else(|| Format::detect(&self.bytes, &self.name).map_err(unknown), Ok)
    }
}
