//! The writer of the process context.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::{HEADER_BYTES, ProcessContext, SIGNATURE, VERSION};
use crate::Error;

/// A published context; dropping it takes the context back.
#[derive(Debug)]
pub struct Published {
    header: *mut HeaderMemory,
    /// Readers follow the header's pointer into this, so it is replaced only while the header says "being written".
    payload: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone; all writes go through `&mut self`.
unsafe impl Send for Published {}

#[repr(C)]
struct HeaderMemory {
    signature: [u8; 8],
    version: u32,
    payload_bytes: u32,
    published_ns: AtomicU64,
    payload_address: u64,
}

const _: () = assert!(size_of::<HeaderMemory>() == HEADER_BYTES);

impl Published {
    /// Publishes `context` for readers outside the process. Fails only if the mapping could get no name.
    pub fn new(context: &ProcessContext) -> Result<Published, Error> {
        let payload = context.encode()?;
        let header = map_header()?;
        let mut published = Published {
            header,
            payload: Vec::new(),
        };
        published.write(payload);
        if name(header).is_err() && !is_findable()? {
            return Err(Error::last_os("prctl(PR_SET_VMA_ANON_NAME)"));
        }
        Ok(published)
    }

    /// Replaces what is published.
    pub fn update(&mut self, context: &ProcessContext) -> Result<(), Error> {
        let payload = context.encode()?;
        self.write(payload);
        // Tells readers that watch for it that there is something new; without kernel support they poll the time.
        let _ = name(self.header);
        Ok(())
    }

    fn write(&mut self, payload: Vec<u8>) {
        // SAFETY: `header` is a live mapping of at least the header's size, written by this value only. Readers
        // are outside the Rust abstract machine and copy it by the protocol of the module doc.
        unsafe {
            let before = (*self.header).published_ns.swap(0, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            ptr::write_volatile(&raw mut (*self.header).signature, *SIGNATURE);
            ptr::write_volatile(&raw mut (*self.header).version, VERSION);
            ptr::write_volatile(&raw mut (*self.header).payload_bytes, payload.len() as u32);
            ptr::write_volatile(&raw mut (*self.header).payload_address, payload.as_ptr() as u64);
            self.payload = payload;
            fence(Ordering::SeqCst);
            (*self.header).published_ns.store(boottime_ns().max(before + 1), Ordering::SeqCst);
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map_header` with this size and nothing refers to it any more.
        unsafe {
            (*self.header).published_ns.store(0, Ordering::SeqCst);
            libc::munmap(self.header.cast(), HEADER_BYTES);
        }
    }
}

/// A private mapping, of a memfd if the kernel gives one: its name is visible on kernels without named
/// anonymous memory. Not inherited over fork, where its pointer would name the parent's memory.
fn map_header() -> Result<*mut HeaderMemory, Error> {
    let fd = memfd();
    let flags = libc::MAP_PRIVATE | if fd < 0 { libc::MAP_ANONYMOUS } else { 0 };
    // SAFETY: a new mapping at an address of the kernel's choice; the descriptor is ours, or -1 with MAP_ANONYMOUS.
    let address = unsafe {
        let address = libc::mmap(ptr::null_mut(), HEADER_BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0);
        if fd >= 0 {
            libc::close(fd);
        }
        address
    };
    if address == libc::MAP_FAILED {
        return Err(Error::last_os("mmap"));
    }
    // SAFETY: the range is exactly the mapping made above.
    if unsafe { libc::madvise(address, HEADER_BYTES, libc::MADV_DONTFORK) } != 0 {
        let error = Error::last_os("madvise(MADV_DONTFORK)");
        // SAFETY: as above; nobody knows the address yet.
        unsafe { libc::munmap(address, HEADER_BYTES) };
        return Err(error);
    }
    Ok(address.cast())
}

/// A memfd of the header's size, or -1.
fn memfd() -> libc::c_int {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string; the descriptor is closed on failure and passed on else.
    unsafe {
        let mut fd = libc::memfd_create(c"OTEL_CTX".as_ptr(), flags | libc::MFD_NOEXEC_SEAL);
        if fd < 0 {
            // Kernels before 6.3 do not know the flag.
            fd = libc::memfd_create(c"OTEL_CTX".as_ptr(), flags);
        }
        if fd >= 0 && libc::ftruncate(fd, HEADER_BYTES as libc::off_t) != 0 {
            libc::close(fd);
            return -1;
        }
        fd
    }
}

fn name(header: *mut HeaderMemory) -> io::Result<()> {
    let name = c"OTEL_CTX".as_ptr();
    // SAFETY: names our own mapping; the kernel copies the string. Kernels without the feature answer EINVAL.
    let answer = unsafe {
        libc::prctl(
            libc::PR_SET_VMA,
            libc::PR_SET_VMA_ANON_NAME as libc::c_ulong,
            header as libc::c_ulong,
            HEADER_BYTES as libc::c_ulong,
            name,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn is_findable() -> Result<bool, Error> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|source| Error::System {
        call: "reading /proc/self/maps",
        source,
    })?;
    Ok(super::find_header(&maps).is_some())
}

fn boottime_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; the clock exists since Linux 2.6.39.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use spanflame_model::Value;

    fn context(service: &str) -> ProcessContext {
        ProcessContext::new([("service.name", Value::from(service))].into_iter().collect())
    }

    /// One test, because a process has one context.
    #[test]
    fn a_published_context_is_found_read_updated_and_taken_back() {
        let pid = std::process::id();
        assert_eq!(ProcessContext::read(pid).expect("readable"), None);
        let mut published = Published::new(&context("cart")).expect("memfd or named memory");
        assert_eq!(ProcessContext::read(pid).expect("readable"), Some(context("cart")));
        published.update(&context("a longer name than before")).expect("small");
        assert_eq!(
            ProcessContext::read(pid).expect("readable"),
            Some(context("a longer name than before"))
        );
        drop(published);
        assert_eq!(ProcessContext::read(pid).expect("readable"), None);
    }
}
