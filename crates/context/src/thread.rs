//! The thread context record: which span a thread runs now (OTEP 4947).
//!
//! Each thread owns one record and writes it in place: `valid` goes to 0, the ids change, `valid` goes back
//! to 1. Readers look while the thread is stopped, either by the kernel or by a signal handler on it, so the
//! order of the stores in program order is all that matters: compiler fences, no barriers of the CPU.
//!
//! The slot, [`SLOT_SYMBOL`], points to the record from the first [`set`] of a thread until it ends. Nothing
//! here allocates, locks or calls the system; [`current`] may be called from a signal handler.

use std::cell::UnsafeCell;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{Ordering, compiler_fence};

use spanflame_model::{SpanId, TraceId};

/// The thread-local variable that readers look up in `.dynsym`; it holds a pointer to the record or null.
pub const SLOT_SYMBOL: &str = "otel_thread_ctx_v1";
/// Value of the process attribute [`crate::process::SCHEMA_VERSION`] that announces this layout.
pub const SCHEMA: &str = "tlsdesc_v1_dev";

/// Bytes of a record before its attributes.
pub const HEADER_BYTES: usize = 28;
/// Readers should not copy more than this of a record.
pub const RECORD_BYTES_MAX: usize = 640;

/// Where the trace id is.
pub const TRACE_ID_OFFSET: usize = offset_of!(Record, trace_id);
/// Where the span id is.
pub const SPAN_ID_OFFSET: usize = offset_of!(Record, span_id);
/// Where the byte is that must be 1.
pub const VALID_OFFSET: usize = offset_of!(Record, valid);
/// Where the W3C trace flags are.
pub const TRACE_FLAGS_OFFSET: usize = offset_of!(Record, trace_flags);
/// Where the size of the attributes is, 16 bits in the byte order of the machine.
pub const ATTRIBUTES_SIZE_OFFSET: usize = offset_of!(Record, attributes_size_bytes);

/// The span that a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadContext {
    /// Its trace.
    pub trace_id: TraceId,
    /// The span itself, not the local root.
    pub span_id: SpanId,
    /// W3C trace flags; bit 0 is "sampled".
    pub trace_flags: u8,
}

/// One attribute of a record: a key by its position in the process attribute
/// [`crate::process::ATTRIBUTE_KEY_MAP`], and its value, UTF-8 by specification but not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Position in the key map.
    pub key_index: u8,
    /// The value.
    pub value: &'a [u8],
}

/// Says what the calling thread runs from now on; `None` for nothing.
pub fn set(context: Option<ThreadContext>) {
    RECORD.with(|cell| {
        let record = cell.0.get();
        // SAFETY: the record belongs to this thread and lives as long as its TLS. Only this function writes it,
        // it is not re-entered (a signal handler only reads), and the pointer is valid for every field.
        unsafe {
            ptr::write_volatile(&raw mut (*record).valid, 0);
            compiler_fence(Ordering::SeqCst);
            if let Some(context) = context {
                ptr::write_volatile(&raw mut (*record).trace_id, *context.trace_id.as_bytes());
                ptr::write_volatile(&raw mut (*record).span_id, *context.span_id.as_bytes());
                ptr::write_volatile(&raw mut (*record).trace_flags, context.trace_flags);
                compiler_fence(Ordering::SeqCst);
                ptr::write_volatile(&raw mut (*record).valid, 1);
                compiler_fence(Ordering::SeqCst);
                ptr::write_volatile(spanflame_thread_slot(), record.cast());
            }
        }
    });
}

