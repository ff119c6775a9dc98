//! Bytes of another process.

use std::io;

use crate::Error;

/// Copies the `into.len()` bytes at `address` of process `pid`. Fails unless all of them could be read; needs
/// the rights of a debugger for any process but our own.
pub fn read(pid: u32, address: u64, into: &mut [u8]) -> Result<(), Error> {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    // SAFETY: `local` describes exactly the bytes of `into`, which is borrowed mutably for the call. The kernel
    // checks `remote` and answers EFAULT for addresses that are not readable.
    let copied = unsafe { libc::process_vm_readv(pid as libc::pid_t, &local, 1, &remote, 1, 0) };
    match usize::try_from(copied) {
        Ok(copied) if copied == into.len() => Ok(()),
        Ok(_) => Err(Error::System {
            call: "process_vm_readv",
            source: io::ErrorKind::UnexpectedEof.into(),
        }),
        Err(_) => Err(Error::last_os("process_vm_readv")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmapped_memory_is_an_error_and_no_fault() {
        let mut bytes = [0; 8];
        assert!(read(std::process::id(), 8, &mut bytes).is_err());
        let source = [1_u8, 2, 3, 4, 5, 6, 7, 8];
        read(std::process::id(), source.as_ptr() as u64, &mut bytes).expect("mapped");
        assert_eq!(bytes, source);
    }
}
