//! A file of records.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::root_as_message;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};

use super::record::{Cursor, Record};
use crate::Error;
use crate::paths::sync_directory;

const MAGIC: &[u8; 6] = b"SPFWAL";
/// Version of the disk format. A reader accepts this one only.
const VERSION: u16 = 1;
const MARKER: [u8; 4] = *b"REC\x01";
/// Marker, length and checksum.
const PREFIX_LEN: usize = 12;
/// A body cannot be larger: its length has 32 bits.
const BODY_BYTES_MAX: usize = u32::MAX as usize;
const SUFFIX: &str = ".wal";

/// The tables whose rows a segment holds, in the order in which records number them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tables(Arc<[(String, SchemaRef)]>);

impl Tables {
    /// Tables by name.
    pub(crate) fn new(tables: impl IntoIterator<Item = (String, SchemaRef)>) -> Tables {
        Tables(tables.into_iter().collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn schema(&self, index: usize) -> Option<SchemaRef> {
        self.0.get(index).map(|(_, schema)| schema.clone())
    }

    fn encode(&self) -> Vec<u8> {
        let mut header = (self.0.len() as u16).to_le_bytes().to_vec();
        let options = IpcWriteOptions::default();
        for (name, schema) in self.0.iter() {
            let mut tracker = DictionaryTracker::new(true);
            let encoded = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options);
            header.extend_from_slice(&(name.len() as u16).to_le_bytes());
            header.extend_from_slice(name.as_bytes());
            header.extend_from_slice(&(encoded.ipc_message.len() as u32).to_le_bytes());
            header.extend_from_slice(&encoded.ipc_message);
        }
        header
    }

    fn decode(header: &[u8]) -> Result<Tables, String> {
        let mut cursor = Cursor(header);
        let count = cursor.u16()?;
        let mut tables = Vec::new();
        for _ in 0..count {
            let name_len = cursor.u16()?.into();
            let name = std::str::from_utf8(cursor.take(name_len)?).map_err(|e| e.to_string())?;
            let schema_len = cursor.u32()? as usize;
            let message = root_as_message(cursor.take(schema_len)?).map_err(|e| e.to_string())?;
            let schema = message.header_as_schema().ok_or("message holds no schema")?;
            tables.push((name.to_owned(), Arc::new(fb_to_schema(schema))));
        }
        Ok(Tables::new(tables))
    }
}

/// Appends records to one segment. After [`SegmentWriter::sync`] returns they are durable.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    path: PathBuf,
    file: File,
    len: u64,
}

impl SegmentWriter {
    /// Creates segment `number`, which must not exist, and makes its name durable. On failure it does not exist.
    pub(crate) fn create(directory: &Path, number: u64, tables: &Tables) -> Result<SegmentWriter, Error> {
        let path = segment_path(directory, number);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(Error::io("create", &path))?;
        let mut writer = SegmentWriter { path, file, len: 0 };
        let begun = writer.begin(tables).and_then(|()| sync_directory(directory));
        if let Err(error) = begun {
            // On a full disk every attempt would leave one behind. It holds nothing that anybody was told is kept.
            let _ = remove_segment(directory, number);
            return Err(error);
        }
        Ok(writer)
    }

    fn begin(&mut self, tables: &Tables) -> Result<(), Error> {
        let header = tables.encode();
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        bytes.extend_from_slice(&header);
        self.file.write_all(&bytes).map_err(Error::io("write", &self.path))?;
        self.file.sync_all().map_err(Error::io("sync", &self.path))?;
        self.len = bytes.len() as u64;
        Ok(())
    }