/// What the calling thread runs, through the slot as any reader would. Signal safe.
pub fn current() -> Option<ThreadContext> {
    // SAFETY: the slot of the calling thread is always there. It is null or points to a record that lives as
    // long as the thread, written by `set` or by another tracer in this process under the same contract.
    unsafe {
        let record = ptr::read_volatile(spanflame_thread_slot()).cast::<Record>();
        if record.is_null() || ptr::read_volatile(&raw const (*record).valid) != 1 {
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        Some(ThreadContext {
            trace_id: TraceId::from_bytes(ptr::read_volatile(&raw const (*record).trace_id))?,
            span_id: SpanId::from_bytes(ptr::read_volatile(&raw const (*record).span_id))?,
            trace_flags: ptr::read_volatile(&raw const (*record).trace_flags),
        })
    }
}

/// Whether the final binary exports [`SLOT_SYMBOL`], without which no reader outside the process finds it.
pub fn is_exported() -> bool {
    // SAFETY: the name is a C string; for a TLS symbol `dlsym` returns the calling thread's variable, which
    // is compared and never read through.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"otel_thread_ctx_v1".as_ptr()) == spanflame_thread_slot().cast() }
}

/// Address of the calling thread's record, 0 before its first [`set`]: what a reader outside finds in the slot.
pub fn record_address() -> u64 {
    // SAFETY: the slot of the calling thread is always there.
    unsafe { ptr::read_volatile(spanflame_thread_slot()) as u64 }
}

impl ThreadContext {
    /// Reads a record that was copied from a stopped thread. `None` if it is short, not valid or names no span.
    pub fn parse(record: &[u8]) -> Option<ThreadContext> {
        if record.len() < HEADER_BYTES || record[VALID_OFFSET] != 1 {
            return None;
        }
        Some(ThreadContext {
            trace_id: TraceId::from_slice(&record[TRACE_ID_OFFSET..TRACE_ID_OFFSET + TraceId::LEN])?,
            span_id: SpanId::from_slice(&record[SPAN_ID_OFFSET..SPAN_ID_OFFSET + SpanId::LEN])?,
            trace_flags: record[TRACE_FLAGS_OFFSET],
        })
    }
}

/// The attributes of a copied record, in the writer's order; of equal keys the last one counts. Ends at the
/// first that does not fit.
pub fn attributes(record: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    let size = record
        .get(ATTRIBUTES_SIZE_OFFSET..HEADER_BYTES)
        .map_or(0, |bytes| usize::from(u16::from_ne_bytes([bytes[0], bytes[1]])));
    let body = record.get(HEADER_BYTES..).unwrap_or_default();
    let mut rest = &body[..size.min(body.len())];
    std::iter::from_fn(move || {
        let [key_index, len, tail @ ..] = rest else { return None };
        let value = tail.get(..usize::from(*len))?;
        rest = &tail[value.len()..];
        Some(Attribute {
            key_index: *key_index,
            value,
        })
    })
}

/// The layout of the specification. Sixteen-byte alignment keeps the ids of one record in one cache line.
#[repr(C, align(16))]
struct Record {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    valid: u8,
    trace_flags: u8,
    attributes_size_bytes: u16,
}

struct RecordCell(UnsafeCell<Record>);

thread_local! {
    // `const` and without a destructor: plain thread-local memory, there before and after every other TLS value.
    static RECORD: RecordCell = const {
        RecordCell(UnsafeCell::new(Record {
            trace_id: [0; 16],
            span_id: [0; 8],
            valid: 0,
            trace_flags: 0,
            attributes_size_bytes: 0,
        }))
    };
}

unsafe extern "C" {
    fn spanflame_thread_slot() -> *mut *mut libc::c_void;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(trace: u8, span: u8) -> ThreadContext {
        ThreadContext {
            trace_id: TraceId::from_bytes([trace; 16]).expect("not zero"),
            span_id: SpanId::from_bytes([span; 8]).expect("not zero"),
            trace_flags: 1,
        }
    }

    /// The record of the calling thread as a reader outside copies it.
    fn copied() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        crate::memory::read(std::process::id(), record_address(), &mut bytes).expect("our own memory");
        bytes
    }

    #[test]
    fn the_layout_is_the_one_of_otep_4947() {
        assert_eq!((TRACE_ID_OFFSET, SPAN_ID_OFFSET, VALID_OFFSET), (0, 16, 24));
        assert_eq!((TRACE_FLAGS_OFFSET, ATTRIBUTES_SIZE_OFFSET), (25, 26));
        assert_eq!(HEADER_BYTES, ATTRIBUTES_SIZE_OFFSET + 2);
    }

    #[test]
    fn nested_spans_are_read_back_from_inside_and_from_outside() {
        std::thread::spawn(|| {
            assert_eq!(record_address(), 0);
            let (outer, inner) = (context(1, 2), context(1, 3));
            for expected in [Some(outer), Some(inner), Some(outer), None, Some(inner)] {
                set(expected);
                assert_eq!(current(), expected);
                assert_eq!(ThreadContext::parse(&copied()), expected);
            }
        })
        .join()
        .expect("no assertion failed");
    }

    #[test]
    fn every_thread_has_its_own_record() {
        set(Some(context(4, 4)));
        let other = std::thread::spawn(|| {
            let before = current();
            set(Some(context(5, 5)));
            (before, record_address())
        });
        let (before, address) = other.join().expect("no panic");
        assert_eq!(before, None);
        assert_ne!(address, record_address());
        assert_eq!(current(), Some(context(4, 4)));
    }

    #[test]
    fn a_record_that_is_not_valid_names_no_span() {
        let mut record = vec![7; HEADER_BYTES];
        assert_eq!(ThreadContext::parse(&record), None);
        record[VALID_OFFSET] = 1;
        assert!(ThreadContext::parse(&record).is_some());
        assert_eq!(ThreadContext::parse(&record[..HEADER_BYTES - 1]), None);
        record[..16].fill(0);
        assert_eq!(ThreadContext::parse(&record), None);
    }

    #[test]
    fn attributes_end_at_the_first_that_does_not_fit() {
        let mut record = vec![0; HEADER_BYTES];
        record.extend(b"\x00\x02ab\x01\x00\x02\x09cd");
        let size = (record.len() - HEADER_BYTES) as u16;
        record[ATTRIBUTES_SIZE_OFFSET..HEADER_BYTES].copy_from_slice(&size.to_ne_bytes());
        let found: Vec<_> = attributes(&record).map(|a| (a.key_index, a.value)).collect();
        assert_eq!(found, [(0, &b"ab"[..]), (1, &b""[..])]);
        assert_eq!(attributes(&record[..10]).count(), 0);
    }
}
