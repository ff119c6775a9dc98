//! The types of a chunk: what fields their values have, in order.

use std::collections::HashMap;
use std::sync::Arc;

use super::chunk::Chunk;
use super::cursor::{Broken, Cursor, Text};

/// How deep the elements of the metadata nest: root, metadata, class, field, annotation.
const DEPTH_MAX: usize = 16;

/// Most strings, types and fields of a chunk's metadata; real ones have a few thousand.
const STRINGS_MAX: usize = 1 << 20;
const TYPES_MAX: usize = 1 << 16;
const FIELDS_MAX: usize = 1 << 18;

/// Position of a type among the types of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeIndex(usize);

/// A type.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) id: i64,
    pub(super) name: Arc<str>,
    pub(super) fields: Vec<Field>,
    /// Set for the types that have no fields and are written in a way of their own.
    pub(super) primitive: Option<Primitive>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    Text,
}

/// A field of a type.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Arc<str>,
    /// Id of its type, until all types are known.
    type_id: i64,
    /// Its type, if the metadata describes it.
    pub(super) kind: Option<TypeIndex>,
    /// It is a key in a table of constants.
    pub(super) pooled: bool,
    /// It is a list.
    pub(super) list: bool,
}

/// The types of a chunk.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    types: Vec<Type>,
    by_id: HashMap<i64, TypeIndex>,
    fields: usize,
}

impl Metadata {
    pub(super) fn read(chunk: &Chunk<'_>) -> Result<Metadata, Broken> {
        let mut cursor = chunk.event_at(chunk.metadata_at)?;
        // Type of the event, start, duration and id of the metadata.
        for _ in 0..4 {
            cursor.long()?;
        }
        let count = cursor.count()?;
        if count > STRINGS_MAX {
            return Err(Broken::TooManyTypes);
        }
        let mut strings: Vec<Arc<str>> = Vec::with_capacity(count);
        for _ in 0..count {
            strings.push(match cursor.text()? {
                Text::Inline(text) => Arc::from(&*text),
                Text::Absent | Text::Pooled(_) => Arc::default(),
            });
        }
        let mut metadata = Metadata::default();
        metadata.element(&mut cursor, &strings, 0)?;
        metadata.link();
        Ok(metadata)
    }

    /// Reads an element and all in it. Only classes and their fields are kept.
    fn element(&mut self, cursor: &mut Cursor<'_>, strings: &[Arc<str>], depth: usize) -> Result<(), Broken> {
        if depth > DEPTH_MAX {
            return Err(Broken::TooDeep(DEPTH_MAX));
        }
        let shared = |index: i64| usize::try_from(index).ok().and_then(|at| strings.get(at));
        let string = |index: i64| shared(index).map_or("", |text| &**text);
        let name = string(cursor.int()?);
        let (mut id, mut own_name, mut type_id, mut pooled, mut list) = (0, Arc::default(), 0, false, false);
        for _ in 0..cursor.count()? {
            let (key, index) = (string(cursor.int()?), cursor.int()?);
            let value = string(index);
            match key {
                "id" => id = value.parse().unwrap_or(0),
                "name" => own_name = shared(index).cloned().unwrap_or_default(),
                "class" => type_id = value.parse().unwrap_or(0),
                "constantPool" => pooled = value == "true",
                "dimension" => list = value != "0",
                _ => {}
            }
        }
        match name {
            "class" if self.types.len() == TYPES_MAX => return Err(Broken::TooManyTypes),
            "class" => self.types.push(Type {
                id,
                primitive: Primitive::of(&own_name),
                name: own_name,
                fields: Vec::new(),
            }),
            // A field belongs to the class that it is in, which is the one read last: classes do not nest.
            "field" => {
                self.fields += 1;
                if self.fields > FIELDS_MAX {
                    return Err(Broken::TooManyTypes);
                }
                let field = Field {
                    name: own_name,
                    type_id,
                    kind: None,
                    pooled,
                    list,
                };
                self.types.last_mut().ok_or(Broken::UnknownType)?.fields.push(field);
            }
            _ => {}
        }
        for _ in 0..cursor.count()? {
            self.element(cursor, strings, depth + 1)?;
        }
        Ok(())
    }

    /// Finds the type of every field.
    fn link(&mut self) {
        self.by_id = self.types.iter().enumerate().map(|(at, one)| (one.id, TypeIndex(at))).collect();
        for field in self.types.iter_mut().flat_map(|one| &mut one.fields) {
            field.kind = self.by_id.get(&field.type_id).copied();
        }
    }

    /// The type of an id.
    pub(super) fn by_id(&self, id: i64) -> Option<TypeIndex> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn get(&self, index: TypeIndex) -> &Type {
        &self.types[index.0]
    }
}

impl Type {
    /// Position of a field.
    pub(super) fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| &*field.name == name)
    }
}

impl Primitive {
    fn of(name: &str) -> Option<Primitive> {
        Some(match name {
            "boolean" | "byte" => Primitive::Byte,
            "short" | "char" => Primitive::Short,
            "int" => Primitive::Int,
            "long" => Primitive::Long,
            "float" => Primitive::Float,
            "double" => Primitive::Double,
            "java.lang.String" => Primitive::Text,
            _ => return None,
        })
    }
}
