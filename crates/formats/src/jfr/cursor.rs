//! Numbers and strings as a chunk writes them.

use std::borrow::Cow;

/// Bytes that are not what the metadata promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("it ends inside a value")]
    Truncated,
    #[error("a string begins with {0}, expected 0 to 5")]
    StringKind(u8),
    #[error("a count is {0}, more than the bytes that follow")]
    Count(u64),
    #[error("a type is used that the metadata does not describe")]
    UnknownType,
    #[error("its metadata has more strings, types or fields than the limit")]
    TooManyTypes,
    #[error("types nest deeper than {0}")]
    TooDeep(usize),
    #[error("its tables are worth more values than its bytes can hold")]
    TooManyValues,
    #[error("it unfolds into more bytes than the limit")]
    Expansion,
    #[error("{0} lies outside of the chunk")]
    Outside(&'static str),
}

/// A place in a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// Integers of more than a byte are varints; else they are big-endian.
    compressed: bool,
}

/// A string, or where it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text<'a> {
    Absent,
    Inline(Cow<'a, str>),
    /// A key in the pool of strings.
    Pooled(i64),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], compressed: bool) -> Cursor<'a> {
        Cursor { rest: bytes, compressed }
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Broken::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Broken::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Broken> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn short(&mut self) -> Result<i64, Broken> {
        match self.compressed {
            true => self.varint(),
            false => self.array().map(|bytes| i64::from(i16::from_be_bytes(bytes))),
        }
    }

    pub(super) fn int(&mut self) -> Result<i64, Broken> {
        match self.compressed {
            true => self.varint().map(|number| i64::from(number as i32)),
            false => self.array().map(|bytes| i64::from(i32::from_be_bytes(bytes))),
        }
    }

    pub(super) fn long(&mut self) -> Result<i64, Broken> {
        match self.compressed {
            true => self.varint(),
            false => self.array().map(i64::from_be_bytes),
        }
    }

    /// Seven bits a byte, and all eight of the ninth.
    fn varint(&mut self) -> Result<i64, Broken> {
        let mut number = 0u64;
        for at in 0..9 {
            let byte = u64::from(*self.rest.get(at).ok_or(Broken::Truncated)?);
            if at == 8 || byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok((number | byte << (7 * at)) as i64);
            }
            number |= (byte & 0x7f) << (7 * at);
        }
        Err(Broken::Truncated)
    }

    /// How many items follow, each of which takes at least a byte.
    pub(super) fn count(&mut self) -> Result<usize, Broken> {
        let count = self.int()? as u32 as usize;
        match count <= self.rest.len() {
            true => Ok(count),
            false => Err(Broken::Count(count as u64)),
        }
    }

    pub(super) fn text(&mut self) -> Result<Text<'a>, Broken> {
        Ok(match self.byte()? {
            0 => Text::Absent,
            1 => Text::Inline(Cow::Borrowed("")),
            2 => Text::Pooled(self.long()?),
            3 => {
                let len = self.count()?;
                Text::Inline(String::from_utf8_lossy(self.take(len)?))
            }
            4 => {
                let len = self.count()?;
                let units = (0..len).map(|_| self.short().map(|unit| unit as u16));
                let units = units.collect::<Result<Vec<u16>, Broken>>()?;
                Text::Inline(Cow::Owned(String::from_utf16_lossy(&units)))
            }
            5 => {
                let len = self.count()?;
                let latin = self.take(len)?;
                Text::Inline(match std::str::from_utf8(latin).ok().filter(|text| text.is_ascii()) {
                    Some(ascii) => Cow::Borrowed(ascii),
                    None => Cow::Owned(latin.iter().map(|byte| char::from(*byte)).collect()),
                })
            }
            kind => return Err(Broken::StringKind(kind)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_nine_bytes_at_most() {
        let long = |bytes: &[u8]| Cursor::new(bytes, true).long();
        assert_eq!(long(&[0x7f]), Ok(127));
        assert_eq!(long(&[0x80, 1]), Ok(128));
        assert_eq!(long(&[0xff; 9]), Ok(-1));
        assert_eq!(long(&[0xff; 8]), Err(Broken::Truncated));
        assert_eq!(Cursor::new(&[0xff; 8], false).long(), Ok(-1));
    }

    #[test]
    fn strings_of_every_kind_are_read() {
        let text = |bytes: &[u8]| match Cursor::new(bytes, true).text() {
            Ok(Text::Inline(text)) => text.into_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(text(&[1]), "");
        assert_eq!(text(&[3, 2, 0xc3, 0xa9]), "\u{e9}");
        assert_eq!(text(&[4, 1, 0xe9, 1]), "\u{e9}");
        assert_eq!(text(&[5, 1, 0xe9]), "\u{e9}");
        assert_eq!(text(&[2, 7]), "Ok(Pooled(7))");
        assert_eq!(text(&[3, 9]), "Err(Count(9))");
        assert_eq!(text(&[6]), "Err(StringKind(6))");
    }
}
