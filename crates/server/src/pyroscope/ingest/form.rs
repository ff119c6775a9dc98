//! The parts of a `multipart/form-data` body that is in memory already.

use std::convert::Infallible;

use bytes::Bytes;
use futures::executor::block_on;

use crate::failure::Failure;

/// Most parts of a form; clients send up to three.
const PARTS_MAX: usize = 32;

/// A form, its parts in order.
pub(super) struct Form {
    parts: Vec<(String, Bytes)>,
}

impl Form {
    pub(super) fn read(body: &[u8], boundary: &str) -> Result<Form, Failure> {
        let broken = |error: multer::Error| Failure::invalid("body", format!("the body is no multipart/form-data: {error}"));
        let stream = futures::stream::iter([Ok::<Bytes, Infallible>(Bytes::copy_from_slice(body))]);
        let mut fields = multer::Multipart::new(stream, boundary);
        let mut parts = Vec::new();
        // Nothing is waited for: all bytes are there.
        while let Some(field) = block_on(fields.next_field()).map_err(broken)? {
            if parts.len() == PARTS_MAX {
                return Err(Failure::invalid("body", format!("the form has more than {PARTS_MAX} parts")));
            }
            let name = field.name().unwrap_or_default().to_owned();
            parts.push((name, block_on(field.bytes()).map_err(broken)?));
        }
        Ok(Form { parts })
    }

    /// The content of the first part of this name.
    pub(super) fn part(&self, name: &str) -> Option<&[u8]> {
        self.parts.iter().find(|(n, _)| n == name).map(|(_, content)| &content[..])
    }

    /// The content of the one part, whatever its name.
    pub(super) fn only_part(&self) -> Option<&[u8]> {
        match &self.parts[..] {
            [(_, content)] => Some(content),
            _ => None,
        }
    }
}
