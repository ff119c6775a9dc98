//! From addresses to functions, files and lines, with what was inlined.
//!
//! Runs behind the sampler, on the exporting thread. Symbol tables are read when a file's first address is
//! asked for, line tables unit by unit. Without line tables a frame is its symbol; without a symbol it is its
//! module and address, which a server with debug files can still name.

use std::collections::HashMap;
use std::sync::Arc;

use addr2line::gimli::{self, EndianSlice, RunTimeEndian, SectionId};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use spanflame_model::{Frame, FrameId, StackSet};

use crate::sampler::{Image, Module, find};

/// Addresses remembered before the memory is emptied.
const KNOWN_MAX: usize = 200_000;
/// Inlined functions taken of one address.
const INLINES_MAX: usize = 64;

type Reader = EndianSlice<'static, RunTimeEndian>;

/// Names addresses of this process.
#[derive(Default)]
pub(crate) struct Resolver {
    files: HashMap<Arc<str>, Option<DebugFile>>,
    known: HashMap<(Arc<str>, u64), Arc<[Frame]>>,
}

/// What a file says about its code.
struct DebugFile {
    image: Arc<Image>,
    /// By address.
    symbols: Vec<Symbol>,
    lines: Option<addr2line::Context<Reader>>,
}

struct Symbol {
    address: u64,
    size: u64,
    name: &'static str,
}

impl Resolver {
    /// Adds the frames of `address` to `stacks`, innermost first, and their ids to `into`.
    pub(crate) fn frames(&mut self, modules: &[Module], address: u64, stacks: &mut StackSet, into: &mut Vec<FrameId>) {
        let Some(module) = find(modules, address) else {
            into.push(stacks.add_frame(unnamed("", "", address)));
            return;
        };
        let stated = address.wrapping_sub(module.bias);
        let frames = self.known(module, stated);
        into.extend(frames.iter().map(|frame| stacks.add_frame(frame.clone())));
    }

    fn known(&mut self, module: &Module, stated: u64) -> Arc<[Frame]> {
        let key = (module.path.clone(), stated);
        if let Some(frames) = self.known.get(&key) {
            return frames.clone();
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let frames: Arc<[Frame]> = match self.file(module) {
            Some(file) => file.frames(stated).into(),
            None => [unnamed(&module.path, "", stated)].into(),
        };
        self.known.insert(key, frames.clone());
        frames
    }

    fn file(&mut self, module: &Module) -> Option<&DebugFile> {
        let image = module.image.as_ref()?;
        let open = || DebugFile::open(image.clone());
        self.files.entry(module.path.clone()).or_insert_with(open).as_ref()
    }
}

impl DebugFile {
    fn open(image: Arc<Image>) -> Option<DebugFile> {
        let file = object::File::parse(image.bytes).ok()?;
        let mut symbols: Vec<Symbol> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0)
            .filter_map(|symbol| {
                Some(Symbol {
                    address: symbol.address(),
                    size: symbol.size(),
                    name: symbol.name().ok().filter(|name| !name.is_empty())?,
                })
            })
            .collect();
        symbols.sort_by_key(|symbol| symbol.address);
        symbols.dedup_by_key(|symbol| symbol.address);
        let lines = line_tables(&file);
        Some(DebugFile { image, symbols, lines })
    }

    fn frames(&self, stated: u64) -> Vec<Frame> {
        let mut frames = self.frames_by_lines(stated);
        let symbol = self.symbol(stated);
        if frames.is_empty() {
            frames.push(unnamed(&self.image.path, &self.image.build_id, stated));
        }
        // The symbol is the name of the outermost function, with its full path where debug info may have less.
        if let (Some(symbol), Some(outermost)) = (symbol, frames.last_mut()) {
            name(outermost, symbol.name);
        }
        // Several unnamed frames at one address say nothing; only names are worth a frame of their own.
        let outermost = frames.len() - 1;
        let mut at = 0;
        frames.retain(|frame| {
            at += 1;
            at - 1 == outermost || !frame.function.is_empty()
        });
        let outermost = frames.len() - 1;
        for frame in &mut frames[..outermost] {
            frame.inlined = true;
        }
        frames
    }

    /// Innermost first; empty without line tables for this address.
    fn frames_by_lines(&self, stated: u64) -> Vec<Frame> {
        let Some(context) = &self.lines else { return Vec::new() };
        let Ok(mut found) = context.find_frames(stated).skip_all_loads() else {
            return Vec::new();
        };
        let mut frames = Vec::new();
        while let Ok(Some(found)) = found.next() {
            let mut frame = unnamed(&self.image.path, &self.image.build_id, stated);
            if let Some(raw) = found.function.as_ref().and_then(|function| function.raw_name().ok()) {
                name(&mut frame, &raw);
            }
            if let Some(location) = found.location {
                frame.file = location.file.unwrap_or_default().to_owned();
                frame.line = location.line.map_or(0, i64::from);
                frame.column = location.column.map_or(0, i64::from);
            }
            frames.push(frame);
            if frames.len() >= INLINES_MAX {
                break;
            }
        }
        frames
    }

    fn symbol(&self, stated: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= stated);
        let symbol = self.symbols[..after].last()?;
        // Hand-written assembly often states no size.
        (symbol.size == 0 || stated - symbol.address < symbol.size).then_some(symbol)
    }
}

fn unnamed(module: &str, build_id: &str, address: u64) -> Frame {
    Frame {
        module: module.to_owned(),
        build_id: build_id.to_owned(),
        address: Some(address),
        kind: "native".to_owned(),
        ..Frame::default()
    }
}

/// Names a frame; the hash at the end of Rust's symbols says nothing to people and changes with every build.
fn name(frame: &mut Frame, symbol: &str) {
    let demangled = format!("{:#}", rustc_demangle::demangle(symbol));
    frame.system_name = if demangled == symbol { String::new() } else { symbol.to_owned() };
    frame.function = demangled;
    frame.address = None;
}

/// `None` for a file without DWARF that can be read.
fn line_tables(file: &object::File<'static>) -> Option<addr2line::Context<Reader>> {
    file.section_by_name(".debug_line")
        .or_else(|| file.section_by_name(".zdebug_line"))?;
    let endian = if file.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    };
    let load = |id: SectionId| -> Result<Reader, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
        let bytes: &'static [u8] = match data {
            None => &[],
            Some(std::borrow::Cow::Borrowed(bytes)) => bytes,
            // Compressed debug info: unpacked once per file, and files stay for ever.
            Some(std::borrow::Cow::Owned(bytes)) => Box::leak(bytes.into_boxed_slice()),
        };
        Ok(EndianSlice::new(bytes, endian))
    };
    let dwarf = gimli::Dwarf::load(load).ok()?;
    addr2line::Context::from_dwarf(dwarf).ok()
}
