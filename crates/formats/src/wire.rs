//! Protobuf's wire format, field by field, without a schema.
//!
//! For formats where generated code stands in the way: OTLP profiles renumbered their fields without a
//! mark, so one must look before deciding what a field means.

/// One field as it lies on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// Bytes that are no protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("the message ends inside a field")]
    Truncated,
    #[error("a number has more than 64 bits")]
    LongVarint,
    #[error("field {field} has wire type {wire_type}, expected 0, 1, 2 or 5")]
    WireType { field: u32, wire_type: u8 },
    #[error("field {field} has another wire type than its message declares")]
    Unexpected { field: u32 },
}

/// Reads the fields of one message in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The next field's number and content; `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let (field, wire_type) = ((key >> 3) as u32, (key & 7) as u8);
        let wire = match wire_type {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
                Wire::Bytes(self.take(len)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(WireError::WireType { field, wire_type }),
        };
        Ok(Some((field, wire)))
    }

    /// The bytes between this place and a `later` one in the same message.
    pub(crate) fn until(&self, later: &Reader<'a>) -> &'a [u8] {
        &self.rest[..self.rest.len() - later.rest.len()]
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, WireError> {
        if let [byte @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for (at, byte) in self.rest.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(number);
            }
        }
        match self.rest.len() < 10 {
            true => Err(WireError::Truncated),
            false => Err(WireError::LongVarint),
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// Calls `visit` for every number of a repeated varint field, packed or not.
#[inline]
pub(crate) fn each_varint(field: u32, wire: Wire<'_>, mut visit: impl FnMut(u64)) -> Result<(), WireError> {
    match wire {
        Wire::Varint(number) => visit(number),
        Wire::Bytes(bytes) => {
            let mut packed = Reader::new(bytes);
            while !packed.rest.is_empty() {
                visit(packed.varint()?);
            }
        }
        _ => return Err(WireError::Unexpected { field }),
    }
    Ok(())
}

/// Calls `visit` for every number of a repeated fixed64 field, packed or not.
#[inline]
pub(crate) fn each_fixed64(field: u32, wire: Wire<'_>, mut visit: impl FnMut(u64)) -> Result<(), WireError> {
    match wire {
        Wire::Fixed64(number) => visit(number),
        Wire::Bytes(bytes) => {
            let (numbers, []) = bytes.as_chunks::<8>() else {
                return Err(WireError::Truncated);
            };
            numbers.iter().for_each(|number| visit(u64::from_le_bytes(*number)));
        }
        _ => return Err(WireError::Unexpected { field }),
    }
    Ok(())
}

impl<'a> Wire<'a> {
    /// The content of a string, bytes or message field.
    pub(crate) fn bytes(self, field: u32) -> Result<&'a [u8], WireError> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::Unexpected { field }),
        }
    }

    /// The content of an integer field.
    #[inline]
    pub(crate) fn number(self, field: u32) -> Result<u64, WireError> {
        match self {
            Wire::Varint(number) => Ok(number),
            _ => Err(WireError::Unexpected { field }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<Vec<(u32, Wire<'_>)>, WireError>) {
        let mut reader = Reader::new(bytes);
        let mut fields = Vec::new();
        let found = loop {
            match reader.next() {
                Ok(Some(field)) => fields.push(field),
                Ok(None) => break Ok(fields),
                Err(error) => break Err(error),
            }
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn fields_come_in_order() {
        check(
            &[8, 0x96, 1, 18, 2, 7, 8],
            Ok(vec![(1, Wire::Varint(150)), (2, Wire::Bytes(&[7, 8]))]),
        );
        check(
            &[9, 1, 0, 0, 0, 0, 0, 0, 0, 21, 2, 0, 0, 0],
            Ok(vec![(1, Wire::Fixed64(1)), (2, Wire::Fixed32(2))]),
        );
    }

    #[test]
    fn lengths_beyond_the_end_are_errors() {
        check(&[18, 3, 7, 8], Err(WireError::Truncated));
        check(
            &[18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            Err(WireError::Truncated),
        );
        check(&[8, 0x80], Err(WireError::Truncated));
        check(
            &[8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
            Err(WireError::LongVarint),
        );
        check(&[11], Err(WireError::WireType { field: 1, wire_type: 3 }));
    }

    #[test]
    fn repeated_numbers_are_read_packed_or_not() {
        let mut seen = Vec::new();
        each_varint(1, Wire::Bytes(&[1, 0x80, 1]), |n| seen.push(n)).expect("valid");
        each_varint(1, Wire::Varint(3), |n| seen.push(n)).expect("valid");
        assert_eq!(seen, [1, 128, 3]);
        assert!(each_fixed64(1, Wire::Bytes(&[0; 9]), |_| ()).is_err());
    }
}
