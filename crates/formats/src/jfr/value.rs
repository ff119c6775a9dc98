//! Values of any type, read by the metadata.

use std::borrow::Cow;

use super::chunk::Chunk;
use super::cursor::{Broken, Cursor, Text};
use super::metadata::{Field, Metadata, Primitive, TypeIndex};
use crate::budget::Budget;

/// How deep values may nest in one another.
const DEPTH_MAX: usize = 16;

/// Values for every byte of a chunk. A value takes a byte or more, but types without fields take none, and a table may
/// be pointed at twice.
const VALUES_PER_BYTE: u64 = 8;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Absent,
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    /// A constant: its type and its key.
    Pooled(TypeIndex, i64),
    /// The string of a key.
    PooledText(i64),
    /// Fields in the order of the type.
    Object(TypeIndex, Box<[Value<'a>]>),
    List(Box<[Value<'a>]>),
}

/// Reads values within what one chunk may cost.
pub(super) struct ValueReader<'m> {
    pub(super) metadata: &'m Metadata,
    budget: &'m Budget,
    values_left: u64,
}

impl<'m> ValueReader<'m> {
    pub(super) fn new(chunk: &Chunk<'_>, metadata: &'m Metadata, budget: &'m Budget) -> ValueReader<'m> {
        ValueReader {
            metadata,
            budget,
            values_left: VALUES_PER_BYTE * chunk.len() as u64,
        }
    }

    /// The fields of a value of this type.
    pub(super) fn fields<'a>(&mut self, cursor: &mut Cursor<'a>, kind: TypeIndex) -> Result<Box<[Value<'a>]>, Broken> {
        match self.value(cursor, kind, 0)? {
            Value::Object(_, fields) => Ok(fields),
            other => Ok(Box::new([other])),
        }
    }

    /// A value of this type.
    pub(super) fn value<'a>(&mut self, cursor: &mut Cursor<'a>, kind: TypeIndex, depth: usize) -> Result<Value<'a>, Broken> {
        self.spend()?;
        if depth > DEPTH_MAX {
            return Err(Broken::TooDeep(DEPTH_MAX));
        }
        let described = self.metadata.get(kind);
        if let Some(primitive) = described.primitive {
            return primitive_value(cursor, primitive);
        }
        let mut fields = Vec::with_capacity(described.fields.len());
        for field in &described.fields {
            fields.push(self.field(cursor, field, depth + 1)?);
        }
        Ok(Value::Object(kind, fields.into_boxed_slice()))
    }

    fn field<'a>(&mut self, cursor: &mut Cursor<'a>, field: &Field, depth: usize) -> Result<Value<'a>, Broken> {
        if !field.list {
            return self.item(cursor, field, depth);
        }
        let count = cursor.count()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.item(cursor, field, depth)?);
        }
        Ok(Value::List(items.into_boxed_slice()))
    }

    fn item<'a>(&mut self, cursor: &mut Cursor<'a>, field: &Field, depth: usize) -> Result<Value<'a>, Broken> {
        let kind = field.kind.ok_or(Broken::UnknownType)?;
        if !field.pooled {
            return self.value(cursor, kind, depth);
        }
        self.spend()?;
        Ok(Value::Pooled(kind, cursor.long()?))
    }

    fn spend(&mut self) -> Result<(), Broken> {
        self.values_left = self.values_left.checked_sub(1).ok_or(Broken::TooManyValues)?;
        self.budget.take(size_of::<Value<'_>>()).map_err(|_| Broken::Expansion)
    }
}

fn primitive_value<'a>(cursor: &mut Cursor<'a>, primitive: Primitive) -> Result<Value<'a>, Broken> {
    Ok(match primitive {
        Primitive::Byte => Value::Int(i64::from(cursor.byte()?)),
        Primitive::Short => Value::Int(cursor.short()?),
        Primitive::Int => Value::Int(cursor.int()?),
        Primitive::Long => Value::Int(cursor.long()?),
        Primitive::Float => Value::Float(f64::from(f32::from_be_bytes(cursor.array()?))),
        Primitive::Double => Value::Float(f64::from_be_bytes(cursor.array()?)),
        Primitive::Text => match cursor.text()? {
            Text::Absent => Value::Absent,
            Text::Inline(text) => Value::Text(text),
            Text::Pooled(key) => Value::PooledText(key),
        },
    })
}