    /// Bytes in the segment.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Turns a record into what [`SegmentWriter::write`] takes. Apart from it, so that many threads can.
    pub(crate) fn encode(record: &Record) -> Result<Vec<u8>, Error> {
        let body = record.encode_body()?;
        if body.len() > BODY_BYTES_MAX {
            return Err(Error::Invalid {
                message: format!("a batch has {} bytes of rows, expected at most {BODY_BYTES_MAX}", body.len()),
            });
        }
        let body_len = (body.len() as u32).to_le_bytes();
        let mut bytes = Vec::with_capacity(PREFIX_LEN + body.len());
        bytes.extend_from_slice(&MARKER);
        bytes.extend_from_slice(&body_len);
        bytes.extend_from_slice(&checksum(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Appends encoded records. On failure the segment is as before, unless [`Error`] comes from `truncate`:
    /// then it must not be written again.
    pub(crate) fn write(&mut self, encoded: &[u8]) -> Result<(), Error> {
        if let Err(error) = self.file.write_all(encoded) {
            self.file.set_len(self.len).map_err(Error::io("truncate", &self.path))?;
            self.file
                .seek(SeekFrom::Start(self.len))
                .map_err(Error::io("truncate", &self.path))?;
            return Err(Error::io("write", &self.path)(error));
        }
        self.len += encoded.len() as u64;
        Ok(())
    }

    /// Makes all that was written durable. After a failure nobody knows what is on the medium, so the
    /// segment must not be written again.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::io("sync", &self.path))
    }
}

/// A place in a segment that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The file ends within a record: the process or the machine died while it was written, so it was never
    /// acknowledged.
    TornTail {
        /// Where the last whole record ends.
        offset: u64,
        /// Bytes behind it.
        len: u64,
    },
    /// A record in the middle is not what was written.
    Corrupt {
        /// Where it begins.
        offset: u64,
        /// What was found.
        message: String,
    },
}

/// Calls `visit` for every readable record of a segment, oldest first, and says what was not readable. A
/// segment whose header is torn holds nothing: no record was written before the header was durable.
pub(crate) fn read_segment(
    directory: &Path,
    number: u64,
    mut visit: impl FnMut(&Tables, Record) -> Result<(), Error>,
) -> Result<Vec<Damage>, Error> {
    let path = segment_path(directory, number);
    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
    let (tables, mut at) = match read_header(&bytes) {
        Ok(header) => header,
        Err(Damage::Corrupt { offset, message }) => {
            return Err(Error::Corrupt {
                file: path.display().to_string(),
                offset,
                message,
            });
        }
        Err(torn) => return Ok(vec![torn]),
    };
    let mut damages = Vec::new();
    while at < bytes.len() {
        match read_record(&bytes[at..], &tables) {
            Ok((record, len)) => {
                visit(&tables, record)?;
                at += len;
            }
            Err(message) => match next_record(&bytes, at + 1) {
                Some(next) => {
                    damages.push(Damage::Corrupt {
                        offset: at as u64,
                        message,
                    });
                    at = next;
                }
                None => {
                    damages.push(Damage::TornTail {
                        offset: at as u64,
                        len: (bytes.len() - at) as u64,
                    });
                    break;
                }
            },
        }
    }
    Ok(damages)
}

/// Numbers of the segments in a directory, ascending.
pub(crate) fn list_segments(directory: &Path) -> Result<Vec<u64>, Error> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(Error::io("list", directory))? {
        let name = entry.map_err(Error::io("list", directory))?.file_name();
        let number: Option<u64> = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Deletes a segment. A missing one is fine.
pub(crate) fn remove_segment(directory: &Path, number: u64) -> Result<(), Error> {
    let path = segment_path(directory, number);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("delete", &path)(error)),
        _ => Ok(()),
    }
}

/// Keeps a damaged segment under another name, so that it outlives its flush.
pub(crate) fn keep_damaged(directory: &Path, number: u64) -> Result<(), Error> {
    let path = segment_path(directory, number);
    match std::fs::hard_link(&path, path.with_extension("damaged")) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(Error::io("keep", &path)(error)),
        _ => Ok(()),
    }
}

/// The file of a segment.
pub(crate) fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:020}{SUFFIX}"))
}

fn read_header(bytes: &[u8]) -> Result<(Tables, usize), Damage> {
    let torn = |_| Damage::TornTail {
        offset: 0,
        len: bytes.len() as u64,
    };
    let corrupt = |message: String| Damage::Corrupt { offset: 0, message };
    let mut cursor = Cursor(bytes);
    let magic = cursor.take(MAGIC.len()).map_err(torn)?;
    if magic != MAGIC {
        // A file whose size was recorded before its bytes reads as zeros after a power cut.
        let message = format!("it begins with {magic:02x?}, expected {MAGIC:02x?}");
        return Err(if bytes.iter().all(|b| *b == 0) {
            torn(message)
        } else {
            corrupt(message)
        });
    }
    let version = cursor.u16().map_err(torn)?;
    if version != VERSION {
        return Err(corrupt(format!("format version is {version}, expected {VERSION}")));
    }
    let len = cursor.u32().map_err(torn)? as usize;
    let expected = cursor.u32().map_err(torn)?;
    let header = cursor.take(len).map_err(torn)?;
    if crc32fast::hash(header) != expected {
        return Err(corrupt("checksum of the header is wrong".to_owned()));
    }
    let tables = Tables::decode(header).map_err(corrupt)?;
    Ok((tables, bytes.len() - cursor.0.len()))
}

/// The record at the front of `bytes` and its length.
fn read_record(bytes: &[u8], tables: &Tables) -> Result<(Record, usize), String> {
    let body = checked_body(bytes)?;
    let record = Record::decode_body(body, tables)?;
    Ok((record, PREFIX_LEN + body.len()))
}

