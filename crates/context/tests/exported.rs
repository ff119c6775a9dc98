//! What the linker flag of `docs/sdk.md` does to a final binary. This test binary is built with it.

use object::{Object, ObjectSymbol, SymbolFlags};
use spanflame_context::thread;

#[test]
fn the_slot_is_a_global_tls_symbol_of_eight_bytes_in_dynsym() {
    let exe = std::fs::read("/proc/self/exe").expect("readable");
    let file = object::File::parse(&*exe).expect("an ELF file");
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(thread::SLOT_SYMBOL))
        .expect("in .dynsym");
    assert_eq!(symbol.size(), 8);
    let SymbolFlags::Elf { st_info, st_other } = symbol.flags() else {
        panic!("{:?} is no flag of ELF", symbol.flags());
    };
    // STB_GLOBAL and STT_TLS; STV_DEFAULT.
    assert_eq!((st_info.0 >> 4, st_info.0 & 15, st_other.0 & 3), (1, 6, 0));
}

#[test]
fn the_writer_sees_that_its_binary_exports_the_slot() {
    assert!(thread::is_exported());
}
