//! From the registers of an interrupted thread to the addresses on its stack, inside a signal handler.
//!
//! The interrupted function may be anywhere, so its frame is always taken from the unwind tables. Its callers
//! stand at calls: where their file keeps frame pointers two loads give the next frame; elsewhere, and where
//! these loads lead to nothing plausible, the tables do (framehop, without allocation).
//!
//! The stack is read through the kernel, page by page, which answers an error where a wrong guess would fault:
//! a sampler must not be able to crash its host. Nothing here allocates, locks or panics.

use std::ops::Range;

use framehop::{CacheNative, ExplicitModuleSectionInfo, FrameAddress, MustNotAllocateDuringUnwind, Unwinder, UnwinderNative};

use super::module::{Image, Module};

/// Frames kept of one stack, from the leaf on; what lies beyond is cut off.
pub(super) const FRAMES_MAX: usize = 256;

const PAGE_BYTES: u64 = 4096;
const PAGE_WORDS: usize = 512;
/// Callers further away than this are not believed to be on the same stack.
const FRAME_BYTES_MAX: u64 = 1 << 20;

/// Registers that unwinding needs.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    pub(super) pc: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
    /// Link register, where the architecture has one.
    #[cfg_attr(not(target_arch = "aarch64"), expect(dead_code, reason = "x86-64 has none"))]
    pub(super) lr: u64,
}

/// What unwinding writes to; one per thread.
pub(super) struct Scratch {
    cache: CacheNative<MustNotAllocateDuringUnwind>,
    pages: Pages,
    /// Addresses to look up, leaf first: the interrupted one, then of each caller the last byte of its call.
    pub(super) frames: [u64; FRAMES_MAX],
}

/// Where code lies and how to unwind it. Read by all handlers, replaced as a whole when libraries come and go.
pub(super) struct UnwindTable {
    unwinder: UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>,
    code: Vec<Code>,
}

struct Code {
    range: Range<u64>,
    frame_pointers: bool,
}

impl Scratch {
    pub(super) fn new() -> Scratch {
        Scratch {
            cache: CacheNative::new_in(),
            pages: Pages::new(),
            frames: [0; FRAMES_MAX],
        }
    }
}

impl UnwindTable {
    pub(super) fn new(modules: &[Module]) -> UnwindTable {
        let mut unwinder = UnwinderNative::new();
        for module in modules {
            if let Some(image) = &module.image {
                unwinder.add_module(framehop::Module::new(
                    module.path.to_string(),
                    module.range.clone(),
                    module.bias,
                    sections(image),
                ));
            }
        }
        let code = modules.iter().map(|module| Code {
            range: module.range.clone(),
            frame_pointers: module.image.as_ref().is_some_and(|image| image.frame_pointers),
        });
        UnwindTable {
            unwinder,
            code: code.collect(),
        }
    }

    /// Fills `scratch.frames` and returns how many there are, at least the interrupted one. Signal safe.
    pub(super) fn walk(&self, registers: Registers, scratch: &mut Scratch) -> usize {
        scratch.pages.clear();
        scratch.frames[0] = registers.pc;
        let mut at = FrameAddress::from_instruction_pointer(registers.pc);
        let mut regs = native(registers);
        for depth in 1..FRAMES_MAX {
            let Some(caller) = self.step(at, &mut regs, &mut scratch.cache, &mut scratch.pages) else {
                return depth;
            };
            at = caller;
            scratch.frames[depth] = at.address_for_lookup();
        }
        FRAMES_MAX
    }

    fn step(
        &self,
        at: FrameAddress,
        regs: &mut framehop::UnwindRegsNative,
        cache: &mut CacheNative<MustNotAllocateDuringUnwind>,
        pages: &mut Pages,
    ) -> Option<FrameAddress> {
        if at.is_return_address()
            && self.code_at(at.address_for_lookup()).is_some_and(|code| code.frame_pointers)
            && let Some(caller) = self.step_by_frame_pointer(regs, pages)
        {
            return Some(caller);
        }
        let caller = self
            .unwinder
            .unwind_frame(at, regs, cache, &mut |address| pages.word(address).ok_or(()));
        FrameAddress::from_return_address(caller.ok().flatten()?)
    }

    /// `None` unless the saved frame pointer lies above, near, and the return address in known code.
    fn step_by_frame_pointer(&self, regs: &mut framehop::UnwindRegsNative, pages: &mut Pages) -> Option<FrameAddress> {
        let fp = frame_pointer(regs);
        let sp = regs.sp();
        if !fp.is_multiple_of(8) || fp < sp || fp - sp > FRAME_BYTES_MAX {
            return None;
        }
        let (saved_fp, caller) = (pages.word(fp)?, pages.word(fp + 8)?);
        self.code_at(caller.checked_sub(1)?)?;
        if saved_fp <= fp {
            return None;
        }
        *regs = native(Registers {
            pc: caller,
            sp: fp + 16,
            fp: saved_fp,
            lr: caller,
        });
        FrameAddress::from_return_address(caller)
    }

    fn code_at(&self, address: u64) -> Option<&Code> {
        let after = self.code.partition_point(|code| code.range.start <= address);
        self.code[..after].last().filter(|code| code.range.contains(&address))
    }
}

