//! The constants of a chunk: stacks, methods, threads by key.
//!
//! They lie in several tables, each naming the place of the one before it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::chunk::Chunk;
use super::cursor::Broken;
use super::metadata::{Metadata, Primitive, TypeIndex};
use super::value::{Value, ValueReader};

/// How often one constant may stand for another before its text is found.
const HOPS_MAX: usize = 8;

/// The constants of a chunk.
pub(super) struct Pools<'a, 'm> {
    metadata: &'m Metadata,
    constants: HashMap<(TypeIndex, i64), Value<'a>>,
    /// The type of strings.
    text: Option<TypeIndex>,
}

impl<'a, 'm> Pools<'a, 'm> {
    pub(super) fn read(chunk: &Chunk<'a>, reader: &mut ValueReader<'m>) -> Result<Pools<'a, 'm>, Broken> {
        let mut pools = Pools {
            metadata: reader.metadata,
            constants: HashMap::new(),
            text: None,
        };
        let mut seen = HashSet::new();
        let mut at = chunk.pools_at;
        while seen.insert(at) {
            let delta = pools.table(chunk, at, reader)?;
            if delta == 0 {
                break;
            }
            let earlier = i64::try_from(at).ok().and_then(|at| at.checked_add(delta));
            at = earlier
                .and_then(|at| usize::try_from(at).ok())
                .ok_or(Broken::Outside("a table of constants"))?;
        }
        Ok(pools)
    }

    /// Reads one table; answers how far away the one before it is, 0 if there is none.
    fn table(&mut self, chunk: &Chunk<'a>, at: usize, reader: &mut ValueReader<'m>) -> Result<i64, Broken> {
        let mut cursor = chunk.event_at(at)?;
        // Type of the event, start, duration.
        for _ in 0..3 {
            cursor.long()?;
        }
        let delta = cursor.long()?;
        cursor.byte()?;
        for _ in 0..cursor.count()? {
            let kind = reader.metadata.by_id(cursor.long()?).ok_or(Broken::UnknownType)?;
            if reader.metadata.get(kind).primitive == Some(Primitive::Text) {
                self.text = Some(kind);
            }
            for _ in 0..cursor.count()? {
                let key = cursor.long()?;
                let value = reader.value(&mut cursor, kind, 0)?;
                self.constants.insert((kind, key), value);
            }
        }
        Ok(delta)
    }

    /// What a value stands for, with the constants it goes through. `None` if one of them is missing.
    pub(super) fn resolve<'v>(&'v self, mut value: &'v Value<'a>) -> Option<&'v Value<'a>> {
        for _ in 0..HOPS_MAX {
            value = match value {
                Value::Pooled(kind, key) => self.constants.get(&(*kind, *key))?,
                Value::PooledText(key) => self.constants.get(&(self.text?, *key))?,
                value => return Some(value),
            };
        }
        None
    }

    /// Position of a field in the objects of a type.
    pub(super) fn position(&self, kind: TypeIndex, name: &str) -> Option<usize> {
        self.metadata.get(kind).field(name)
    }

    /// A field of an object, or of the constant that a value stands for.
    pub(super) fn field<'v>(&'v self, value: &'v Value<'a>, name: &str) -> Option<&'v Value<'a>> {
        match self.resolve(value)? {
            Value::Object(kind, fields) => self.resolve(&fields[self.metadata.get(*kind).field(name)?]),
            _ => None,
        }
    }

    /// The text of a value: itself, or the only field of what it stands for, as symbols have it.
    pub(super) fn text<'v>(&'v self, value: &'v Value<'a>) -> Option<&'v Cow<'a, str>> {
        match self.resolve(value)? {
            Value::Text(text) => Some(text),
            Value::Object(_, fields) => match self.resolve(fields.first()?)? {
                Value::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn int(&self, value: &Value<'a>) -> Option<i64> {
        match self.resolve(value)? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }
}
