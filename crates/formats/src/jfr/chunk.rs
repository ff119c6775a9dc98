//! A chunk: its header, and where its tables are.

use spanflame_model::Timestamp;

use super::FORMAT;
use super::cursor::{Broken, Cursor};
use crate::Error;

pub(super) const MAGIC: &[u8] = b"FLR\0";

/// Bytes before the first event.
const HEADER_BYTES: usize = 68;

/// One chunk of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'a> {
    /// With the header.
    bytes: &'a [u8],
    compressed: bool,
    /// Of the last table of constants, which names those before it.
    pub(super) pools_at: usize,
    pub(super) metadata_at: usize,
    pub(super) start: Timestamp,
    pub(super) duration_ns: u64,
    start_ticks: i64,
    ticks_per_second: i64,
}

impl<'a> Chunk<'a> {
    /// Takes the first chunk off `rest`.
    pub(super) fn split(rest: &mut &'a [u8]) -> Result<Chunk<'a>, Error> {
        let (chunk, tail) = Chunk::read_header(rest)?;
        *rest = tail;
        Ok(chunk)
    }

    fn read_header(bytes: &'a [u8]) -> Result<(Chunk<'a>, &'a [u8]), Error> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::malformed(FORMAT, "a chunk does not begin with FLR"));
        }
        let malformed = |broken: Broken| Error::malformed(FORMAT, broken);
        let mut header = Cursor::new(bytes, false);
        header.take(MAGIC.len()).map_err(malformed)?;
        let major = header.short().map_err(malformed)?;
        let minor = header.short().map_err(malformed)?;
        if major != 2 {
            return Err(Error::Unsupported {
                found: format!("a JFR file of version {major}.{minor}"),
                expected: "version 2, which Java 9 and later write",
            });
        }
        let mut next = || header.long().map_err(malformed);
        let [size, pools_at, metadata_at, start, duration, start_ticks, ticks_per_second] =
            [next()?, next()?, next()?, next()?, next()?, next()?, next()?];
        let features = header.int().map_err(malformed)?;
        let size = usize::try_from(size)
            .ok()
            .filter(|size| (HEADER_BYTES..=bytes.len()).contains(size));
        let size = size.ok_or_else(|| {
            let text = format!(
                "a chunk's header does not fit the {} bytes that are left: it was cut off or never finished",
                bytes.len()
            );
            Error::malformed(FORMAT, text)
        })?;
        let (bytes, tail) = bytes.split_at(size);
        let inside = |at: i64, what| {
            usize::try_from(at)
                .ok()
                .filter(|at| (HEADER_BYTES..size).contains(at))
                .ok_or(Broken::Outside(what))
        };
        let chunk = Chunk {
            bytes,
            compressed: features & 1 != 0,
            pools_at: inside(pools_at, "the table of constants").map_err(malformed)?,
            metadata_at: inside(metadata_at, "the metadata").map_err(malformed)?,
            start: Timestamp::from_unix_nanos_signed(start).ok_or_else(|| Error::malformed(FORMAT, "a chunk starts before 1970"))?,
            duration_ns: u64::try_from(duration).unwrap_or(0),
            start_ticks,
            ticks_per_second: ticks_per_second.max(1),
        };
        Ok((chunk, tail))
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The content of the event that begins at `at`, after its size.
    pub(super) fn event_at(&self, at: usize) -> Result<Cursor<'a>, Broken> {
        let bytes = self.bytes.get(at..).ok_or(Broken::Outside("an event"))?;
        let mut cursor = Cursor::new(bytes, self.compressed);
        let size = usize::try_from(cursor.int()?).map_err(|_| Broken::Truncated)?;
        let event = bytes.get(..size).ok_or(Broken::Truncated)?;
        let mut cursor = Cursor::new(event, self.compressed);
        cursor.int()?;
        Ok(cursor)
    }

    /// Every event in order, as its content after its size.
    pub(super) fn events(&self) -> impl Iterator<Item = Result<Cursor<'a>, Broken>> {
        let mut rest = &self.bytes[HEADER_BYTES..];
        let compressed = self.compressed;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let mut cursor = Cursor::new(rest, compressed);
            let size = cursor.int().and_then(|size| usize::try_from(size).map_err(|_| Broken::Truncated));
            let event = size.and_then(|size| match rest.split_at_checked(size) {
                Some((event, tail)) if !event.is_empty() => {
                    rest = tail;
                    let mut cursor = Cursor::new(event, compressed);
                    cursor.int().map(|_| cursor)
                }
                _ => Err(Broken::Truncated),
            });
            if event.is_err() {
                rest = &[];
            }
            Some(event)
        })
    }

    /// The time of a tick; `None` where it does not fit.
    pub(super) fn time(&self, ticks: i64) -> Option<Timestamp> {
        let since = self.nanos(i128::from(ticks) - i128::from(self.start_ticks));
        let nanos = i128::from(self.start.unix_nanos()) + since;
        i64::try_from(nanos).ok().and_then(Timestamp::from_unix_nanos_signed)
    }

    /// How many nanoseconds so many ticks last; 0 for a negative number.
    pub(super) fn duration(&self, ticks: i64) -> i64 {
        i64::try_from(self.nanos(i128::from(ticks))).unwrap_or(i64::MAX).max(0)
    }

    fn nanos(&self, ticks: i128) -> i128 {
        ticks * 1_000_000_000 / i128::from(self.ticks_per_second)
    }
}