fn checked_body(bytes: &[u8]) -> Result<&[u8], String> {
    let mut cursor = Cursor(bytes);
    let marker = cursor.take(MARKER.len())?;
    if marker != MARKER {
        return Err(format!("record begins with {marker:02x?}, expected {MARKER:02x?}"));
    }
    let body_len = cursor.u32()? as usize;
    let expected = cursor.u32()?;
    let body = cursor.take(body_len)?;
    let found = checksum(body);
    if found != expected {
        return Err(format!("checksum is {found:08x}, expected {expected:08x}"));
    }
    Ok(body)
}

/// The first offset from `from` at which a whole record begins.
fn next_record(bytes: &[u8], from: usize) -> Option<usize> {
    (from..bytes.len().saturating_sub(PREFIX_LEN)).find(|at| bytes[*at..].starts_with(&MARKER) && checked_body(&bytes[*at..]).is_ok())
}

fn checksum(body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(body.len() as u32).to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use spanflame_model::{Fingerprint, Tenant, Timestamp};

    use super::*;

    fn tables() -> Tables {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, false), Field::new("s", DataType::Utf8, true)]);
        Tables::new([("t".to_owned(), Arc::new(schema))])
    }

    fn record(n: i64) -> Record {
        let schema = tables().schema(0).expect("one table");
        let rows = RecordBatch::try_new(
            schema,
            vec![
                Arc::new(Int64Array::from(vec![n, n + 1])),
                Arc::new(StringArray::from(vec![Some("a"), None])),
            ],
        );
        Record {
            received: Timestamp::from_unix_nanos_signed(n).expect("not negative"),
            tenant: Tenant::anonymous(),
            fingerprints: vec![Fingerprint(n as u128)],
            batches: vec![(0, rows.expect("valid"))],
        }
    }

    /// Writes records 1, 2, 3, lets `harm` change the file (it gets the offsets at which records begin, and
    /// the end), reads again. Returns the arrival times read and the damages.
    fn check(harm: impl FnOnce(&mut Vec<u8>, &[usize])) -> (Vec<i64>, Vec<Damage>) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut writer = SegmentWriter::create(dir.path(), 7, &tables()).expect("created");
        let mut offsets = vec![writer.len() as usize];
        for n in 1..=3 {
            writer.write(&SegmentWriter::encode(&record(n)).expect("encoded")).expect("written");
            offsets.push(writer.len() as usize);
        }
        writer.sync().expect("synced");
        let path = segment_path(dir.path(), 7);
        let mut bytes = std::fs::read(&path).expect("read");
        harm(&mut bytes, &offsets);
        std::fs::write(&path, bytes).expect("written");
        assert_eq!(list_segments(dir.path()).expect("listed"), [7]);
        let mut read = Vec::new();
        let damages = read_segment(dir.path(), 7, |found, record| {
            assert_eq!(found, &tables());
            assert_eq!(record.batches, super::tests::record(record.received.unix_nanos()).batches);
            read.push(record.received.unix_nanos());
            Ok(())
        });
        (read, damages.expect("header is whole"))
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(check(|_, _| ()), (vec![1, 2, 3], vec![]));
    }

    #[test]
    fn a_tail_torn_at_any_byte_loses_only_the_record_it_tears() {
        let (mut begin, mut end) = (0, 0);
        check(|_, offsets| (begin, end) = (offsets[2], offsets[3]));
        for cut in begin + 1..end {
            let torn = Damage::TornTail {
                offset: begin as u64,
                len: (cut - begin) as u64,
            };
            assert_eq!(check(|bytes, _| bytes.truncate(cut)), (vec![1, 2], vec![torn]));
        }
    }

    #[test]
    fn a_tail_of_zeros_after_a_power_cut_is_torn() {
        let (read, damages) = check(|bytes, _| bytes.resize(bytes.len() + 4096, 0));
        assert_eq!(read, [1, 2, 3]);
        assert!(matches!(damages[..], [Damage::TornTail { len: 4096, .. }]));
    }

    #[test]
    fn a_flipped_bit_in_the_middle_costs_one_record_and_names_its_place() {
        for within in [0, 5, 9, 40] {
            let mut offset = 0;
            let (read, damages) = check(|bytes, offsets| {
                offset = offsets[1];
                bytes[offset + within] ^= 0x10;
            });
            assert_eq!(read, [1, 3], "byte {within}");
            assert!(matches!(&damages[..], [Damage::Corrupt { offset: at, .. }] if *at == offset as u64));
        }
    }

    #[test]
    fn a_segment_whose_header_is_torn_holds_nothing() {
        let (read, damages) = check(|bytes, offsets| bytes.truncate(offsets[0] - 1));
        assert_eq!(read, [0; 0]);
        assert!(matches!(damages[..], [Damage::TornTail { offset: 0, .. }]));
    }
}
