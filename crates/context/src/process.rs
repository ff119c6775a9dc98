//! The process context: who a process is, for readers outside it (OTEP 4719).
//!
//! A header of 32 bytes lies in a mapping with a name that readers find in `/proc/PID/maps`, and points to a
//! protobuf payload. Its time is 0 while the writer is at work and grows with every update, so a reader copies
//! time, header, payload and time again, and knows that they belong together if both times are equal and not 0.
//!
//! One context per process; a second [`Published`] would hide behind the first.

mod message;
mod publish;

use std::sync::atomic::{Ordering, fence};

use spanflame_model::{Attributes, Value};

pub use publish::Published;

use crate::{Error, memory};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 32;
/// The version of the header that we write and read.
pub const VERSION: u32 = 2;
/// Readers refuse larger payloads, so writers must not publish them.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// Attribute that says how thread contexts are laid out, e.g. [`crate::thread::SCHEMA`].
pub const SCHEMA_VERSION: &str = "threadlocal.schema_version";
/// Attribute that lists the names of the keys in thread records, by position.
pub const ATTRIBUTE_KEY_MAP: &str = "threadlocal.attribute_key_map";

const SIGNATURE: &[u8; 8] = b"OTEL_CTX";
const MAPPING_NAMES: [&str; 3] = ["/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"];
const READS_MAX: u32 = 8;

/// What a process says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessContext {
    /// Its resource, as on the spans it sends.
    pub resource: Attributes,
    /// What readers need beyond the resource.
    pub attributes: Attributes,
}

impl ProcessContext {
    /// A context that announces thread records written by [`crate::thread`].
    pub fn new(resource: Attributes) -> ProcessContext {
        let attributes = [
            (SCHEMA_VERSION, Value::from(crate::thread::SCHEMA)),
            (ATTRIBUTE_KEY_MAP, Value::Array(Vec::new())),
        ];
        ProcessContext {
            resource,
            attributes: attributes.into_iter().collect(),
        }
    }

    /// Reads a payload.
    pub fn parse(payload: &[u8]) -> Result<ProcessContext, Error> {
        message::decode(payload)
    }

    /// The payload that [`ProcessContext::parse`] reads.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let payload = message::encode(self);
        match payload.len() {
            0..=PAYLOAD_BYTES_MAX => Ok(payload),
            size_bytes => Err(Error::TooLarge {
                size_bytes,
                size_bytes_max: PAYLOAD_BYTES_MAX,
            }),
        }
    }

    /// Reads the context of process `pid`; `None` if it publishes none.
    pub fn read(pid: u32) -> Result<Option<ProcessContext>, Error> {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|source| Error::System {
            call: "reading /proc/PID/maps",
            source,
        })?;
        match find_header(&maps) {
            Some(address) => read_at(pid, address).map(Some),
            None => Ok(None),
        }
    }
}

/// Address of the header, from the text of `/proc/PID/maps`.
pub fn find_header(maps: &str) -> Option<u64> {
    let line = maps.lines().find(|line| {
        // Address, rights, offset, device and inode come before the name.
        let name = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
        MAPPING_NAMES.iter().any(|known| name.starts_with(known))
    })?;
    let (start, _) = line.split_once('-')?;
    u64::from_str_radix(start, 16).ok()
}

/// The fixed part, in the byte order of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of the payload in bytes.
    pub payload_bytes: u32,
    /// CLOCK_BOOTTIME of the publication in nanoseconds; 0 while it is being written.
    pub published_ns: u64,
    /// Address of the payload in the process.
    pub payload_address: u64,
}

impl Header {
    /// Reads a header, whose time may be 0.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Error> {
        let number = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes inside the header"));
        let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes inside the header"));
        if &bytes[..8] != SIGNATURE {
            return Err(header_error("signature", number(0), "OTEL_CTX"));
        }
        if half(8) != VERSION {
            return Err(header_error("version", half(8).into(), "2"));
        }
        if half(12) as usize > PAYLOAD_BYTES_MAX {
            return Err(header_error("payload size", half(12).into(), "at most 65536"));
        }
        Ok(Header {
            payload_bytes: half(12),
            published_ns: number(16),
            payload_address: number(24),
        })
    }
}

fn header_error(what: &'static str, value: u64, expected: &'static str) -> Error {
    Error::Header { what, value, expected }
}

fn read_at(pid: u32, address: u64) -> Result<ProcessContext, Error> {
    for _ in 0..READS_MAX {
        let before = read_header(pid, address)?;
        if before.published_ns == 0 {
            std::thread::yield_now();
            continue;
        }
        let mut payload = vec![0; before.payload_bytes as usize];
        let copied = memory::read(pid, before.payload_address, &mut payload);
        fence(Ordering::SeqCst);
        if read_header(pid, address)? == before {
            copied?;
            return ProcessContext::parse(&payload);
        }
    }
    Err(Error::Busy { tries: READS_MAX })
}

fn read_header(pid: u32, address: u64) -> Result<Header, Error> {
    let mut bytes = [0; HEADER_BYTES];
    memory::read(pid, address, &mut bytes)?;
    Header::parse(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_found(maps: &str, expected: Option<u64>) {
        assert_eq!(find_header(maps), expected, "{maps}");
    }

    #[test]
    fn the_header_is_found_by_each_of_its_names() {
        check_found("7f00-8f00 rw-p 00000000 00:01 2077     /memfd:OTEL_CTX (deleted)", Some(0x7f00));
        check_found(
            "1-2 r--p 0 00:00 0 /bin/x\nabc-def rw-p 00000000 00:00 0    [anon:OTEL_CTX]\n",
            Some(0xabc),
        );
        check_found("abc-def rw-p 00000000 00:00 0    [anon_shmem:OTEL_CTX]", Some(0xabc));
        check_found("abc-def rw-p 00000000 00:00 0    /tmp/memfd:OTEL_CTX", None);
        check_found("", None);
    }

    #[test]
    fn a_context_survives_its_payload() {
        let resource: Attributes = [("service.name", Value::from("cart")), ("process.pid", Value::from(7))]
            .into_iter()
            .collect();
        let context = ProcessContext::new(resource);
        let payload = context.encode().expect("small");
        assert_eq!(ProcessContext::parse(&payload).expect("valid"), context);
    }

    #[test]
    fn a_payload_that_readers_refuse_is_not_published() {
        let resource: Attributes = [("service.name", "x".repeat(PAYLOAD_BYTES_MAX))].into_iter().collect();
        let error = ProcessContext::new(resource).encode().expect_err("too large");
        assert_eq!(error.kind(), crate::ErrorKind::TooLarge);
    }

    #[test]
    fn a_foreign_header_is_refused_with_what_it_holds() {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(SIGNATURE);
        bytes[8] = 1;
        let error = Header::parse(&bytes).expect_err("version 1");
        assert_eq!(error.to_string(), "process context header has version 0x1, expected 2");
        bytes[8] = 2;
        bytes[15] = 0xff;
        assert!(Header::parse(&bytes).is_err());
    }
}
