//! The executable files that are mapped into this process.
//!
//! Each file is mapped a second time, as data and for ever: unwind tables and names can then be read at any
//! time, from a signal handler too, even after the library was unloaded. The pages are the page cache's, so it
//! costs address space and no memory of its own. At most [`FILES_MAX`] files are kept.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::Arc;

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

/// Files kept; the code of further ones is sampled but stays without names.
const FILES_MAX: usize = 1024;
/// Mappings read from `/proc/self/maps` in one go.
const MAPPINGS_MAX: usize = 65_536;
/// Functions looked at to tell whether a file was built with frame pointers.
const FUNCTIONS_PROBED: usize = 256;

/// Executable memory and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// Where it is mapped.
    pub(crate) range: Range<u64>,
    /// What to subtract from an address here to get the one in the file.
    pub(crate) bias: u64,
    /// Its file, if it could be read.
    pub(crate) image: Option<Arc<Image>>,
    /// Its path or name, as the kernel says.
    pub(crate) path: Arc<str>,
}

/// A mapped ELF file.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) bytes: &'static [u8],
    pub(crate) path: Arc<str>,
    /// GNU build id in hex, empty if it has none.
    pub(crate) build_id: String,
    /// Whether its functions keep frame pointers.
    pub(crate) frame_pointers: bool,
    /// Executable ones.
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    file: Range<u64>,
    address: u64,
}

/// What `/proc/self/maps` says of one executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    offset: u64,
    inode: u64,
    path: String,
}

/// All modules, kept up to date.
#[derive(Default)]
pub(crate) struct Modules {
    images: HashMap<(u64, String), Option<Arc<Image>>>,
    mappings: Vec<Mapping>,
    modules: Arc<[Module]>,
}

impl Modules {
    /// Reads the list again. Returns whether it changed.
    pub(crate) fn refresh(&mut self) -> bool {
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
            return false;
        };
        let mappings: Vec<Mapping> = maps.lines().take(MAPPINGS_MAX).filter_map(parse_executable).collect();
        if mappings == self.mappings {
            return false;
        }
        self.modules = mappings.iter().map(|mapping| self.module(mapping)).collect();
        self.mappings = mappings;
        true
    }

    /// By address.
    pub(crate) fn list(&self) -> &Arc<[Module]> {
        &self.modules
    }

    fn module(&mut self, mapping: &Mapping) -> Module {
        let image = self.image(mapping);
        let bias = image.as_ref().map_or(0, |image| image.bias(mapping.range.start, mapping.offset));
        Module {
            range: mapping.range.clone(),
            bias,
            path: image
                .as_ref()
                .map_or_else(|| mapping.path.as_str().into(), |image| image.path.clone()),
            image,
        }
    }

    fn image(&mut self, mapping: &Mapping) -> Option<Arc<Image>> {
        let key = (mapping.inode, mapping.path.clone());
        if let Some(known) = self.images.get(&key) {
            return known.clone();
        }
        if self.images.len() >= FILES_MAX {
            return None;
        }
        let bytes = match mapping.path.as_str() {
            "[vdso]" => Some(copy_vdso(mapping.range.clone())),
            path if path.starts_with('/') => map_file(path),
            _ => None,
        };
        let image = bytes.and_then(|bytes| Image::parse(bytes, &mapping.path)).map(Arc::new);
        self.images.insert(key, image.clone());
        image
    }
}

impl Image {
    fn parse(bytes: &'static [u8], path: &str) -> Option<Image> {
        let file = object::File::parse(bytes).ok()?;
        let build_id = file.build_id().ok().flatten().unwrap_or_default();
        let segments = file
            .segments()
            // Neighbours share a page of the file, and only this kind is mapped executable.
            .filter(|segment| segment.permissions().executable())
            .map(|segment| Segment {
                file: segment.file_range().0..segment.file_range().0 + segment.file_range().1,
                address: segment.address(),
            })
            .collect();
        Some(Image {
            bytes,
            path: path.into(),
            build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            frame_pointers: has_frame_pointers(&file),
            segments,
        })
    }

    /// The difference between memory and file addresses for a mapping at `start` of the file from `offset` on.
    fn bias(&self, start: u64, offset: u64) -> u64 {
        // A mapping begins at a page, a segment anywhere in its first page.
        let holds = |segment: &&Segment| segment.file.start & !4095 <= offset && offset < segment.file.end;
        self.segments.iter().find(holds).map_or(0, |segment| {
            start
                .wrapping_sub(offset)
                .wrapping_add(segment.file.start)
                .wrapping_sub(segment.address)
        })
    }

