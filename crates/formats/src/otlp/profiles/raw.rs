//! A request taken apart only as far as all layouts agree.
//!
//! Tables and profiles become lists of byte ranges; samples are walked where they lie. Nothing here grows
//! faster than the bytes it was read from.

use crate::wire::{Reader, Wire, WireError};
use crate::{Error, Limits};

/// A request: profiles with where they came from, and the tables they share.
pub(super) struct RawRequest<'a> {
    pub(super) groups: Vec<RawGroup<'a>>,
    pub(super) profiles: Vec<RawProfile<'a>>,
    pub(super) tables: Tables<'a>,
    /// Groups that could not be taken apart.
    pub(super) malformed: Vec<String>,
    pub(super) has_dictionary: bool,
}

/// Resource and scope, still as messages.
#[derive(Clone, Copy, Default)]
pub(super) struct RawGroup<'a> {
    pub(super) resource: &'a [u8],
    pub(super) scope: &'a [u8],
}

/// The tables of the dictionary, entries still as messages.
#[derive(Default)]
pub(super) struct Tables<'a> {
    pub(super) mappings: Vec<&'a [u8]>,
    pub(super) locations: Vec<&'a [u8]>,
    pub(super) functions: Vec<&'a [u8]>,
    pub(super) links: Vec<&'a [u8]>,
    pub(super) strings: Vec<&'a [u8]>,
    pub(super) attributes: Vec<&'a [u8]>,
    pub(super) stacks: Vec<&'a [u8]>,
}

/// A profile whose samples and later fields are not yet interpreted.
#[derive(Clone, Copy)]
pub(super) struct RawProfile<'a> {
    /// Position of its group.
    pub(super) group: usize,
    /// The whole message.
    pub(super) bytes: &'a [u8],
}

impl<'a> RawRequest<'a> {
    pub(super) fn read(bytes: &'a [u8], limits: &Limits) -> Result<RawRequest<'a>, Error> {
        let mut request = RawRequest {
            groups: Vec::new(),
            profiles: Vec::new(),
            tables: Tables::default(),
            malformed: Vec::new(),
            has_dictionary: false,
        };
        let mut fields = Reader::new(bytes);
        while let Some((field, wire)) = fields.next().map_err(malformed)? {
            match field {
                1 => request.read_resource(wire.bytes(field).map_err(malformed)?, limits)?,
                2 => {
                    request.has_dictionary = true;
                    request.tables.read(wire.bytes(field).map_err(malformed)?, limits)?;
                }
                _ => {}
            }
        }
        Ok(request)
    }

    /// Reads a `ResourceProfiles`. One that is broken inside costs no other.
    fn read_resource(&mut self, bytes: &'a [u8], limits: &Limits) -> Result<(), Error> {
        let mut resource: &[u8] = &[];
        let mut scopes = Vec::new();
        let mut fields = Reader::new(bytes);
        let result = loop {
            match fields.next() {
                Ok(None) => break Ok(()),
                Ok(Some((1, Wire::Bytes(bytes)))) => resource = bytes,
                Ok(Some((2, Wire::Bytes(bytes)))) => push(&mut scopes, bytes, limits)?,
                Ok(Some((field @ (1 | 2), _))) => break Err(WireError::Unexpected { field }),
                Ok(Some(_)) => {}
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = result {
            self.note(error);
        }
        scopes.into_iter().try_for_each(|scope| self.read_scope(resource, scope, limits))
    }

    fn read_scope(&mut self, resource: &'a [u8], bytes: &'a [u8], limits: &Limits) -> Result<(), Error> {
        let group = self.groups.len();
        push(&mut self.groups, RawGroup { resource, scope: &[] }, limits)?;
        let mut fields = Reader::new(bytes);
        let result = loop {
            match fields.next() {
                Ok(None) => break Ok(()),
                Ok(Some((1, Wire::Bytes(bytes)))) => self.groups[group].scope = bytes,
                Ok(Some((2, Wire::Bytes(bytes)))) => push(&mut self.profiles, RawProfile { group, bytes }, limits)?,
                Ok(Some((field @ (1 | 2), _))) => break Err(WireError::Unexpected { field }),
                Ok(Some(_)) => {}
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = result {
            self.note(error);
        }
        Ok(())
    }

    fn note(&mut self, error: WireError) {
        self.malformed.push(format!("a group of profiles breaks off: {error}"));
    }
}

impl<'a> Tables<'a> {
    fn read(&mut self, bytes: &'a [u8], limits: &Limits) -> Result<(), Error> {
        let mut fields = Reader::new(bytes);
        while let Some((field, wire)) = fields.next().map_err(malformed)? {
            let table = match field {
                1 => &mut self.mappings,
                2 => &mut self.locations,
                3 => &mut self.functions,
                4 => &mut self.links,
                5 => &mut self.strings,
                6 => &mut self.attributes,
                7 => &mut self.stacks,
                _ => continue,
            };
            let max = match field {
                5 => limits.strings_max,
                _ => limits.table_entries_max,
            };
            if table.len() >= max {
                return Err(Error::TooLarge {
                    what: "table entries",
                    max,
                });
            }
            table.push(wire.bytes(field).map_err(malformed)?);
        }
        Ok(())
    }
}

impl<'a> RawProfile<'a> {
    /// The samples, still as messages.
    pub(super) fn samples(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut fields = Reader::new(self.bytes);
        std::iter::from_fn(move || {
            loop {
                match fields.next() {
                    Ok(Some((2, Wire::Bytes(sample)))) => return Some(sample),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return None,
                }
            }
        })
    }

    /// All fields but the samples; ends at the first that is broken.
    pub(super) fn fields(&self) -> impl Iterator<Item = Result<(u32, Wire<'a>), WireError>> + use<'a> {
        let mut fields = Reader::new(self.bytes);
        let mut broken = false;
        std::iter::from_fn(move || {
            while !broken {
                match fields.next() {
                    Ok(Some((2, Wire::Bytes(_)))) => {}
                    Ok(Some(field)) => return Some(Ok(field)),
                    Ok(None) => return None,
                    Err(error) => {
                        broken = true;
                        return Some(Err(error));
                    }
                }
            }
            None
        })
    }
}

fn push<T>(list: &mut Vec<T>, item: T, limits: &Limits) -> Result<(), Error> {
    if list.len() >= limits.table_entries_max {
        return Err(Error::TooLarge {
            what: "resources, scopes and profiles",
            max: limits.table_entries_max,
        });
    }
    list.push(item);
    Ok(())
}

fn malformed(error: WireError) -> Error {
    Error::malformed(super::FORMAT, error)
}