fn sections(image: &Image) -> ExplicitModuleSectionInfo<&'static [u8]> {
    let split = |found: Option<(Range<u64>, &'static [u8])>| match found {
        Some((range, data)) => (Some(range), Some(data)),
        None => (None, None),
    };
    let (text_svma, text) = split(image.section(".text"));
    let (eh_frame_svma, eh_frame) = split(image.section(".eh_frame"));
    let (eh_frame_hdr_svma, eh_frame_hdr) = split(image.section(".eh_frame_hdr"));
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma,
        text,
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        got_svma: split(image.section(".got")).0,
        ..ExplicitModuleSectionInfo::default()
    }
}

#[cfg(target_arch = "x86_64")]
fn native(registers: Registers) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.pc, registers.sp, registers.fp)
}

#[cfg(target_arch = "x86_64")]
fn frame_pointer(regs: &framehop::UnwindRegsNative) -> u64 {
    regs.bp()
}

#[cfg(target_arch = "aarch64")]
fn native(registers: Registers) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.lr, registers.sp, registers.fp)
}

#[cfg(target_arch = "aarch64")]
fn frame_pointer(regs: &framehop::UnwindRegsNative) -> u64 {
    regs.fp()
}

/// The pages of the stack that were read last. Frames ascend, so two suffice.
struct Pages {
    words: [[u64; PAGE_WORDS]; 2],
    starts: [u64; 2],
    oldest: usize,
}

/// No page starts here.
const NO_PAGE: u64 = u64::MAX;

impl Pages {
    fn new() -> Pages {
        Pages {
            words: [[0; PAGE_WORDS]; 2],
            starts: [NO_PAGE; 2],
            oldest: 0,
        }
    }

    fn clear(&mut self) {
        self.starts = [NO_PAGE; 2];
    }

    /// The word at `address`; `None` if it is not aligned or cannot be read.
    fn word(&mut self, address: u64) -> Option<u64> {
        if !address.is_multiple_of(8) {
            return None;
        }
        let start = address & !(PAGE_BYTES - 1);
        let page = match self.starts.iter().position(|known| *known == start) {
            Some(page) => page,
            None => self.load(start)?,
        };
        Some(self.words[page][(address - start) as usize / 8])
    }

    fn load(&mut self, start: u64) -> Option<usize> {
        let page = self.oldest;
        self.starts[page] = NO_PAGE;
        let local = libc::iovec {
            iov_base: self.words[page].as_mut_ptr().cast(),
            iov_len: PAGE_BYTES as usize,
        };
        let remote = libc::iovec {
            iov_base: start as *mut libc::c_void,
            iov_len: PAGE_BYTES as usize,
        };
        // SAFETY: `local` is exactly the page buffer, borrowed mutably; the kernel checks `remote` and answers an
        // error where nothing is mapped. A plain system call, so signal safe; our own memory needs no rights.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        if copied != PAGE_BYTES as isize {
            return None;
        }
        self.starts[page] = start;
        self.oldest = 1 - page;
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use std::mem;

    use super::*;
    use crate::sampler::module::Modules;
    use crate::sampler::signal::registers;

    /// The stack at this point, as a handler that interrupts it would see it.
    #[inline(never)]
    fn walk_here(table: &UnwindTable, scratch: &mut Scratch) -> Vec<u64> {
        // SAFETY: all-zero is a valid `ucontext_t`, and `getcontext` fills it with the registers of this function.
        let context = unsafe {
            let mut context: libc::ucontext_t = mem::zeroed();
            libc::getcontext(&mut context);
            context
        };
        let depth = table.walk(registers(&context), scratch);
        scratch.frames[..depth].to_vec()
    }

    #[inline(never)]
    fn recurse(depth: u32, table: &UnwindTable, scratch: &mut Scratch) -> Vec<u64> {
        match depth {
            0 => walk_here(table, scratch),
            _ => std::hint::black_box(recurse(depth - 1, table, scratch)),
        }
    }

    #[test]
    fn frame_pointers_and_tables_lead_to_the_same_callers() {
        let mut modules = Modules::default();
        modules.refresh();
        let mut scratch = Scratch::new();
        let mut table = UnwindTable::new(modules.list());
        let here = frame_pointers_and_tables_lead_to_the_same_callers as fn() as usize as u64;
        assert!(
            table.code_at(here).is_some_and(|code| code.frame_pointers),
            "set in .cargo/config.toml"
        );
        let walks = [true, false].map(|frame_pointers| {
            table.code.iter_mut().for_each(|code| code.frame_pointers &= frame_pointers);
            recurse(20, &table, &mut scratch)
        });
        assert!(walks[0].len() > 25, "{walks:?}");
        // The last one is in the C library, where there are only tables.
        assert_eq!(walks[0], walks[1]);
    }

    #[test]
    fn a_stack_deeper_than_a_sample_is_cut_at_the_root_end() {
        let mut modules = Modules::default();
        modules.refresh();
        let table = UnwindTable::new(modules.list());
        let mut scratch = Scratch::new();
        assert_eq!(recurse(FRAMES_MAX as u32 + 10, &table, &mut scratch).len(), FRAMES_MAX);
    }

    #[test]
    fn registers_that_lead_nowhere_end_the_walk_without_a_fault() {
        let mut modules = Modules::default();
        modules.refresh();
        let table = UnwindTable::new(modules.list());
        let mut scratch = Scratch::new();
        for word in [0, 8, 0x1000, 0xdead_beef_dead_beef, u64::MAX - 7] {
            let registers = Registers {
                pc: walk_here as fn(_, _) -> _ as usize as u64 + 1,
                sp: word,
                fp: word,
                lr: word,
            };
            assert_eq!(table.walk(registers, &mut scratch), 1, "{word:#x}");
        }
    }
}