    /// A section's address range and content; `None` if it is absent or compressed.
    pub(crate) fn section(&self, name: &str) -> Option<(Range<u64>, &'static [u8])> {
        let file = object::File::parse(self.bytes).ok()?;
        let section = file.section_by_name(name)?;
        let data = section.data().ok()?;
        Some((section.address()..section.address() + section.size(), data))
    }
}

/// The module that holds `address`.
pub(crate) fn find(modules: &[Module], address: u64) -> Option<&Module> {
    let after = modules.partition_point(|module| module.range.start <= address);
    modules[..after].last().filter(|module| module.range.contains(&address))
}

fn parse_executable(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_start();
    if !rights.contains('x') || path == "[vsyscall]" {
        return None;
    }
    Some(Mapping {
        range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
        offset,
        inode,
        path: path.to_owned(),
    })
}

/// Whether nearly all of a sample of its functions set up a frame pointer first thing. The few that do not are
/// usually C code linked in; unwinding notices most of them, see `unwind`.
fn has_frame_pointers(file: &object::File<'static>) -> bool {
    let Some((text, code)) = file.section_by_name(".text").and_then(|s| Some((s.address(), s.data().ok()?))) else {
        return false;
    };
    let functions: Vec<u64> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() >= 16)
        .map(|symbol| symbol.address())
        .collect();
    let step = functions.len().div_ceil(FUNCTIONS_PROBED).max(1);
    let starts = functions.iter().step_by(step);
    let probed: Vec<bool> = starts
        .filter_map(|address| code.get(usize::try_from(address.checked_sub(text)?).ok()?..))
        .map(begins_with_frame)
        .collect();
    let with = probed.iter().filter(|found| **found).count();
    probed.len() >= 16 && with * 10 >= probed.len() * 9
}

/// Whether code begins by saving and setting the frame pointer, within its first four instructions or so.
fn begins_with_frame(code: &[u8]) -> bool {
    let head = &code[..code.len().min(16)];
    if cfg!(target_arch = "aarch64") {
        // stp x29, x30, [sp, ...], with any offset
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        return head.chunks_exact(4).any(|bytes| word(bytes) & 0xfe40_7fff == 0xa800_7bfd);
    }
    // push rbp; mov rbp, rsp
    head.windows(4).any(|bytes| bytes == [0x55, 0x48, 0x89, 0xe5])
}

fn map_file(path: &str) -> Option<&'static [u8]> {
    // The executable may have been replaced since it was started; the link still leads to what runs.
    let is_own = std::fs::read_link("/proc/self/exe").is_ok_and(|exe| exe.to_str() == Some(path));
    if path.ends_with(" (deleted)") && !is_own {
        return None;
    }
    let file = File::open(if is_own { "/proc/self/exe" } else { path }).ok()?;
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let len = usize::try_from(metadata.len()).ok().filter(|len| *len > 0)?;
    // SAFETY: a new private read-only mapping of `len` bytes of an open file, never unmapped, so a static
    // borrow of it is valid. Executables and libraries in use are replaced by rename, not truncated in place.
    unsafe {
        let address = libc::mmap(ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        (address != libc::MAP_FAILED).then(|| std::slice::from_raw_parts(address.cast::<u8>(), len))
    }
}

/// The kernel's own little library has no file; its image in memory is one.
fn copy_vdso(range: Range<u64>) -> &'static [u8] {
    // SAFETY: the kernel maps the vdso readable into every process for its whole life, at the range it states.
    let image = unsafe { std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize) };
    Box::leak(image.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_code_is_found_in_our_own_module() {
        let mut modules = Modules::default();
        assert!(modules.refresh());
        assert!(!modules.refresh(), "nothing was loaded in between");
        let here = our_own_code_is_found_in_our_own_module as fn() as usize as u64;
        let module = find(modules.list(), here).expect("mapped");
        let image = module.image.as_ref().expect("our executable is readable");
        let file = object::File::parse(image.bytes).expect("an ELF file");
        let stated = file
            .symbols()
            .find(|symbol| symbol.address() == here.wrapping_sub(module.bias))
            .expect("a symbol here");
        assert!(stated.name().expect("text").contains("our_own_code_is_found"), "{stated:?}");
        assert!(image.section(".eh_frame").is_some());
        assert!(find(modules.list(), 8).is_none());
    }

    #[test]
    fn only_executable_mappings_count() {
        let line = "7f1-7f2 r-xp 00001000 fe:00 77      /usr/lib/with space.so";
        let mapping = parse_executable(line).expect("executable");
        assert_eq!((mapping.range, mapping.offset, mapping.inode), (0x7f1..0x7f2, 0x1000, 77));
        assert_eq!(mapping.path, "/usr/lib/with space.so");
        assert_eq!(parse_executable("7f1-7f2 rw-p 00000000 00:00 0"), None);
        assert_eq!(parse_executable(""), None);
    }
}
