//! Thrift's binary and compact protocols, field by field, without a schema.

/// How deep structs and lists may nest; Jaeger's nest five deep.
const DEPTH_MAX: usize = 16;

/// Bytes that are no Thrift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ThriftError {
    #[error("it ends inside a value")]
    Truncated,
    #[error("a field has type {0}")]
    Kind(u8),
    #[error("a list has {0} items, more than the bytes that follow")]
    Items(u32),
    #[error("values nest deeper than {DEPTH_MAX}")]
    TooDeep,
    #[error("the message begins with {0:#04x}, expected 0x82 (compact) or 0x80 (binary)")]
    Message(u8),
    #[error("a list holds another type than its field declares")]
    Unexpected,
    /// Ends the reading; why is said elsewhere.
    #[error("it was refused")]
    Refused,
}

/// The type of a value. In the compact protocol the header of a field already has the value of a boolean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool(Option<bool>),
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

/// A place in a message.
#[derive(Clone, Copy)]
pub(super) struct ThriftReader<'a> {
    rest: &'a [u8],
    compact: bool,
}

type OnField<'f, 'a> = &'f mut dyn FnMut(&mut ThriftReader<'a>, i16, Kind) -> Result<bool, ThriftError>;
type OnItem<'f, 'a> = &'f mut dyn FnMut(&mut ThriftReader<'a>) -> Result<(), ThriftError>;

impl<'a> ThriftReader<'a> {
    /// A struct in the binary protocol.
    pub(super) fn binary(bytes: &'a [u8]) -> ThriftReader<'a> {
        ThriftReader {
            rest: bytes,
            compact: false,
        }
    }

    /// The arguments of a call in either protocol.
    pub(super) fn message(bytes: &'a [u8]) -> Result<ThriftReader<'a>, ThriftError> {
        let mut reader = ThriftReader::binary(bytes);
        match reader.byte()? {
            0x82 => {
                reader.compact = true;
                reader.byte()?;
                reader.varint()?;
                reader.bytes()?;
            }
            0x80 => {
                reader.take(3)?;
                reader.bytes()?;
                reader.take(4)?;
            }
            other => return Err(ThriftError::Message(other)),
        }
        Ok(reader)
    }

    /// Calls `visit` for every field of a struct; a value that it says it did not read is passed over. `depth` is how
    /// deep the struct lies.
    pub(super) fn each_field(&mut self, depth: usize, visit: OnField<'_, 'a>) -> Result<(), ThriftError> {
        if depth > DEPTH_MAX {
            return Err(ThriftError::TooDeep);
        }
        let mut last = 0i16;
        while let Some((id, kind)) = self.field(last)? {
            last = id;
            let before = *self;
            if !visit(self, id, kind)? {
                *self = before;
                self.skip(kind, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Calls `visit` for every item of a list, which must hold `expected`.
    pub(super) fn each_item(&mut self, expected: Kind, visit: OnItem<'_, 'a>) -> Result<(), ThriftError> {
        let (kind, count) = self.list()?;
        if kind != expected && count > 0 {
            return Err(ThriftError::Unexpected);
        }
        for _ in 0..count {
            visit(self)?;
        }
        Ok(())
    }

    fn field(&mut self, last: i16) -> Result<Option<(i16, Kind)>, ThriftError> {
        let header = self.byte()?;
        if header == 0 {
            return Ok(None);
        }
        if !self.compact {
            let id = i16::from_be_bytes(self.array()?);
            return Ok(Some((id, binary_kind(header)?)));
        }
        let id = match header >> 4 {
            0 => zigzag(self.varint()?) as i16,
            delta => last.wrapping_add(i16::from(delta)),
        };
        Ok(Some((id, compact_kind(header & 15)?)))
    }

    /// Type and number of the items of a list. Every item has at least a byte.
    fn list(&mut self) -> Result<(Kind, u32), ThriftError> {
        let header = self.byte()?;
        let (kind, count) = match self.compact {
            false => (binary_kind(header)?, u32::from_be_bytes(self.array()?)),
            true => {
                let kind = match compact_kind(header & 15)? {
                    // In a list a boolean has its own byte.
                    Kind::Bool(_) => Kind::Bool(None),
                    kind => kind,
                };
                let count = match header >> 4 {
                    15 => u32::try_from(self.varint()?).unwrap_or(u32::MAX),
                    count => u32::from(count),
                };
                (kind, count)
            }
        };
        match count as usize <= self.rest.len() {
            true => Ok((kind, count)),
            false => Err(ThriftError::Items(count)),
        }
    }

    fn skip(&mut self, kind: Kind, depth: usize) -> Result<(), ThriftError> {
        if depth > DEPTH_MAX {
            return Err(ThriftError::TooDeep);
        }
        match kind {
            Kind::Bool(Some(_)) => {}
            Kind::Bool(None) | Kind::Byte => drop(self.byte()?),
            Kind::I16 | Kind::I32 | Kind::I64 => drop(self.int(kind)?),
            Kind::Double => drop(self.double()?),
            Kind::Binary => drop(self.bytes()?),
            Kind::List => {
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    self.skip(kind, depth + 1)?;
                }
            }
            Kind::Map => self.skip_map(depth)?,
            Kind::Struct => self.each_field(depth, &mut |_, _, _| Ok(false))?,
        }
        Ok(())
    }

    fn skip_map(&mut self, depth: usize) -> Result<(), ThriftError> {
        let (key, value, count) = match self.compact {
            false => (
                binary_kind(self.byte()?)?,
                binary_kind(self.byte()?)?,
                u32::from_be_bytes(self.array()?),
            ),
            true => match u32::try_from(self.varint()?).unwrap_or(u32::MAX) {
                0 => return Ok(()),
                count => {
                    let kinds = self.byte()?;
                    let item = |code: u8| match compact_kind(code) {
                        Ok(Kind::Bool(_)) => Ok(Kind::Bool(None)),
                        other => other,
                    };
                    (item(kinds >> 4)?, item(kinds & 15)?, count)
                }
            },
        };
        if count as usize > self.rest.len() {
            return Err(ThriftError::Items(count));
        }
        for _ in 0..count {
            self.skip(key, depth + 1)?;
            self.skip(value, depth + 1)?;
        }
        Ok(())
    }

    /// A number of the type of its field.
    pub(super) fn int(&mut self, kind: Kind) -> Result<i64, ThriftError> {
        if self.compact {
            return self.varint().map(zigzag);
        }
        Ok(match kind {
            Kind::I16 => i64::from(i16::from_be_bytes(self.array()?)),
            Kind::I32 => i64::from(i32::from_be_bytes(self.array()?)),
            _ => i64::from_be_bytes(self.array()?),
        })
    }

    pub(super) fn boolean(&mut self, kind: Kind) -> Result<bool, ThriftError> {
        match kind {
            Kind::Bool(Some(value)) => Ok(value),
            _ => self.byte().map(|byte| byte == 1),
        }
    }

    pub(super) fn double(&mut self) -> Result<f64, ThriftError> {
        let bytes = self.array()?;
        Ok(match self.compact {
            true => f64::from_le_bytes(bytes),
            false => f64::from_be_bytes(bytes),
        })
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], ThriftError> {
        let len = match self.compact {
            true => usize::try_from(self.varint()?).map_err(|_| ThriftError::Truncated)?,
            false => u32::from_be_bytes(self.array()?) as usize,
        };
        self.take(len)
    }

    pub(super) fn text(&mut self) -> Result<String, ThriftError> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn varint(&mut self) -> Result<u64, ThriftError> {
        let mut number = 0;
        for (at, byte) in self.rest.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(number);
            }
        }
        Err(ThriftError::Truncated)
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        self.array().map(|[byte]| byte)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ThriftError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(ThriftError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ThriftError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ThriftError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }
}

fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn binary_kind(code: u8) -> Result<Kind, ThriftError> {
    Ok(match code {
        2 => Kind::Bool(None),
        3 => Kind::Byte,
        4 => Kind::Double,
        6 => Kind::I16,
        8 => Kind::I32,
        10 => Kind::I64,
        11 => Kind::Binary,
        12 => Kind::Struct,
        13 => Kind::Map,
        14 | 15 => Kind::List,
        other => return Err(ThriftError::Kind(other)),
    })
}

fn compact_kind(code: u8) -> Result<Kind, ThriftError> {
    Ok(match code {
        1 => Kind::Bool(Some(true)),
        2 => Kind::Bool(Some(false)),
        3 => Kind::Byte,
        4 => Kind::I16,
        5 => Kind::I32,
        6 => Kind::I64,
        7 => Kind::Double,
        8 => Kind::Binary,
        9 | 10 => Kind::List,
        11 => Kind::Map,
        12 => Kind::Struct,
        other => return Err(ThriftError::Kind(other)),
    })
}
